"""Supersteps of a row program on a GPU: the rows of as many vertices as there is room for are put together from their
pages, then taken, a thread each. Pages of a window are visited for that window; its state is all on the device."""

from __future__ import annotations

import time
from collections.abc import Mapping
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np

from penstock.engine.compile import _made, usable
from penstock.engine.cpu.parts import read_column
from penstock.engine.defaults import nothing, same, still
from penstock.engine.gpu import mode  # noqa: F401 - gives it to kernels
from penstock.engine.gpu.functions import Kernel, gpu_adapters, make_kernel
from penstock.engine.gpu.held import blocks
from penstock.engine.gpu.kernels import combine as along
from penstock.engine.gpu.kernels import row as templates
from penstock.engine.gpu.kernels import slots as each
from penstock.engine.gpu.plan import make_row_plan
from penstock.engine.gpu.rows import Window, rows_of, segment_places, tables
from penstock.engine.monoid import MAX
from penstock.engine.plan import Plan, arcs_of
from penstock.engine.program import Row
from penstock.engine.vectors import Slots
from penstock.memory import gpu
from penstock.memory.card import Array, Card
from penstock.memory.device import inlined
from penstock.memory.fingerprint import fingerprint
from penstock.memory.tasks import BLOCK, cut
from penstock.observe.progress import progress

if TYPE_CHECKING:
    from penstock.engine.engine import Engine, Outcome, Until


class RowKernels:
    """The kernels of one row program by the names of their templates, made when first used."""

    def __init__(self, program: Row) -> None:
        self.program = program
        parts = gpu_adapters(program, flagged=False)
        parts.init, parts.emit, parts.row = usable(program.init), usable(program.emit), usable(program.row)
        parts.edge, parts.change = usable(program.edge or same), usable(program.change or still)
        parts.changing, parts.fold = program.change is not None, usable(program.change_by.combine)
        parts.change_largest, parts.message_kind = program.change_by == MAX, np.dtype(program.message).type
        parts.tally, parts.tallied, parts.numbered = usable(nothing), False, False
        parts.put = inlined(_made("put", "def put(m, i, j, value):\n    m[i] = value\n"))
        parts.frontier, parts.lanes, parts.block = False, 1, BLOCK
        self._parts: SimpleNamespace = parts
        self._made: dict[str, Kernel] = {}

    def __getattr__(self, name: str) -> Kernel:
        if name not in self._made:
            template = getattr(templates, name, None) or getattr(each, name)
            self._made[name] = make_kernel(template, self._parts, self.program)
        return self._made[name]


_KEPT: dict[str, RowKernels] = {}
_VOTES: dict[tuple[Any, ...], Kernel] = {}


def _kernels(program: Row) -> RowKernels:
    key = fingerprint(program.makeup(), BLOCK)
    if key not in _KEPT:
        _KEPT[key] = RowKernels(program)
    return _KEPT[key]


def vote_kernel(name: str, kind: np.dtype, places: int) -> Kernel:
    """`vote` or `vote_parts`, for messages of this type and tables of so many places."""
    key = (name, str(kind), places, BLOCK)
    if key not in _VOTES:
        empty = kind.type(np.iinfo(kind).max)
        template = getattr(templates, name)(SimpleNamespace(block=BLOCK, kind=kind.type, empty=empty, places=places))
        _VOTES[key] = Kernel(gpu.template_kernel(template, fingerprint("gpu", templates.__name__, *key)))
    return _VOTES[key]


