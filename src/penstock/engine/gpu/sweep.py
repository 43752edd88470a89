"""A sweep on a GPU: resident in rounds that need not visit every arc, streamed in one pass over the pages."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from penstock.engine.compile import params_class, state_class
from penstock.engine.cpu.parts import read_column
from penstock.engine.gpu.held import blocks
from penstock.engine.gpu.kernels import sweep as templates
from penstock.engine.gpu.parts import State, kernels_of, nothing
from penstock.engine.gpu.plan import DevicePlan, make_sweep_plan
from penstock.engine.plan import Plan, arcs_of
from penstock.engine.program import Sweep
from penstock.engine.vectors import Slots
from penstock.memory import gpu
from penstock.memory.card import Card
from penstock.memory.frames import DevicePages
from penstock.memory.tasks import BLOCK
from penstock.observe.progress import progress

if TYPE_CHECKING:
    from penstock.engine.engine import Engine, Outcome, Until

_ALL = np.uint32(0xFFFFFFFF)
"""More arcs than a vertex has."""


def _never(u, state, p):
    return False


class Peek:
    """A field of the state for `between`, which looks at a few of its values: only those are copied."""

    def __init__(self, array: Any) -> None:
        self._array = array

    def __len__(self) -> int:
        return len(self._array)

    def __getitem__(self, index: Any) -> Any:
        where = gpu.upload(index) if isinstance(index, np.ndarray) else index
        return gpu.download(self._array[where])

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        return np.asarray(gpu.download(self._array), dtype)


class SweepRun:
    """One run: the state, and the rounds over it."""

    def __init__(
        self,
        engine: Engine,
        device: Card,
        program: Sweep,
        plan: DevicePlan,
        params: dict[str, Any],
        slots: Slots,
        vectors: dict[str, np.ndarray],
    ) -> None:
        self.engine, self.device, self.program, self.slots = engine, device, program, slots
        self.store, self.params, self.stream = engine.store, dict(params), device.stream
        self.kernels = kernels_of(
            program, templates, init=program.init, arc=program.arc, vertex=program.vertex or nothing,
            settled=program.settled or _never,
        )  # fmt: skip
        host = tuple(
            vectors[name] if name in vectors else engine.vectors.make(slots.count, kind, name)
            for name, kind in program.fields().items()
        )
        asked = [self.store.direction(name) for name in self._names()]
        device.make_room(plan.state_bytes + plan.reads_bytes, plan.least_bytes, asked, program.columns, "resident")
        self.state = State(device, self.kernels, host, slots)
        self.once = program.once and not self.store.directed
        try:
            if set(program.state) - set(vectors):
                names = program.stored_reads()
                reads = [vectors[name] if name in vectors else read_column(engine, slots, name) for name in names]
                self.state.initialise(reads, self._given())
            else:
                self.state.upload()
            self.sides = list(device.pages(self._names(), program.columns, "resident", state=plan.state_bytes).values())
        except BaseException:
            self.close()  # who keeps the error keeps this run, too
            raise

    def _names(self) -> tuple[str, ...]:
        return arcs_of(self.store, self.program)

    def _given(self) -> tuple[Any, ...]:
        return (*self.params.values(), self.slots.vertices, 0, 0.0)

    # ---- rounds

    def go(self) -> None:
        """The sampled arcs, then the rest; or, where pages are streamed, all in one pass."""
        program, seen = self.program, np.uint32(self.program.sampled)
        if not program.sampled or not all(side.resident for side in self.sides):
            self._arcs(np.uint32(0), _ALL, once=self.once, choosy=False)
            self._vertices()
            return
        self._arcs(np.uint32(0), seen, once=False, choosy=False)
        self._vertices()
        if program.between is not None:
            self.stream.synchronize()
            views = state_class(program)(*(Peek(field.array[: self.slots.active]) for field in self.state.fields))
            self.params |= program.between(views, params_class(program)(*self._given()))
        either_end = program.settled is not None and (not self.store.directed or self._both())
        self._arcs(seen, _ALL, once=self.once and not either_end, choosy=either_end)
        self._vertices()

    def _both(self) -> bool:
        """Whether each arc can be met from both of its ends: its other direction is on the device anyway."""
        names = arcs_of(self.store, replace(self.program, along="both"))
        return bool(names) and len(self.sides) == len(names) > 1

    def _arcs(self, begin: np.uint32, end: np.uint32, *, once: bool, choosy: bool) -> None:
        tail = (begin, end, once, choosy, self.state.args, self._given(), self.state.scalars.arg)
        for side in self.sides:

            def launch(
                stream: gpu.Stream, order: Any, tasks: int, segment_order: Any, count: int, side: DevicePages = side
            ) -> None:
                self.kernels.segments(
                    stream, count, BLOCK, segment_order, side.segments, side.heavy, side.part_start, side.words,
                    np.uint64(side.page_words), side.columns, side.strides, side.frame_of, *tail,
                )  # fmt: skip
                self.kernels.arcs(
                    stream, tasks, BLOCK, order, side.tasks, np.uint32(side.limit), side.words,
                    np.uint64(side.page_words), side.columns, side.strides, side.first_of, side.vertices_of,
                    side.frame_of, *tail,
                )  # fmt: skip

            side.visit(None, launch)

    def _vertices(self) -> None:
        if self.program.vertex is not None:
            active, state = self.slots.active, self.state
            self.kernels.vertices(
                self.stream, blocks(active), BLOCK, np.uint32(active), state.args, self._given(), state.scalars.arg
            )

    def close(self) -> None:
        self.state.close()


def run(
    engine: Engine,
    program: Sweep,
    plan: Plan,
    params: dict[str, Any],
    slots: Slots,
    vectors: dict[str, np.ndarray],
    active: np.ndarray | None,
    until: Until | None,
) -> Outcome:
    """One pass over the arcs."""
    from penstock.engine.engine import Outcome

    limit, seeds = engine.gpu.ledger.limit, len(slots.seeds)
    planned = make_sweep_plan(program, engine.store, slots.count, limit, seeds=seeds)
    engine.device_plans.append(planned)
    with engine.stats.phase("prepare"):
        held = SweepRun(engine, engine.gpu, program, planned, params, slots, vectors)
    try:
        with (
            engine.stats.phase("run"),
            progress(program.name, total=None, unit="passes", settings=engine.settings) as bar,
        ):
            began = time.perf_counter()
            held.go()
            held.stream.synchronize()
            bar.advance(1)
        engine.stats.iteration(program=program.name, seconds=time.perf_counter() - began)
        with engine.stats.phase("copy back"):
            held.state.download()
    finally:
        held.close()
    return Outcome(dict(zip(program.state, held.state.host, strict=True)), slots, 1, 0.0)
