"""How a neighbour's id is written in a page, and the one door through which pages become blocks.

`plain` is four bytes and is read where it lies. `logical6` is six bytes. `physical(p,q)` is the papers' slotted-page
address: p bytes of page number and q bytes of slot, pointing into the index of the `out` direction.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from penstock.errors import UsageError
from penstock.memory.device import kernel, parallel_kernel, prange


@dataclass(frozen=True)
class Encoding:
    """One way to write ids. `code` is what the index holds; the physical ones read (p, q) in hexadecimal."""

    name: str
    code: int
    p: int
    q: int

    @property
    def id_bytes(self) -> int:
        return self.p + self.q

    @property
    def physical(self) -> bool:
        return self.q > 0

    def reaches(self, pages: int, slots: int) -> bool:
        """Whether (p, q) can name every slot of every page."""
        return pages <= 1 << (8 * self.p) and slots <= 1 << (8 * self.q)


PLAIN = Encoding("plain", 0, 4, 0)
LOGICAL6 = Encoding("logical6", 6, 6, 0)
PHYSICAL = tuple(Encoding(f"physical{p}{q}", p * 16 + q, p, q) for p, q in ((2, 2), (3, 3), (2, 4), (4, 2)))
ENCODINGS = {encoding.name: encoding for encoding in (PLAIN, LOGICAL6, *PHYSICAL)}
ID_BYTES = {encoding.code: encoding.id_bytes for encoding in ENCODINGS.values()}
BY_CODE = {encoding.code: encoding for encoding in ENCODINGS.values()}


@dataclass(frozen=True)
class Block:
    """What a kernel sees: neighbours of vertex `first_vertex + i` are `neighbours[offsets[i]:offsets[i + 1]]`."""

    first_vertex: int
    offsets: np.ndarray
    neighbours: np.ndarray


def choose_encoding(name: str | None, vertices: int) -> Encoding:
    """The encoding of that name, or by default the narrowest logical one that can number the vertices."""
    if name is None:
        return PLAIN if vertices <= 1 << 32 else LOGICAL6
    encoding = ENCODINGS.get(name)
    if encoding is None:
        raise UsageError(f"there is no encoding {name!r}; the encodings are {', '.join(ENCODINGS)}")
    if not encoding.physical and vertices > 1 << (8 * encoding.p):
        raise UsageError(f"encoding {name} cannot number {vertices} vertices; use logical6")
    return encoding


def check_physical(
    encoding: Encoding, pages: int, slots: int, shape: Callable[[int], tuple[int, int]] | None = None
) -> None:
    """Refuse a (p, q) that is too small, and name one that fits. `shape(id_bytes)` says how many pages of how many
    slots the graph would have with ids of another width."""
    if encoding.reaches(pages, slots):
        return
    fits = [e.name for e in PHYSICAL if e.reaches(*(shape(e.id_bytes) if shape else (pages, slots)))]
    advice = f"use {fits[0]}" if fits else "use logical6"
    raise UsageError(
        f"{encoding.name} can address {1 << (8 * encoding.p)} pages of {1 << (8 * encoding.q)} slots, "
        f"but this graph has {pages} pages of up to {slots}: {advice}"
    )


# Pages are filled by serial kernels that `prange` calls: inside `prange` itself Numba does not see that `page.view()`
# is the page, and may drop what is written to it as dead.


@kernel()
def _page_ids(page, words, id_bytes, q, record, neighbours, first_arc, head_vertex, head_page):
    width = np.uint64(id_bytes)
    p = width - np.uint64(q)
    a0 = np.uint64(first_arc)
    base = record["first_arc"]
    begin = max(base, a0)
    end = min(base + record["arcs"], a0 + np.uint64(neighbours.size))
    if q == 0 and id_bytes == 4:
        for a in range(begin, end):
            words[a - base] = neighbours[a - a0]
        return
    for a in range(begin, end):
        id = np.uint64(neighbours[a - a0])
        at = (a - base) * width
        if q > 0:
            lo, hi = np.uint64(0), np.uint64(head_vertex.size)
            while hi - lo > np.uint64(1):
                mid = (lo + hi) >> np.uint64(1)
                if head_vertex[mid] <= id:
                    lo = mid
                else:
                    hi = mid
            slot = id - head_vertex[lo]
            for k in range(np.uint64(q)):
                page[at + p + k] = np.uint8(slot >> (np.uint64(8) * k))
            id = head_page[lo]
        for k in range(p):
            page[at + k] = np.uint8(id >> (np.uint64(8) * k))


@parallel_kernel()
def write_ids(pages, id_bytes, q, records, first_page, neighbours, first_arc, head_vertex, head_page):
    """Write the neighbours of arcs `first_arc...` into the pages that hold them; `head_*` say where vertices live."""
    for i in prange(pages.shape[0]):
        _page_ids(
            pages[i],
            pages[i].view(np.uint32),
            id_bytes,
            q,
            records[first_page + i],
            neighbours,
            first_arc,
            head_vertex,
            head_page,
        )


def heads(records: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(first vertex, page number) of the pages a physical id may name: all but the later parts of large vertices."""
    pages = np.flatnonzero(records["part"] == 0).astype(np.uint64)
    return np.ascontiguousarray(records["first_vertex"][records["part"] == 0]), pages


@kernel()
def _page_slots(words, record, degrees):
    count = np.uint64(record["vertices"])
    at = np.uint64(words.size) - count - np.uint64(1)
    words[at] = np.uint32(0)
    if record["kind"] == 1:
        words[at + np.uint64(1)] = np.uint32(record["arcs"])
        return
    offset = np.uint32(0)
    first = record["first_vertex"]
    for v in range(count):
        offset += np.uint32(degrees[first + v])
        words[at + v + np.uint64(1)] = offset


@parallel_kernel()
def write_slots(pages, records, first_page, degrees):
    """Write each page's arc offsets, `vertices + 1` of them, ending at the page's tail."""
    for i in prange(pages.shape[0]):
        _page_slots(pages[i].view(np.uint32), records[first_page + i], degrees)


@kernel()
def _read_ids(page, count, id_bytes, q, home, out):
    width = np.uint64(id_bytes)
    p = width - np.uint64(q)
    for a in range(np.uint64(count)):
        at = a * width
        id = np.uint64(0)
        for k in range(p):
            id |= np.uint64(page[at + k]) << (np.uint64(8) * k)
        if q > 0:
            slot = np.uint64(0)
            for k in range(np.uint64(q)):
                slot |= np.uint64(page[at + p + k]) << (np.uint64(8) * k)
            id = home[id] + slot if id < np.uint64(home.size) else ~np.uint64(0)
        out[a] = id


def decode(page: np.ndarray, record: np.void, home: np.ndarray, scratch: np.ndarray) -> Block:
    """A page's block. Plain pages are views of the page itself; the others fill `scratch` (uint32 or uint64)."""
    words = page.view(np.uint32)
    arcs, vertices = int(record["arcs"]), int(record["vertices"])
    offsets = words[words.size - vertices - 1 :]
    encoding = BY_CODE[int(record["encoding"])]
    if encoding is PLAIN:
        neighbours = words[:arcs]
    else:
        neighbours = scratch[:arcs]
        _read_ids(page, arcs, encoding.id_bytes, encoding.q, home, neighbours)
    return Block(int(record["first_vertex"]), offsets, neighbours)


def needs_scratch(code: int) -> bool:
    """Whether pages of this encoding must be decoded before a kernel can read them."""
    return code != PLAIN.code
