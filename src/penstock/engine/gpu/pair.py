"""A pair program on a GPU: triangles are found where two oriented lists meet, and counted at their corners by kernels
without a program; each vertex takes its total in. The lists are all there, or pass."""

from __future__ import annotations

import time
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np

from penstock.engine.compile import _made, usable
from penstock.engine.cpu.parts import read_column
from penstock.engine.gpu.functions import Kernel, gpu_adapters, make_kernel
from penstock.engine.gpu.held import blocks
from penstock.engine.gpu.kernels import pair as templates
from penstock.engine.gpu.listing import lists_for, plan_lists
from penstock.engine.gpu.lists import Lists, Part, Sizes, plain
from penstock.engine.gpu.passing import Passing
from penstock.engine.gpu.plan import DevicePlan
from penstock.engine.pairing import entry_dtype, has_ways, longest_simple
from penstock.engine.plan import Plan, read_dtype
from penstock.engine.program import Pair
from penstock.engine.vectors import Slots
from penstock.memory import gpu
from penstock.memory.card import Array, Card
from penstock.memory.device import inlined
from penstock.memory.fingerprint import fingerprint
from penstock.memory.tasks import BLOCK
from penstock.observe.progress import Progress, progress
from penstock.store.reader import Store

if TYPE_CHECKING:
    from penstock.engine.engine import Engine, Outcome, Until


def _total_of(program: Pair, *, ways: bool) -> Any:
    """What a vertex is given for its triangles: `total_of(told, n, p)`. The corner function knows only the arcs
    between the other two, so each triangle of a kind adds the same."""
    kind, names = np.dtype(program.total).type, {}
    if program.corner is None:
        line = "kind(told[0, n])"
    else:
        names = {"corner": usable(program.corner), "one": np.uint64(1), "two": np.uint64(2)}
        line = "kind(kind(corner(two, p)) * kind(told[0, n]))"
        if ways:
            line = "kind(kind(corner(one, p)) * kind(told[0, n]) + kind(corner(two, p)) * kind(told[1, n]))"
    return inlined(_made("total_of", f"def total_of(told, n, p):\n    return {line}\n", kind=kind, **names))


_KEPT: dict[str, Kernel] = {}


def _settle_kernel(program: Pair, *, ways: bool) -> Kernel:
    key = fingerprint(program.makeup(), ways, BLOCK)
    if key in _KEPT:
        return _KEPT[key]
    parts: SimpleNamespace = gpu_adapters(program, flagged=False)
    assert program.update is not None
    parts.init, parts.update, parts.block = usable(program.init), usable(program.update), BLOCK
    parts.kind, parts.total_of = np.dtype(program.total).type, _total_of(program, ways=ways)
    _KEPT[key] = make_kernel(templates.settle, parts, program, ways)
    return _KEPT[key]


def make_pair_plan(program: Pair, store: Store, slots: int, limit: int, ranges: int | None = None) -> DevicePlan:
    """Counts and state are there, and lists as they have room."""
    sizes, counts = Sizes(store), 8 * templates.SPREAD
    if program.per_vertex:
        counts += slots * 8 * (2 if has_ways(program, store) else 1)
        counts += slots * sum(kind.itemsize for kind in program.fields().values())
        counts += slots * sum(read_dtype(store, name).itemsize for name in program.stored_reads())
        counts += 2 * 4 * slots if "neighbours" in program.reads else 0
    return plan_lists(
        program.name, store, sizes, limit, fixed=counts, longest=longest_simple(store, sizes.entries), ranges=ranges
    )  # fmt: skip


def unfit(program: Pair, store: Store) -> str:
    """Why it runs on the CPU, if it has to."""
    if entry_dtype(store, has_ways(program, store)).itemsize > 4:
        return "which arcs there are between neighbours of 2**30 vertices or more is found out on the CPU"
    return ""


