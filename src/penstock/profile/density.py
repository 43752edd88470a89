"""Where in the matrix the arcs are: a picture of bounded cost, of a sample of the pages where the graph is large."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from penstock.errors import UsageError
from penstock.profile.stored import PIECE, Stored, store_of
from penstock.store.encodings import decode
from penstock.store.reader import Direction, Store

SAMPLE = 256 << 20
"""Bytes of pages that are read for a density."""


@dataclass(frozen=True)
class Density:
    """How many arcs lead from a range of vertices (rows) to another (columns), in order of internal number: by
    descending degree, if that is the graph's order."""

    counts: np.ndarray
    """float64, bins by bins; estimates if it was sampled."""
    vertices: int
    """Vertices that the axes cover: those with arcs."""
    arcs: int
    sampled: float = 1.0
    """The share of the pages that was read."""


def density(graph: Stored | Store, bins: int = 256, direction: str = "out", *, sample: int = SAMPLE) -> Density:
    """The adjacency matrix as a picture. Of more than `sample` bytes of pages one of several neighbouring ones is
    read, and stands for them; how many arcs a row has is known from the index all the same."""
    store = store_of(graph)
    if bins < 1:
        raise UsageError(f"a density has at least one bin, not {bins}")
    side, active = store.direction(direction), store.active
    bins = max(1, min(bins, active))
    counts = np.zeros((bins, bins))
    if not side.arcs:
        return Density(counts, active, 0)
    groups = _strata(len(side), max(1, sample // store.page_size))
    home, scratch, draw = side.home, side.scratch(), np.random.default_rng(0)
    for group in groups:
        page = int(draw.integers(group.start, group.stop))
        block = decode(side.read_page(page), side.records[page], home, scratch)
        offsets = block.offsets.astype(np.int64)
        seen = np.zeros(bins * bins)
        for at in range(0, len(block.neighbours), PIECE):
            columns = _bin(block.neighbours[at : at + PIECE].astype(np.int64), active, bins)
            rows = _bin(_rows(offsets, at, at + len(columns)) + block.first_vertex, active, bins)
            seen += np.bincount(rows * bins + columns, minlength=bins * bins)
        counts += seen.reshape(bins, bins) if len(group) == 1 else _spread(side, group, seen.reshape(bins, bins), bins)
    return Density(counts, active, side.arcs, len(groups) / len(side))


def _rows(offsets: np.ndarray, begin: int, end: int) -> np.ndarray:
    """The vertex of each of these arcs of a page, counted from its first."""
    first, last = np.searchsorted(offsets, begin, "right") - 1, np.searchsorted(offsets, end, "left")
    return np.repeat(np.arange(first, last), np.diff(offsets[first : last + 1].clip(begin, end)))


def _bin(vertices: np.ndarray, active: int, bins: int) -> np.ndarray:
    return vertices * bins // active


def _strata(pages: int, most: int) -> list[range]:
    """At most so many groups of neighbouring pages, of nearly the same size."""
    count = min(pages, most)
    cuts = [pages * k // count for k in range(count + 1)]
    return [range(begin, end) for begin, end in pairwise(cuts)]


def _spread(side: Direction, group: range, seen: np.ndarray, bins: int) -> np.ndarray:
    """Where one page's arcs lead, for the rows of all pages of its group: each row by the arcs it has."""
    records, active = side.records[group.start : group.stop], side.store.active
    weight = np.zeros(bins)
    for first, vertices, arcs in zip(records["first_vertex"], records["vertices"], records["arcs"], strict=True):
        begin, end = int(first) * bins / active, (int(first) + max(1, int(vertices))) * bins / active
        held = np.arange(int(begin), min(bins, int(np.ceil(end))))
        part = np.minimum(held + 1, end) - np.maximum(held, begin)
        weight[held] += int(arcs) * part / max(part.sum(), 1e-12)
    columns = seen.sum(axis=0)
    return np.outer(weight, columns / max(columns.sum(), 1.0))


__all__ = ["Density", "density"]
