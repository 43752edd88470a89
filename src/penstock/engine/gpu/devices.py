"""Supersteps of a combine program on several GPUs, or on parts of one that stand for them.

Each device updates a range of the slots. With strategy P it holds the state of all of them, goes over every n-th page,
and what arrived over all devices' pages is put together in the range of each; then they tell each other their states.
With strategy S it holds the state of its range only, and goes over all pages that may have something for it; what they
tell each other is the messages.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from penstock.engine.gpu.combine import ALL, EVERY, CombineRun, Wanted
from penstock.engine.gpu.functions import plain_kernel
from penstock.engine.gpu.held import Window, blocks
from penstock.engine.gpu.kernels import combine as along
from penstock.engine.gpu.kernels import merge as between
from penstock.engine.gpu.layout import BITS, Layout
from penstock.engine.gpu.plan import arcs_asked, device_sides
from penstock.engine.kernels import bits
from penstock.engine.monoid import MAX
from penstock.engine.plan import keeping
from penstock.engine.program import Combine
from penstock.engine.vectors import Slots
from penstock.memory import gpu
from penstock.memory.cache import Policy
from penstock.memory.card import Array, Card, Counts
from penstock.memory.frames import DevicePages
from penstock.memory.share import Share, pages_between
from penstock.memory.tasks import BLOCK
from penstock.store.reader import Direction

if TYPE_CHECKING:
    from penstock.engine.engine import Engine


class Member(CombineRun):
    """What one device has of the run, and does."""

    def __init__(self, layout: Layout, place: int, engine: Engine, card: Card, *args: Any, lead: Member | None) -> None:
        self.layout, self.place, self.lead, self.split = layout, place, lead, layout.split
        self.mine = layout.ranges[place]
        self._views: dict[str, Any] = {}
        super().__init__(engine, card, *args, span=self.mine if self.split else None, beside=lead)
        self.fused = self.fused and self.split
        wide, lanes = max(1, self.mine[1] - self.mine[0]), self.program.lanes
        if not self.split:
            self.staged = self._array(wide if lanes == 1 else (wide, lanes), self.total_kind, "totals")
            self.staged_touched = self._array(wide if self.program.frontier else 1, np.uint8, "touched")
        self.tallies = self._array(layout.devices, np.float64, "scalars")

    # ---- set-up

    def _windows(self, ranges: int) -> list[tuple[int, int]]:
        return [self.layout.ranges[self.place]] if self.split else super()._windows(1)

    def _pieces(self) -> list[tuple[int, int]]:
        return [self.mine] if self.split else super()._pieces()

    def _degrees(self) -> Array:
        """Those of the range."""
        lo, hi = self.mine
        end = min(hi, self.slots.active)
        if not self.program.frontier or not self.sides.push or end <= lo:
            return self._array(1, np.uint32, "degrees", 0)
        columns = [self.store.degree_column(self.store.direction(name).name) for name in self.sides.push]
        total = sum(column.read(lo, end).astype(np.uint32) for column in columns)
        return self._kept(self.device.upload(np.asarray(total, np.uint32), "degrees"))

    def direction(self, name: str) -> Direction:
        return self.layout.direction(self.place, name)

    def open_pages(self, names: Sequence[str], policy: Policy) -> dict[str, DevicePages]:
        shares = {name: self.direction(name) for name in names}
        left = self.layout.devices - self.place
        # Where all go over the same pages one has them on the host, and the others copy them from there.
        alike = not any(isinstance(share, Share) for share in shares.values())
        host_share = (3, 4) if alike and self.lead is None else (1, left)
        lender = self.lead.device if alike and self.lead is not None else None
        return self.device.pages(
            names, self.program.columns, policy, state=self.plan.state_bytes, shares=shares, host_share=host_share,
            lender=lender,
        )  # fmt: skip

    def _part(self, what: str, array: Array, lo: int, hi: int | None) -> Any:
        """Some of an array, for kernels; made once."""
        if what not in self._views:
            self._views[what] = gpu.view(array.array[lo:hi])
        return self._views[what]

    # ---- a superstep

    def _emit(self) -> None:
        """Of its range, if the state of the others is not here."""
        if not self.split:
            super()._emit()
            return
        program, slots, (lo, hi) = self.program, self.slots, self.mine
        if lo == hi or (program.numbered and not program.tally):
            return
        near = self.window(lo, hi)
        head = (self.stream, blocks(hi - lo), BLOCK, np.uint32(lo), np.uint32(hi), near.near)
        sent = self.message.arg if program.numbered else self._part("messages", self.message, lo, hi)
        tail = (near.state, near.reads, self.given(), self.scalars.arg, sent)
        if program.frontier:
            self.kernels.make("emit_active")(*head, self.front.arg, *tail)
        else:
            self.kernels.make("emit")(*head, np.uint32(slots.body), float(slots.rest), *tail)

    def carry(self, pull: bool, pages: dict[str, Wanted]) -> None:
        """Go over its pages."""
        near = self.window(*self.mine)
        for name in self.sides.pull if pull else self.sides.push:
            if pull:
                self._pull(name, pages, near, ALL, fused=self.fused)
            elif self.split:
                # Everyone may send; only what arrives in the range counts.
                self._push(name, pages, Window(0, self.slots.count, *self._args()), self.mine)
            else:
                self._push(name, pages, near, ALL)

    def take_in(self, pull: bool) -> None:
        """Update its range."""
        lo, hi = self.mine
        near = self.window(lo, hi)
        if not (pull and self.fused):
            self._take_in(lo, hi, near)
        elif not self.program.frontier:  # those that have no pages
            self._update(max(lo, self.slots.active), hi, near, empty=True)

    def merge(self, others: Sequence[Member]) -> None:
        """Combine its totals with what arrived for its range elsewhere."""
        lo, hi = self.mine
        for other in others if lo < hi else ():
            self.stream.move(self.staged.array[: hi - lo], other.totals.array[lo:hi])
            if self.program.frontier:
                self.stream.move(self.staged_touched.array[: hi - lo], other.touched.array[lo:hi])
            self.kernels.make("merge_totals")(
                self.stream, blocks(hi - lo), BLOCK, np.uint32(lo), np.uint32(hi - lo), self.totals.arg,
                self.touched.arg, self.staged.arg, self.staged_touched.arg,
            )  # fmt: skip

    def clear(self) -> None:
        """What arrived for others is theirs now."""
        lo, hi = self.mine
        for part in (slice(0, lo), slice(hi, None)):
            self.totals.array[part].fill(self.no_total())
            if self.program.frontier:
                self.touched.array[part].fill(0)

    def pack_front(self) -> None:
        """The bits of its range; nobody waits for them yet."""
        lo, hi = self.mine
        self.counts.array.fill(0)
        if lo < hi:
            self.pack(
                self.stream, blocks(-(-(hi - lo) // BITS)), BLOCK, np.uint32(hi - lo),
                self._part("active", self.after, lo, hi), self.degrees.arg,
                self._part("frontier", self.front, lo // BITS, None), self.counts.arg,
            )  # fmt: skip

    # ---- which pages

    def _tells(self, pull: bool) -> bool:
        """It has the degrees of its range only, and goes over pages of all."""
        return False

    def _every_page(self, side: DevicePages) -> Wanted:
        if not self.split:
            return super()._every_page(side)
        part = pages_between(side.direction, *self.mine)
        return Wanted(np.arange(part.start, max(part.start, part.stop)))

    # ---- the end

    def keep(self, names: set[str] | None = None) -> None:
        """Copy the state of its range, or these fields of it, to the host."""
        lo, hi = self.mine
        for name, array, host in zip(self.program.state, self.state, self.host_state, strict=True):
            if lo < hi and (names is None or name in names):
                gpu.download(array.array[lo - self.lo : hi - self.lo], host[lo:hi])

    def close(self) -> None:
        self._views.clear()
        super().close()


class DevicesRun:
    """One run on several devices."""

    def __init__(
        self,
        engine: Engine,
        program: Combine,
        params: dict[str, Any],
        slots: Slots,
        vectors: dict[str, np.ndarray],
        active: np.ndarray | None,
    ) -> None:
        settings = engine.settings
        self.program, self.slots = program, slots
        layout = Layout(
            program, engine.store, slots.count, settings.gpu_devices, settings.gpu_strategy, seeds=len(slots.seeds)
        )
        self.split = layout.split
        cards = engine.gpu.team(settings.gpu_devices)
        plan = layout.plan(min(card.ledger.limit for card in cards))
        engine.device_plans.append(plan)
        engine.stats.note(gpu_devices=len(cards), gpu_strategy=settings.gpu_strategy)
        names, policy = arcs_asked(program, device_sides(program, engine.store)), keeping(program)
        self.members: list[Member] = []
        self.step, self.change = 0, np.inf
        self.active = 0
        try:
            for place, card in enumerate(cards):
                with card.on():
                    asked = [layout.direction(place, name) for name in names]
                    card.make_room(plan.state_bytes, plan.least_bytes, asked, program.columns, policy)
                    lead = self.members[0] if place else None
                    given = (program, plan, params, slots, vectors, active)
                    self.members.append(Member(layout, place, engine, card, *given, lead=lead))
            if program.frontier:
                self._tell_front()
        except BaseException:
            self.close()
            raise
        self.host_state = self.members[0].host_state

    def open_sides(self) -> None:
        """The arcs of each."""
        self._each(Member.open_sides)

    # ---- between the devices

    def _each(self, do: Callable[[Member], Any]) -> list[Any]:
        found = []
        for member in self.members:
            with member.device.on():
                found.append(do(member))
        return found

    def _meet(self) -> None:
        """What comes later on any device waits for what was started on all of them. On one GPU all is in order."""
        lead = self.members[0]
        if not lead.device.apart:
            return
        events = self._each(lambda member: member.stream.record())
        with lead.device.on():
            for event in events[1:]:
                lead.stream.wait(event)
            all_here = lead.stream.record()
        self._each(lambda member: member.stream.wait(all_here))

    def _spread(self, arrays: Callable[[Member], Sequence[Any]], unit: int = 1) -> None:
        """Everyone's range of these arrays, `unit` slots to an item, goes to all others."""
        self._meet()

        def fetch(member: Member) -> None:
            for other in self.members:
                lo, hi = other.mine[0] // unit, -(-other.mine[1] // unit)
                if other is member or other.mine[0] == other.mine[1]:
                    continue
                for mine, theirs in zip(arrays(member), arrays(other), strict=True):
                    member.stream.move(mine[lo:hi], theirs[lo:hi])

        self._each(fetch)
        self._meet()

    def _add_tallies(self) -> None:
        place = slice(along.TALLY, along.TALLY + 1)
        self._meet()

        def fetch(member: Member) -> None:
            for k, other in enumerate(self.members):
                member.stream.move(member.tallies.array[k : k + 1], other.scalars.array[place])

        self._each(fetch)
        self._meet()
        add = plain_kernel(between.add_tallies, BLOCK)
        self._each(lambda member: add(member.stream, 1, 1, member.tallies.arg, member.scalars.arg))

    def _tell_front(self) -> None:
        """All know the whole frontier, and the host how much of it there is."""
        self._spread(lambda member: [member.front.array], BITS)
        self._each(Member.read_front)
        lead = self.members[0]
        self.active = sum(member.active for member in self.members)
        lead.arcs_ahead = sum(member.arcs_ahead for member in self.members)
        lead.active = self.active

    def resident(self) -> bool:
        """Whether all arcs are on the devices."""
        return all(member.resident() for member in self.members)

    # ---- which way

    def choose(self) -> tuple[bool, list[dict[str, Wanted]]]:
        """Whether to pull, and which pages each goes over."""
        lead = self.members[0]
        sides, resident = lead.sides, self.resident()
        either = self.program.frontier and bool(sides.pull) and bool(sides.push)
        if resident or not self.program.frontier:
            pull = lead._turn() if either else bool(sides.pull)
            return pull, [dict.fromkeys(sides.pull if pull else sides.push, EVERY) for _ in self.members]
        ways = (True, False) if either else (bool(sides.pull),)
        found = dict(zip(ways, zip(*self._each(lambda member: member.wanted_pages(*ways)), strict=True), strict=True))
        pull = self._cost(found[True]) < 2 * self._cost(found[False]) if either else bool(sides.pull)
        return pull, [*found[pull]]

    def _cost(self, found: Sequence[dict[str, Wanted]]) -> int:
        return sum(member.cost_of(pages) for member, pages in zip(self.members, found, strict=True))

    # ---- a superstep

    def superstep(self, *, wait: bool = True, tell: bool = True) -> dict[str, Any]:
        """As of one device. Here the change is always added up."""
        program, began = self.program, time.perf_counter()
        before = self._counts()
        figures: dict[str, Any] = {"frontier": self.active} if program.frontier else {}
        pull, pages = self.choose()
        if program.change or program.tally:
            self._each(lambda member: member.scalars.array.fill(0))
        if not program.frontier or pull or self.split or program.lanes > 1:
            self._each(Member._emit)
            if self.split and not program.numbered:
                self._spread(lambda member: [member.message.array])
            if self.split and program.tally:
                self._add_tallies()
        self._each(lambda member: member.carry(pull, pages[member.place]))
        if not self.split:
            self._meet()
            self._each(lambda member: member.merge([other for other in self.members if other is not member]))
            self._meet()
            self._each(Member.clear)
        self._each(lambda member: member.take_in(pull))
        if not self.split:
            self._spread(lambda member: [state.array for state in member.state])
        self.step += 1
        for member in self.members:
            member.step = self.step
        if program.frontier:
            self._each(Member.pack_front)
            self._tell_front()
        if wait:
            self.change = self._read_change() if program.change else np.inf
            self._each(lambda member: member.stream.synchronize())
        figures |= {"direction": "pull" if pull else "push", "seconds": time.perf_counter() - began}
        if not self.resident():
            figures |= self._counts().since(before)
        if program.change and wait:
            figures["change"] = self.change
        return figures

    def _counts(self) -> Counts:
        return Counts.sum([member.device.read_counts() for member in self.members])

    def _read_change(self) -> float:
        found = self._each(Member.read_change)
        return float(max(found) if self.program.change_by == MAX else sum(found))

    # ---- checkpoints

    def vectors(self) -> dict[str, np.ndarray]:
        """What a checkpoint holds, the same as of one device."""
        front, found = np.zeros(bits.words_for(self.slots.count), np.uint64), self.finish()
        front[: min(len(front), len(found))] = found[: len(front)]
        return {**dict(zip(self.program.state, self.host_state, strict=True)), "front.bits": front}

    def noted(self) -> dict[str, Any]:
        """The numbers that a checkpoint holds: directions are chosen by the first."""
        return self.members[0].noted() | {"change": self.change}

    def go_on(self, numbers: Mapping[str, Any]) -> None:
        """From where a checkpoint with these was made."""
        self.step, self.change = numbers["step"], numbers["change"]
        for member in self.members:
            member.go_on(numbers)

    # ---- the end

    def publish(self, vectors: dict[str, np.ndarray]) -> None:
        """Fields that the caller gave it may look at between supersteps."""
        if set(vectors) & set(self.program.state):
            self._each(lambda member: member.keep(set(vectors)))

    def finish(self) -> np.ndarray:
        """Copy the state to the host; returns the frontier's bits."""
        self._each(lambda member: member.stream.synchronize())
        self._each(Member.keep)
        with self.members[0].device.on():
            return self.members[0].waiting()

    def close(self) -> None:
        """Give the devices' memory back."""
        self._each(Member.close)


__all__ = ["DevicesRun", "Member"]
