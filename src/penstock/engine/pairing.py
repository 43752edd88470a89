"""What programs take that see pairs of vertices: bytes of lists, marks and rows, and the plan made from them."""

from __future__ import annotations

import math
from typing import NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from penstock.config import Settings
from penstock.engine.plan import SLACK, Plan, number_dtype, stream_bytes, vector_bytes
from penstock.engine.program import Common, Pair, Program
from penstock.errors import DoesNotFit
from penstock.memory.spill import BOUNCE
from penstock.memory.topology import Resident
from penstock.store.reader import Store

CHUNK = 1 << 14
"""The fewest entries worth a second thread, or a read."""
NEAR = 1 << 16
"""Vertices of low rank whose totals each thread has for itself."""
SPILLING = 4 * BOUNCE
"""What writing and reading a temporary file takes."""
MOST_STREAMED = 64 << 20
"""Bytes of lists that stream past at a time: enough for a disk."""
_HUBS = 1 << 16
"""The most vertices that have a row: of more, too few are neighbours."""


def has_ways(program: Pair, store: Store) -> bool:
    """Whether it matters which arcs there are between two neighbours."""
    return program.per_vertex and program.corner is not None and store.directed


def entry_dtype(store: Store, ways: bool) -> np.dtype:
    """What entries of oriented lists are: the rank of a neighbour, and two bits where ways matter."""
    most = 1 << (30 if ways else 32)
    return np.dtype(np.uint32 if store.vertices <= most else np.uint64)


