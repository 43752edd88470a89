"""The work in a direction's pages, cut for the GPU: tasks of many vertices, and segments of those with many arcs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from weakref import WeakKeyDictionary

import numpy as np

from penstock.memory.gpu import SIMULATED, WARP
from penstock.memory.warps import ROUND, fit
from penstock.store.index import LARGE
from penstock.store.reader import Direction

BLOCK = 32 if SIMULATED else 256
"""Threads of a block, which takes one task or one segment. A simulated thread is a real one: few of them there."""
HEAVY = 1024
"""A vertex with more arcs than this has segments; tasks pass over it."""
SEGMENT = 8192
"""Arcs of a segment at most."""
_ARCS_PER_THREAD = 16
"""Arcs of a task by the threads of its block."""
_ALONE = 16
"""Up to so many arcs on average, a vertex has one thread."""
_ARCS_PER_LANE = 16
"""From there on, a thread for so many arcs."""
_EVEN = 4
"""A page where no light vertex has more than so many times their mean is even: all its tasks have one width. Those of
others are cut by the degrees of their own vertices."""
_VERTICES = 1 << 19
"""Degrees looked at together: little memory however many vertices have pages with heavy ones or uneven."""


@dataclass(frozen=True)
class Tasks:
    """Host arrays; tasks and segments are sorted by page, and those of page p begin at `task_start[p]` and
    `segment_start[p]`.

    A task is (page, begin, count, width): vertices of a small page, by their place in it, with `width` threads for
    each; tasks of one page may differ in width. A segment is (page, begin arc, end arc, heavy): arcs of the page that
    belong to vertex `vertex[heavy]`, whose segments are `part_start[heavy]` to `part_start[heavy + 1]`.
    """

    tasks: np.ndarray
    task_start: np.ndarray
    segments: np.ndarray
    segment_start: np.ndarray
    vertex: np.ndarray
    part_start: np.ndarray
    work: np.ndarray
    """About how many arcs a task visits, and a little for each vertex."""
    limit: int
    """Vertices with more arcs than this are heavy, and so are those in large pages."""
    block: int

    @property
    def nbytes(self) -> int:
        arrays = (self.tasks, self.task_start, self.segments, self.segment_start, self.vertex, self.part_start)
        return sum(array.nbytes for array in arrays) + self.work.nbytes


_CUT: WeakKeyDictionary[Direction, tuple[tuple[int, ...], Tasks]] = WeakKeyDictionary()


def cut(direction: Direction) -> Tasks:
    """Cut all pages. Plans and runs ask for the same cuts again and again: they stay as long as the direction does."""
    sizes = (BLOCK, HEAVY, SEGMENT, _ARCS_PER_THREAD, _ALONE, _ARCS_PER_LANE, _EVEN, ROUND)
    found = _CUT.get(direction)
    if found is None or found[0] != sizes:
        found = _CUT[direction] = sizes, _cut(direction)
    return found[1]


def _cut(direction: Direction) -> Tasks:
    """Degrees are read only for pages that have a heavy vertex among others, or may be uneven."""
    records = direction.records
    block, limit = BLOCK, HEAVY
    large = records["kind"] == LARGE
    nothing = np.zeros(0, np.int64)
    rows, fitted = [(nothing,) * 4], [(np.zeros((0, 4), np.uint32), nothing)]
    for pages, degrees in _read(direction, limit):
        rows.append(_heavy(pages, records[pages], degrees, limit))
        small = pages[~large[pages]]
        fitted.append(_fitted(small, records["vertices"][small].astype(np.int64), degrees, limit, block))
    begin, end, page, vertex = (np.concatenate(each) for each in zip(*rows, strict=True))
    uneven, uneven_work = (np.concatenate(each) for each in zip(*fitted, strict=True))
    heavy_arcs = np.bincount(page, weights=end - begin, minlength=len(records)).astype(np.int64)
    light_arcs = np.where(large, 0, records["arcs"].astype(np.int64) - heavy_arcs)
    vertices = np.where(large, 0, records["vertices"].astype(np.int64))
    light = vertices - np.bincount(page, minlength=len(records))
    vertices[uneven[:, 0]] = 0
    tasks, work = _tasks(light_arcs, vertices, light, block)
    tasks, work = np.concatenate([tasks, uneven]), np.concatenate([work, uneven_work])
    if len(uneven):
        order = np.argsort(tasks[:, 0], kind="stable")
        tasks, work = tasks[order], work[order]
    task_start = np.searchsorted(tasks[:, 0], np.arange(len(records) + 1))
    segments, segment_start, heavy, part_start = _segments(begin, end, page, vertex, len(records))
    return Tasks(tasks, task_start, segments, segment_start, heavy, part_start, work, limit, block)


def _tasks(arcs: np.ndarray, vertices: np.ndarray, light: np.ndarray, block: int) -> tuple[np.ndarray, np.ndarray]:
    """Tasks of about equal arcs, and their work, as far as means tell: `arcs` of the `light` ones among the `vertices`
    of each page."""
    mean = arcs / np.maximum(light, 1)
    width = np.exp2(np.ceil(np.log2(np.maximum(mean, 1) / _ARCS_PER_LANE)))
    width = np.where(mean <= _ALONE, 1, np.clip(width, 2, WARP)).astype(np.int64)
    together = block // width
    count = np.ceil(block * _ARCS_PER_THREAD / np.maximum(mean, 1)).astype(np.int64)
    count = -(-count // together) * together
    pieces = -(-vertices // count)
    start = np.concatenate([[0], np.cumsum(pieces)])
    page = np.repeat(np.arange(len(vertices)), pieces)
    begin = (np.arange(start[-1]) - start[page]) * count[page]
    counts = np.minimum(count[page], vertices[page] - begin)
    work = (counts * (mean[page] + 1)).astype(np.int64)
    return np.stack([page, begin, counts, width[page]], axis=1).astype(np.uint32), work


def _fitted(
    pages: np.ndarray, vertices: np.ndarray, degrees: np.ndarray, limit: int, block: int
) -> tuple[np.ndarray, np.ndarray]:
    """Those of uneven pages among these, and their work, by the degrees of their own vertices."""
    if not len(pages):
        return np.zeros((0, 4), np.uint32), np.zeros(0, np.int64)
    first = np.cumsum(vertices) - vertices
    light = np.where(degrees > limit, 0, degrees)
    total = np.add.reduceat(light, first, dtype=np.int64)
    count = np.add.reduceat(degrees <= limit, first, dtype=np.int64)
    uneven = _uneven(np.maximum.reduceat(light, first).astype(np.int64), total, count)
    arcs = block * _ARCS_PER_THREAD
    room = int(((total + vertices) // arcs + 1)[uneven].sum())
    tasks, work = np.empty((room, 4), np.uint32), np.empty(room, np.int64)
    if room:
        warp = min(WARP, block)
        sizes = (np.uint64(each) for each in (warp, block // warp, arcs))
        room = fit(light, pages[uneven], first[uneven], vertices[uneven], *sizes, tasks, work)
    return tasks[:room], work[:room]


def _uneven(largest: np.ndarray, arcs: np.ndarray, vertices: np.ndarray) -> np.ndarray:
    """Pages of so many arcs in which one vertex has far more than the others."""
    return (largest > _ALONE) & (largest * vertices > _EVEN * arcs)


def _segments(
    begin: np.ndarray, end: np.ndarray, page: np.ndarray, vertex: np.ndarray, pages: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Cut rows (or parts of them) that are sorted by page."""
    pieces = -(-(end - begin) // SEGMENT)
    row = np.repeat(np.arange(len(page)), pieces)
    first = begin[row] + (np.arange(len(row)) - (np.cumsum(pieces) - pieces)[row]) * SEGMENT
    last = np.minimum(first + SEGMENT, end[row])
    where = page[row]
    fresh = np.ones(len(row), bool)
    fresh[1:] = vertex[row][1:] != vertex[row][:-1]
    heavy = np.cumsum(fresh) - 1
    segments = np.stack([where, first, last, heavy], axis=1).astype(np.uint32)
    part_start = np.append(np.flatnonzero(fresh), len(row)).astype(np.uint32)
    return segments, np.searchsorted(where, np.arange(pages + 1)), vertex[row][fresh].astype(np.uint32), part_start


Rows = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]


