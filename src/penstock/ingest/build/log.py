"""Edges on their way: numbered pairs and their columns, in memory while they fit, else on disk."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from penstock.memory.buffers import allocate
from penstock.memory.spill import Spill, SpillFile

Piece = tuple[np.ndarray, np.ndarray, dict[str, np.ndarray]]
"""Sources, targets and columns; valid until the next piece is asked for."""


class EdgeLog:
    """An append-only list of edges inside `memory` bytes."""

    def __init__(self, spill: Spill, columns: Mapping[str, np.dtype], *, memory: int, name: str) -> None:
        self._spill, self._name = spill, name
        self._types = {key: np.dtype(kind) for key, kind in columns.items()}
        record = 8 + sum(kind.itemsize for kind in self._types.values())
        capacity = max(1024, memory // record) // 8 * 8
        buffer = allocate(capacity * record)
        self._fields: list[np.ndarray] = []
        at = 0
        # Widest first, so that every field is aligned; `_order` leads back to source, target, columns.
        kinds = [("", np.dtype(np.uint32)), (" ", np.dtype(np.uint32)), *self._types.items()]
        self._order = sorted(range(len(kinds)), key=lambda k: -kinds[k][1].itemsize)
        fields = {}
        for k in self._order:
            width = kinds[k][1].itemsize
            fields[k] = buffer[at : at + capacity * width].view(kinds[k][1])
            at += capacity * width
        self._fields = [fields[k] for k in range(len(kinds))]
        self.capacity, self._filled = capacity, 0
        self._file: SpillFile | None = None
        self._segments: list[tuple[int, int]] = []
        self.count = 0

    def append(self, source: np.ndarray, target: np.ndarray, columns: Mapping[str, np.ndarray]) -> None:
        """Add edges at the end."""
        arrays = [source, target, *(columns[name] for name in self._types)]
        at = 0
        while at < len(source):
            if self._filled == self.capacity:
                self._flush()
            take = min(len(source) - at, self.capacity - self._filled)
            for field, array in zip(self._fields, arrays, strict=True):
                field[self._filled : self._filled + take] = array[at : at + take]
            self._filled += take
            self.count += take
            at += take

    def _flush(self) -> None:
        if self._file is None:
            self._file = self._spill.create(self._name)
        offset = self._file.append(*(field[: self._filled] for field in self._fields))
        self._segments.append((offset, self._filled))
        self._filled = 0

    def pieces(self) -> Iterator[Piece]:
        """All edges in the order they came."""
        if self._file is not None:
            if self._filled:
                self._flush()
            for offset, count in self._segments:
                at = offset
                for field in self._fields:
                    self._file.read_into(at, field[:count])
                    at += count * field.itemsize
                yield self._piece(count)
        elif self._filled:
            yield self._piece(self._filled)

    def _piece(self, count: int) -> Piece:
        source, target, *columns = (field[:count] for field in self._fields)
        return source, target, dict(zip(self._types, columns, strict=True))

    def delete(self) -> None:
        """Give memory and disk back."""
        if self._file is not None:
            self._file.delete()
        self._fields = []
