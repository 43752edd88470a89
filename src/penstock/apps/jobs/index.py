"""An inverted index: in which files each word occurs, and how often.

Returns   (word, (document, count)), words in bytewise order, documents ascending; documents are the files in the order
          of `list_files`, counted from 0
Phases    the words of each file are counted by themselves; the postings of a word meet by sorting
"""

from __future__ import annotations

from typing import Any

import numpy as np

from penstock.apps.grouped import mapped
from penstock.apps.jobs.options import Listing, Recurse
from penstock.apps.jobs.wordcount import word_count
from penstock.mapreduce.files import list_files
from penstock.mapreduce.keyvalue import KeyValue
from penstock.mapreduce.session import MapReduce

POSTING = np.dtype([("document", np.uint32), ("count", np.uint32)])


def inverted_index(mr: MapReduce, paths: Any, *, recurse: Recurse = False, listing: Listing = False) -> KeyValue:
    """The documents of every word, with how often it is there."""
    found = mr.keyvalue(key="string", value=POSTING)
    for number, path in enumerate(list_files(paths, recurse, listing)):

        def post(keys: Any, values: np.ndarray, number: int = number) -> tuple[Any, np.ndarray]:
            made = np.empty(len(keys), POSTING)
            made["document"], made["count"] = number, values
            return keys, made

        with word_count(mr, path) as counted:
            found = found.add(mapped(counted, post, "string", POSTING))
    return found.sort_keys()


__all__ = ["POSTING", "inverted_index"]
