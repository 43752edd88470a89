"""Words counted in a table for each thread, and those that these have no room for: text again, in parts by the upper
bits of the words' hash. A part's words, those in the tables too, fit into one small table, and part after part is
counted. A part that does not fit after all comes out in pairs that are still to be summed."""

from __future__ import annotations

import itertools
import queue
import threading

import numpy as np

from penstock.apps.jobs.table import NOWHERE, Passed, WordTable, summed
from penstock.mapreduce.chunk import Chunk
from penstock.mapreduce.columns import NOTHING, Bytes
from penstock.mapreduce.keyvalue import KeyValue
from penstock.mapreduce.room import Kept
from penstock.mapreduce.session import MapReduce
from penstock.mapreduce.writer import Writer

_SHARE, _SMALL_SHARE, _SMALL = 0.55, 0.25, 8 << 20
"""Of the budget, for tables; of a small one pieces of files, which have a least size, take more."""
_TEXT_SHARE = 1 / 16
"""Of the budget, for text that is not yet kept."""
_PART_SHARE = 1 / 8
"""Of the budget, for the tables of parts."""
_LEAST_ROW = 1 << 10


class WordCounter:
    """Counts the words of texts, several threads at a time, and gives the counts once. `total`: bytes of all texts."""

    def __init__(self, mr: MapReduce, total: int) -> None:
        self.mr, self.threads = mr, mr.team.threads
        limit = mr.budget.limit
        share = _SHARE if limit >= _SMALL else _SMALL_SHARE
        nbytes = min(int(limit * share), 24 * total + (4 << 20)) // self.threads
        self.bits = 6 if limit >= 4 * _SMALL else 3
        self._part_bytes = min(int(limit * _PART_SHARE), 24 * total + (1 << 16)) // self.threads
        self._row = max(_LEAST_ROW, int(limit * _TEXT_SHARE) // (self.threads << self.bits))
        self._lock = threading.Lock()
        self._kept: list[list[Kept]] = [[] for _ in range(1 << self.bits)]
        self._all = [WordTable(mr, nbytes) for _ in range(self.threads)]
        self._rows: dict[int, Passed] = {}
        self._free: queue.SimpleQueue[WordTable] = queue.SimpleQueue()
        for table in self._all:
            self._free.put(table)

    def add(self, text: np.ndarray) -> None:
        """Count the words of a text. Any thread may call this."""
        table = self._free.get()
        try:
            table.count(text, self._rows.get(id(table), NOWHERE), lambda word, row: self._pass(table, word, row))
        finally:
            self._free.put(table)

    def _pass(self, table: WordTable, word: np.ndarray, row: int) -> tuple[Passed, int]:
        """Rows for text. What this word's row has is kept, and the row begins anew."""
        rows = self._rows.get(id(table))
        if rows is None:
            with self._lock:
                text = self.mr.room.empty((1 << self.bits, self._row), np.uint8, "words that pass")
            rows = self._rows[id(table)] = text, np.zeros(1 << self.bits, np.uint64), np.uint64(64 - self.bits)
            return rows, 0
        if len(word) >= self._row:
            self._put(row, word)
            return rows, len(word)
        self._keep(row, rows)
        return rows, 0

    def _keep(self, row: int, rows: Passed) -> None:
        text, fill, _ = rows
        if fill[row]:
            self._put(row, text[row, : int(fill[row])])
            fill[row] = 0

    def _put(self, row: int, text: np.ndarray) -> None:
        with self._lock:
            self._kept[row].append(self.mr.room.put(Chunk(text.copy(), np.empty(len(text), NOTHING))))

    # ---- the counts

    def done(self) -> KeyValue:
        """(word, count), each word once."""
        mr = self.mr
        for rows in self._rows.values():
            for row in range(1 << self.bits):
                self._keep(row, rows)
        self._rows.clear()
        with mr.writer("string", np.int64) as settled, mr.writer("string", np.int64) as unsettled:
            if len(self._all) == 1 and not any(self._kept):
                self._write(self._all[0], settled)
            else:
                self._count_parts(settled, unsettled)
            self._all, self._free = [], queue.SimpleQueue()
            found, rest = settled.done(), unsettled.done()
        with found, rest:
            if mr.communicator.size > 1:
                with found.add(rest) as both:
                    return summed(both)
            if not len(rest):
                return found.copy()
            with summed(rest) as more:
                return found.add(more)

    def _count_parts(self, settled: Writer, unsettled: Writer) -> None:
        mr = self.mr
        parted = [(table, *table.parted(mr, self.bits)) for table in self._all]
        turns = itertools.count()
        # Chunks that are kept make way; two writers, a chunk to read and one to write need room beside the tables.
        room = (mr.budget.free + mr.room.used - 4 * mr.chunk_bytes) // self.threads
        tables = [WordTable(mr, max(1 << 16, min(self._part_bytes, room))) for _ in range(self.threads)]

        def work(worker: int) -> None:
            while (part := next(turns)) < len(self._kept):
                self._count_part(part, tables[worker], parted, settled, unsettled)

        mr.team.run(work)

    def _count_part(
        self, part: int, table: WordTable, parted: list[tuple[WordTable, np.ndarray, np.ndarray]], settled: Writer,
        unsettled: Writer,
    ) -> None:  # fmt: skip
        table.clear()
        target = settled

        def flush() -> bool:
            """Empty the table; whether there was anything in it."""
            nonlocal target
            target, had = unsettled, bool(len(table))
            self._write(table, unsettled)
            table.clear()
            return had

        def full(word: np.ndarray, row: int) -> tuple[Passed, int]:
            if flush():
                return NOWHERE, 0
            # One word that no table holds.
            with self._lock:
                unsettled.add_chunk(Bytes(np.array([0, len(word)]), word.copy(), True), np.ones(1, np.int64))
            return NOWHERE, len(word)

        for other, bounds, order in parted:

            def crowded(entry: int, other: WordTable = other) -> int:
                if flush():
                    return 0
                self._write(other, unsettled, entry, entry + 1)
                return 1

            table.take(other, order[bounds[part] : bounds[part + 1]], crowded)
        kept, self._kept[part] = self._kept[part], []
        for one in kept:
            table.count(one.get().keys, NOWHERE, full)
            one.release()
        self._write(table, target)

    def _write(self, table: WordTable, writer: Writer, first: int = 0, last: int | None = None) -> None:
        for words, counts in table.words(max(1024, self.mr.chunk_bytes // 64), first, last):
            with self._lock:
                writer.add_chunk(words, counts)


__all__ = ["WordCounter"]
