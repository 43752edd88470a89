"""The page index: one fixed record for each page, kept in memory: all of a page but its neighbours."""

from __future__ import annotations

import numpy as np

from penstock.errors import DamagedStore
from penstock.memory.device import kernel

SMALL, LARGE = 0, 1

RECORD = np.dtype(
    [
        ("first_vertex", "<u8"),
        ("first_arc", "<u8"),
        ("arcs", "<u8"),
        ("largest_degree", "<u8"),
        ("smallest_degree", "<u8"),
        ("checksum", "<u8"),
        ("vertices", "<u4"),
        ("part", "<u4"),
        ("payload", "<u4"),
        ("kind", "u1"),
        ("encoding", "u1"),
        ("reserved", "<u2"),
    ]
)
assert RECORD.itemsize == 64


@kernel()
def _cut(degrees, id_bytes, page_size, records, dry):
    """Cut vertices into pages: as many as fit, and a run of large pages for a vertex that does not fit in one."""
    one, slot = np.uint64(1), np.uint64(4)
    n = np.uint64(degrees.size)
    capacity = np.uint64(page_size)
    width = np.uint64(id_bytes)
    most = (capacity - np.uint64(2) * slot) // width
    v = np.uint64(0)
    arc = np.uint64(0)
    page = 0
    while v < n:
        degree = np.uint64(degrees[v])
        if degree > most:
            part = 0
            left = degree
            while left > np.uint64(0):
                take = min(left, most)
                if not dry:
                    r = records[page]
                    r["first_vertex"], r["first_arc"], r["arcs"] = v, arc, take
                    r["largest_degree"], r["smallest_degree"] = degree, degree
                    r["vertices"], r["part"], r["kind"] = 1, part, LARGE
                    r["payload"] = take * width + np.uint64(2) * slot
                page += 1
                part += 1
                left -= take
                arc += take
            v += one
            continue
        used = slot
        w = v
        largest = np.uint64(0)
        smallest = degree
        first_arc = arc
        while w < n:
            d = np.uint64(degrees[w])
            need = d * width + slot
            if used + need > capacity or d > most:
                break
            used += need
            arc += d
            largest = max(largest, d)
            smallest = min(smallest, d)
            w += one
        if not dry:
            r = records[page]
            r["first_vertex"], r["first_arc"], r["arcs"] = v, first_arc, arc - first_arc
            r["largest_degree"], r["smallest_degree"] = largest, smallest
            r["vertices"], r["part"], r["kind"] = w - v, 0, SMALL
            r["payload"] = used
        page += 1
        v = w
    return page


def cut_pages(degrees: np.ndarray, id_bytes: int, page_size: int) -> np.ndarray:
    """The index of the pages that will hold vertices of these degrees; checksums are filled in as pages are written."""
    count = _cut(degrees, id_bytes, page_size, np.zeros(0, RECORD), True)
    records = np.zeros(count, RECORD)
    _cut(degrees, id_bytes, page_size, records, False)
    return records


def check_index(records: np.ndarray, *, active: int, arcs: int, page_size: int, name: str) -> None:
    """Refuse an index whose pages do not follow one another from vertex 0 and arc 0 to the last."""
    count = len(records)
    if count == 0:
        if active or arcs:
            raise DamagedStore(f"{name} is empty, but the store has {active} vertices with arcs")
        return
    ends = records["first_arc"] + records["arcs"]
    # A vertex is finished by its small page or by the last of its large ones.
    more = np.zeros(count, bool)
    more[:-1] = (records["kind"][:-1] == LARGE) & (records["part"][1:] == records["part"][:-1] + 1)
    following = records["first_vertex"] + np.where(more, 0, records["vertices"]).astype(np.uint64)
    problem = None
    if records["first_vertex"][0] or records["first_arc"][0]:
        problem = 0
    elif (ends[:-1] != records["first_arc"][1:]).any():
        problem = int(np.flatnonzero(ends[:-1] != records["first_arc"][1:])[0]) + 1
    elif (following[:-1] != records["first_vertex"][1:]).any():
        problem = int(np.flatnonzero(following[:-1] != records["first_vertex"][1:])[0]) + 1
    elif (records["payload"] > page_size).any():
        problem = int(np.flatnonzero(records["payload"] > page_size)[0])
    if problem is not None:
        raise DamagedStore(f"{name}: record {problem} does not follow the one before it")
    if int(following[-1]) != active or int(ends[-1]) != arcs:
        raise DamagedStore(
            f"{name} covers {following[-1]} vertices and {ends[-1]} arcs; meta.json says {active} and {arcs}"
        )
