"""Supersteps of a combine program on a GPU."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from penstock.engine.cpu.direction import ALPHA, BETA, PUSH_COST
from penstock.engine.cpu.parts import arc_vectors, named_arcs
from penstock.engine.gpu.arcs import OnHost
from penstock.engine.gpu.functions import plain_kernel
from penstock.engine.gpu.held import Held, Window, blocks
from penstock.engine.gpu.kernels import slots as each
from penstock.engine.gpu.plan import arcs_asked, device_sides, make_device_plan
from penstock.engine.kernels import bits
from penstock.engine.place import one_gpu
from penstock.engine.plan import Plan, keeping
from penstock.engine.program import Combine, Iterations, looks
from penstock.engine.vectors import Slots
from penstock.memory import gpu
from penstock.memory.card import Array
from penstock.memory.frames import DevicePages
from penstock.memory.tasks import BLOCK
from penstock.observe.progress import progress

if TYPE_CHECKING:
    from penstock.engine.checkpoint import Checkpoint
    from penstock.engine.engine import Engine, Outcome, Until
    from penstock.engine.gpu.devices import DevicesRun

ALL = (0, 1 << 32)
"""The range of everything."""


FEW = 8
"""A frontier with arcs for fewer than one of so many vertices is pushed."""


class Wanted(NamedTuple):
    """Pages of a side to visit; all: None."""

    pages: np.ndarray | None
    cost: np.ndarray | None = None
    """What reading them in place would cost, in bytes of a copy, where that can be told."""


EVERY = Wanted(None)


class CombineRun(Held):
    """One run: supersteps until it is over."""

    pulling, before = False, 0
    unseen: int | None = None

    def resident(self) -> bool:
        """Whether all arcs are on the device, with what they keep."""
        return all(side.resident for side in self.arcs.values()) and all(each.whole for each in self.fields.values())

    # ---- which way

    def choose(self) -> tuple[bool, dict[str, Wanted]]:
        """Whether to pull, and which pages of which side to visit."""
        program, sides = self.program, self.sides
        if not program.frontier:
            return bool(sides.pull), dict.fromkeys(sides.pull or sides.push, EVERY)
        either = bool(sides.pull) and bool(sides.push)
        if either and not self.resident():
            pulled, pushed = self.wanted_pages(True, False)
            pull = self.cost_of(pulled) < 2 * self.cost_of(pushed)
            return pull, pulled if pull else pushed
        pull = self._turn() if either else bool(sides.pull)
        if self.resident():
            return pull, dict.fromkeys(sides.pull if pull else sides.push, EVERY)
        return pull, self.wanted_pages(pull)[0]

    def _turn(self) -> bool:
        """Beamer's rule: see `penstock.engine.cpu.direction`."""
        program = self.program
        if self.unseen is None:
            self.unseen = sum(self.store.direction(name).arcs for name in self.sides.push)
        if self.pulling:
            self.pulling = self.active >= self.before or self.active > self.slots.active // BETA
        if not self.pulling:
            ratio = ALPHA if program.combine.first else PUSH_COST
            # A pull looks at every vertex first.
            self.pulling = self.arcs_ahead * ratio > self.unseen and self.arcs_ahead > self.slots.active // FEW
        if program.wants is not None:
            self.unseen = max(0, self.unseen - self.arcs_ahead)
        self.before = self.active
        return self.pulling

    def wanted_pages(self, *ways: bool) -> list[dict[str, Wanted]]:
        """To pull, and to push, as is asked: of each side, the pages that have something to do. They are found out on
        the device, and waited for once."""
        found: list[dict[str, Wanted]] = []
        asked: list[tuple[dict[str, Wanted], str, int, int, bool]] = []
        end = 0
        for pull in ways:
            chosen, pages = self._wanting() if pull else self.front, dict[str, Wanted]()
            for name in self.sides.pull if pull else self.sides.push:
                side = self.arcs[name]
                count = len(side.direction)
                if chosen is None or not count:
                    pages[name] = self._every_page(side)
                    continue
                self._ask(side, chosen, end)
                asked.append((pages, name, end, end + count, self._tells(pull)))
                end += count
            found.append(pages)
        if asked:
            self.stream.synchronize()
            every = gpu.download(self.page_costs.array[:end])
            for pages, name, a, b, tells in asked:
                some = np.flatnonzero(every[a:b])
                pages[name] = Wanted(some, every[a:b][some] if tells else None)
        return found

    def _ask(self, side: DevicePages, chosen: Array, place: int) -> None:
        """Begin to find out what each page has to do with chosen vertices."""
        count = len(side.direction)
        plain_kernel(each.page_costs, BLOCK)(
            self.stream, count, BLOCK, chosen.arg, side.first_of, side.vertices_of, self.degrees.arg,
            np.uint32(4 * side.page_words), gpu.part(self.page_costs.array, place, place + count),
        )  # fmt: skip

    def cost_of(self, wanted: Mapping[str, Wanted]) -> int:
        """Bytes of pages that would be copied, and of what would be read in place."""
        found = 0
        for name, (pages, cost) in wanted.items():
            assert pages is not None
            side = self.arcs[name]
            size = 4 * side.page_words
            found += len(pages) * size if cost is None or not side.reaches else int(np.minimum(cost, size).sum())
        return found

    def _tells(self, pull: bool) -> bool:
        """Whether the degrees at hand are those of the arcs that are gone over, or include them."""
        pulled, pushed = set(self.sides.pull), set(self.sides.push)
        return pulled == pushed if pull else bool(pushed)

    def _wanting(self) -> Array | None:
        """The bits of the vertices that still take contributions."""
        if self.program.wants is None:
            return None
        self.wanted.array.fill(0)
        for lo, hi in self.windows:
            near = self.window(lo, hi)
            self.kernels.make("wanting")(
                self.stream, blocks((hi + 31) // 32 - lo // 32), BLOCK, np.uint32(lo), np.uint32(hi), near.near,
                near.state, near.reads, self.given(), self.scalars.arg, self.wanted.arg,
            )  # fmt: skip
        return self.wanted

    def _every_page(self, side: DevicePages) -> Wanted:
        """All pages, of a side that is not."""
        return Wanted(np.arange(len(side.direction)))

    # ---- a superstep

    def superstep(self, *, wait: bool = True, tell: bool = True) -> dict[str, Any]:
        """Emit, carry, update; returns its figures. Without `wait` it is only begun. Without `tell` nobody asks by how
        much it changed the vertices: adding that up takes a quarter of a fast superstep."""
        program, began = self.program, time.perf_counter()
        tell = tell and program.change is not None
        self.kernels = self.telling if tell else self.quiet
        before = self.device.read_counts()
        figures: dict[str, Any] = {"frontier": self.active} if program.frontier else {}
        pull, pages = self.choose()
        if tell or program.tally:
            self.scalars.array.fill(0)
        if not program.frontier or pull or self.ranged or program.lanes > 1:
            self._emit()
        if pull and self.fused:
            near = self.window(0, self.slots.body)
            self._pull(self.sides.pull[0], pages, near, ALL, fused=True)
            if not program.frontier:
                self._update(self.slots.active, self.slots.count, near, empty=True)
        else:
            self._carry(pull, pages)
        self.step += 1
        if program.frontier:
            self.next_front()
        if tell and wait:
            self.change = self.read_change()
        if wait:
            self.stream.synchronize()
        figures |= {"direction": "pull" if pull else "push", "seconds": time.perf_counter() - began}
        if not self.resident():
            figures |= self.device.read_counts().since(before)
        if tell and wait:
            figures["change"] = self.change
        return figures

    def next_front(self) -> None:
        """What became active is the frontier of the next superstep."""
        self.pack_front()

    def noted(self) -> dict[str, Any]:
        """The numbers that a checkpoint holds."""
        return {name: getattr(self, name) for name in ("step", "change", "pulling", "before", "unseen")}

    def go_on(self, numbers: Mapping[str, Any]) -> None:
        """From where a checkpoint with these was made."""
        for name in self.noted():
            setattr(self, name, numbers[name])

    def _emit(self) -> None:
        program, slots = self.program, self.slots
        if program.numbered and not program.tally:
            return
        kernel = self.kernels.make("emit_active" if program.frontier else "emit")
        windows = self.windows if program.frontier else [*self.windows, (slots.body, slots.count)]
        if not self.apart:
            windows = [(0, slots.body if program.frontier else slots.count)]
        for lo, hi in windows:
            near, sent = self.window(lo, hi), self.message.arg
            if self.apart and not self.ranged and not program.numbered:
                sent = gpu.view(self.message.array[lo:hi])  # all messages are there, if not all that send them
            head = (self.stream, blocks(hi - lo), BLOCK, np.uint32(lo), np.uint32(hi), near.near)
            tail = (near.state, near.reads, self.given(), self.scalars.arg, sent)
            if program.frontier:
                kernel(*head, self.front.arg, *tail)
            else:
                kernel(*head, np.uint32(slots.body), float(slots.rest), *tail)
            if self.host_message is not None:
                self.stream.synchronize()
                gpu.download(self.message.array[: hi - lo], self.host_message[lo:hi])

    def _far(self, lo: int, hi: int) -> None:
        """The messages of a range, on the device."""
        if self.host_message is not None:
            self.stream.synchronize()
            gpu.fill(self.message.array[: hi - lo], self.host_message[lo:hi])

    def _visit(self, name: str, wanted: Wanted, launch: Callable[..., None]) -> None:
        """Start kernels over pages. `launch` takes first what the arcs keep, which may come with the pages."""
        side, fields = self.arcs[name], self.fields.get(self.store.direction(name).name)
        if fields is None:
            side.visit(wanted.pages, partial(launch, ()), in_place=wanted.cost)
        else:
            fields.visit(side, wanted.pages, wanted.cost, launch)

    def _pull(self, name: str, pages: Mapping[str, Wanted], near: Window, far: tuple[int, int], *, fused: bool) -> None:
        side, filters = self.arcs[name], {"ranged": self.ranged, "windowed": self.windowed}
        words, limit = np.uint64(side.page_words), np.uint32(side.limit)
        parts, arrived = self.parts(side.direction)
        make, given = self.kernels.make, self.given()
        gather = make("pull", **filters, fused=fused)
        pieces = make("pull_segments", **filters)
        first, size = np.uint32(far[0]), np.uint32(min(far[1] - far[0], (1 << 32) - 1))
        totals = self.message.arg if fused else self.totals.arg  # fused, none are kept
        sent = (self.message.arg, first, size, self.front.arg)
        here = (near.near, near.room, near.state, near.reads, given, self.scalars.arg)

        def launch(
            kept: Any, stream: gpu.Stream, order: Any, tasks: int, segment_order: Any, segments: int
        ) -> None:  # fmt: skip
            pieces(
                stream, segments, BLOCK, segment_order, side.segments, side.heavy, side.words, words, side.columns,
                side.strides, kept, side.frame_of, *sent, *here, parts.arg, arrived.arg,
            )  # fmt: skip
            gather(
                stream, tasks, BLOCK, order, side.tasks, limit, side.words, words, side.columns, side.strides, kept,
                side.first_of, side.vertices_of, side.frame_of, *sent, *here, self.after.arg, totals, self.touched.arg,
            )  # fmt: skip

        self._visit(name, pages[name], launch)
        make("finish", **filters, fused=fused)(
            self.stream, blocks(len(side.work.vertex)), BLOCK, side.heavy, side.part_start, parts.arg, arrived.arg,
            *here, self.after.arg, totals, self.touched.arg,
        )  # fmt: skip

    def _push(self, name: str, pages: Mapping[str, Wanted], near: Window, far: tuple[int, int]) -> None:
        side, ranged = self.arcs[name], self.windowed
        words, limit = np.uint64(side.page_words), np.uint32(side.limit)
        carry = self.kernels.make("push", ranged=ranged)
        pieces = self.kernels.make("push_segments", ranged=ranged)
        first, size = np.uint32(far[0]), np.uint32(min(far[1] - far[0], (1 << 32) - 1))
        here = (
            self.message.arg, self.front.arg, near.near, near.room, near.state, near.reads, self.given(),
            self.scalars.arg, first, size, self.totals.arg, self.touched.arg,
        )  # fmt: skip

        def launch(
            kept: Any, stream: gpu.Stream, order: Any, tasks: int, segment_order: Any, segments: int
        ) -> None:  # fmt: skip
            pieces(
                stream, segments, BLOCK, segment_order, side.segments, side.heavy, side.words, words, side.columns,
                side.strides, kept, side.frame_of, *here,
            )  # fmt: skip
            carry(
                stream, tasks, BLOCK, order, side.tasks, limit, side.words, words, side.columns, side.strides, kept,
                side.first_of, side.vertices_of, side.frame_of, *here,
            )  # fmt: skip

        self._visit(name, pages[name], launch)

    def _carry(self, pull: bool, pages: Mapping[str, Wanted]) -> None:
        """Gather into totals, window by window and range by range, then update."""
        slots = self.slots
        if not self.apart:
            near = self.window(0, slots.body)
            for name in self.sides.pull if pull else self.sides.push:
                if pull:
                    self._pull(name, pages, near, ALL, fused=False)
                else:
                    self._push(name, pages, near, ALL)
            self._take_in(0, slots.body if self.program.frontier else slots.count, near)
            return
        for lo, hi in self.windows:
            for far in self.windows if self.ranged else [ALL]:
                if pull:
                    near = self.window(lo, hi)
                    self._far(*far)
                    for name in self.sides.pull:
                        self._pull(name, self._between(pages, lo, hi), near, far, fused=False)
                else:
                    # The window's totals are at the far ends; the senders are the other range. What arcs keep depends
                    # on the wishes there.
                    if self.fields and self.program.wants is not None:
                        self.window(lo, hi)
                    self._far(*far)
                    for name in self.sides.push:
                        self._push(name, self._between(pages, *far), Window(*far, *self._args()), (lo, hi))
            near = self.window(lo, hi)
            self._take_in(lo, hi, near)
            self.save(near)
        if not self.program.frontier:
            near = self.window(slots.body, slots.count)
            self._update(slots.body, slots.count, near, empty=True)
            self.save(near)

    def _between(self, wanted: Mapping[str, Wanted], lo: int, hi: int) -> dict[str, Wanted]:
        """Of the pages, those that hold vertices of a window."""
        found = {}
        for name, (pages, cost) in wanted.items():
            records = self.arcs[name].direction.records
            first = records["first_vertex"] if pages is None else records["first_vertex"][pages]
            count = records["vertices"] if pages is None else records["vertices"][pages]
            held = (first < np.uint64(hi)) & (first + count > np.uint64(lo))
            found[name] = Wanted(
                np.flatnonzero(held) if pages is None else pages[held], None if cost is None else cost[held]
            )
        return found

    def _take_in(self, lo: int, hi: int, near: Window) -> None:
        """Update a window by its totals."""
        if not self.program.frontier:
            self._update(lo, hi, near, empty=False)
            return
        self.kernels.make("absorb")(
            self.stream, blocks(hi - lo), BLOCK, np.uint32(lo), np.uint32(hi), near.near, near.state, near.reads,
            self.given(), self.scalars.arg, self.totals.arg, self.touched.arg, self.after.arg,
        )  # fmt: skip

    def _update(self, lo: int, hi: int, near: Window, *, empty: bool) -> None:
        totals = self.message.arg if empty else self.totals.arg
        self.kernels.make("update_all", empty=empty)(
            self.stream, blocks(hi - lo), BLOCK, np.uint32(lo), np.uint32(hi), near.near, np.uint32(self.slots.body),
            float(self.slots.rest), near.state, near.reads, self.given(), self.scalars.arg, totals,
        )  # fmt: skip


AT_ONCE = {"device": 32, "host": 4, "disk": 1}
"""Supersteps that the GPU is given before anybody waits for it, by where the slowest pages are: a user who interrupts,
or looks at the progress, should not wait for minutes."""


def _all_at_once(engine: Engine, held: CombineRun | DevicesRun, count: int, bar: Any) -> None:
    """Supersteps whose number is known: the GPU need not wait for the host between them."""
    most = min(AT_ONCE[source] for source in engine.gpu.sources | {"device" if held.resident() else "host"})
    while count:
        some = min(count, most)
        began = time.perf_counter()
        figures = [held.superstep(wait=False, tell=False) for _ in range(some - 1)]
        figures.append(held.superstep(tell=some == count))
        each_took = (time.perf_counter() - began) / some
        for figure in figures:
            engine.stats.iteration(program=held.program.name, **figure | {"seconds": each_took})
        bar.advance(some)
        count -= some


def _alone(
    engine: Engine,
    program: Combine,
    params: dict[str, Any],
    slots: Slots,
    vectors: dict[str, np.ndarray],
    active: np.ndarray | None,
) -> CombineRun:
    """A run on one GPU."""
    device = engine.gpu
    limit = device.ledger.limit
    planned = make_device_plan(
        program, engine.store, slots.count, limit, engine.settings.state_ranges, seeds=len(slots.seeds)
    )
    engine.device_plans.append(planned)
    from penstock.engine.gpu.buckets import BucketRun

    # In ranges a bucket would be one more pass: the order changes no result.
    kind = BucketRun if BucketRun.takes(program) and planned.ranges == 1 else CombineRun
    asked = [engine.store.direction(name) for name in arcs_asked(program, device_sides(program, engine.store))]
    near, fields = engine.near, [vectors[name] for name in program.state if name in vectors]
    near.home(*(vector for name, vector in vectors.items() if name not in program.state), changing=True)
    if planned.windows > 1:  # then the state lies on the host
        near.home(*fields, changing=True)
    there = near.nbytes(fields)
    if device.free + there < planned.state_bytes + planned.least_bytes:
        near.leave(fields)
    device.make_room(planned.state_bytes - there, planned.least_bytes, asked, program.columns, keeping(program))
    return kind(engine, device, program, planned, params, slots, vectors, active)


def _restored(
    engine: Engine,
    program: Combine,
    slots: Slots,
    vectors: dict[str, np.ndarray],
    arcs: dict[str, tuple[np.ndarray, ...]],
    saver: Checkpoint,
    found: dict[str, Any],
) -> tuple[dict[str, np.ndarray], np.ndarray | None, Mapping[str, Any]]:
    """What an earlier run saved, on this device or another: the state, what is active, and its numbers."""
    state = {
        name: vectors[name] if name in vectors else engine.vectors.make(slots.count, kind, name, lanes=program.lanes)
        for name, kind in program.fields().items()
    }
    front = np.zeros(bits.words_for(slots.count), np.uint64)
    named = named_arcs({side: dict(zip(program.edge_state, fields, strict=True)) for side, fields in arcs.items()})
    numbers = saver.restore(found, {**state, **named, "front.bits": front}, engine.vectors.drop)
    return {**vectors, **state}, front if program.frontier else None, numbers


def run(
    engine: Engine,
    program: Combine,
    plan: Plan,
    params: dict[str, Any],
    slots: Slots,
    vectors: dict[str, np.ndarray],
    active: np.ndarray | None,
    until: Until | None,
) -> Outcome:
    """Supersteps until nothing is active, or `until` says so."""
    from penstock.engine.engine import Outcome

    stats, saver = engine.stats, engine.checkpoint
    held: CombineRun | DevicesRun
    with stats.phase("prepare"):
        arcs, first, numbers = arc_vectors(engine, program, plan), vectors, None
        if saver is not None and (found := saver.begin(program, params, slots.seeds)) is not None:
            first, active, numbers = _restored(engine, program, slots, vectors, arcs, saver, found)
        if engine.settings.gpu_devices > 1 and not one_gpu(program):
            from penstock.engine.gpu.devices import DevicesRun

            held = DevicesRun(engine, program, params, slots, first, active)
        else:
            held = _alone(engine, program, params, slots, first, active)
            held.arcs_on_host = OnHost(arcs, plan.edge_window_bytes, numbers is not None)
        if numbers is not None:
            held.go_on(numbers)
    try:
        with stats.phase("load"):
            held.open_sides()
        with stats.phase("run"), progress(program.name, total=None, unit="supersteps", settings=engine.settings) as bar:
            while not program.frontier or held.active:
                if until is not None:
                    if looks(until):
                        held.publish(vectors)
                    if until(held.step, held.change):
                        break
                left = until.count - held.step if isinstance(until, Iterations) and saver is None else 0
                if left > 0 and not program.frontier:
                    _all_at_once(engine, held, left, bar)
                    continue
                stats.iteration(program=program.name, **held.superstep())
                bar.advance(1)
                if saver is not None and saver.due(held.step):
                    with stats.phase("checkpoint"):
                        saver.save(held.vectors(), held.noted(), engine.vectors.drop)
                if not program.frontier and until is None:
                    break
        with stats.phase("copy back"):
            front = held.finish()
    finally:
        held.close()
    state = dict(zip(program.state, held.host_state, strict=True))
    kept = held.arc_fields() if isinstance(held, CombineRun) else {}
    return Outcome(state, slots, held.step, float(held.change), front, kept)
