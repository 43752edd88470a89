"""Page views: how often each page of a web log was seen, or by how many visitors.

Returns   (page, count), by ascending page
Defined   a line of the log has fields; `page` and `visitor` say which, counted from 0. With `distinct` a page counts
          once for each visitor. Lines without the field of the page are left out.
Phases    page (and visitor) of each line; equal ones are brought together first; then counts by page
Ref       Mars: He et al. 2008 (PageViewCount)
"""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np

from penstock.apps.grouped import mapped
from penstock.apps.jobs.options import Listing, Recurse
from penstock.apps.jobs.table import summed
from penstock.errors import UsageError
from penstock.mapreduce.columns import Bytes
from penstock.mapreduce.functions import chunk
from penstock.mapreduce.keyvalue import KeyValue
from penstock.mapreduce.session import MapReduce

_BREAK = 10
"""The end of a line stands between page and visitor: it is in neither."""


def page_views(
    mr: MapReduce,
    paths: Any,
    *,
    page: Annotated[int, "The field of the page, counted from 0."] = 0,
    visitor: Annotated[int, "The field of the visitor."] = 1,
    distinct: Annotated[bool, "Count a page once for each visitor."] = False,
    separator: Annotated[str, "What stands between fields: one byte."] = "\t",
    recurse: Recurse = False,
    listing: Listing = False,
) -> KeyValue:
    """Count the views of pages in log files."""
    if len(separator.encode()) != 1 or separator in "\r\n":
        raise UsageError(f"separator must be one byte, and no end of a line, not {separator!r}")
    if page < 0 or visitor < 0:
        raise UsageError(f"fields are counted from 0: page {page} and visitor {visitor} must not be negative")
    byte = np.uint8(separator.encode()[0])

    @chunk(key="string", value=np.int64, parallel=True)
    def view(piece: np.ndarray) -> tuple[Bytes, np.ndarray] | None:
        from penstock.apps.jobs.words import copy_ranges, fields_of

        lines = int((piece == _BREAK).sum()) + 1
        begins, ends = np.empty((lines, 2), np.int64), np.empty((lines, 2), np.int64)
        count = int(fields_of(piece, byte, np.uint64(page), np.uint64(visitor), begins, ends))
        begins, ends = begins[:count], ends[:count]
        kept = ends[:, 0] > begins[:, 0]
        begins, ends = begins[kept], ends[kept]
        if not distinct:
            begins, ends = begins[:, :1], ends[:, :1]
        # A visitor's bytes follow those of the page, each with the byte before it for the break.
        widths = (ends - begins).sum(axis=1)
        offsets = np.zeros(len(begins) + 1, np.int64)
        stretches = np.zeros(begins.size + 1, np.int64)
        data = np.empty(int(widths.sum()), np.uint8)
        copy_ranges(piece, begins.ravel(), ends.ravel(), stretches, data)
        offsets[:] = stretches[:: begins.shape[1]]
        if distinct:
            offsets, data = _broken(stretches, data)
        return Bytes(offsets, data, True), np.ones(len(begins), np.int64)

    seen = mr.map_pieces(paths, view, recurse=recurse, listing=listing, combine="sum")
    views = summed(seen)
    if distinct:
        views = summed(mapped(views, _page_only, "string", np.int64))
    return views.sort_keys()


def _broken(stretches: np.ndarray, data: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Pages and visitors with a break between them."""
    pages = len(stretches) // 2
    offsets = stretches[::2] + np.arange(pages + 1)
    made = np.empty(len(data) + pages, np.uint8)
    breaks = stretches[1::2] + np.arange(pages)
    mask = np.ones(len(made), bool)
    mask[breaks] = False
    made[breaks] = _BREAK
    made[mask] = data
    return offsets, made


def _page_only(keys: Bytes, values: np.ndarray) -> tuple[Bytes, np.ndarray]:
    """The page of each page and visitor, once."""
    from penstock.apps.jobs.words import copy_ranges

    ends = np.flatnonzero(keys.data == _BREAK)
    begins = keys.offsets[:-1]
    offsets, data = np.zeros(len(begins) + 1, np.int64), np.empty(int((ends - begins).sum()), np.uint8)
    copy_ranges(keys.data, begins, ends, offsets, data)
    return Bytes(offsets, data, True), np.ones(len(begins), np.int64)


__all__ = ["page_views"]
