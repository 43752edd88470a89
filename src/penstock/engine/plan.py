"""The plan: where the arcs lie, which way they are followed, in how many ranges the state is held; made before
anything is allocated, so that what cannot fit is said at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from penstock.config import Settings
from penstock.engine.kernels.buckets import bins_bytes
from penstock.engine.program import Combine, Common, Pair, Program, Row, Sweep
from penstock.engine.vectors import AROUND
from penstock.errors import DoesNotFit, UsageError
from penstock.memory.cache import Policy
from penstock.memory.stream import PageStream
from penstock.memory.topology import Resident
from penstock.store.reader import Direction, Store

SLACK = 1 << 20
"""Counters, cuts, part totals: what is too small to count one by one."""
ROW_VERTEX = 32
"""What a vertex whose row is collected takes besides its messages: where the row begins, and its degrees."""
_FAR = 1 << 16
"""The fewest vertices worth a range."""
PAIRED = ("pair", "common")
"""Forms that go over lists of neighbours, which are made of the arcs first."""


@dataclass(frozen=True)
class Sides:
    """The stored directions a program can use: those it pulls along and those it pushes along."""

    pull: tuple[str, ...]
    push: tuple[str, ...]


def sides_of(store: Store, along: str) -> Sides:
    """Messages along the out-arcs arrive over the in-arcs. What is not stored cannot be used."""
    if not store.directed:
        return Sides(("out",), ("out",))
    against = {"out": "in", "in": "out"}
    ways = ("out", "in") if along == "both" else (along,)
    pull, push = tuple(against[way] for way in ways), ways
    stored = [names if all(store.has_direction(name) for name in names) else () for names in (pull, push)]
    return Sides(*stored)


def arcs_of(store: Store, program: Program) -> tuple[str, ...]:
    """The directions that a program goes over at least; none, if what it needs is not stored."""
    sides = sides_of(store, program.along)
    if isinstance(program, Sweep):
        return sides.push
    if isinstance(program, Combine) and program.stepped:
        return sides.push or sides.pull
    return sides.pull if isinstance(program, Row) else sides.pull or sides.push


def keeping(program: Combine) -> Policy:
    """How its pages are kept: a search comes back to some, all others go over all of them again and again."""
    return "lru" if program.frontier else "resident"


@dataclass(frozen=True)
class Plan:
    """What a run of one program will do."""

    program: str
    form: str
    tier: str
    sides: tuple[str, ...]
    ranges: int
    """How many ranges the state is split into; each pass reads the arcs so many times."""
    state_bytes: int
    """All vectors of the run."""
    window_bytes: int
    """The part of them that is in memory at a time."""
    topology_bytes: int
    """The arcs in memory, or their pages on disk."""
    fixed_bytes: int
    """Page index, ring, bitmaps."""
    cache_bytes: int
    smallest: int
    """The least budget that would do, from disk."""
    memory_limit: int
    rows_bytes: int = 0
    """Rows that are collected together, of a row program from disk."""
    edge_state_bytes: int = 0
    """The fields of all arcs: in memory, or from disk in files."""
    edge_window_bytes: int = 0
    """The part of those files that is in memory at a time."""
    why: tuple[str, ...] = field(default=())

    def as_dict(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__dataclass_fields__} | {"why": list(self.why)}


def vector_bytes(program: Program, store: Store, number: np.dtype) -> tuple[int, int]:
    """Bytes per vertex: (addressed by a page's own vertices, addressed from the other end)."""
    lanes = getattr(program, "lanes", 1)
    near = sum(kind.itemsize for kind in program.fields().values()) * lanes
    near += sum(read_dtype(store, name).itemsize for name in program.stored_reads())
    far = 0
    if isinstance(program, Combine):
        near += program.contribution_dtype(number).itemsize * lanes
        far = 0 if program.numbered else np.dtype(program.message).itemsize * lanes
    elif isinstance(program, Row):
        far = np.dtype(program.message).itemsize
    return near, far


def read_dtype(store: Store, name: str) -> np.dtype:
    """How a vertex column that a program reads is held."""
    if name == "seed":
        return np.dtype(np.uint32)
    if name == "neighbours" and name not in store.meta["vertex"]:
        return number_dtype(store)
    return np.dtype(store.vertex_column(name).dtype)


def number_dtype(store: Store) -> np.dtype:
    """What vertex numbers are in neighbour arrays."""
    return np.dtype(np.uint32 if store.vertices <= 1 << 32 else np.uint64)


def stream_bytes(direction: Direction, columns: Sequence[str], threads: int) -> int:
    """The least that streaming a direction takes: its index, a short ring, room to decode."""
    index = direction.records.nbytes + sum(direction.column_records[name].nbytes for name in columns)
    return index + ring_bytes(direction, columns, threads) + threads * direction.scratch_bytes


def ring_bytes(direction: Direction, columns: Sequence[str], threads: int) -> int:
    """The shortest ring that a stream reads ahead into."""
    widest = direction.store.page_size
    for name in columns:
        sizes = direction.column_records[name]["bytes"]
        widest += -(-int(sizes.max(initial=0)) // 4096) * 4096
    return PageStream._smallest_ring(threads) * widest


def cache_bytes(free: int, ring: int, page_size: int) -> int:
    """What a stream keeps of so many free bytes for pages, beside its ring (see `PageFeed`)."""
    return max(0, free - max(ring, min(32 * page_size, free // 4)))


def make_plan(
    program: Program, store: Store, settings: Settings, slots: int, *, held: int = 0, resident: bool = False
) -> Plan:
    """`held`: bytes of vectors that are already there or will be. `resident`: the arcs are in memory already."""
    if isinstance(program, Pair):
        from penstock.engine.pairing import pair_plan

        return pair_plan(program, store, settings, slots, held=held, resident=resident)
    if isinstance(program, Common):
        from penstock.engine.pairing import common_plan

        return common_plan(program, store, settings, slots, held=held, resident=resident)
    sides = sides_of(store, program.along)
    usable = arcs_of(store, program)
    if not usable:
        raise UsageError(f"{store.path} stores no incoming arcs, which {program.name} needs: build it with them")
    # A traversal changes its direction, where it can; all others pull. What arcs keep is in the order of one direction.
    traverses = isinstance(program, Combine) and program.frontier and program.lanes == 1 and not program.edge_state
    names = tuple(dict.fromkeys(sides.pull + sides.push)) if traverses else usable
    directions = [store.direction(name) for name in dict.fromkeys(names)]
    near, far = vector_bytes(program, store, number_dtype(store))
    bitmaps = 4 * ((slots + 63) // 64 * 8) if isinstance(program, Combine) else 0
    state = slots * (near + far)
    # In memory each thread has room for the longest row; from disk there is one place for as many as fit.
    row = _largest_row(program, store, names) if isinstance(program, Row) else 0
    rows = settings.threads * row
    kept, kept_window = edge_state_bytes(program, directions, settings.threads)
    stream = sum(stream_bytes(direction, program.columns, settings.threads) for direction in directions) + kept_window
    # Delta-stepping has bins, and pushes only.
    stepped = isinstance(program, Combine) and program.stepped and len(sides.push) == 1
    rows += bins_bytes(store.active, settings.threads, number_dtype(store)) if stepped else 0
    loaded = [store.direction(name) for name in sides.push] if stepped else directions
    in_memory = sum(Resident.needed(direction, program.columns) for direction in loaded)
    pages = sum(len(direction) * store.page_size for direction in directions)
    for direction in directions:
        pages += sum(int(direction.column_records[name]["bytes"].sum()) for name in program.columns)
    limit = settings.memory_limit
    free = limit - held - SLACK
    why: list[str] = []
    loading = max((stream_bytes(direction, program.columns, settings.threads) for direction in directions), default=0)
    in_all = state + kept + bitmaps + rows + in_memory + (0 if resident else loading + store.page_size * 8)
    fits = (resident and not kept) or in_all <= free
    widest = max((int(d.records["vertices"].max(initial=1)) for d in directions), default=1)
    most = max(1, min(slots // max(1, min(widest, slots)), slots // min(_FAR, slots) if slots else 1))
    split = not isinstance(program, Sweep)
    least = stream + bitmaps + row + (-(-state // most) if split else state) + held + SLACK
    forced = settings.state_ranges if split else None
    tier = settings.tier
    if tier == "auto":
        tier = "memory" if fits and not forced else "disk"
        why.append(
            "state and arcs fit into the budget" if tier == "memory" else "state and arcs together exceed the budget"
        )
    elif tier == "memory" and not fits:
        needed = in_all + held + SLACK
        raise DoesNotFit(f"{program.name} in memory", needed=needed, limit=limit)
    ranges = 1
    if tier == "disk":
        room = free - stream - bitmaps - row
        if state > room:
            if not split:
                raise DoesNotFit(f"the state of {program.name}", needed=least, limit=limit)
            if room <= 0 or -(-state // room) > most:
                raise DoesNotFit(f"{program.name} of {store.vertices:,} vertices", needed=least, limit=limit)
            ranges = -(-state // room)
            why.append(f"the state of {state:,} bytes exceeds what is left: {ranges} ranges")
        ranges = max(ranges, min(forced or 1, slots))
    window = -(-state // ranges)
    ring = sum(ring_bytes(direction, program.columns, settings.threads) for direction in directions)
    left = free - (stream - ring) - bitmaps - window - row
    if tier == "disk":
        # Half of what is left, but no more than there is: windows may be short, as each reads its own pages only.
        most_rows = sum(d.arcs for d in directions) * np.dtype(program.message).itemsize if row else 0  # type: ignore[attr-defined]
        rows = row + min(max(0, left - ring) // 2, most_rows + slots * ROW_VERTEX if row else 0)
        left -= rows - row
    if ranges == 1:
        left += slots * _spared(program, sides, number_dtype(store))
    # The stream takes what the ledger has free, so also what is kept aside here for the index and for counters.
    index = sum(direction.records.nbytes for direction in directions)
    cache = cache_bytes(left + SLACK + index, ring, store.page_size) if tier == "disk" else 0
    return Plan(
        program=program.name, form=program.form, tier=tier, sides=tuple(d.name for d in directions), ranges=ranges,
        state_bytes=state, window_bytes=window, topology_bytes=in_memory if tier == "memory" else pages,
        fixed_bytes=(kept if tier == "memory" else stream) + bitmaps + rows, cache_bytes=min(cache, pages),
        smallest=least, memory_limit=limit, rows_bytes=rows, edge_state_bytes=kept,
        edge_window_bytes=0 if tier == "memory" else kept_window, why=tuple(why),
    )  # fmt: skip


def edge_state_bytes(program: Program, directions: Sequence[Direction], threads: int) -> tuple[int, int]:
    """Bytes of the fields of all arcs, and of those that threads have in memory while each is at a page."""
    if not isinstance(program, Combine) or not program.edge_state:
        return 0, 0
    sizes = [kind.itemsize for kind in program.edge_fields().values()]
    everything = sum(direction.arcs for direction in directions) * sum(sizes)
    widest = max((int(direction.records["arcs"].max(initial=0)) for direction in directions), default=0)
    window = threads * sum(widest * size + 2 * AROUND for size in sizes)
    return everything, min(window, everything + AROUND * len(sizes))


def _spared(program: Program, sides: Sides, number: np.dtype) -> int:
    """Bytes per vertex that a program does without where it pulls and updates in one go: its totals."""
    fused = isinstance(program, Combine) and not program.frontier and program.lanes == 1 and len(sides.pull) == 1
    return program.contribution_dtype(number).itemsize if fused and isinstance(program, Combine) else 0


def _largest_row(program: Row, store: Store, names: Sequence[str]) -> int:
    longest = sum(int(store.direction(name).records["largest_degree"].max(initial=0)) for name in names)
    return longest * np.dtype(program.message).itemsize + 2 * ROW_VERTEX


__all__ = [
    "PAIRED", "Plan", "Sides", "arcs_of", "keeping", "make_plan", "number_dtype", "read_dtype", "sides_of",
    "vector_bytes",
]  # fmt: skip
