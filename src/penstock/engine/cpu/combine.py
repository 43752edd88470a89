"""Supersteps of a combine program on CPU threads."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from penstock.engine.cpu.kernels import CombineKernels, combine_kernels, fold_changes
from penstock.engine.kernels import bits
from penstock.engine.plan import Plan, Sides, number_dtype, read_dtype, sides_of
from penstock.engine.program import Combine
from penstock.memory.topology import Resident, Streamed
from penstock.engine.vectors import Slots
from penstock.observe.progress import progress

if TYPE_CHECKING:
    from penstock.engine.engine import Engine, Outcome, Until

_ALONE = 1 << 14
"""Below this many vertices or arcs, waking other threads costs more than it saves."""
ALPHA, BETA = 15, 18
"""When a traversal turns around (Beamer et al. 2012): to pull when the frontier has more than 1/ALPHA of the arcs not yet
seen; back to push when it has fewer than 1/BETA of the vertices and shrinks."""
_CRAWL = 1 << 14
"""Arcs of a frontier that one thread visits in less time than others need to wake up."""
_PUSH_COST = 4
"""What pushing along an arc costs, in arcs pulled: an atomic update against a read."""


class CombineRun:
    """One run: the vectors, and supersteps until it is over."""

    def __init__(
        self,
        engine: Engine,
        program: Combine,
        plan: Plan,
        params: dict[str, Any],
        slots: Slots,
        vectors: dict[str, np.ndarray],
        active: np.ndarray | None,
    ) -> None:
        self.engine, self.program, self.plan, self.params, self.slots = engine, program, plan, params, slots
        self.store, self.team = engine.store, engine.team
        number = number_dtype(self.store)
        self.kernels: CombineKernels = combine_kernels(program, number)
        self.sides = sides_of(self.store, program.along)
        if program.lanes > 1 and self.sides.pull:
            self.sides = Sides(self.sides.pull, ())  # as planned: with lanes nothing turns around
        lanes, split = program.lanes, plan.ranges > 1
        self.ranged = split
        make = engine.vectors.make
        self.state = tuple(
            vectors[name] if name in vectors else make(slots.count, kind, name, lanes=lanes, spilled=split)
            for name, kind in program.fields().items()
        )
        self.reads = tuple(
            vectors[name] if name in vectors else self._read(name, split) for name in program.stored_reads()
        )
        self.zero = program.combine.zero(program.contribution_dtype(number))
        shape = (lambda n: n) if lanes == 1 else (lambda n: (n, lanes))
        self.message = (
            np.zeros(shape(1), number)
            if program.numbered
            else make(slots.count, program.message, "messages", lanes=lanes, spilled=split)
        )
        self.windows = self._windows(plan.ranges)
        self.fused = not split and lanes == 1 and len(self.sides.pull) == 1
        self._totals: np.ndarray | None = None
        words = bits.words_for(slots.count)
        self.front = np.zeros(words, np.uint64)
        self.after = np.zeros(words, np.uint64)
        self.touched = np.zeros(words if program.frontier else 1, np.uint64)
        self.word_cuts = self._cuts(words, 1 << 10)
        self.active = 0
        self.step, self.tally, self.change = 0, 0.0, np.inf
        self.pulling, self.before = False, 0
        self.lists: tuple[np.ndarray, ...] | None = None
        self.unseen: int | None = None
        if set(program.state) - set(vectors):
            self._initialise()
        elif active is not None:
            self.front[: len(active)] = active
            self.active = int(bits.count(self.front))
        if not program.frontier:
            self.front[:] = bits.ALL

    # ---- set-up

    def _read(self, name: str, split: bool) -> np.ndarray:
        slots = self.slots
        found = self.engine.vectors.make(slots.count, read_dtype(self.store, name), name, spilled=split)
        if name == "seed":
            found[:] = slots.seed_column()
            return found
        column = self.store.vertex_column(name)
        column.read(0, slots.active, out=found[: slots.active])
        for slot, number in enumerate(slots.alone, slots.active):
            found[slot] = column.read(number, number + 1)[0]
        # Isolated vertices are alike for all degrees; what the user knows of them cannot matter without arcs.
        return found

    def _windows(self, ranges: int) -> list[tuple[int, int]]:
        """Ranges of slots, cut where pages begin, so that few pages belong to two of them."""
        body = self.slots.body
        if ranges == 1:
            return [(0, body)]
        starts = self.store.direction((self.sides.pull or self.sides.push)[0]).records["first_vertex"].astype(np.int64)
        wished = np.linspace(0, body, ranges + 1)[1:-1]
        if len(starts):
            places = np.clip(np.searchsorted(starts, wished), 0, len(starts) - 1)
            # A page boundary near the wished place; where pages are wide, the place itself.
            near = starts[places]
            wished = np.where(np.abs(near - wished) < body / ranges / 2, near, wished)
        cuts = np.unique(np.concatenate([[0], wished.astype(np.int64), [body]]))
        return [(int(a), int(b)) for a, b in zip(cuts[:-1], cuts[1:], strict=True)] or [(0, 0)]

    def _cuts(self, count: int, least: int) -> np.ndarray:
        """Chunks of slots or words for the threads."""
        chunks = max(1, min(8 * self.team.threads, count // least))
        return np.linspace(0, count, chunks + 1).astype(np.uint64)

    def _given(self) -> tuple[Any, ...]:
        return (*self.params.values(), self.slots.vertices, self.step, float(self.tally))

    def _window(self, lo: int, hi: int) -> tuple[tuple[np.ndarray, ...], tuple[np.ndarray, ...]]:
        if not self.ranged and (lo, hi) == (0, self.slots.body):
            return self.state, self.reads
        return tuple(s[lo:hi] for s in self.state), tuple(r[lo:hi] for r in self.reads)

    def _initialise(self) -> None:
        params, slots, initialise = self._given(), self.slots, self.kernels.initialise
        for lo, hi in self.windows:
            state, reads = self._window(lo, hi)
            cuts = self._cuts(hi - lo, _ALONE) + np.uint64(lo)
            near, counter = np.uint64(lo), iter(range(len(cuts) - 1))

            def work(_: int, near: Any = near, cuts: Any = cuts, counter: Any = counter, s: Any = state, r: Any = reads) -> int:
                return sum(
                    int(initialise(cuts[k], cuts[k + 1], near, s, r, params, self.front, np.uint32(0))) for k in counter
                )

            self.active += sum(self.team.run(work, alone=hi - lo < _ALONE))
            for place, number in enumerate(slots.seeds, 1):
                at = slots.of(number)
                if lo <= at < hi:
                    one, bit = np.uint64(at), np.uint64(1 << (at & 63))
                    if self.front[at >> 6] & bit:  # active as one that is no seed: asked again
                        self.front[at >> 6] ^= bit
                        self.active -= 1
                    self.active += int(initialise(one, one + np.uint64(1), near, state, reads, params, self.front, np.uint32(place)))
            self._drop()
        # The last slot stands for vertices that have no arcs: it has a state, but is never active.
        last = np.uint64(slots.body)
        state, reads = self._window(slots.body, slots.count)
        unused = np.zeros(len(self.front), np.uint64)
        initialise(last, last + np.uint64(1), last, state, reads, params, unused, np.uint32(0))

    def _drop(self) -> None:
        if self.ranged:
            self.engine.vectors.drop()

    @property
    def totals(self) -> np.ndarray:
        """What arrives at the vertices of a window; made when first needed, always left at zero."""
        if self._totals is None:
            widest = max(hi - lo for lo, hi in self.windows)
            kind = self.program.contribution_dtype(number_dtype(self.store))
            self._totals = self.engine.vectors.make(max(1, widest), kind, "totals", lanes=self.program.lanes)
            self._totals[:] = self.zero
        return self._totals

    def open_sides(self) -> None:
        """The arcs, in memory or as streams; after the vectors, so that caches take what is left."""
        columns = self.program.columns
        names = self.plan.sides
        self.arcs: dict[str, Any] = {}
        if self.plan.tier == "memory":
            self.arcs = {self.store.direction(name).name: self.engine.resident(name, columns) for name in names}
            return
        if not self.fused or self.program.frontier:
            _ = self.totals
        policy = "lru" if self.program.frontier else "resident"
        self.arcs = {
            self.store.direction(name).name: side
            for name, side in self.engine.streamed(names, columns, policy).items()  # type: ignore[arg-type]
        }

    def side(self, name: str) -> Resident | Streamed:
        return self.arcs[self.store.direction(name).name]  # type: ignore[no-any-return]

    # ---- checkpoints

    def vectors(self) -> dict[str, np.ndarray]:
        """What a checkpoint holds."""
        return {**dict(zip(self.program.state, self.state, strict=True)), "front.bits": self.front}

    def scalars(self) -> dict[str, Any]:
        names = ("step", "active", "tally", "change", "pulling", "before", "unseen")
        return {name: getattr(self, name) for name in names}

    # ---- one superstep

    def superstep(self) -> dict[str, Any]:
        """Emit, carry, update; returns its figures."""
        program = self.program
        began = time.perf_counter()
        read, hits = self.engine.read_counts()
        figures: dict[str, Any] = {"frontier": self.active} if program.frontier else {}
        if program.frontier:
            self.after[:] = 0
        pull, pages = self._choose()
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
        params = self._given()
        if self.program.frontier:
            for lo, hi in self.windows if not self.program.numbered else ():
                state, reads = self._window(lo, hi)
                cuts = self._cuts((hi + 63) // 64 - lo // 64, 1 << 8) + np.uint64(lo // 64)
                counter = np.zeros(1, np.uint64)
                self.team.run(
                    lambda _, counter=counter, cuts=cuts, lo=lo, hi=hi, state=state, reads=reads: kernels.emit_active(
                        counter, cuts, self.front, np.uint64(lo), np.uint64(hi), np.uint64(lo), state, reads, params,
                        self.message[lo:hi],
                    ),  # fmt: skip
                    alone=self.active < _ALONE,
                )
                self._drop()
            return
        if self.program.numbered and not self.program.tally:
            return
        tally = 0.0
        for lo, hi in [*self.windows, (slots.body, slots.count)]:
            state, reads = self._window(lo, hi)
            message = self.message if self.program.numbered else self.message[lo:hi]
            cuts, counter = self._cuts(hi - lo, _ALONE), np.zeros(1, np.uint64)
            found = self.team.run(
                lambda _, counter=counter, cuts=cuts, lo=lo, state=state, reads=reads, message=message: kernels.emit(
                    counter, cuts, np.uint64(lo), state, reads, params, message
                ),
                alone=hi - lo < _ALONE,
            )
            tally += sum(found) * (slots.rest if lo == slots.body else 1)
            self._drop()
        self.tally = tally

    # ---- small frontiers

    def may_crawl(self) -> bool:
        """Whether the frontier is small enough for one thread and one call, in memory."""
        return (
            self.active <= _CRAWL // 8
            and self.program.frontier
            and self.plan.tier == "memory"
            and self.program.lanes == 1
            and len(self.sides.push) == 1
            and not self.pulling
        )

    def crawl(self) -> dict[str, Any]:
        """As many supersteps as the frontier stays small for; none, if it has too many arcs already."""
        began, side = time.perf_counter(), self.side(self.sides.push[0])
        assert isinstance(side, Resident)
        if self.lists is None:
            self.lists = tuple(np.empty(_CRAWL + 1, number_dtype(self.store)) for _ in range(2))
        steps, active, moved, seen, arcs = self.kernels.crawl(
            self.front, side.offsets, side.neighbours, side.values, self.message, self.state, self.reads, self._given(),
            self.totals, self.touched, *self.lists, np.uint64(_CRAWL),
        )  # fmt: skip
        self.step, self.active, self.before = self.step + steps, int(active), int(active)
        if self.program.change and steps:
            self.change = float(moved)
        if self.unseen is not None and self.program.wants is not None:
            self.unseen = max(0, self.unseen - int(arcs))
        return {"direction": "crawl", "supersteps": steps, "frontier": int(seen), "seconds": time.perf_counter() - began}

    # ---- which way

    def _choose(self) -> tuple[bool, dict[str, np.ndarray]]:
        """Whether to pull, and which pages of which side to visit."""
        program, sides = self.program, self.sides
        if self.plan.tier == "memory":
            return self._choose_in_memory(), {}
        if not program.frontier:
            names = sides.pull or sides.push
            return bool(sides.pull), {name: np.arange(len(self.store.direction(name))) for name in names}
        pushed = {name: self._pages(name, self.front) for name in sides.push}
        pulled = {}
        if sides.pull:
            wanted = self._wanting()
            pulled = {name: self._pages(name, wanted) for name in sides.pull}
        if not sides.push or not sides.pull:
            return bool(sides.pull), pulled or pushed
        pull = sum(map(len, pulled.values())) < 2 * sum(map(len, pushed.values()))
        return pull, pulled if pull else pushed

    def _choose_in_memory(self) -> bool:
        sides, program = self.sides, self.program
        if not sides.pull or not sides.push or not program.frontier:
            return bool(sides.pull)
        out = [self.side(name) for name in sides.push]
        if self.unseen is None:
            self.unseen = sum(len(side.neighbours) for side in out)  # type: ignore[union-attr]
        if self.pulling:
            self.pulling = self.active >= self.before or self.active > self.slots.active // BETA
        if not self.pulling:
            arcs = 0
            for side in out:
                counter = np.zeros(1, np.uint64)
                arcs += sum(
                    int(found[1])
                    for found in self.team.run(
                        lambda _, side=side, counter=counter: bits.weigh(
                            counter, self.word_cuts, self.front, side.offsets  # type: ignore[union-attr]
                        ),
                        alone=self.active < _ALONE,
                    )
                )
            ratio = ALPHA if program.combine.first else _PUSH_COST
            self.pulling = arcs * ratio > self.unseen
            if program.wants is not None:
                self.unseen = max(0, self.unseen - arcs)
        self.before = self.active
        return self.pulling

    def _wanting(self) -> np.ndarray | None:
        if self.program.wants is None:
            return None
        found = np.zeros(len(self.front), np.uint64)
        params = self._given()
        for lo, hi in self.windows:
            state, reads = self._window(lo, hi)
            piece = found if not self.ranged else np.zeros(len(found), np.uint64)
            cuts = self._cuts((hi + 63) // 64 - lo // 64, 1 << 6) + np.uint64(lo // 64)
            counter = np.zeros(1, np.uint64)
            self.team.run(
                lambda _, counter=counter, cuts=cuts, lo=lo, hi=hi, state=state, reads=reads, piece=piece: (
                    self.kernels.wanting(
                        counter, cuts, np.uint64(lo), np.uint64(hi), np.uint64(lo), state, reads, params, piece
                    )
                )
            )
            if self.ranged:
                found |= piece
            self._drop()
        return found

    def _pages(self, name: str, chosen: np.ndarray | None) -> np.ndarray:
        records = self.store.direction(name).records
        if chosen is None:
            return np.arange(len(records))
        found = np.empty(len(records), np.int64)
        return found[: bits.pages_of(chosen, records, found)]

    # ---- along the arcs

    def _pull_fused(self, pages: dict[str, np.ndarray]) -> list[float]:
        """Gather and update in one go: all of what lies at the other ends is in memory."""
        pull, name, params = self.kernels.pull, self.sides.pull[0], self._given()
        state, reads, zero = self.state, self.reads, np.uint64(0)
        side = self.side(name)
        message = self.message

        def call(worker: int, counter: Any, cuts: Any, first: Any, offsets: Any, neighbours: Any, columns: Any) -> Any:
            return pull(
                counter, cuts, first, offsets, neighbours, columns, message, zero, self.front, zero, state, reads, params,
                self.after,
            )  # fmt: skip

        if isinstance(side, Resident):
            found = side.visit(self.team, call)
        else:
            parts = PartTotals(self, side)
            found = side.visit(pages[name], call, parts.take)
            found += parts.finish()
        if self.program.frontier:
            self.active = sum(int(active) for _, active in found)
            return [moved for moved, _ in found]
        return [moved for moved, _ in found] + self._update_tail()

    def _update_tail(self) -> list[float]:
        """Vertices without arcs: nothing arrives, but they are updated all the same."""
        slots, changes = self.slots, []
        for lo, hi in ((slots.active, slots.body), (slots.body, slots.count)):
            if lo == hi:
                continue
            state, reads = tuple(s[lo:hi] for s in self.state), tuple(r[lo:hi] for r in self.reads)
            lanes = self.program.lanes
            totals = np.full(hi - lo if lanes == 1 else (hi - lo, lanes), self.zero)
            cuts = np.array([0, hi - lo], np.uint64)
            moved = self.kernels.update_all(
                np.zeros(1, np.uint64), cuts, np.uint64(lo), state, reads, self._given(), totals
            )
            weight = self.slots.rest if lo == slots.body and self.program.change_by.name == "sum" else 1
            if lo < slots.body or slots.rest:
                changes.append(moved * weight)
        return changes

    def _carry(self, pull: bool, pages: dict[str, np.ndarray]) -> list[float]:
        """Gather into totals, window by window and range by range, then update."""
        changes, active = [], 0
        for lo, hi in self.windows:
            for far in self.windows:
                for name in self.sides.pull if pull else self.sides.push:
                    (self._pull_totals if pull else self._push)(name, pages, (lo, hi), far)
            moved, awake = self._take_in(lo, hi)
            changes.append(moved)
            active += awake
            self._drop()
        if self.program.frontier:
            self.active = active
            self.touched[:] = 0
            return changes
        # Seeds without arcs lie in the last window.
        last = self.slots.body
        return changes + self._tail_of(last, last + 1)

    def _tail_of(self, lo: int, hi: int) -> list[float]:
        lanes = self.program.lanes
        state, reads = tuple(s[lo:hi] for s in self.state), tuple(r[lo:hi] for r in self.reads)
        totals = np.full(hi - lo if lanes == 1 else (hi - lo, lanes), self.zero)
        moved = self.kernels.update_all(
            np.zeros(1, np.uint64), np.array([0, hi - lo], np.uint64), np.uint64(lo), state, reads, self._given(), totals
        )
        if not self.slots.rest:
            return []
        return [moved * (self.slots.rest if self.program.change_by.name == "sum" else 1)]

    def _pull_totals(
        self, name: str, pages: dict[str, np.ndarray], near: tuple[int, int], far: tuple[int, int]
    ) -> None:
        (lo, hi), (far_lo, far_hi) = near, far
        state, reads = self._window(lo, hi)
        message = self.message if self.program.numbered else self.message[far_lo:far_hi]
        if self.program.numbered and self.ranged:
            message = np.zeros(far_hi - far_lo, np.uint8)  # its length tells the range
        pull = self.kernels.make("pull_totals", self.ranged)
        params, totals = self._given(), self.totals

        def call(worker: int, counter: Any, cuts: Any, first: Any, offsets: Any, neighbours: Any, columns: Any) -> Any:
            return pull(
                counter, cuts, first, offsets, neighbours, columns, message, np.uint64(far_lo), self.front,
                np.uint64(lo), state, reads, params, totals, self.touched,
            )  # fmt: skip

        side = self.side(name)
        if isinstance(side, Resident):
            side.visit(self.team, call)
            return
        parts = PartTotals(self, side, (lo, hi), message, far_lo)
        side.visit(self._inside(name, pages[name], lo, hi), self._clipped(call, lo, hi), parts.take)
        parts.add()

    def _push(self, name: str, pages: dict[str, np.ndarray], near: tuple[int, int], far: tuple[int, int]) -> None:
        # The window's totals are at the far ends; the senders are the other range.
        (to_lo, to_hi), (lo, hi) = near, far
        state, reads = self._window(lo, hi)
        sent = self.message if self.program.numbered else self.message[lo:hi]
        push = self.kernels.make("push", self.ranged)
        params, totals = self._given(), self.totals[: to_hi - to_lo]

        def call(worker: int, counter: Any, cuts: Any, first: Any, offsets: Any, neighbours: Any, columns: Any) -> Any:
            return push(
                counter, cuts, first, offsets, neighbours, columns, sent, self.front, np.uint64(lo), state, reads, params,
                np.uint64(to_lo), totals, self.touched,
            )  # fmt: skip

        side = self.side(name)
        if isinstance(side, Resident):
            counter = np.zeros(1, np.uint64)
            self.team.run(
                lambda worker: call(
                    worker, counter, side.cuts, np.uint64(0), side.offsets, side.neighbours, side.values
                ),
                alone=self.program.frontier and self.active < 64,
            )
            return
        side.visit(self._inside(name, pages[name], lo, hi), self._clipped(call, lo, hi))

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
        state, reads = self._window(lo, hi)
        params, totals, counter = self._given(), self.totals[: hi - lo], np.zeros(1, np.uint64)
        if not self.program.frontier:
            cuts = self._cuts(hi - lo, _ALONE)
            moved = self.team.run(
                lambda _: self.kernels.update_all(counter, cuts, np.uint64(lo), state, reads, params, totals),
                alone=hi - lo < _ALONE,
            )
            return fold_changes(self.program, moved), 0
        cuts = self._cuts((hi + 63) // 64 - lo // 64, 1 << 8) + np.uint64(lo // 64)
        found = self.team.run(
            lambda _: self.kernels.absorb(
                counter, cuts, self.touched, np.uint64(lo), np.uint64(hi), np.uint64(lo), state, reads, params, totals,
                self.after,
            )  # fmt: skip
        )
        return fold_changes(self.program, [moved for moved, _ in found]), sum(int(awake) for _, awake in found)


class PartTotals:
    """The totals of large vertices: one per page, combined when all pages were visited, in the order of the pages."""

    def __init__(
        self,
        run: CombineRun,
        side: Streamed,
        window: tuple[int, int] | None = None,
        message: np.ndarray | None = None,
        far: int = 0,
    ) -> None:
        self.run, self.side, self.far = run, side, np.uint64(far)
        self.lo, self.hi = window or (0, run.slots.body)
        self.message = run.message if message is None else message
        self.part = run.kernels.make("part", run.ranged)
        self.state, self.reads = run._window(self.lo, self.hi)
        self.found: dict[int, Any] = {}

    def take(self, worker: int, page: int, first: np.uint64, neighbours: np.ndarray, columns: Any) -> None:
        run = self.run
        args = (
            first, neighbours, columns, self.message, self.far, run.front, np.uint64(self.lo), self.state, self.reads,
            run._given(),
        )  # fmt: skip
        if run.program.lanes == 1:
            total, arrived = self.part(*args)
            self.found[page] = run.zero.dtype.type(total), arrived  # Python's integers would not wrap
        else:
            row = np.full(run.program.lanes, run.zero)
            self.found[page] = (row, self.part(*args, row))

    def _vertices(self) -> Iterator[tuple[int, Any]]:
        """(vertex, total) of those at which something arrived."""
        combine = self.run.program.combine.combine
        first = self.side.direction.records["first_vertex"]
        totals: dict[int, Any] = {}
        hit: dict[int, bool] = {}
        with np.errstate(over="ignore"):
            for page in sorted(self.found):
                total, arrived = self.found[page]
                vertex = int(first[page])
                if self.run.program.lanes > 1 and vertex in totals:
                    rows = zip(totals[vertex], total, strict=True)
                    totals[vertex] = np.array([combine(a, b) for a, b in rows], total.dtype)
                else:
                    totals[vertex] = combine(totals[vertex], total) if vertex in totals else total
                hit[vertex] = hit.get(vertex, False) or bool(arrived)
        self.found.clear()
        for vertex, total in totals.items():
            if hit[vertex] or not self.run.program.frontier:
                yield vertex, total

    def add(self) -> None:
        """Into the totals of the window."""
        run, combine = self.run, self.run.program.combine.combine
        for vertex, total in self._vertices():
            with np.errstate(over="ignore"):
                if run.program.lanes > 1:
                    row = run.totals[vertex - self.lo]
                    row[:] = [combine(a, b) for a, b in zip(row, total, strict=True)]
                else:
                    run.totals[vertex - self.lo] = combine(run.totals[vertex - self.lo], run.zero.dtype.type(total))
            if run.program.frontier:
                run.touched[vertex >> 6] |= np.uint64(1 << (vertex & 63))

    def finish(self) -> list[tuple[float, int]]:
        """Update the vertices at once."""
        run, found = self.run, []
        one = np.zeros(1, run.zero.dtype)
        for vertex, total in self._vertices():
            one[0] = total
            state, reads = tuple(s[vertex : vertex + 1] for s in run.state), tuple(r[vertex : vertex + 1] for r in run.reads)
            near = np.uint64(vertex)
            if not run.program.frontier:
                cuts = np.array([0, 1], np.uint64)
                counter = np.zeros(1, np.uint64)
                found.append((run.kernels.update_all(counter, cuts, near, state, reads, run._given(), one), 0))
                continue
            run.touched[vertex >> 6] |= np.uint64(1 << (vertex & 63))
            cuts = np.array([vertex >> 6, (vertex >> 6) + 1], np.uint64)
            moved, awake = run.kernels.absorb(
                np.zeros(1, np.uint64), cuts, run.touched, near, np.uint64(vertex + 1), near, state, reads, run._given(),
                one, run.after,
            )  # fmt: skip
            run.touched[vertex >> 6] = 0
            found.append((moved, int(awake)))
        return found


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
    stats, saver = engine.stats, engine.checkpoint
    with stats.phase("prepare"):
        held = CombineRun(engine, program, plan, params, slots, vectors, active)
        if saver is not None and (found := saver.begin(program, params, slots.seeds)) is not None:
            for name, value in saver.restore(found, held.vectors(), held._drop).items():
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
                    saver.save(held.vectors(), held.scalars(), held._drop)
            if not program.frontier and until is None:
                break
    return Outcome(dict(zip(program.state, held.state, strict=True)), slots, held.step, float(held.change), held.front)