def _read(direction: Direction, limit: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Pages with rows that are cut into segments, and pages that may be uneven, some at a time; and the degrees in the
    small ones among them."""
    records = direction.records
    large, most = records["kind"] == LARGE, records["largest_degree"].astype(np.int64)
    vertices = records["vertices"].astype(np.int64)
    uneven = _uneven(most, records["arcs"].astype(np.int64), vertices)
    some = np.flatnonzero(large | (most > limit) | uneven)
    if not len(some):
        return
    ends = np.cumsum(vertices[some])
    cuts = np.searchsorted(ends, np.arange(_VERTICES, ends[-1], _VERTICES), side="right")
    column = direction.store.degree_column(direction.name)
    for a, b in pairwise(np.unique([0, *cuts, len(some)]).tolist()):
        pages, degrees = some[a:b], [np.zeros(0, np.uint32)]
        small = pages[~large[pages]]
        if len(small):
            first, count = records["first_vertex"][small].astype(np.int64), vertices[small]
            runs = np.flatnonzero(np.append(True, first[1:] != first[:-1] + count[:-1]))
            stops = (first + count)[np.append(runs[1:], len(small)) - 1]
            # Those of a small page fit in 32 bits, whatever the column has.
            degrees += [
                column.read(*run).astype(np.uint32, copy=False)
                for run in zip(first[runs].tolist(), stops.tolist(), strict=True)
            ]
        yield pages, np.concatenate(degrees)


def _heavy(pages: np.ndarray, records: np.ndarray, degrees: np.ndarray, limit: int) -> Rows:
    """(begin arc, end arc, page, vertex) of all rows of these pages that are cut into segments, sorted by page."""
    large = records["kind"] == LARGE
    arcs, first = records["arcs"].astype(np.int64), records["first_vertex"].astype(np.int64)
    begin, page, vertex, degree = [np.zeros(large.sum(), np.int64)], [pages[large]], [first[large]], [arcs[large]]
    heavy = np.flatnonzero(degrees > limit)
    if len(heavy):
        small = np.flatnonzero(~large)
        first, arcs, count = first[small], arcs[small], records["vertices"][small].astype(np.int64)
        head, found = np.cumsum(count) - count, degrees[heavy].astype(np.int64)
        at = np.searchsorted(head, heavy, side="right") - 1
        before = np.cumsum(degrees, dtype=np.int64)[heavy] - found
        begin.append(before - (np.cumsum(arcs) - arcs)[at])
        page.append(pages[small][at])
        vertex.append(first[at] + heavy - head[at])
        degree.append(found)
    starts, lengths, where, who = (np.concatenate(each) for each in (begin, degree, page, vertex))
    order = np.lexsort((starts, where))
    starts, lengths = starts[order], lengths[order]
    return starts, starts + lengths, where[order], who[order]


__all__ = ["BLOCK", "HEAVY", "SEGMENT", "Tasks", "cut"]