class PairRun:
    """One run: lists, counts, vertices."""

    def __init__(
        self, engine: Engine, device: Card, program: Pair, lists: Lists | Passing, params: dict[str, Any], slots: Slots
    ) -> None:
        self.engine, self.device, self.program, self.lists = engine, device, program, lists
        self.params, self.slots, self.ways = params, slots, lists.ways
        self.stream, self.telling = device.stream, program.per_vertex
        self._arrays: list[Array] = []
        self.triangles = 0

    def prepare(self) -> None:
        """What lies on the device besides arcs, or lists that pass: those take what is left."""
        device, slots, program = self.device, self.slots, self.program
        self.lists.prepare()
        self.neighbours = self.by_rank = None
        shape = (2 if self.ways else 1, slots.count if self.telling else 1)
        self.told = self._kept(device.full(shape, 0, np.uint64, "triangles"))
        self.spread = self._kept(device.full(templates.SPREAD, 0, np.uint64, "triangles"))
        if self.telling:
            self.state = [self._kept(device.full(slots.count, 0, kind, "state")) for kind in program.fields().values()]
            if "neighbours" in program.reads:
                self.neighbours = self._kept(device.full(slots.count, 0, np.uint32, "neighbours"))
                self.by_rank = self.neighbours
                if self.engine.store.meta["order"] != "degree":
                    self.by_rank = self._kept(device.full(slots.count, 0, np.uint32, "neighbours"))
            self.reads = [self._read(name) for name in program.stored_reads()]

    def _kept(self, array: Array) -> Array:
        self._arrays.append(array)
        return array

    def _read(self, name: str) -> Array:
        if name == "neighbours":
            assert self.neighbours is not None
            return self.neighbours
        return self._kept(self.device.upload(read_column(self.engine, self.slots, name), "reads"))

    def count(self, bar: Progress) -> None:
        """All triangles: those of each v that is held with the u whose lists pass."""
        lists, about = self.lists, {"ways": self.ways, "telling": self.telling}
        for theirs in lists.held():
            began, before = time.perf_counter(), self.triangles
            self._add_degrees(theirs)
            held = theirs.lists, theirs.base, np.uint32(theirs.first), np.uint32(theirs.last - 1)
            for stream, mine, items, pieces in lists.passing(theirs):
                tail = (*lists.bounds, mine.lists, mine.base, *held, self.told.arg, self.spread.arg)
                plain("wide", **about)(stream, pieces, BLOCK, items, *tail)
                first, last = np.uint32(mine.first), np.uint32(mine.last)
                warps = -(-(mine.last - mine.first) // (BLOCK // gpu.WARP))
                plain("narrow", **about)(stream, warps, BLOCK, first, last, *tail)
            self.triangles = int(gpu.download(self.spread.array).sum())
            self.engine.stats.iteration(
                program=self.program.name, lists=theirs.last - theirs.first, triangles=self.triangles - before,
                seconds=time.perf_counter() - began,
            )  # fmt: skip
            bar.advance(1)

    def _add_degrees(self, part: Part) -> None:
        """How many neighbours the vertices have, by their ranks."""
        if self.by_rank is not None:
            first, last = np.uint32(part.first), np.uint32(part.last)
            plain("degrees", ways=self.ways)(
                self.stream, blocks(part.last - part.first), BLOCK, first, last, *self.lists.bounds, part.lists,
                part.base, self.by_rank.arg,
            )  # fmt: skip

    def settle(self) -> dict[str, np.ndarray]:
        """The state of all vertices, by their totals."""
        lists, slots, stream = self.lists, self.slots, self.stream
        count = np.uint32(lists.count)
        if self.neighbours is not None and self.by_rank is not None and self.by_rank is not self.neighbours:
            plain("by_vertex")(
                stream, blocks(lists.count), BLOCK, count, lists.rank.arg, self.by_rank.arg, self.neighbours.arg
            )
        params = (*self.params.values(), slots.vertices, 0, 0.0)
        scalars = self._kept(self.device.full(1, 0, np.float64, "scalars"))
        _settle_kernel(self.program, ways=self.ways)(
            stream, blocks(slots.count), BLOCK, np.uint32(slots.count), count, lists.rank.arg, self.told.arg,
            tuple(array.arg for array in self.state), tuple(array.arg for array in self.reads), params, scalars.arg,
        )  # fmt: skip
        stream.synchronize()
        self.engine.make_room(sum(mine.array.nbytes for mine in self.state))
        found = {}
        for name, mine in zip(self.program.state, self.state, strict=True):
            found[name] = gpu.download(mine.array, self.engine.vectors.make(slots.count, mine.array.dtype, name))
        return found

    def close(self) -> None:
        self.stream.synchronize()
        for array in self._arrays:
            array.release()
        self.lists.close()


def run(
    engine: Engine,
    program: Pair,
    plan: Plan,
    params: dict[str, Any],
    slots: Slots,
    vectors: dict[str, np.ndarray],
    active: np.ndarray | None,
    until: Until | None,
) -> Outcome:
    """All triangles once; `totals["triangles"]` says how many there are."""
    from penstock.engine.engine import Outcome

    device, stats, store = engine.gpu, engine.stats, engine.store
    if why := unfit(program, store):
        from penstock.engine.cpu import pair as cpu

        stats.note(device="cpu", why_not_gpu=why)
        return cpu.run(engine, program, plan, params, slots, vectors, active, until)
    ways = has_ways(program, store)
    planned = make_pair_plan(program, store, slots.count, device.ledger.limit, engine.settings.state_ranges)
    engine.device_plans.append(planned)
    lists = lists_for(engine, device, program.name, plan, planned, Sizes(store), ways=ways)
    held = PairRun(engine, device, program, lists, params, slots)
    try:
        with stats.phase("prepare"):
            held.prepare()
        with stats.phase("orient"):
            lists.make(planned.state_bytes)
            held.stream.synchronize()
        engine.sources.add(lists.source)
        with stats.phase("run"), progress(program.name, total=None, unit="ranges", settings=engine.settings) as bar:
            held.count(bar)
        with stats.phase("copy back"):
            state = held.settle() if program.per_vertex else {}
    finally:
        held.close()
    return Outcome(state, slots, 1, 0.0, totals={"triangles": held.triangles, **lists.figures})


__all__ = ["PairRun", "make_pair_plan", "run", "unfit"]
