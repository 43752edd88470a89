"""Edges on their way: numbered pairs and their columns, in memory while they fit, else on disk."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor

import numpy as np

from penstock.memory.buffers import allocate
from penstock.memory.ledger import Reservation
from penstock.memory.spill import Spill, SpillFile

Piece = tuple[np.ndarray, np.ndarray, dict[str, np.ndarray]]
"""Sources, targets and columns; valid until the next piece is asked for."""
Fields = list[np.ndarray]


class EdgeLog:
    """An append-only list of edges, read as often as needed, inside `memory` bytes.

    The memory is two halves: while one is written or read by a thread, the other is filled or used.
    """

    def __init__(
        self,
        spill: Spill,
        columns: Mapping[str, np.dtype],
        *,
        memory: int,
        name: str,
        reservation: Reservation | None = None,
    ) -> None:
        self._spill, self._name, self._reservation = spill, name, reservation
        self._types = {key: np.dtype(kind) for key, kind in columns.items()}
        kinds = [np.dtype(np.uint32), np.dtype(np.uint32), *self._types.values()]
        record = sum(kind.itemsize for kind in kinds)
        self.capacity = max(1024, memory // (2 * record)) // 8 * 8
        buffer = allocate(2 * self.capacity * record)
        self._halves = [_fields(buffer[k * self.capacity * record :], kinds, self.capacity) for k in (0, 1)]
        self._filled = [0, 0]
        self._now = 0
        self._file: SpillFile | None = None
        self._segments: list[tuple[int, int]] = []
        self._mover = ThreadPoolExecutor(1, "penstock-log")
        self._moving: Future[None] | None = None
        self.count = 0

    def append(self, source: np.ndarray, target: np.ndarray, columns: Mapping[str, np.ndarray]) -> None:
        """Add edges at the end."""
        arrays = [source, target, *(columns[name] for name in self._types)]
        at = 0
        while at < len(source):
            filled = self._filled[self._now]
            if filled == self.capacity:
                self._turn()
                continue
            take = min(len(source) - at, self.capacity - filled)
            for field, array in zip(self._halves[self._now], arrays, strict=True):
                field[filled : filled + take] = array[at : at + take]
            self._filled[self._now] += take
            self.count += take
            at += take

    def _turn(self) -> None:
        """Go on in the other half; if that is full too, both must move to disk, one after the other."""
        other = 1 - self._now
        if self._file is None and not self._filled[other]:
            self._now = other
            return
        if self._file is None:  # the older half first
            self._file = self._spill.create(self._name)
            self._save(other)
        self._wait()
        self._save(self._now)
        self._now = other

    def _save(self, half: int) -> None:
        self._wait()
        count = self._filled[half]
        file = self._file
        assert file is not None

        def write() -> None:
            self._segments.append((file.append(*(field[:count] for field in self._halves[half])), count))

        self._filled[half] = 0
        self._moving = self._mover.submit(write)

    def _wait(self) -> None:
        if self._moving is not None:
            moving, self._moving = self._moving, None
            moving.result()

    def pieces(self) -> Iterator[Piece]:
        """All edges in the order they came."""
        if self._file is None:
            for half in (1 - self._now, self._now):
                if self._filled[half]:
                    yield self._piece(half, self._filled[half])
            return
        if self._filled[self._now]:
            self._save(self._now)
        self._wait()
        for k, (_, count) in enumerate(self._segments):
            if self._moving is None:
                self._fetch(k)
            self._wait()
            if k + 1 < len(self._segments):
                self._fetch(k + 1)
            yield self._piece(k % 2, count)
        self._wait()

    def _fetch(self, segment: int) -> None:
        """Begin to read a segment into its half."""
        offset, count = self._segments[segment]
        file = self._file
        assert file is not None

        def read() -> None:
            at = offset
            for field in self._halves[segment % 2]:
                file.read_into(at, field[:count])
                at += count * field.itemsize

        self._moving = self._mover.submit(read)

    def _piece(self, half: int, count: int) -> Piece:
        source, target, *columns = (field[:count] for field in self._halves[half])
        return source, target, dict(zip(self._types, columns, strict=True))

    def delete(self) -> None:
        """Give memory and disk back."""
        self._mover.shutdown()
        if self._file is not None:
            self._file.delete()
        self._halves = []
        if self._reservation is not None:
            self._reservation.release()


def _fields(buffer: np.ndarray, kinds: list[np.dtype], capacity: int) -> Fields:
    """Room for `capacity` values of each kind; the widest first, so that each is aligned."""
    fields: dict[int, np.ndarray] = {}
    at = 0
    for k in sorted(range(len(kinds)), key=lambda k: -kinds[k].itemsize):
        width = kinds[k].itemsize
        fields[k] = buffer[at : at + capacity * width].view(kinds[k])
        at += capacity * width
    return [fields[k] for k in range(len(kinds))]
