"""Some of a direction's pages, as if they were all: what one of several devices takes."""

from __future__ import annotations

import numpy as np

from penstock.errors import DamagedStore
from penstock.store.reader import Direction


class Share(Direction):
    """The pages of a slice, numbered anew from 0. What belongs to a page is asked of `whole` by its own number."""

    def __init__(self, whole: Direction, pages: slice) -> None:
        self.whole, self.store, self.name, self.columns = whole, whole.store, whole.name, whole.columns
        self.part = pages.indices(len(whole))
        self.records = whole.records[pages]
        self.column_records = {name: records[pages] for name, records in whole.column_records.items()}
        self.arcs = int(self.records["arcs"].sum())

    def number(self, page: int) -> int:
        """A page's number in the whole direction."""
        return self.part[0] + page * self.part[2]

    def page_extent(self, page: int) -> tuple[int, int, int]:
        return self.whole.page_extent(self.number(page))

    def column_extent(self, column: str, page: int) -> tuple[int, int, int]:
        return self.whole.column_extent(column, self.number(page))

    def verify(self, page: int, data: np.ndarray) -> None:
        self.whole.verify(self.number(page), data)

    def verify_column(self, column: str, page: int, data: np.ndarray) -> None:
        self.whole.verify_column(column, self.number(page), data)

    def damage(self, page: int, column: str | None = None) -> DamagedStore:
        return self.whole.damage(self.number(page), column)

    def read_page(self, page: int) -> np.ndarray:
        return self.whole.read_page(self.number(page))

    def read_column(self, column: str, page: int) -> np.ndarray:
        return self.whole.read_column(column, self.number(page))


def part_of(direction: Direction) -> tuple[int, int, int]:
    """(first, end, step) of the pages of the whole direction that are here."""
    return direction.part if isinstance(direction, Share) else (0, len(direction), 1)


def whole_of(direction: Direction) -> Direction:
    """All pages, where they lie."""
    return direction.whole if isinstance(direction, Share) else direction


def pages_between(direction: Direction, lo: int, hi: int) -> slice:
    """The pages that hold one of the vertices from `lo` to `hi`."""
    if hi <= lo:
        return slice(0, 0)
    first = direction.records["first_vertex"].astype(np.int64)
    ends = first + direction.records["vertices"].astype(np.int64)
    return slice(int(np.searchsorted(ends, lo, side="right")), int(np.searchsorted(first, hi, side="left")))


__all__ = ["Share", "pages_between", "part_of", "whole_of"]
