"""What a run of a combine program holds on the device: its vectors, bytes and bits, and its windows of them."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from penstock.engine.cpu.parts import named_arcs, read_column
from penstock.engine.gpu.arcs import ArcFields, OnHost
from penstock.engine.gpu.functions import gpu_kernels, held_dtype, plain_kernel, totals_dtype
from penstock.engine.gpu.kernels import combine as along
from penstock.engine.gpu.kernels import slots as each
from penstock.engine.gpu.plan import DevicePlan, arcs_asked, device_sides
from penstock.engine.kernels import bits
from penstock.engine.monoid import MAX
from penstock.engine.plan import keeping, number_dtype, read_dtype
from penstock.engine.program import Combine
from penstock.engine.vectors import Slots
from penstock.memory import gpu
from penstock.memory.cache import Policy
from penstock.memory.card import Array, Card
from penstock.memory.frames import DevicePages
from penstock.memory.ledger import Reservation
from penstock.memory.tasks import BLOCK, cut
from penstock.store.reader import Direction

if TYPE_CHECKING:
    from penstock.engine.engine import Engine


def blocks(count: int) -> int:
    """Blocks for so many threads."""
    return -(-count // BLOCK)


class Window:
    """A range of slots whose state is on the device: what kernels address as `number - near`."""

    def __init__(self, lo: int, hi: int, state: tuple[Any, ...], reads: tuple[Any, ...]) -> None:
        self.lo, self.hi, self.state, self.reads = lo, hi, state, reads
        self.near, self.room = np.uint32(lo), np.uint32(hi - lo)


class Held:
    """The state of one run."""

    arcs_on_host = OnHost({})
    """What arcs keep; given before the sides are opened."""

    def __init__(
        self,
        engine: Engine,
        device: Card,
        program: Combine,
        plan: DevicePlan,
        params: dict[str, Any],
        slots: Slots,
        vectors: dict[str, np.ndarray],
        active: np.ndarray | None,
        *,
        span: tuple[int, int] | None = None,
        beside: Held | None = None,
    ) -> None:
        """`span`: the slots whose state is here, if not all; `beside`: a run whose vectors on the host it shares."""
        self.engine, self.device, self.program, self.plan = engine, device, program, plan
        self.params, self.slots, self.stream = params, slots, device.stream
        self.store, number = engine.store, number_dtype(engine.store)
        once = engine.once
        self.kernels = self.telling = once(program, "telling", lambda: gpu_kernels(program, number, BLOCK))
        self.quiet = self.telling
        if program.change:
            self.quiet = once(program, "quiet", lambda: gpu_kernels(program, number, BLOCK, telling=False))
        self.sides = device_sides(program, engine.store)
        self.ranged, self.apart = plan.ranges > 1, plan.windows > 1
        """Whether far state comes range by range; whether near state comes window by window."""
        self.lo, self.hi = span or (0, slots.count)
        self.windowed = self.apart or span is not None
        self.fused = not self.apart and program.lanes == 1 and len(self.sides.pull) == 1
        self.windows = self._windows(plan.windows)
        self._arrays: list[Array] = []
        lanes = program.lanes
        self.zero = program.combine.zero(program.contribution_dtype(number))

        # On the host: where results end up, and in windows the state itself.
        make = engine.vectors.make
        self.theirs = set(vectors)
        self.host_state: tuple[np.ndarray, ...]
        self.host_reads: tuple[np.ndarray | None, ...]
        if beside is not None:
            self.host_state, self.host_reads = beside.host_state, beside.host_reads
        else:
            self.host_state = tuple(
                vectors[name] if name in vectors else make(slots.count, kind, name, lanes=lanes)
                for name, kind in program.fields().items()
            )
            self.host_reads = tuple(
                vectors[name] if name in vectors else read_column(engine, slots, name) if self._on_host(name) else None
                for name in program.stored_reads()
            )
        if engine.near.keeping and beside is None:
            engine.near.offer(*self.host_state)
        self.host_message: np.ndarray | None = None
        widest = max(hi - lo for lo, hi in [*self.windows, (slots.body, slots.count)])
        self.length = max(1, widest if self.apart else self.hi - self.lo)
        length = self.length

        def shape(n: int) -> Any:
            return n if lanes == 1 else (n, lanes)

        self.fresh: set[str] = set()
        """The fields that lay on the device already."""
        self.state = tuple(
            self._state(name, shape(length), host) for name, host in zip(program.state, self.host_state, strict=True)
        )
        self.reads = tuple(
            self._array(length, read_dtype(self.store, name) if host is None else host.dtype, "reads")
            for name, host in zip(program.stored_reads(), self.host_reads, strict=True)
        )
        kind = number if program.numbered else np.dtype(program.message)
        sent = 1 if program.numbered else length if self.ranged else slots.count
        self.message = self._array(shape(sent), kind, "messages")
        if self.ranged and not program.numbered:
            self.host_message = make(slots.count, kind, "messages", lanes=lanes)
        self.total_kind = totals_dtype(program, number)
        self._totals: Array | None = None
        words = -(-slots.count // 32) + 1
        marks = slots.count if program.frontier else 1
        self.after = self._array(marks, np.uint8, "active", 0)
        self.touched = self._array(marks, np.uint8, "touched", 0)
        self.front = self._array(words, np.uint32, "frontier", 0xFFFFFFFF if not program.frontier else 0)
        self.scalars = self._array(along.CHANGES + along.SPREAD, np.float64, "scalars", 0)
        self.counts = self._array(2, np.uint64, "counts", 0)
        self.degrees = self._degrees()
        self.pack = plain_kernel(each.pack, BLOCK)
        self.active, self.arcs_ahead = 0, 0
        self.step, self.change = 0, np.inf
        self._parts: dict[str, tuple[Array, Array]] = {}
        self.fields: dict[str, ArcFields] = {}
        self._host_window: Reservation | None = None
        self._finished = False
        try:
            self._begin(active)
        except BaseException:
            self.close()  # who keeps the error keeps this run, too
            raise

    # ---- set-up

    def _begin(self, active: np.ndarray | None) -> None:
        """The first state, and what is active."""
        program = self.program
        self._upload()
        if set(program.state) - self.theirs:
            self._initialise()
        elif active is not None and program.frontier:
            given_active = active.view(np.uint32)[: self.front.array.size]
            gpu.fill(self.front.array[: len(given_active)], given_active)
            self.unpack_front()
        if program.frontier:
            self.pack_front()

    def _array(self, shape: Any, dtype: Any, what: str, value: Any = None) -> Array:
        found = self.device.empty(shape, dtype, what)
        if value is not None:
            found.array.fill(value)
        self._arrays.append(found)
        return found

    def _state(self, name: str, shape: Any, host: np.ndarray) -> Array:
        """Room for a field; or what lies on the device of it, where all of it may."""
        near = self.engine.near
        if self.whole and name in self.theirs and (found := near.take(host)) is not None:
            self.fresh.add(name)
            return self._kept(found)
        return self._array(shape, host.dtype, "state")

    @property
    def whole(self) -> bool:
        """Whether the state lies here as one, and nowhere else."""
        return not self.windowed and self.device is self.engine.near.card

    def _windows(self, ranges: int) -> list[tuple[int, int]]:
        cuts = np.unique(np.linspace(0, self.slots.body, ranges + 1).astype(np.int64))
        return [(int(a), int(b)) for a, b in itertools.pairwise(cuts)] or [(0, 0)]

    def _pieces(self) -> list[tuple[int, int]]:
        """The slots to initialise."""
        return [*self.windows, (self.slots.body, self.slots.count)]

    def _degrees(self) -> Array:
        """The arcs that the frontier's vertices send along, to choose a direction by."""
        if not self.program.frontier or not self.sides.push:
            return self._array(1, np.uint32, "degrees", 0)
        found = self._array(self.store.active, np.uint32, "degrees", 0)
        self.device.read_columns([f"{name}_degree" for name in self.sides.push], found.array)
        return found

    def _kept(self, array: Array) -> Array:
        self._arrays.append(array)
        return array

    def given(self) -> tuple[Any, ...]:
        return (*self.params.values(), self.slots.vertices, self.step, 0.0)

    def _initialise(self) -> None:
        slots, frontier = self.slots, self.program.frontier
        places = np.array([slots.of(number) for number in slots.seeds], np.uint32)
        seeds = self._kept(self.device.upload(places, "seeds"))
        numbers = self._kept(self.device.upload(np.arange(1, len(places) + 1, dtype=np.uint32), "seeds"))
        for lo, hi in self._pieces():
            near = self.window(lo, hi)
            args = (near.state, near.reads, self.given(), self.scalars.arg, self.after.arg)
            self.kernels.make("initialise")(
                self.stream, blocks(hi - lo), BLOCK, np.uint32(lo), np.uint32(hi), near.near, *args
            )
            self.kernels.make("initialise_seeds")(
                self.stream, blocks(len(places)), BLOCK, seeds.arg, numbers.arg, near.near, near.room, *args
            )
            self.save(near)
        if frontier:
            # The last slot stands for vertices that have no arcs: it has a state, but is never active.
            self.stream.synchronize()
            self.after.array[slots.body : slots.count].fill(0)

    def _on_host(self, name: str) -> bool:
        """Whether a column has to go through the host: in windows, or if it is not the store's alone."""
        return self.windowed or name == "seed" or name not in self.store.meta["vertex"]

    def _upload(self) -> None:
        """What is read, and fields that were given; the others are zero, as their vectors are."""
        if self.apart:
            return
        for name, mine, host in zip(self.program.state, self.state, self.host_state, strict=True):
            if name in self.fresh:
                continue
            if name in self.theirs:
                gpu.fill(mine.array[: self.hi - self.lo], host[self.lo : self.hi])
            else:
                mine.array.fill(0)
        for name, mine, column in zip(self.program.stored_reads(), self.reads, self.host_reads, strict=True):
            if column is not None:
                gpu.fill(mine.array[: self.hi - self.lo], column[self.lo : self.hi])
                continue
            active = self.slots.active
            self.device.read_columns([name], mine.array[:active])
            tail = np.zeros(self.slots.count - active, mine.array.dtype)
            for k, number in enumerate(self.slots.alone):
                tail[k] = self.store.vertex_column(name).read(number, number + 1)[0]
            gpu.fill(mine.array[active:], tail)

    # ---- windows

    def window(self, lo: int, hi: int) -> Window:
        """These slots on the device; where they come in windows they are copied there."""
        if not self.apart:
            return Window(self.lo, self.hi, *self._args())
        self.stream.synchronize()
        for mine, host in zip((*self.state, *self.reads), (*self.host_state, *self.host_reads), strict=True):
            assert host is not None
            gpu.fill(mine.array[: hi - lo], host[lo:hi])
        return Window(lo, hi, *self._args())

    def _args(self) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        return tuple(array.arg for array in self.state), tuple(array.arg for array in self.reads)

    def save(self, window: Window) -> None:
        """Where the state comes in windows: keep it on the host."""
        if self.apart:
            self.stream.synchronize()
            for mine, host in zip(self.state, self.host_state, strict=True):
                gpu.download(mine.array[: window.hi - window.lo], host[window.lo : window.hi])

    @property
    def totals(self) -> Array:
        """What arrives at the vertices of a window; always left at the monoid's zero."""
        if self._totals is None:
            length, lanes = self.length, self.program.lanes
            self._totals = self._array(length if lanes == 1 else (length, lanes), self.total_kind, "totals")
            self._totals.array.fill(self.no_total())
        return self._totals

    def no_total(self) -> Any:
        """The monoid's zero, as totals are held."""
        zero = held_dtype(np.dtype(type(self.zero))).type(self.zero)
        return (zero if zero.dtype == self.total_kind else zero.view(self.total_kind))[()]

    def parts(self, direction: Direction) -> tuple[Array, Array]:
        """Totals of the pieces of heavy vertices, and whether anything arrived over them."""
        if direction.name not in self._parts:
            count, kind = max(1, len(cut(direction).segments)), held_dtype(np.dtype(type(self.zero)))
            self._parts[direction.name] = (
                self._array((count, self.program.lanes), kind, "parts"),
                self._array(count, np.uint8, "parts", 0),
            )
        return self._parts[direction.name]

    def open_sides(self) -> None:
        """The arcs: after the vectors, so that they take what is left."""
        if not self.fused or self.program.frontier:
            _ = self.totals
        names, policy = arcs_asked(self.program, self.sides), keeping(self.program)
        # Before the pages, which take what is left.
        for name in names:
            self.parts(self.direction(name))
        if self.program.frontier:
            count = sum(len(self.direction(name)) for name in (*self.sides.pull, *self.sides.push))
            self.page_costs = self._array(max(1, count), np.uint32, "page costs")
            if self.program.wants is not None:
                self.wanted = self._array(-(-self.slots.count // 32) + 1, np.uint32, "wanting")
        self._host_window = self.engine.ledger.reserve(self.arcs_on_host.window, "state of arcs")
        for kept in self.plan.kept:
            side = self.store.direction(kept.side)
            self.fields[kept.side] = ArcFields(self._array, side, self.arcs_on_host, kept)
        self.arcs = self.open_pages(names, policy)

    def direction(self, name: str) -> Direction:
        """The arcs that this device goes over."""
        return self.store.direction(name)

    def open_pages(self, names: Sequence[str], policy: Policy) -> dict[str, DevicePages]:
        columns = self.program.columns
        turns = self.engine.asked_by_turns(columns, policy)
        state = self.plan.state_bytes + self.engine.near.nbytes()  # of other programs, too
        return self.device.pages(names, columns, policy, state=state, by_turns=turns)

    # ---- what is active

    def unpack_front(self) -> None:
        """The frontier's bits become bytes of active vertices."""
        count = self.slots.count
        plain_kernel(each.unpack, BLOCK)(
            self.stream, blocks(count), BLOCK, np.uint32(count), self.front.arg, self.after.arg
        )

    def pack_front(self) -> None:
        """The bytes of active vertices become the frontier's bits; how many, and how many arcs they have."""
        self.counts.array.fill(0)
        count = self.slots.count
        self.pack(
            self.stream, blocks(-(-count // 32)), BLOCK, np.uint32(count), self.after.arg, self.degrees.arg,
            self.front.arg, self.counts.arg,
        )  # fmt: skip
        self.read_front()

    def read_front(self) -> None:
        """Wait for the counts."""
        found = gpu.download(self.counts.array)
        self.active, self.arcs_ahead = int(found[each.ACTIVE]), int(found[each.ARCS])

    def read_change(self) -> float:
        """Wait for the change of the superstep."""
        parts = gpu.download(self.scalars.array)[along.CHANGES :]
        return float(parts.max() if self.program.change_by == MAX else parts.sum())

    def publish(self, vectors: dict[str, np.ndarray]) -> None:
        """Fields that the caller gave it may look at between supersteps."""
        for name, mine, host in zip(self.program.state, self.state, self.host_state, strict=True):
            if name in vectors and not self.apart:
                gpu.download(mine.array, host)

    # ---- checkpoints

    def vectors(self) -> dict[str, np.ndarray]:
        """What a checkpoint holds, the same as on the CPU."""
        self._copy_back()
        front = np.zeros(bits.words_for(self.slots.count), np.uint64)
        found = self.waiting()
        front[: min(len(front), len(found))] = found[: len(front)]
        state = dict(zip(self.program.state, self.host_state, strict=True))
        return {**state, **named_arcs(self.arc_fields()), "front.bits": front}

    def arc_fields(self) -> dict[str, dict[str, np.ndarray]]:
        """What arcs keep, by side and field, as the host has it."""
        names, arrays = self.program.edge_state, self.arcs_on_host.arrays
        return {side: dict(zip(names, fields, strict=True)) for side, fields in arrays.items()}

    def waiting(self) -> np.ndarray:
        """The bits of the vertices that have something to send."""
        found = gpu.download(self.front.array)
        return np.append(found, np.zeros(len(found) % 2, np.uint32)).view(np.uint64)

    # ---- the end

    def _copy_back(self, *, leaving: bool = False) -> None:
        """The state to the host, but for what may stay."""
        self.stream.synchronize()
        if not self.apart:
            for mine, host in zip(self.state, self.host_state, strict=True):
                if not (leaving and self._stays(host)):
                    gpu.download(mine.array, host)
        for fields in self.fields.values():
            fields.save()

    def _stays(self, host: np.ndarray) -> bool:
        return self.whole and self.engine.near.stays(host)

    def finish(self) -> np.ndarray:
        """Copy the state to the host, or leave it near; returns the frontier's bits."""
        self._copy_back(leaving=True)
        for mine, host in zip(self.state, self.host_state, strict=True):
            if self._stays(host):
                self._arrays.remove(mine)
                self.engine.near.put(host, mine)
        self._finished = True
        return self.waiting()

    def close(self) -> None:
        """Give the device's memory back."""
        self.stream.synchronize()
        if self._finished and self.whole:
            self.device.take(self._arrays)
        else:
            for array in self._arrays:
                array.release()
        self._arrays.clear()
        if self._host_window is not None:
            self._host_window.release()
