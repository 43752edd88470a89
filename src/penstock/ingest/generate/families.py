"""The small regular families: grid, chain, ring, star, complete graph, tree. Edge `i` in closed form."""

from __future__ import annotations

from typing import Any

import numpy as np

from penstock.errors import UsageError
from penstock.ingest.generate.generated import GeneratedSource
from penstock.options import whole


class ChainSource(GeneratedSource):
    """0 - 1 - 2 - ... ; also called a path."""

    def __init__(self, *, vertices: int, directed: bool = False, seed: int = 1, weights: Any = None) -> None:
        count = whole("vertices", vertices, 1)
        super().__init__("chain", count, count - 1, seed=seed, weights=weights, undirected=not directed)

    def fill(self, first: int, source: np.ndarray, target: np.ndarray) -> None:
        source[:] = _edges(first, source)
        target[:] = _edges(first + 1, source)


class RingSource(GeneratedSource):
    """A chain whose last vertex joins the first; also called a cycle."""

    def __init__(self, *, vertices: int, directed: bool = False, seed: int = 1, weights: Any = None) -> None:
        count = whole("vertices", vertices, 2 if directed else 3)
        super().__init__("ring", count, count, seed=seed, weights=weights, undirected=not directed)

    def fill(self, first: int, source: np.ndarray, target: np.ndarray) -> None:
        source[:] = _edges(first, source)
        target[:] = _edges(first + 1, source) % self.vertex_count


class StarSource(GeneratedSource):
    """Vertex 0 joined to (directed: pointing at) all others."""

    def __init__(self, *, vertices: int, directed: bool = False, seed: int = 1, weights: Any = None) -> None:
        count = whole("vertices", vertices, 1)
        super().__init__("star", count, count - 1, seed=seed, weights=weights, undirected=not directed)

    def fill(self, first: int, source: np.ndarray, target: np.ndarray) -> None:
        source[:] = 0
        target[:] = _edges(first + 1, source)


class CompleteSource(GeneratedSource):
    """Every pair of vertices; directed: in both directions."""

    def __init__(self, *, vertices: int, directed: bool = False, seed: int = 1, weights: Any = None) -> None:
        count = whole("vertices", vertices, 1)
        if count > 1 << 26:
            raise UsageError(f"a complete graph of {count} vertices has too many edges: stay at or below {1 << 26}")
        self.directed = bool(directed)
        pairs = count * (count - 1)
        edges = pairs if directed else pairs // 2
        super().__init__("complete graph", count, edges, seed=seed, weights=weights, undirected=not directed)

    def fill(self, first: int, source: np.ndarray, target: np.ndarray) -> None:
        edge, n = _edges(first, source), self.vertex_count
        if self.directed:
            row, column = np.divmod(edge, n - 1)
            source[:] = row
            target[:] = column + (column >= row)
            return
        # Row u starts at edge u * n - u * (u + 1) / 2. The root is a float's guess, off by one at most.
        row = np.floor(n - 0.5 - np.sqrt((n - 0.5) ** 2 - 2.0 * edge)).astype(np.int64)
        row -= _row_start(row, n) > edge
        row += _row_start(row + 1, n) <= edge
        source[:] = row
        target[:] = row + 1 + edge - _row_start(row, n)


class GridSource(GeneratedSource):
    """`rows` x `columns`, vertex `row * columns + column` joined to its right and lower neighbour.

    `diagonal` adds both diagonals; `torus` wraps round each side longer than two.
    """

    def __init__(
        self,
        *,
        rows: int,
        columns: int,
        diagonal: bool = False,
        torus: bool = False,
        directed: bool = False,
        seed: int = 1,
        weights: Any = None,
    ) -> None:
        self.rows, self.width = whole("rows", rows, 1), whole("columns", columns, 1)
        wrap_right, wrap_down = torus and self.width > 2, torus and self.rows > 2
        # After its edges to the right, each row holds the kinds (edges, first column, step right) of edges down.
        right = self.width if wrap_right else self.width - 1
        self._right = right
        self._down = [(self.width, 0, 0)]
        if diagonal:
            self._down += [(right, 0, 1), (right, 0 if wrap_right else 1, -1)]
        self._per_row = right + sum(count for count, _, _ in self._down)
        full_rows = self.rows if wrap_down else self.rows - 1
        edges = full_rows * self._per_row + (self.rows - full_rows) * right
        super().__init__("grid", self.rows * self.width, edges, seed=seed, weights=weights, undirected=not directed)

    def fill(self, first: int, source: np.ndarray, target: np.ndarray) -> None:
        # The last row's edges to the right come before its edges down, so a grid without wrap just ends early.
        row, within = np.divmod(_edges(first, source), self._per_row)
        column = within.copy()
        below, shift = np.zeros_like(row), np.ones_like(row)
        start = self._right
        for count, first_column, step in self._down:
            here = (within >= start) & (within < start + count)
            column[here] = within[here] - start + first_column
            below[here], shift[here] = 1, step
            start += count
        source[:] = row * self.width + column
        target[:] = (row + below) % self.rows * self.width + (column + shift) % self.width


class TreeSource(GeneratedSource):
    """The balanced tree with `branching` children per vertex and `height` levels below the root, numbered by level."""

    def __init__(
        self, *, branching: int = 2, height: int, directed: bool = False, seed: int = 1, weights: Any = None
    ) -> None:
        self.branching, levels = whole("branching", branching, 1), whole("height", height, 0)
        if levels * np.log2(self.branching) > 62:
            raise UsageError(
                f"a tree of height {levels} with {self.branching} children per vertex has too many vertices"
            )
        count = sum(self.branching**level for level in range(levels + 1)) if self.branching > 1 else levels + 1
        super().__init__("tree", count, count - 1, seed=seed, weights=weights, undirected=not directed)

    def fill(self, first: int, source: np.ndarray, target: np.ndarray) -> None:
        edge = _edges(first, source)
        source[:] = edge // self.branching
        target[:] = edge + 1


def _edges(first: int, like: np.ndarray) -> np.ndarray:
    return np.arange(first, first + len(like), dtype=np.int64)


def _row_start(row: np.ndarray, n: int) -> np.ndarray:
    return row * n - row * (row + 1) // 2


__all__ = ["ChainSource", "CompleteSource", "GridSource", "RingSource", "StarSource", "TreeSource"]
