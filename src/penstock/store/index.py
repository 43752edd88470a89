"""The page index: one fixed record for each page, kept in memory: all of a page but its neighbours."""

from __future__ import annotations

from collections.abc import Mapping

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


def check_index(
    records: np.ndarray, *, active: int, arcs: int, page_size: int, name: str, widths: Mapping[int, int]
) -> None:
    """Refuse an index whose pages do not follow one another from vertex 0 and arc 0 to the last.

    `widths` are the bytes of an id by encoding. What passes here can be decoded without reading past a page.
    """
    count = len(records)
    if count == 0:
        if active or arcs:
            raise DamagedStore(f"{name} is empty, but the store has {active} vertices with arcs")
        return
    kind, part, vertices = records["kind"], records["part"], records["vertices"].astype(np.uint64)
    first_vertex, first_arc = records["first_vertex"], records["first_arc"]
    width = np.zeros(256, np.uint64)
    width[list(widths)] = list(widths.values())
    width = width[records["encoding"]]
    ends = first_arc + records["arcs"]
    # A vertex is finished by its small page or by the last of its large ones.
    more = np.zeros(count, bool)
    more[:-1] = (kind[:-1] == LARGE) & (part[1:] == part[:-1] + 1)
    following = first_vertex + np.where(more, np.uint64(0), vertices)
    begins = np.ones(count, bool)
    begins[1:] = ~more[:-1]
    degree = np.add.reduceat(records["arcs"], np.flatnonzero(begins))[np.cumsum(begins) - 1]
    low, high = records["smallest_degree"], records["largest_degree"]
    large = kind == LARGE
    _refuse(name, kind > LARGE, "is neither small nor large")
    _refuse(name, width == 0, "has an unknown encoding")
    _refuse(name, vertices == 0, "has no vertices")
    _refuse(name, records["arcs"] > page_size, "has more arcs than a page can hold")
    _refuse(name, first_arc != np.append(np.uint64(0), ends[:-1]), "does not begin at the arc where the last one ended")
    _refuse(
        name, first_vertex != np.append(np.uint64(0), following[:-1]), "does not begin at the vertex that comes next"
    )
    _refuse(name, np.where(begins, part != 0, ~large), "is no part of a vertex that follows the part before it")
    _refuse(name, large & (vertices != 1), "is large and has more than one vertex")
    payload = records["payload"].astype(np.uint64)
    _refuse(name, payload != records["arcs"] * width + (vertices + np.uint64(1)) * np.uint64(4), "has a wrong payload")
    _refuse(name, payload > np.uint64(page_size), "is larger than a page")
    _refuse(name, large & ((low != degree) | (high != degree)), "has a wrong degree")
    _refuse(name, low > high, "has a smallest degree above its largest")
    if int(following[-1]) != active or int(ends[-1]) != arcs:
        raise DamagedStore(
            f"{name} covers {following[-1]} vertices and {ends[-1]} arcs; meta.json says {active} and {arcs}"
        )


def _refuse(name: str, wrong: np.ndarray, reason: str) -> None:
    if wrong.any():
        raise DamagedStore(f"{name}: record {int(np.argmax(wrong))} {reason}")
