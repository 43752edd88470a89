"""One direction of a store: edges become arcs, are sorted, and leave as pages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from penstock.ingest.build import arcs
from penstock.ingest.build.log import Piece
from penstock.ingest.build.merge import PIECE
from penstock.memory.spill import Spill
from penstock.observe.progress import Progress
from penstock.sorting.external import MAX_BUCKETS, ExternalSorter
from penstock.sorting.partition import gather
from penstock.store.writer import DirectionWriter


class ArcSorter:
    """Sorts the arcs of one direction by their ends' numbers. Degrees say better than a sample how arcs are spread."""

    def __init__(
        self,
        spill: Spill,
        columns: Mapping[str, np.dtype],
        number: np.ndarray,
        degrees: np.ndarray,
        *,
        backward: bool,
        symmetric: bool,
        memory: int,
        threads: int,
        name: str,
    ) -> None:
        self._names, self._number, self._threads = list(columns), number, threads
        self._backward, self._symmetric = backward, symmetric
        self._bits = max(1, (len(degrees) - 1).bit_length())
        count = int(degrees.sum(dtype=np.uint64))
        capacity = ExternalSorter.capacity_for(memory, columns)
        splitters = None
        if count > capacity:
            # Where even the most buckets do not make them small enough, the sorter cuts them again.
            splitters = arcs.arc_splitters(degrees, max(capacity * 9 // 10, 2 * count // MAX_BUCKETS), self._bits)
        self.sorter = ExternalSorter(
            spill, memory=memory, threads=threads, payload=columns, expected=count, splitters=splitters, name=name
        )

    def add(self, pieces: Iterator[Piece]) -> None:
        """The arcs of these edges: one, or one each way in a symmetric graph."""
        for source, target, columns in pieces:
            for at in range(0, len(source), PIECE):
                part = slice(at, at + PIECE)
                self._add(source[part], target[part], {name: column[part] for name, column in columns.items()})

    def _add(self, source: np.ndarray, target: np.ndarray, columns: Mapping[str, np.ndarray]) -> None:
        each = 2 if self._symmetric else 1
        at = 0
        while at < len(source):
            room, fields = self.sorter.room()
            take = min(len(room) // each, len(source) - at)
            if take:
                keys, direct = room, True
            else:  # one place left for an edge of two arcs
                keys, direct, take = np.empty(each, np.uint64), False, 1
            part = slice(at, at + take)
            edge = np.empty(take * each if columns else 0, np.uint32)
            flags = self._backward, self._symmetric
            count = int(
                arcs.arc_keys(source[part], target[part], self._number, self._bits, *flags, keys, edge, self._threads)
            )
            values = {name: column[part] for name, column in columns.items()}
            if direct:
                for field, name in zip(fields, self._names, strict=True):
                    gather(values[name], edge[:count], field[:count])
                self.sorter.advance(count)
            else:
                self.sorter.add(keys[:count], {name: column[edge[:count]] for name, column in values.items()})
            at += take

    def write(self, direction: DirectionWriter, bar: Progress, *, unique: bool) -> bool:
        """Hand the sorted arcs to the pages. With `unique`, False as soon as two of them are the same."""
        previous = None
        for keys, payload in self.sorter.sorted():
            for at in range(0, len(keys), PIECE):
                part = keys[at : at + PIECE]
                neighbours = np.empty(len(part), np.uint32)
                repeats = arcs.targets(part, self._bits, neighbours) + (previous == part[0])
                if repeats and unique:
                    return False
                previous = part[-1]
                direction.append(neighbours, {key: column[at : at + PIECE] for key, column in payload.items()})
                bar.advance(len(part))
        return True
