"""A pair program on a GPU: oriented lists are made there, triangles are counted at their corners by kernels without a
program, and each vertex takes its total in. Where the lists have no room there it runs on the CPU."""

from __future__ import annotations

import time
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np

from penstock.config import format_size
from penstock.engine.compile import _made, usable
from penstock.engine.cpu.parts import read_column
from penstock.engine.gpu.functions import Kernel, gpu_adapters, make_kernel
from penstock.engine.gpu.held import blocks
from penstock.engine.gpu.kernels import pair as templates
from penstock.engine.gpu.lists import Lists, Sizes, plain
from penstock.engine.gpu.plan import DevicePlan
from penstock.engine.pairing import entry_dtype, has_ways
from penstock.engine.plan import Plan, read_dtype
from penstock.engine.program import Pair
from penstock.engine.vectors import Slots
from penstock.memory import gpu
from penstock.memory.card import Array, Card
from penstock.memory.device import inlined
from penstock.memory.fingerprint import fingerprint
from penstock.memory.frames import DevicePages
from penstock.memory.tasks import BLOCK
from penstock.observe.progress import progress
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
    key = fingerprint(
        [(n, getattr(program, n)) for n in sorted(program.__dataclass_fields__) if n != "name"], ways, BLOCK
    )
    if key in _KEPT:
        return _KEPT[key]
    parts: SimpleNamespace = gpu_adapters(program, flagged=False)
    assert program.update is not None
    parts.init, parts.update, parts.block = usable(program.init), usable(program.update), BLOCK
    parts.kind, parts.total_of = np.dtype(program.total).type, _total_of(program, ways=ways)
    _KEPT[key] = make_kernel(templates.settle, parts, program, ways)
    return _KEPT[key]


def make_pair_plan(program: Pair, store: Store, slots: int, limit: int) -> DevicePlan:
    """Lists, counts, state: all of it is there, beside a few pages. It may be more than the limit."""
    side, found = store.direction("out"), 8 * templates.SPREAD
    if program.per_vertex:
        found += slots * 8 * (2 if has_ways(program, store) else 1)
        found += slots * sum(kind.itemsize for kind in program.fields().values())
        found += slots * sum(read_dtype(store, name).itemsize for name in program.stored_reads())
        found += 2 * 4 * slots if "neighbours" in program.reads else 0
    state, least = found + Sizes(store).nbytes, DevicePages.least(side, ())
    return DevicePlan(1, 1, state, DevicePages.needed(side, ()), least, limit, state + least)


def unfit(program: Pair, store: Store, plan: DevicePlan) -> str:
    """Why it runs on the CPU, if it has to."""
    if entry_dtype(store, has_ways(program, store)).itemsize > 4:
        return "which arcs there are between neighbours of 2**30 vertices or more is found out on the CPU"
    if plan.smallest > plan.limit:
        needed, limit = format_size(plan.smallest), format_size(plan.limit)
        return f"the lists of {program.name} need {needed} of GPU memory, of {limit}: it runs on the CPU"
    return ""


class PairRun:
    """One run: lists, counts, vertices."""

    def __init__(
        self, engine: Engine, device: Card, program: Pair, plan: DevicePlan, params: dict[str, Any], slots: Slots
    ) -> None:
        self.engine, self.device, self.program, self.plan = engine, device, program, plan
        self.params, self.slots = params, slots
        self.store, self.stream, self.telling = engine.store, device.stream, program.per_vertex
        self.ways = has_ways(program, engine.store)
        self.lists = Lists(engine, device, Sizes(self.store), ways=self.ways)
        self._arrays: list[Array] = []
        self.triangles = 0

    def prepare(self) -> None:
        """What lies on the device; the arcs last, so that they take what is left."""
        device, slots, program = self.device, self.slots, self.program
        self.lists.prepare()
        shape = (2 if self.ways else 1, slots.count if self.telling else 1)
        self.told = self._kept(device.full(shape, 0, np.uint64, "triangles"))
        self.spread = self._kept(device.full(templates.SPREAD, 0, np.uint64, "triangles"))
        if self.telling:
            self.state = [self._kept(device.full(slots.count, 0, kind, "state")) for kind in program.fields().values()]
            self.neighbours = self.by_rank = None
            if "neighbours" in program.reads:
                self.neighbours = self._kept(device.full(slots.count, 0, np.uint32, "neighbours"))
                self.by_rank = self.neighbours
                if self.lists.sizes.ranked:
                    self.by_rank = self._kept(device.full(slots.count, 0, np.uint32, "neighbours"))
            self.reads = [self._read(name) for name in program.stored_reads()]
        with self.engine.stats.phase("load"):
            self.side = device.pages(("out",), (), "resident", state=self.plan.state_bytes)["out"]

    def _kept(self, array: Array) -> Array:
        self._arrays.append(array)
        return array

    def _read(self, name: str) -> Array:
        if name == "neighbours":
            assert self.neighbours is not None
            return self.neighbours
        return self._kept(self.device.upload(read_column(self.engine, self.slots, name), "reads"))

    def count(self) -> None:
        """All triangles."""
        lists, stream = self.lists, self.stream
        count, items = lists.count, lists.pieces()
        about = {"ways": self.ways, "telling": self.telling}
        tail = (lists.starts.arg, lists.ends.arg, lists.lists.arg, self.told.arg, self.spread.arg)
        plain("wide", **about)(stream, items, BLOCK, lists.items.arg, *tail)
        warps = BLOCK // gpu.WARP
        plain("narrow", **about)(stream, -(-count // warps), BLOCK, np.uint32(count), *tail)
        self.triangles = int(gpu.download(self.spread.array).sum())

    def settle(self) -> dict[str, np.ndarray]:
        """The state of all vertices, by their totals."""
        lists, slots, stream = self.lists, self.slots, self.stream
        count = np.uint32(lists.count)
        if self.neighbours is not None and self.by_rank is not None:
            plain("degrees", ways=self.ways)(
                stream, blocks(lists.count), BLOCK, count, lists.starts.arg, lists.ends.arg, lists.lists.arg,
                self.by_rank.arg,
            )  # fmt: skip
            if self.by_rank is not self.neighbours:
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

    device, stats = engine.gpu, engine.stats
    planned = make_pair_plan(program, engine.store, slots.count, device.ledger.limit)
    if why := unfit(program, engine.store, planned):
        from penstock.engine.cpu import pair as cpu

        stats.note(device="cpu", why_not_gpu=why)
        return cpu.run(engine, program, plan, params, slots, vectors, active, until)
    engine.device_plans.append(planned)
    device.make_room(planned.state_bytes, planned.least_bytes, [engine.store.direction("out")], (), "resident")
    held = PairRun(engine, device, program, planned, params, slots)
    try:
        with stats.phase("prepare"):
            held.prepare()
        began = time.perf_counter()
        with stats.phase("orient"):
            held.lists.make(held.side)
            held.stream.synchronize()
        with stats.phase("run"), progress(program.name, total=None, unit="passes", settings=engine.settings) as bar:
            held.count()
            bar.advance(1)
        stats.iteration(
            program=program.name, lists=held.lists.count, entries=held.lists.sizes.entries, triangles=held.triangles,
            seconds=time.perf_counter() - began,
        )  # fmt: skip
        with stats.phase("copy back"):
            state = held.settle() if program.per_vertex else {}
    finally:
        held.close()
    return Outcome(state, slots, 1, 0.0, totals={"triangles": held.triangles, "windows": 1, "spilled_lists": 0})


__all__ = ["PairRun", "make_pair_plan", "run", "unfit"]
