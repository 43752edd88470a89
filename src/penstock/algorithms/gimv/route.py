"""A collate of keys that are always the same: where each value goes is found once, and then only values move."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

import numpy as np

from penstock.mapreduce.chunk import Groups
from penstock.mapreduce.keyvalue import KeyValue
from penstock.mapreduce.session import MapReduce
from penstock.memory.device import kernel


@kernel()
def _settle(positions, first, place):
    for k in range(np.uint64(positions.size)):
        place[positions[k]] = first + k


@kernel()
def _scatter(values, place, out):
    for i in range(np.uint64(values.size)):
        out[place[i]] = values[i]


@kernel()
def _scatter_lanes(values, place, out):
    for i in range(np.uint64(place.size)):
        to = np.uint64(place[i])
        for j in range(np.uint64(values.shape[1])):
            out[to, j] = values[i, j]


class Route:
    """The groups that a collate makes, and the place of each value in them. Groups lie in memory as a whole."""

    def __init__(self, mr: MapReduce, keys: np.ndarray, offsets: np.ndarray, place: np.ndarray) -> None:
        self.mr, self.keys, self.offsets, self.place = mr, keys, offsets, place

    @classmethod
    def learn(cls, results: KeyValue) -> Route | None:
        """From the keys of the first collate; None where places and values have no room in memory, or where other
        processes have a part."""
        mr, count = results.mr, len(results)
        number = np.dtype(np.uint32 if count < 1 << 32 else np.uint64)
        held = count * (number.itemsize + results.value.itemsize)  # type: ignore[union-attr]
        if mr.communicator.size > 1 or mr.room.force_out_of_core or held > mr.work_bytes // 2:
            return None
        with mr.writer(results.key, np.uint64) as writer:
            at = 0
            for chunk in results.chunks():
                writer.add_chunk(chunk.keys, np.arange(at, at + len(chunk), dtype=np.uint64))
                at += len(chunk)
            positions = writer.done()
        place = mr.room.empty(count, number, "where values go")
        keys, sizes, at = [np.empty(0, results.key)], [np.zeros(1, np.int64)], 0
        with positions, positions.sort_keys() as ordered, ordered.convert() as grouped:
            for groups in grouped.groups():
                _settle(groups.values, np.uint64(at), place)
                whole = slice(int(groups.continues), None)
                if groups.continues:
                    sizes[-1][-1] += groups.offsets[1]
                keys.append(np.array(groups.keys[whole]))
                sizes.append(np.diff(groups.offsets)[whole].copy())
                at += len(groups.values)
        return cls(mr, np.concatenate(keys), np.cumsum(np.concatenate(sizes)), place)

    def collate(self, results: KeyValue) -> Groups:
        """All values by key."""
        kind, at = np.dtype(results.value), 0
        out = self.mr.room.empty(len(self.place), kind, "values by key")
        target = out if kind.names is None else out[kind.names[0]]
        scatter = _scatter if kind.names is None else _scatter_lanes
        for chunk in cast(Iterator[Any], results.chunks()):
            values = chunk.values if kind.names is None else chunk.values[kind.names[0]]
            parts = self.mr.team.threads
            cuts = [len(chunk) * k // parts for k in range(parts + 1)]

            def work(k: int, values: np.ndarray = values, cuts: list[int] = cuts, at: int = at) -> None:
                scatter(values[cuts[k] : cuts[k + 1]], self.place[at + cuts[k] : at + cuts[k + 1]], target)

            self.mr.team.run(work)
            at += len(chunk)
        return Groups(self.keys, self.offsets, out)


__all__ = ["Route"]
