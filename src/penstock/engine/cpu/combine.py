"""Supersteps of a combine program on CPU threads."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import numpy as np

from penstock.engine.cpu.direction import Turning
from penstock.engine.cpu.held import ALONE
from penstock.engine.cpu.kernels import fold_changes
from penstock.engine.cpu.large import PartTotals
from penstock.engine.plan import Plan, number_dtype
from penstock.engine.program import Combine
from penstock.engine.vectors import Slots, let_go
from penstock.memory.topology import Resident
from penstock.observe.progress import progress

if TYPE_CHECKING:
    from penstock.engine.engine import Engine, Outcome, Until

CRAWL = 1 << 14
"""Arcs of a frontier that one thread visits in less time than others need to wake up."""


class CombineRun(Turning):
    """One run: supersteps until it is over."""

    def superstep(self) -> dict[str, Any]:
        """Emit, carry, update; returns its figures."""
        program = self.program
        began = time.perf_counter()
        read, hits = self.engine.read_counts()
        figures: dict[str, Any] = {"frontier": self.active} if program.frontier else {}
        if program.frontier:
            self.after[:] = 0
        pull, pages = self.choose()
        if not program.frontier or pull or self.ranged or program.lanes > 1:
            self._emit()
        if pull and self.fused and not self.ranged:
            changes = self._pull_fused(pages)
        else:
            changes = self._carry(pull, pages)
        self.change = fold_changes(program, changes) if program.change else np.inf
        if program.frontier:
            self.front, self.after = self.after, self.front
        self.step += 1
        again, more = self.engine.read_counts()
        figures |= {"direction": "pull" if pull else "push", "seconds": time.perf_counter() - began}
        if self.plan.tier == "disk":
            figures |= {"pages": int(sum(map(len, pages.values()))), "bytes_read": again - read, "hits": more - hits}
        if program.change:
            figures["change"] = self.change
        return figures

    def _emit(self) -> None:
        kernels, slots = self.kernels, self.slots
        params = self.given()
        if self.program.frontier:
            for lo, hi in self.windows if not self.program.numbered else ():
                state, reads = self.window(lo, hi)
                window = (np.uint64(lo), np.uint64(hi), np.uint64(lo), state, reads)
                self.share(
                    kernels.emit_active, self.words(lo, hi), self.front, *window, params, self.message[lo:hi],
                    alone=self.active < ALONE,
                )  # fmt: skip
                self.drop()
            return
        if self.program.numbered and not self.program.tally:
            return
        tally = 0.0
        for lo, hi in [*self.windows, (slots.body, slots.count)]:
            state, reads = self.window(lo, hi)
            message = self.message if self.program.numbered else self.message[lo:hi]
            cuts, near = self.cuts(hi - lo, ALONE), np.uint64(lo)
            found = self.share(kernels.emit, cuts, near, state, reads, params, message, alone=hi - lo < ALONE)
            if slots.rest or lo != slots.body:  # of no vertex it may be no number, and 0 times that is none either
                tally += sum(found) * (slots.rest if lo == slots.body else 1)
            self.drop()
        self.tally = tally

    # ---- small frontiers

    def may_crawl(self) -> bool:
        """Whether the frontier is small enough for one thread and one call, in memory."""
        return (
            self.active <= CRAWL // 8
            and self.program.frontier
            and self.plan.tier == "memory"
            and self.program.lanes == 1
            and len(self.sides.push) == 1
            and not self.program.edge_state
            and not self.pulling
        )

    def crawl(self) -> dict[str, Any]:
        """As many supersteps as the frontier stays small for; none, if it has too many arcs already."""
        began, side = time.perf_counter(), self.side(self.sides.push[0])
        assert isinstance(side, Resident)
        if self.lists is None:
            self.lists = tuple(np.empty(CRAWL + 1, number_dtype(self.store)) for _ in range(2))
        steps, active, moved, seen, arcs = self.kernels.crawl(
            self.front, side.offsets, side.neighbours, side.values, self.message, self.state, self.reads, self.given(),
            self.totals, self.touched, *self.lists, np.uint64(CRAWL),
        )  # fmt: skip
        self.step, self.active, self.before = self.step + steps, int(active), int(active)
        if self.program.change and steps:
            self.change = float(moved)
        if self.unseen is not None and self.program.wants is not None:
            self.unseen = max(0, self.unseen - int(arcs))
        return {
            "direction": "crawl",
            "supersteps": steps,
            "frontier": int(seen),
            "seconds": time.perf_counter() - began,
        }

    # ---- along the arcs

    def _pull_fused(self, pages: dict[str, np.ndarray]) -> list[float]:
        """Gather and update in one go: all of what lies at the other ends is in memory."""
        pull, name, params = self.kernels.pull, self.sides.pull[0], self.given()
        state, reads, zero = self.state, self.reads, np.uint64(0)
        side = self.side(name)
        message = self.message

        def call(worker: int, counter: Any, cuts: Any, first: Any, offsets: Any, neighbours: Any, columns: Any) -> Any:
            return pull(
                counter, cuts, first, offsets, neighbours, columns, message, zero, self.front, zero, state, reads,
                params, self.after,
            )  # fmt: skip

        if isinstance(side, Resident):
            found = side.visit(self.team, call, **self.beside(name))
        else:
            parts = PartTotals(self, side)
            found = side.visit(pages[name], call, parts.take, **self.beside(name))
            found += parts.finish()
        if self.program.frontier:
            self.active = sum(int(active) for _, active in found)
            return [moved for moved, _ in found]
        return [moved for moved, _ in found] + self._update_alone(self.slots.active)

    def _update_alone(self, lo: int) -> list[float]:
        """Slots without arcs, from `lo` on: nothing arrives, but they are updated all the same."""
        slots, lanes, changes = self.slots, self.program.lanes, []
        for begin, end in ((lo, slots.body), (slots.body, slots.count)):
            # The last slot stands for many vertices, or for none.
            weight = slots.rest if begin == slots.body else 1
            if begin == end:
                continue
            totals = np.full(end - begin if lanes == 1 else (end - begin, lanes), self.zero)
            counter, cuts = np.zeros(1, np.uint64), np.array([0, end - begin], np.uint64)
            moved = self.kernels.update_all(
                counter, cuts, np.uint64(begin), *self.slices(begin, end), self.given(), totals
            )
            if weight:
                changes.append(moved * (weight if self.program.change_by.known == "sum" else 1))
        return changes

    def _carry(self, pull: bool, pages: dict[str, np.ndarray]) -> list[float]:
        """Gather into totals, window by window and range by range, then update."""
        changes, active = [], 0
        for lo, hi in self.windows:
            for far in self.windows:
                for name in self.sides.pull if pull else self.sides.push:
                    (self._pull_totals if pull else self._push)(name, pages, (lo, hi), far)
                if not self.program.numbered:
                    let_go(self.message, *far)
            moved, awake = self._take_in(lo, hi)
            changes.append(moved)
            active += awake
            self.drop()
        if self.program.frontier:
            self.active = active
            self.touched[:] = 0
            return changes
        # Seeds without arcs lie in the last window.
        return changes + self._update_alone(self.slots.body)

    def _pull_totals(
        self, name: str, pages: dict[str, np.ndarray], near: tuple[int, int], far: tuple[int, int]
    ) -> None:
        (lo, hi), (far_lo, far_hi) = near, far
        state, reads = self.window(lo, hi)
        message = self.message if self.program.numbered else self.message[far_lo:far_hi]
        if self.program.numbered and self.ranged:
            message = np.zeros(far_hi - far_lo, np.uint8)  # its length tells the range
        pull = self.kernels.make("pull_totals", self.ranged)
        params, totals = self.given(), self.totals

        def call(worker: int, counter: Any, cuts: Any, first: Any, offsets: Any, neighbours: Any, columns: Any) -> Any:
            return pull(
                counter, cuts, first, offsets, neighbours, columns, message, np.uint64(far_lo), self.front,
                np.uint64(lo), state, reads, params, totals, self.touched,
            )  # fmt: skip

        side = self.side(name)
        if isinstance(side, Resident):
            side.visit(self.team, call, **self.beside(name))
            return
        parts = PartTotals(self, side, (lo, hi), message, far_lo)
        inside = self._inside(name, pages[name], lo, hi)
        side.visit(inside, self._clipped(call, lo, hi), parts.take, **self.beside(name))
        parts.add()

    def _push(self, name: str, pages: dict[str, np.ndarray], near: tuple[int, int], far: tuple[int, int]) -> None:
        # The window's totals are at the far ends; the senders are the other range.
        (to_lo, to_hi), (lo, hi) = near, far
        state, reads = self.window(*(near if self.ranged else far))
        sent = self.message if self.program.numbered else self.message[lo:hi]
        push = self.kernels.make("push", self.ranged)
        params, totals = self.given(), self.totals[: to_hi - to_lo]

        def call(worker: int, counter: Any, cuts: Any, first: Any, offsets: Any, neighbours: Any, columns: Any) -> Any:
            return push(
                counter, cuts, first, offsets, neighbours, columns, sent, self.front, np.uint64(lo), state, reads,
                params, np.uint64(to_lo), totals, self.touched,
            )  # fmt: skip

        side = self.side(name)
        if isinstance(side, Resident):
            alone = self.program.frontier and self.active < 64
            side.visit(self.team, call, alone=alone, **self.beside(name))
            return
        side.visit(self._inside(name, pages[name], lo, hi), self._clipped(call, lo, hi), **self.beside(name))

    def _inside(self, name: str, pages: np.ndarray, lo: int, hi: int) -> np.ndarray:
        if not self.ranged:
            return pages
        records = self.store.direction(name).records[pages]
        first = records["first_vertex"].astype(np.int64)
        return pages[(first < hi) & (first + records["vertices"] > lo)]

    def _clipped(self, call: Any, lo: int, hi: int) -> Any:
        """The call on the vertices of a page that lie inside the window."""
        if not self.ranged:
            return call

        def clipped(worker: int, counter: Any, cuts: Any, first: Any, *rest: Any) -> Any:
            begin, end = int(first), int(first) + int(cuts[1])
            inside = np.array([max(lo - begin, 0), min(hi, end) - begin], np.uint64)
            return call(worker, counter, inside, first, *rest)

        return clipped

    def _take_in(self, lo: int, hi: int) -> tuple[float, int]:
        """Update a window by its totals: (change, vertices now active)."""
        state, reads = self.window(lo, hi)
        params, totals, near = self.given(), self.totals[: hi - lo], np.uint64(lo)
        if not self.program.frontier:
            cuts, alone = self.cuts(hi - lo, ALONE), hi - lo < ALONE
            moved = self.share(self.kernels.update_all, cuts, near, state, reads, params, totals, alone=alone)
            return fold_changes(self.program, moved), 0
        window = (near, np.uint64(hi), near, state, reads)
        found = self.share(self.kernels.absorb, self.words(lo, hi), self.touched, *window, params, totals, self.after)
        return fold_changes(self.program, [moved for moved, _ in found]), sum(int(awake) for _, awake in found)


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

    if program.bucketed is not None:
        from penstock.engine.cpu import buckets

        return buckets.run(engine, program, plan, params, slots, vectors, active, until)
    with engine.ledger.reserve(plan.edge_window_bytes, "state of arcs"):
        held = _supersteps(engine, program, plan, params, slots, vectors, active, until)
    state = dict(zip(program.state, held.state, strict=True))
    return Outcome(state, slots, held.step, float(held.change), held.front, held.arc_fields())


def _supersteps(
    engine: Engine,
    program: Combine,
    plan: Plan,
    params: dict[str, Any],
    slots: Slots,
    vectors: dict[str, np.ndarray],
    active: np.ndarray | None,
    until: Until | None,
) -> CombineRun:
    stats, saver = engine.stats, engine.checkpoint
    with stats.phase("prepare"):
        held = CombineRun(engine, program, plan, params, slots, vectors, active)
        if saver is not None and (found := saver.begin(program, params, slots.seeds)) is not None:
            for name, value in saver.restore(found, held.vectors(), held.drop).items():
                setattr(held, name, value)
    held.open_sides()
    with stats.phase("run"), progress(program.name, total=None, unit="supersteps", settings=engine.settings) as bar:
        while not program.frontier or held.active:
            if until is not None and until(held.step, held.change):
                break
            if until is None and saver is None and held.may_crawl():
                crawled = held.crawl()
                if crawled["supersteps"]:
                    stats.iteration(program=program.name, **crawled)
                    bar.advance(crawled["supersteps"])
                    continue
            stats.iteration(program=program.name, **held.superstep())
            bar.advance(1)
            if saver is not None and saver.due(held.step):
                with stats.phase("checkpoint"):
                    saver.save(held.vectors(), held.scalars(), held.drop)
            if not program.frontier and until is None:
                break
    return held
