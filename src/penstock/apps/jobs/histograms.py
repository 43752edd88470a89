"""How often each key occurs.

Returns   (key, count), by ascending key
"""

from __future__ import annotations

import os
from typing import Annotated, Any

import numpy as np

from penstock.apps.grouped import mapped
from penstock.apps.jobs.keys import keys_of
from penstock.mapreduce.keyvalue import KeyValue
from penstock.mapreduce.session import MapReduce


def histogram(
    mr: MapReduce, keys: Any, *, column: Annotated[str | None, "Which column of a table has the keys."] = None
) -> KeyValue:
    """Counts of equal keys: of a KeyValue, an array or a list; with several ranks, of what each has. Of paths, counts
    of the lines of text files or of the values in a column of tables (.parquet, .arrow, .csv)."""
    given = keys if isinstance(keys, list | tuple) else [keys]
    if given and all(isinstance(each, os.PathLike) for each in given):
        pairs = keys_of(mr, given, column)
    else:
        pairs = keys if isinstance(keys, KeyValue) else mr.keyvalue(keys)
    return pairs.compress("count").collate().reduce("sum").sort_keys()


def degree_histogram(mr: MapReduce, degrees: KeyValue) -> KeyValue:
    """How many vertices have each degree: of what the job `degree` returns."""
    return histogram(mr, mapped(degrees, lambda keys, values: (values, None), np.int64, None))


__all__ = ["degree_histogram", "histogram"]
