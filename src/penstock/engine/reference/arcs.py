"""All arcs of a graph by the vertex they lead to, read page by page with plain reads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from penstock.engine.plan import number_dtype, sides_of
from penstock.errors import UsageError
from penstock.store.reader import Direction, Store

MOST = 4_000_000
"""Arcs that Python can still go through in a time that someone waits for."""


@dataclass(frozen=True)
class Arcs:
    """Arcs in order of the vertex at the near end, then of the one at the far end; parallel ones as they are stored."""

    near: np.ndarray
    far: np.ndarray
    columns: tuple[np.ndarray, ...]
    place: np.ndarray = field(default_factory=lambda: np.empty(0, np.int64))
    """Once sorted: where each arc was before."""

    def sorted(self) -> Arcs:
        order = np.lexsort((self.far, self.near))
        return Arcs(self.near[order], self.far[order], tuple(column[order] for column in self.columns), order)

    def offsets(self, slots: int) -> list[int]:
        """Where the arcs of each slot begin, and where the last one's end."""
        return np.searchsorted(self.near, np.arange(slots + 1)).tolist()


def arriving(store: Store, along: str, columns: Sequence[str]) -> Arcs:
    """The arcs over which messages arrive: `near` is who receives, `far` is who sends."""
    sides = sides_of(store, along)
    parts = [stored(store.direction(name), columns) for name in sides.pull or sides.push]
    if not sides.pull:  # only the senders' side is stored: turn each arc around
        parts = [Arcs(part.far, part.near, part.columns) for part in parts]
    return joined(parts).sorted()


def stored(direction: Direction, columns: Sequence[str]) -> Arcs:
    """The arcs of one direction as its pages hold them: `near` is the page's own vertex, `far` the neighbour."""
    if direction.arcs > MOST:
        raise UsageError(
            f"device='reference' is for small graphs, at most {MOST:,} arcs; {direction.store.path} has "
            f"{direction.arcs:,}: use device='cpu'"
        )
    number = number_dtype(direction.store)
    kinds = [direction.column_dtype(name) for name in columns]
    parts = [Arcs(np.empty(0, number), np.empty(0, number), tuple(np.empty(0, kind) for kind in kinds))]
    for page in range(len(direction)):
        block = direction.block(page)
        vertices = block.first_vertex + np.arange(len(block.offsets) - 1)
        degrees = block.offsets[1:].astype(np.int64) - block.offsets[:-1]
        values = tuple(direction.read_column(name, page) for name in columns)
        parts.append(Arcs(np.repeat(vertices, degrees).astype(number), block.neighbours.astype(number), values))
    return joined(parts)


def joined(parts: Sequence[Arcs]) -> Arcs:
    """One after the other."""
    columns = zip(*(part.columns for part in parts), strict=True)
    return Arcs(
        np.concatenate([part.near for part in parts]),
        np.concatenate([part.far for part in parts]),
        tuple(np.concatenate(column) for column in columns),
    )
