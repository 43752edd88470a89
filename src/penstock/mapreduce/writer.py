"""What operations emit into: pairs and columns of pairs become chunks, which go to the room when they are full."""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING, Any

from penstock.errors import UsageError
from penstock.mapreduce.chunk import Chunk
from penstock.mapreduce.columns import NOTHING, Column, Kind, as_column, as_kind, concat, kind_of
from penstock.mapreduce.room import Kept

if TYPE_CHECKING:
    from penstock.mapreduce.keyvalue import KeyValue
    from penstock.mapreduce.session import MapReduce

_ROWS = 8192
_OBJECT = 64
"""About what a Python object and its place in a list take, besides the bytes of strings."""


class Writer:
    """Pairs in, a KeyValue out. The kinds of keys and values are those given, or those of the first that come."""

    def __init__(self, mr: MapReduce, key: Any = None, value: Any = None, chunk_bytes: int | None = None) -> None:
        self.mr, self.chunk_bytes = mr, chunk_bytes or mr.chunk_bytes
        self.key: Kind | None = None if key is None else as_kind(key)
        self.value: Kind | None = None if value is None else as_kind(value)
        self.count = 0
        self._keys: list[Any] = []
        self._values: list[Any] = []
        self._size = 0
        self._most = max(1, self.chunk_bytes // 4)
        self._pending: list[Chunk] = []
        self._pending_bytes = 0
        self._kept: list[Kept] = []
        # What is pending, and the chunk that is made of it.
        self._held = mr.room.reserve(2 * self.chunk_bytes, "a writer of pairs")

    def add(self, key: Any, value: Any = None) -> None:
        """One pair."""
        self._keys.append(key)
        self._values.append(value)
        self._size += _OBJECT
        if isinstance(key, (str, bytes)):
            self._size += len(key)
        if isinstance(value, (str, bytes)):
            self._size += len(value)
        if self._size >= self._most or len(self._keys) >= _ROWS:
            self._convert()

    def add_chunk(self, keys: Any, values: Any = None) -> None:
        """Columns of pairs, or what can be made one; None for values of nothing. They must not be changed later."""
        self._convert()
        self._take(keys, values)

    def _take(self, keys: Any, values: Any) -> None:
        key = self._column("keys", keys, None, self.key)
        value = self._column("values", values, len(key), self.value)
        if len(key):
            self.key, self.value = kind_of(key), kind_of(value)
            self._append(Chunk(key, value))

    def _column(self, what: str, data: Any, count: int | None, kind: Kind | None) -> Column:
        try:
            column = as_column(data, count, kind)
        except UsageError as error:
            raise UsageError(f"{what}: {error}") from None
        return column

    def _append(self, chunk: Chunk) -> None:
        self.count += len(chunk)
        for piece in chunk.pieces(self.chunk_bytes):
            if self._pending and self._pending_bytes + piece.nbytes > self.chunk_bytes:
                self._flush()
            self._pending.append(piece)
            self._pending_bytes += piece.nbytes
            if self._pending_bytes >= self.chunk_bytes:
                self._flush()

    def _convert(self) -> None:
        if self._keys:
            keys, values, self._keys, self._values, self._size = self._keys, self._values, [], [], 0
            self._take(keys, values)

    def _flush(self) -> None:
        pending, self._pending, self._pending_bytes = self._pending, [], 0
        if len(pending) == 1:
            chunk = pending[0]
        elif pending:
            chunk = Chunk(concat([each.keys for each in pending]), concat([each.values for each in pending]))
        else:
            return
        pending.clear()
        self._kept.append(self.mr.room.put(chunk))

    def done(self) -> KeyValue:
        """All pairs so far; the writer starts anew."""
        from penstock.mapreduce.keyvalue import KeyValue

        self._convert()
        self._flush()
        kept, self._kept, self.count = self._kept, [], 0
        self._held.release()
        key = as_kind("int64") if self.key is None else self.key
        return KeyValue(self.mr, kept, key, NOTHING if self.value is None else self.value)

    def close(self) -> None:
        """Give up what was not asked for."""
        self._held.release()
        self._keys, self._values, self._pending = [], [], []
        for kept in self._kept:
            kept.release()
        self._kept = []

    def __enter__(self) -> Writer:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.close()


__all__ = ["Writer"]
