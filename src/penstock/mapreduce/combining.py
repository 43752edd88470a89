"""Combining on the way: what users' functions make is grouped and reduced locally before it is kept."""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING, Any

import numpy as np

from penstock.mapreduce import columns
from penstock.mapreduce.chunk import Chunk, Groups
from penstock.mapreduce.columns import Bytes, Column, Kind, as_column, concat, kind_of
from penstock.mapreduce.combiner import Combiner, can_combine, check_combines
from penstock.mapreduce.writer import Writer

if TYPE_CHECKING:
    from penstock.mapreduce.keyvalue import KeyValue
    from penstock.mapreduce.session import MapReduce

_ROWS = 8192


def local_groups(mr: MapReduce, chunk: Chunk) -> Groups:
    """A chunk's pairs by key, keys in the order in which they are first seen, values in theirs. No sort: a table."""
    from penstock.mapreduce.kernels import segments as kernels

    n = len(chunk)
    size = 1 << max(1, (2 * n - 1).bit_length())
    with mr.room.reserve(4 * size + 32 * n + chunk.nbytes, "grouping a chunk"):
        numbers: np.ndarray = np.empty(n, np.uint32)
        firsts: np.ndarray = np.empty(n, np.int64)
        kind = kind_of(chunk.keys)
        if isinstance(chunk.keys, Bytes) or columns.is_exact(kind):
            hashes, slots = columns.hash64(chunk.keys), np.zeros(size, np.uint32)
            if isinstance(chunk.keys, Bytes):
                about = chunk.keys.offsets, chunk.keys.data, hashes, slots, numbers, firsts
                count = kernels.number_bytes(*about)
            else:
                count = kernels.number_codes(columns.codes(chunk.keys), hashes, slots, numbers, firsts)
            del hashes, slots
            firsts = firsts[:count]
        else:
            _, firsts, numbers = np.unique(chunk.keys, return_index=True, return_inverse=True)
            count = len(firsts)
        offsets = np.zeros(count + 1, np.int64)
        kernels.count_groups(numbers, offsets)
        rows = np.empty(n, np.int64)
        kernels.place_groups(numbers, offsets[:-1].copy(), rows)
        return Groups(columns.take(chunk.keys, firsts), offsets, columns.take(chunk.values, rows))


class Combining:
    """Takes pairs as a writer does. What it has no table for is grouped and reduced a chunk at a time."""

    def __init__(
        self, mr: MapReduce, f: Any, key: Kind | None = None, value: Kind | None = None, *, kind: str = "auto",
        expected: int | None = None,
    ) -> None:  # fmt: skip
        self.mr, self.f, self.kind, self.expected = mr, f, kind, expected
        self.key, self.value = key, value
        self.count = 0
        if isinstance(f, str):
            check_combines(f, np.dtype(np.int64))
        self._keys: list[Any] = []
        self._values: list[Any] = []
        self._pending: list[Chunk] = []
        self._pending_bytes = 0
        self._table: Combiner | None = None
        self._writer: Writer | None = None
        self._reduce: Any = None

    def add(self, key: Any, value: Any = None) -> None:
        """One pair."""
        self._keys.append(key)
        self._values.append(value)
        if len(self._keys) >= _ROWS:
            self._convert()

    def add_chunk(self, keys: Any, values: Any = None) -> None:
        """Columns of pairs."""
        self._convert()
        self._take(keys, values)

    def _convert(self) -> None:
        if self._keys:
            keys, values, self._keys, self._values = self._keys, self._values, [], []
            self._take(keys, values)

    def _take(self, keys: Any, values: Any) -> None:
        key: Column = as_column(keys, None, self.key)
        value: Column = as_column(values, len(key), self.value)
        if not len(key):
            return
        self.key, self.value = kind_of(key), kind_of(value)
        self.count += len(key)
        if self._table is None and self._writer is None:
            self._begin()
        if self._table is not None:
            self._table.add_chunk(key, value)
            return
        for piece in Chunk(key, value).pieces(self.mr.chunk_bytes):
            self._pending.append(piece)
            self._pending_bytes += piece.nbytes
            if self._pending_bytes >= self.mr.chunk_bytes:
                self._flush()

    def _begin(self) -> None:
        from penstock.mapreduce.reduce import reducer

        assert self.key is not None
        assert self.value is not None
        if isinstance(self.f, str):
            check_combines(self.f, self.value)
        if can_combine(self.f, self.key, self.value):
            self._table = Combiner(self.mr, self.f, self.key, self.value, expected=self.expected)
        else:
            self._writer = Writer(self.mr)
            self._reduce = reducer(self.mr, self.f, self.kind, self._writer, what="compress")

    def _flush(self) -> None:
        pending, self._pending, self._pending_bytes = self._pending, [], 0
        if not pending:
            return
        with self.mr.room.reserve(sum(each.nbytes for each in pending), "pairs to combine"):
            chunk = Chunk(concat([each.keys for each in pending]), concat([each.values for each in pending]))
            pending.clear()
            self._reduce(local_groups(self.mr, chunk))

    def done(self) -> KeyValue:
        """All that came out."""
        self._convert()
        if self._table is not None:
            return self._table.done()
        if self._writer is not None:
            self._flush()
            return self._writer.done()
        return self._nothing()

    def _nothing(self) -> KeyValue:
        from penstock.mapreduce.reductions import empty_kind

        value = self.value
        if isinstance(self.f, str) and value is not None:
            value = empty_kind(self.f, value)
        return Writer(self.mr, self.key, value).done()

    def close(self) -> None:
        """Give up what was not asked for."""
        for each in (self._table, self._writer):
            if each is not None:
                each.close()
        self._pending, self._keys, self._values = [], [], []

    def __enter__(self) -> Combining:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.close()


__all__ = ["Combining", "local_groups"]
