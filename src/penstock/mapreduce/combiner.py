"""A combiner: pairs go in, and come out again with the values of equal keys reduced, as far as the memory reaches.

Each thread has a hash table and the keys whose hash is its own: no key is in two of them, and each key's values are
reduced in their order, however many threads there are. When a table is full its pairs are written out and it begins
anew, so a key may come out several times; only a reduction of all pairs of a key ends that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from penstock.errors import UsageError
from penstock.mapreduce import columns
from penstock.mapreduce.columns import Bytes, Column, Kind
from penstock.mapreduce.reductions import as_words, from_words, is_wordy, result_kind, word_type

if TYPE_CHECKING:
    from penstock.mapreduce.keyvalue import KeyValue
    from penstock.mapreduce.session import MapReduce

BATCH = 1 << 18
"""Rows hashed and then put into tables at a time: what is hashed is still in the cache when it is looked up."""
_LOAD = 0.65
"""Entries by slots at most."""
_FIRST_SLOTS = 1 << 12


def can_combine(name: Any, key: Kind, value: Kind) -> bool:
    """Whether tables do this reduction: by name, with values of at most 8 bytes, of keys that are bytes or numbers."""
    return isinstance(name, str) and is_wordy(name, value) and (isinstance(key, str) or columns.is_exact(key))


class _Table:
    """One thread's table: slots, entries from the front of `words`, bytes of long keys from its back."""

    def __init__(self, mr: MapReduce, nbytes: int, width: int, acc: np.dtype) -> None:
        per_slot = 8 + _LOAD * 8 * width
        self.most = max(_FIRST_SLOTS, min(int(nbytes / per_slot), (1 << 32) - 2))
        self.all_slots = mr.room.empty(self.most, np.uint64, "the table of a combiner")
        count = max(nbytes // 8 - self.most, 1024 * width)
        # Lengths and places of long keys have 32 bits.
        self.words = mr.room.empty(min(count, (1 << 32) - 1), np.uint64, "the table of a combiner")
        self.accs, self.tail = self.words.view(acc), self.words.view(np.uint8)
        self.state = np.zeros(2, np.uint64)
        self.width = width
        self.resize(min(_FIRST_SLOTS, self.most))

    def resize(self, slots: int) -> None:
        """So many slots now, filled with the entries there are."""
        from penstock.mapreduce.kernels.table import refill

        self.slots = self.all_slots[:slots]
        self.slots[:] = 0
        self.limit = np.uint64(int(slots * _LOAD))
        refill(self.words, np.uint64(self.width), self.state[0], self.slots)

    def grow(self) -> bool:
        """More slots, or False where only a flush helps."""
        if self.state[0] < self.limit or len(self.slots) == self.most:
            return False
        self.resize(min(4 * len(self.slots), self.most))
        return True

    def clear(self) -> None:
        self.state[:] = 0
        self.slots[:] = 0


class Combiner:
    """Takes columns of pairs as a writer does. `expected`: how many pairs will come at most, if that is known."""

    def __init__(
        self,
        mr: MapReduce,
        name: str,
        key: Kind,
        value: Kind,
        *,
        expected: int | None = None,
        nbytes: int | None = None,
    ) -> None:
        check_combines(name, value)
        if not can_combine(name, key, value):
            raise UsageError(f"no table of a combiner holds {name!r} of {columns.kind_name(value)} values")
        self.mr, self.name, self.key, self.value = mr, name, key, value
        self.varying = isinstance(key, str)
        self._writer = mr.writer(key, result_kind(name, value))
        self.flushes = 0
        """How often something came out before the end: only if it never did, each key comes out once."""
        # Chunks that are kept make way; a writer, a chunk to read and one to write need room beside the tables.
        budget = (
            max(mr.work_bytes * 5 // 8, (mr.budget.free - 6 * mr.chunk_bytes) * 3 // 4) if nbytes is None else nbytes
        )
        self.batch = int(min(BATCH, max(budget // 64, 1024)))
        if expected is not None:
            # Long keys take more: they are written out when they do.
            self.batch = min(self.batch, max(expected, 1))
            budget = min(budget, max(expected, 1) * 96 + (1 << 20))
        threads = mr.team.threads
        acc = word_type(name, value)
        width = 4 if self.varying else 2
        self._hashes = mr.room.empty(self.batch, np.uint64, "the hashes of a combiner")
        self._rows = mr.room.empty(self.batch, np.uint32, "the hashes of a combiner")
        each = max(budget - self.batch * 12, 1 << 18) // threads
        self._tables = [_Table(mr, each, width, acc) for _ in range(threads)]

    def add_chunk(self, keys: Column, values: Column | None) -> None:
        """Take these pairs."""
        for begin in range(0, len(keys), self.batch):
            end = min(begin + self.batch, len(keys))
            counted = values is None or self.name == "count"
            some = np.zeros(0) if counted else columns.slice(values, begin, end)  # type: ignore[arg-type]
            self._add(columns.slice(keys, begin, end), as_words(self.name, some))

    def _add(self, keys: Column, words: np.ndarray) -> None:
        from penstock.mapreduce.kernels import table as kernels
        from penstock.mapreduce.kernels.segments import OPS

        op, tables, n = OPS[self.name], self._tables, len(keys)
        parts = len(tables)
        bounds = np.zeros((parts, parts + 1), np.uint64)
        hashes, rows = self._hashes, self._rows
        codes = None if isinstance(keys, Bytes) else columns.codes(keys)
        # Threads cost more than a few pairs do.
        alone = n < 8192

        def each(task: Any) -> None:
            if alone:
                for number in range(parts):
                    task(number)
            else:
                self.mr.team.run(task)

        def route(part: int) -> None:
            begin, end = n * part // parts, n * (part + 1) // parts
            if isinstance(keys, Bytes):
                kernels.route_bytes(keys.offsets, keys.data, begin, end, hashes, rows, bounds[part])
            else:
                kernels.route_codes(codes, begin, end, hashes, rows, bounds[part])

        def fill(number: int) -> None:
            table, ranges = tables[number], left[number]
            while ranges:
                begin, end = ranges[0]
                about = words, op, hashes, rows, begin, end, table.slots, table.words, table.accs
                if isinstance(keys, Bytes):
                    at = kernels.add_bytes(keys.offsets, keys.data, *about, table.tail, table.state, table.limit)
                else:
                    at = kernels.add_codes(codes, *about, table.state, table.limit)
                if at == end:
                    ranges.pop(0)
                else:
                    ranges[0] = at, end
                    if not table.grow():
                        return

        each(route)
        left = [[(int(bounds[p, k]), int(bounds[p, k + 1])) for p in range(parts)] for k in range(parts)]
        each(fill)
        while any(left):
            for number, ranges in enumerate(left):
                if ranges and tables[number].state[0]:
                    self._flush(tables[number])
                    self.flushes += 1
                elif ranges:
                    # One key that no table holds: it goes its way alone.
                    at, end = ranges[0]
                    row = int(rows[at])
                    self._write(columns.slice(keys, row, row + 1), self._single(words, row))
                    self.flushes += 1
                    ranges[0] = at + 1, end
                    if at + 1 == end:
                        ranges.pop(0)
            each(fill)

    def _single(self, words: np.ndarray, row: int) -> np.ndarray:
        return np.ones(1, np.int64) if self.name == "count" else words[row : row + 1]

    def _write(self, keys: Column, words: np.ndarray) -> None:
        self._writer.add_chunk(keys, from_words(self.name, words, self.value))

    def _flush(self, table: _Table) -> None:
        """Write a table's pairs, some at a time, and empty it."""
        from penstock.mapreduce.kernels import table as kernels

        count, width = int(table.state[0]), table.width
        long_keys = int(table.state[1]) * 8
        rows = max(1, self.mr.chunk_bytes * count // max(1, count * 40 + long_keys))
        for begin in range(0, count, rows):
            end = min(begin + rows, count)
            accs = table.accs[begin * width + width - 1 : end * width : width].copy()
            if self.varying:
                offsets = np.empty(end - begin + 1, np.int64)
                kernels.entry_lengths(table.words, begin, end, offsets)
                with self.mr.room.reserve(int(offsets[-1]) + 24 * (end - begin), "the pairs of a combiner"):
                    data = np.empty(int(offsets[-1]), np.uint8)
                    kernels.entry_bytes(table.words, table.tail, begin, end, offsets, data)
                    self._write(Bytes(offsets, data, self.key == "string"), accs)
            else:
                with self.mr.room.reserve(32 * (end - begin), "the pairs of a combiner"):
                    codes = table.words[begin * width : end * width : width].copy()
                    self._write(from_codes(codes, self.key), accs)
        table.clear()

    def done(self) -> KeyValue:
        """All that is left, and with it all that came out."""
        for table in self._tables:
            self._flush(table)
        self._tables = []
        del self._hashes, self._rows
        return self._writer.done()

    def close(self) -> None:
        """Give up what was not asked for."""
        self._tables = []
        self._writer.close()


def check_combines(name: str, value: Kind) -> None:
    """Refuse what cannot be done by parts."""
    result_kind(name, value)
    if name == "mean":
        raise UsageError("a mean of means is not the mean: combine 'sum' and 'count', and divide when they are reduced")


def from_codes(codes: np.ndarray, kind: Kind) -> np.ndarray:
    """The numbers that have these codes; see `columns.codes`."""
    assert not isinstance(kind, str)
    sign = np.uint64(1 << 63)
    if kind.itemsize == 0:
        return np.empty(len(codes), kind)
    if kind.kind in "bu":
        return codes.astype(kind)
    if kind.kind == "f":
        bits = np.where(codes & sign, codes ^ sign, ~codes)
        bits[codes == np.uint64(0xFFFFFFFFFFFFFFFF)] = np.array(np.nan).view(np.uint64)
        return bits.view(np.float64).astype(kind)
    signed = (codes ^ sign).view(np.int64)
    return signed.view(kind) if kind.kind in "mM" else signed.astype(kind)


__all__ = ["BATCH", "Combiner", "can_combine", "check_combines", "from_codes"]
