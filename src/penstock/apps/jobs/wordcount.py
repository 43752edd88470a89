"""How often each word occurs in text files.

Returns   (word, count), in no order; sort_values(descending=True) has the most frequent first
Defined   words are what stands between white space (as C has it), byte by byte
Phases    pieces of the files, cut at ends of lines, are counted in a table per thread; what these have no room for
          passes as text, in parts by the hash of the words, and is counted part by part, together with them
"""

from __future__ import annotations

from typing import Any

import numpy as np

from penstock.apps.jobs.options import Listing, Recurse
from penstock.apps.jobs.passing import WordCounter
from penstock.mapreduce.files import list_files
from penstock.mapreduce.functions import chunk
from penstock.mapreduce.keyvalue import KeyValue
from penstock.mapreduce.session import MapReduce


def word_count(
    mr: MapReduce, paths: Any, *, recurse: Recurse = False, listing: Listing = False, separator: bytes = b"\n"
) -> KeyValue:
    """Count the words of files; folders stand for the files in them. Pieces are cut at the separator."""
    counter = WordCounter(mr, sum(path.stat().st_size for path in list_files(paths, recurse, listing)))

    @chunk(key="string", value=np.int64, parallel=True)
    def count(piece: np.ndarray) -> None:
        counter.add(piece)

    mr.map_pieces(paths, count, separator=separator, recurse=recurse, listing=listing).close()
    return counter.done()


__all__ = ["word_count"]
