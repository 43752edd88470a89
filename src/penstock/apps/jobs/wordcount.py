"""How often each word occurs in text files.

Returns   (word, count), in no order; sort_values(descending=True) has the most frequent first
Defined   words are what stands between white space (as C has it), byte by byte
Phases    pieces of the files, cut at ends of lines, are counted in a table per thread; what these have no room for
          passes, and is brought together with them by the hash of the words
"""

from __future__ import annotations

import queue
from typing import Any

import numpy as np

from penstock.apps.jobs.options import Listing, Recurse
from penstock.apps.jobs.table import WordTable, summed
from penstock.mapreduce.columns import Bytes, concat
from penstock.mapreduce.files import list_files
from penstock.mapreduce.functions import chunk
from penstock.mapreduce.keyvalue import KeyValue
from penstock.mapreduce.session import MapReduce

_SHARE, _SMALL_SHARE, _SMALL = 0.55, 0.25, 8 << 20
"""Of the budget, for tables; of a small one pieces of files, which have a least size, take more."""


def word_count(
    mr: MapReduce, paths: Any, *, recurse: Recurse = False, listing: Listing = False, separator: bytes = b"\n"
) -> KeyValue:
    """Count the words of files; folders stand for the files in them. Pieces are cut at the separator."""
    total = sum(path.stat().st_size for path in list_files(paths, recurse, listing))
    share = _SHARE if mr.budget.limit >= _SMALL else _SMALL_SHARE
    nbytes = min(int(mr.budget.limit * share), 24 * total + (4 << 20)) // mr.team.threads
    tables: queue.SimpleQueue[WordTable] = queue.SimpleQueue()
    for _ in range(mr.team.threads):
        tables.put(WordTable(mr, nbytes))

    @chunk(key="string", value=np.int64, parallel=True)
    def count(piece: np.ndarray) -> tuple[Bytes, np.ndarray] | None:
        table = tables.get()
        try:
            passed = table.add(piece)
        finally:
            tables.put(table)
        if not passed:
            return None
        words = concat(passed)
        return words, np.ones(len(words), np.int64)  # type: ignore[return-value]

    passing = mr.map_pieces(paths, count, separator=separator, recurse=recurse, listing=listing)
    rows = max(1024, mr.chunk_bytes // 64)
    with mr.writer("string", np.int64) as writer:
        for _ in range(mr.team.threads):
            for words, counts in tables.get().words(rows):
                writer.add_chunk(words, counts)
        counted = writer.done()
    both = passing.add(counted)
    passing.close()
    counted.close()
    with both:
        return summed(both)


__all__ = ["word_count"]