def hub_count(vertices: int, room: int) -> int:
    """How many vertices get a row of bits in so many bytes."""
    return min(vertices, _HUBS, math.isqrt(max(0, room) * 8) // 64 * 64)


def row_bytes(hubs: int) -> int:
    return hubs * ((hubs + 63) // 64) * 8


def mark_bytes(program: Pair, vertices: int) -> int:
    """One thread's marks: a bit for each vertex, or a byte where a corner function asks for ways."""
    return vertices if _called(program) else (vertices + 63) // 64 * 8


def _called(program: Pair) -> bool:
    return program.per_vertex and program.corner is not None


def pair_plan(program: Pair, store: Store, settings: Settings, slots: int, *, held: int, resident: bool) -> Plan:
    """In memory, where arcs, lists and vectors fit; else from disk, with as many ranges of lists as it takes."""
    direction, threads, active = store.direction("out"), settings.threads, store.active
    size = entry_dtype(store, has_ways(program, store)).itemsize
    entries = direction.arcs if store.directed else direction.arcs // 2
    state = 0
    if program.per_vertex:
        total = np.dtype(program.total).itemsize
        state = slots * (vector_bytes(program, store, number_dtype(store))[0] + total)
        state += threads * min(NEAR, active) * (total + 8)
    fixed = 8 * (active + 1) + threads * mark_bytes(program, active)
    if store.meta["order"] != "degree":
        # Ranks, and what it takes to find them or to put totals back in the order of the vertices.
        fixed += active * (number_dtype(store).itemsize + 28)
    rows = 0 if _called(program) else row_bytes(hub_count(active, entries * size // 2))
    sizes = _Sizes(state, fixed, entries, size, rows)
    return _plan(program, store, settings, slots, sizes, held=held, resident=resident)


def common_plan(program: Common, store: Store, settings: Settings, slots: int, *, held: int, resident: bool) -> Plan:
    """The same, with whole lists."""
    active = store.active
    state = slots * vector_bytes(program, store, number_dtype(store))[0]
    fixed = 8 * (active + 1) + settings.threads * ((active + 63) // 64 * 8)
    sizes = _Sizes(state, fixed, whole_entries(store), entry_dtype(store, ways=False).itemsize)
    return _plan(program, store, settings, slots, sizes, held=held, resident=resident)


def whole_entries(store: Store) -> int:
    """A bound of the entries of all whole lists, parallel arcs each."""
    return store.direction("out").arcs * (2 if store.directed else 1)


class _Sizes(NamedTuple):
    state: int
    """Bytes of vectors."""
    fixed: int
    """Bytes of what else is there in any case."""
    entries: int
    size: int
    """Bytes of an entry."""
    rows: int = 0
    """Bytes of rows, where they have room."""


def _plan(
    program: Program, store: Store, settings: Settings, slots: int, sizes: _Sizes, *, held: int, resident: bool
) -> Plan:
    direction, threads = store.direction("out"), settings.threads
    state, fixed, rows, lists = sizes.state, sizes.fixed, sizes.rows, sizes.entries * sizes.size
    arcs = Resident.needed(direction, ())
    stream = stream_bytes(direction, (), threads)
    limit, free = settings.memory_limit, settings.memory_limit - held - SLACK
    in_memory = fixed + state + lists + max(rows, 0 if resident else stream + 8 * store.page_size) + arcs
    longest = longest_list(store, sizes.entries) * sizes.size
    least = held + SLACK + fixed + state + stream + SPILLING + 2 * longest
    tier, why = settings.tier, []
    if tier == "auto" and not settings.state_ranges:
        least = min(least, in_memory + held + SLACK)  # a small graph takes less than room to spill does
    if tier == "auto":
        tier = "memory" if in_memory <= free and not settings.state_ranges else "disk"
        why.append(f"arcs, lists and state {'fit into' if tier == 'memory' else 'together exceed'} the budget")
    elif tier == "memory" and in_memory > free:
        raise DoesNotFit(f"{program.name} in memory", needed=in_memory + held + SLACK, limit=limit)
    ranges = 1
    if tier == "disk":
        if least > limit:
            raise DoesNotFit(f"{program.name} of {store.vertices:,} vertices", needed=least, limit=limit)
        # Pages are done with when lists are held. A quarter is for lists that stream past, and up to one for rows.
        room = free - fixed - state - SPILLING
        if lists > room or (settings.state_ranges or 1) > 1:
            there = room // 2 if isinstance(program, Pair) else room - max(longest, min(room // 4, MOST_STREAMED))
            ranges = max(-(-lists // max(1, longest, there)), settings.state_ranges or 1)
            why.append(f"about {ranges} ranges of lists are held in turn, while all of them stream past")
    topology = arcs + lists if tier == "memory" else len(direction) * store.page_size
    return Plan(
        program=program.name, form=program.form, tier=tier, sides=(direction.name,), ranges=ranges,
        state_bytes=state, window_bytes=state, topology_bytes=topology,
        fixed_bytes=fixed + (rows if tier == "memory" else stream), cache_bytes=0, smallest=least, memory_limit=limit,
        why=tuple(why),
    )  # fmt: skip


def longest_list(store: Store, entries: int) -> int:
    """A bound of the longest list, parallel arcs each: what is known before the arcs were counted."""
    longest = int(store.direction("out").records["largest_degree"].max(initial=0))
    if store.directed and store.has_direction("in"):
        longest += int(store.direction("in").records["largest_degree"].max(initial=0))
    elif store.directed:
        longest += _most_incoming(store)
    return min(entries, longest)


def _most_incoming(store: Store) -> int:
    """The largest in-degree, where no index has it: it is read once."""
    if store not in _INCOMING:
        column, pieces = store.vertex_column("in_degree"), range(0, store.active, _PIECE)
        _INCOMING[store] = max((int(column.read(lo, min(lo + _PIECE, store.active)).max()) for lo in pieces), default=0)
    return _INCOMING[store]


_INCOMING: WeakKeyDictionary[Store, int] = WeakKeyDictionary()
_PIECE = 1 << 20


def longest_simple(store: Store, entries: int) -> int:
    """The same, each neighbour once. Who has a list of so many has as many neighbours of no smaller degree: their
    degrees are a part of all, and no less than the square of it."""
    degrees = store.direction("out").arcs * (2 if store.directed else 1)
    return min(longest_list(store, entries), math.isqrt(degrees))
