"""A common program on a GPU: the lists of all neighbours are made there, and stay; or the host makes them, and ranges
of them are held in turn while the others pass, in each pass again."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import numpy as np

from penstock.engine.cpu.parts import read_column
from penstock.engine.gpu.held import blocks
from penstock.engine.gpu.kernels import common as templates
from penstock.engine.gpu.kernels import sweep
from penstock.engine.gpu.listing import lists_for, plan_lists
from penstock.engine.gpu.lists import Lists, Sizes
from penstock.engine.gpu.parts import State, kernels_of, nothing
from penstock.engine.gpu.passing import Passing
from penstock.engine.gpu.plan import DevicePlan
from penstock.engine.pairing import longest_list
from penstock.engine.plan import Plan, number_dtype, read_dtype
from penstock.engine.program import Common, looks
from penstock.engine.vectors import Slots
from penstock.memory.card import Card
from penstock.memory.tasks import BLOCK
from penstock.observe.progress import progress
from penstock.store.reader import Store

if TYPE_CHECKING:
    from penstock.engine.engine import Engine, Outcome, Until


def make_common_plan(
    program: Common, store: Store, slots: int, limit: int, ranges: int | None = None, *, seeds: int = 0
) -> DevicePlan:
    """The state is there; what it begins with, and lists of everyone, as they have room."""
    number, sizes = number_dtype(store), Sizes(store, everyone=True)
    vectors = sum(kind.itemsize for kind in program.fields().values())
    reads = sum(number.itemsize if name == "neighbours" else read_dtype(store, name).itemsize
                for name in program.stored_reads())  # fmt: skip
    return plan_lists(
        program.name, store, sizes, limit, fixed=slots * vectors, reads=slots * reads + 8 * seeds,
        longest=longest_list(store, sizes.entries), ranges=ranges,
    )  # fmt: skip


class CommonRun:
    """One run: state, lists; the passes one after the other."""

    def __init__(
        self,
        engine: Engine,
        device: Card,
        program: Common,
        lists: Lists | Passing,
        params: dict[str, Any],
        slots: Slots,
        vectors: dict[str, np.ndarray],
    ) -> None:
        self.engine, self.device, self.program, self.lists, self.slots = engine, device, program, lists, slots
        self.params, self.step, self.stream = dict(params), 0, device.stream
        self.kernels = kernels_of(
            program, templates, sweep, init=program.init, least=program.least, edge=program.edge,
            vertex=program.vertex or nothing,
        )  # fmt: skip
        self.at_home = False
        """Whether the host has had the last of the state."""
        self._vectors = vectors
        host = tuple(
            vectors[name] if name in vectors else engine.vectors.make(slots.count, kind, name)
            for name, kind in program.fields().items()
        )
        self.state = State(device, self.kernels, host, slots)

    def given(self) -> tuple[Any, ...]:
        return (*self.params.values(), self.slots.vertices, self.step, 0.0)

    def initialise(self, state: int) -> None:
        """The lists; the state; then lists that pass have what is left. `state`: what all that takes besides pages."""
        program, vectors = self.program, self._vectors
        names = program.stored_reads() if set(program.state) - set(vectors) else ()
        # Before the lists: pages that they are made of may take all the memory of the host.
        columns = {name: self._read(name) for name in names if name != "neighbours"}
        self.lists.orient(state)
        self.state.upload()
        if names:
            count = self.slots.count
            reads = (self.lists.lengths(count) if name == "neighbours" else columns.pop(name) for name in names)
            self.state.initialise(reads, self.given())
        self.lists.place()

    def _read(self, name: str) -> np.ndarray:
        return self._vectors[name] if name in self._vectors else read_column(self.engine, self.slots, name)

    def one_pass(self) -> None:
        """All edges, then all vertices."""
        began, lists, state = time.perf_counter(), self.lists, self.state
        params, ranges = self.given(), 0
        for theirs in lists.held():
            ranges += 1
            held = theirs.lists, theirs.base, np.uint32(theirs.first), np.uint32(theirs.last)
            for stream, mine, _, _ in lists.passing(theirs):
                entries = lists.entries_of(mine)
                self.kernels.edges(
                    stream, -(-entries // BLOCK), BLOCK, np.uint32(mine.first), np.uint32(mine.last),
                    np.uint64(entries), *lists.bounds, mine.lists, mine.base, *held, state.args, params,
                    state.scalars.arg,
                )  # fmt: skip
        if self.program.vertex is not None:
            active = self.slots.active
            self.kernels.vertices(
                self.stream, blocks(active), BLOCK, np.uint32(active), state.args, params, state.scalars.arg
            )
        self.stream.synchronize()
        self.engine.stats.iteration(program=self.program.name, ranges=ranges, seconds=time.perf_counter() - began)
        self.step += 1

    def asks(self, until: Until) -> bool:
        """Whether `until` says to stop. It may look at the vectors, and change them."""
        if not looks(until) or not self.step:
            return until(self.step, np.inf)
        self.state.download()
        self.at_home = until(self.step, np.inf)
        if not self.at_home:
            self.state.upload()
        return self.at_home

    def close(self) -> None:
        self.lists.close()
        self.state.close()


def run(
    engine: Engine,
    program: Common,
    plan: Plan,
    params: dict[str, Any],
    slots: Slots,
    vectors: dict[str, np.ndarray],
    active: np.ndarray | None,
    until: Until | None,
) -> Outcome:
    """Passes until `until` says so; one without it."""
    from penstock.engine.engine import Outcome

    device, stats, store = engine.gpu, engine.stats, engine.store
    limit, forced = device.ledger.limit, engine.settings.state_ranges
    planned = make_common_plan(program, store, slots.count, limit, forced, seeds=len(slots.seeds))
    engine.device_plans.append(planned)
    lists = lists_for(engine, device, program.name, plan, planned, Sizes(store, everyone=True))
    with stats.phase("prepare"):
        held = CommonRun(engine, device, program, lists, params, slots, vectors)
    try:
        with stats.phase("orient"):
            held.initialise(planned.state_bytes)
        engine.sources.add("device" if held.lists.all_there else held.lists.source)
        with stats.phase("run"), progress(program.name, total=None, unit="passes", settings=engine.settings) as bar:
            while until is None or not held.asks(until):
                held.one_pass()
                bar.advance(1)
                if until is None:
                    break
        figures = held.lists.figures
        if not held.at_home:
            with stats.phase("copy back"):
                held.state.download()
    finally:
        held.close()
    return Outcome(dict(zip(program.state, held.state.host, strict=True)), slots, held.step, 0.0, totals=figures)


__all__ = ["CommonRun", "make_common_plan", "run"]