class RowRun:
    """One run: the state, and its supersteps."""

    def __init__(
        self,
        engine: Engine,
        device: Card,
        program: Row,
        params: dict[str, Any],
        slots: Slots,
        vectors: dict[str, np.ndarray],
    ) -> None:
        self.engine, self.device, self.program, self.params, self.slots = engine, device, program, params, slots
        self.store, self.stream, self.kernels = engine.store, device.stream, _kernels(program)
        self.names, self.kind = arcs_of(self.store, program), np.dtype(program.message)
        self.rows, self.vectors = rows_of(program, self.store, slots.count), vectors
        self.plan = make_row_plan(program, self.store, self.rows, device.ledger.limit, seeds=len(slots.seeds))
        self.rows.cut(self.plan.rows_bytes, engine.settings.state_ranges or 1)
        sides = [self.store.direction(name) for name in self.names]
        device.make_room(self.plan.state_bytes, self.plan.least_bytes, sides, program.columns, "resident")
        self.host = tuple(
            vectors[name] if name in vectors else engine.vectors.make(slots.count, kind, name)
            for name, kind in program.fields().items()
        )
        self._arrays: list[Array] = []
        self.step, self.change = 0, np.inf
        self.resumed = False
        """Whether the state on the host is what an earlier run saved."""

    def prepare(self) -> None:
        """What lies on the device; the arcs last, so that they take what is left."""
        engine, device, program, slots, vectors = self.engine, self.device, self.program, self.slots, self.vectors
        self.state = [self._kept(device.upload(array, "state")) for array in self.host]
        self.reads = tuple(
            self._kept(device.upload(vectors[name] if name in vectors else read_column(engine, slots, name), "reads"))
            for name in program.stored_reads()
        )
        self.message = self._kept(device.empty(slots.count, self.kind, "messages"))
        self.scalars = self._kept(device.full(along.CHANGES + along.SPREAD, 0, np.float64, "scalars"))
        self.args = (tuple(array.arg for array in self.state), tuple(array.arg for array in self.reads))
        if set(program.state) - set(vectors) and not self.resumed:
            self._initialise()
        self.buffer = self._kept(device.empty(self.plan.rows_bytes, np.uint8, "rows"))
        self.later = {
            name: self._kept(device.upload(segment_places(cut(self.store.direction(name))), "segments"))
            for name in self.names
        }
        with engine.stats.phase("load"):
            self.sides = device.pages(self.names, program.columns, "resident", state=self.plan.state_bytes)

    def _kept(self, array: Array) -> Array:
        self._arrays.append(array)
        return array

    def _given(self) -> tuple[Any, ...]:
        return (*self.params.values(), self.slots.vertices, self.step, 0.0)

    def _initialise(self) -> None:
        slots, zero, held = self.slots, np.uint32(0), []
        unused = self.device.full(1, 0, np.uint8, "unused")
        args = (*self.args, self._given(), self.scalars.arg, unused.arg)
        self.kernels.initialise(self.stream, blocks(slots.count), BLOCK, zero, np.uint32(slots.count), zero, *args)
        places: dict[int, int] = {}
        for place, number in enumerate(slots.seeds, 1):
            places.setdefault(slots.of(number), place)
        if places:
            held = [
                self.device.upload(np.array(list(each), np.uint32), "seeds")
                for each in (places.keys(), places.values())
            ]
            self.kernels.initialise_seeds(
                self.stream, blocks(len(places)), BLOCK, held[0].arg, held[1].arg, zero, np.uint32(slots.count), *args
            )
        self.stream.synchronize()
        for array in (*held, unused):
            array.release()

    # ---- one superstep

    def superstep(self) -> dict[str, Any]:
        """Emit, collect, take; returns its figures."""
        began, slots, program = time.perf_counter(), self.slots, self.program
        before = self.device.read_counts()
        if program.change:
            self.scalars.array.fill(0)
        self.kernels.emit(
            self.stream, blocks(slots.count), BLOCK, np.uint32(0), np.uint32(slots.count), np.uint32(0),
            np.uint32(slots.body), float(slots.rest), *self.args, self._given(), self.scalars.arg, self.message.arg,
        )  # fmt: skip
        for lo, hi in self.rows.windows:
            window = self.rows.prepare(self.buffer, lo, hi)
            for name, places in zip(self.names, window.places, strict=True):
                self._gather(name, window, places)
            self._take(window)
        if program.change:
            parts = gpu.download(self.scalars.array)[along.CHANGES :]
            self.change = float(parts.max() if program.change_by == MAX else parts.sum())
        self.stream.synchronize()
        self.step += 1
        figures: dict[str, Any] = {"seconds": time.perf_counter() - began, "windows": len(self.rows.windows)}
        if not all(side.resident for side in self.sides.values()):
            figures |= self.device.read_counts().since(before)
        return figures | ({"change": self.change} if program.change else {})

    def _gather(self, name: str, window: Window, places: Any) -> None:
        """Put what arrives over one side's arcs to its place among the rows."""
        side, later = self.sides[name], self.later[name]
        words, limit = np.uint64(side.page_words), np.uint32(side.limit)
        tail = (
            self.message.arg, self._given(), self.scalars.arg, np.uint32(window.lo),
            np.uint32(window.hi - window.lo), places, window.rows,
        )  # fmt: skip

        def launch(stream: gpu.Stream, order: Any, tasks: int, segment_order: Any, segments: int) -> None:
            self.kernels.gather_segments(
                stream, segments, BLOCK, segment_order, side.segments, side.heavy, later.arg, side.words, words,
                side.columns, side.strides, side.frame_of, *tail,
            )  # fmt: skip
            self.kernels.gather(
                stream, tasks, BLOCK, order, side.tasks, limit, side.words, words, side.columns, side.strides,
                side.first_of, side.vertices_of, side.frame_of, *tail,
            )  # fmt: skip

        pages = None
        if len(self.rows.windows) > 1:
            records = side.direction.records
            first = np.searchsorted(records["first_vertex"] + records["vertices"], window.lo, "right")
            pages = np.arange(first, np.searchsorted(records["first_vertex"], window.hi, "left"))
        if pages is None or len(pages):
            side.visit(pages, launch)

    def _take(self, window: Window) -> None:
        """Have the vertices take their rows; of those that are voted on first the winners are found."""
        slots, kernels, stream = self.slots, self.kernels, self.stream
        rows, count = (window.starts, window.rows), window.hi - window.lo
        tail = (*self.args, self._given(), self.scalars.arg)
        if window.votes:
            warp, block = tables(self.kind.itemsize)
            vote_kernel("vote", self.kind, warp)(
                stream, -(-window.short // max(1, BLOCK // gpu.WARP)), BLOCK, window.listed, np.uint32(window.short),
                *rows,
            )  # fmt: skip
            vote_kernel("vote_parts", self.kind, block)(
                stream, window.parts, BLOCK, window.items, window.listed, *rows, window.values, window.counts
            )
            kernels.take_voted(
                stream, blocks(window.votes), BLOCK, np.uint32(window.lo), window.listed, window.part_start,
                window.values, window.counts, *rows, window.wide, *tail,
            )  # fmt: skip
        kernels.take(
            stream, blocks(count), BLOCK, np.uint32(window.lo), np.uint32(count), np.uint32(slots.body),
            float(slots.rest), self.rows.alone, *rows, *tail,
        )  # fmt: skip

    # ---- checkpoints, and the end

    def resume(self, numbers: Mapping[str, Any]) -> None:
        """Go on from the state that is on the host now; before anything is on the device."""
        self.step, self.change, self.resumed = numbers["step"], numbers["change"], True

    def finish(self) -> None:
        """Copy the state to the host."""
        self.stream.synchronize()
        for mine, array in zip(self.state, self.host, strict=True):
            gpu.download(mine.array, array)

    def close(self) -> None:
        self.stream.synchronize()
        for array in self._arrays:
            array.release()


def run(
    engine: Engine,
    program: Row,
    plan: Plan,
    params: dict[str, Any],
    slots: Slots,
    vectors: dict[str, np.ndarray],
    active: np.ndarray | None,
    until: Until | None,
) -> Outcome:
    """Supersteps until `until` says so; one without it. Vectors that were given change at the end."""
    from penstock.engine.engine import Outcome

    stats, saver = engine.stats, engine.checkpoint
    held = RowRun(engine, engine.gpu, program, params, slots, vectors)
    engine.device_plans.append(held.plan)
    fields = dict(zip(program.state, held.host, strict=True))
    try:
        with stats.phase("prepare"):
            if saver is not None and (found := saver.begin(program, params, slots.seeds)) is not None:
                held.resume(saver.restore(found, fields))
            held.prepare()
        with stats.phase("run"), progress(program.name, total=None, unit="supersteps", settings=engine.settings) as bar:
            while until is None or not until(held.step, held.change):
                stats.iteration(program=program.name, **held.superstep())
                bar.advance(1)
                if saver is not None and saver.due(held.step):
                    with stats.phase("checkpoint"):
                        held.finish()
                        saver.save(fields, {"step": held.step, "change": float(held.change)})
                if until is None:
                    break
        with stats.phase("copy back"):
            held.finish()
    finally:
        held.close()
    return Outcome(fields, slots, held.step, float(held.change))


__all__ = ["RowRun", "run"]
