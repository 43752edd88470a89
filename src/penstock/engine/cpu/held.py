"""What a run of a combine program holds: its vectors, its bitmaps, its arcs."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from penstock.engine.cpu.kernels import CombineKernels, combine_kernels
from penstock.engine.cpu.parts import arc_vectors, named_arcs, read_column
from penstock.engine.kernels import bits
from penstock.engine.plan import Plan, Sides, keeping, number_dtype, sides_of
from penstock.engine.program import Combine
from penstock.engine.vectors import Slots, fetch, let_go
from penstock.memory.topology import Resident, Streamed

if TYPE_CHECKING:
    from penstock.engine.engine import Engine

ALONE = 1 << 14
"""Below this many vertices or arcs, waking other threads costs more than it saves."""


class Held:
    """The state of one run."""

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
        self.kernels: CombineKernels = engine.once(program, "on CPU", lambda: combine_kernels(program, number))
        self.sides = sides_of(self.store, program.along)
        if (program.lanes > 1 or program.edge_state) and self.sides.pull:
            self.sides = Sides(self.sides.pull, ())  # as planned: with lanes, and fields of arcs, nothing turns around
        lanes, split = program.lanes, plan.ranges > 1
        self.ranged = split
        make = engine.vectors.make
        self.state = tuple(
            vectors[name] if name in vectors else make(slots.count, kind, name, lanes=lanes, spilled=split)
            for name, kind in program.fields().items()
        )
        self.reads = tuple(
            vectors[name] if name in vectors else read_column(engine, slots, name, spilled=split)
            for name in program.stored_reads()
        )
        self.edge_state = arc_vectors(engine, program, plan)
        self.spilled = split or (plan.tier == "disk" and bool(self.edge_state))
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
        self.word_cuts = self.cuts(words, 1 << 10)
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
        return [(int(a), int(b)) for a, b in itertools.pairwise(cuts)] or [(0, 0)]

    def cuts(self, count: int, least: int) -> np.ndarray:
        """Chunks of slots or words for the threads."""
        chunks = max(1, min(8 * self.team.threads, count // least))
        return np.linspace(0, count, chunks + 1).astype(np.uint64)

    def words(self, lo: int, hi: int, least: int = 1 << 8) -> np.ndarray:
        """Chunks of the bitmap words that hold the slots `lo` to `hi`."""
        return self.cuts((hi + 63) // 64 - lo // 64, least) + np.uint64(lo // 64)

    def share(self, kernel: Any, cuts: np.ndarray, *args: Any, alone: bool = False) -> list[Any]:
        """A kernel on all threads, or on this one, each taking chunks until none is left."""
        counter = np.zeros(1, np.uint64)
        return self.team.run(lambda _: kernel(counter, cuts, *args), alone=alone)

    def given(self) -> tuple[Any, ...]:
        return (*self.params.values(), self.slots.vertices, self.step, float(self.tally))

    def window(self, lo: int, hi: int) -> tuple[tuple[np.ndarray, ...], tuple[np.ndarray, ...]]:
        if not self.ranged and (lo, hi) == (0, self.slots.body):
            return self.state, self.reads
        return self.slices(lo, hi)

    def slices(self, lo: int, hi: int) -> tuple[tuple[np.ndarray, ...], tuple[np.ndarray, ...]]:
        """State and reads of these slots."""
        return tuple(s[lo:hi] for s in self.state), tuple(r[lo:hi] for r in self.reads)

    def _initialise(self) -> None:
        params, slots, initialise = self.given(), self.slots, self.kernels.initialise
        for lo, hi in self.windows:
            state, reads = self.window(lo, hi)
            cuts = self.cuts(hi - lo, ALONE) + np.uint64(lo)
            near, counter = np.uint64(lo), iter(range(len(cuts) - 1))

            def work(
                _: int, near: Any = near, cuts: Any = cuts, counter: Any = counter, s: Any = state, r: Any = reads
            ) -> int:
                return sum(
                    int(initialise(cuts[k], cuts[k + 1], near, s, r, params, self.front, np.uint32(0))) for k in counter
                )

            self.active += sum(self.team.run(work, alone=hi - lo < ALONE))
            for place, number in enumerate(slots.seeds, 1):
                at = slots.of(number)
                if lo <= at < hi:
                    one, bit = np.uint64(at), np.uint64(1 << (at & 63))
                    if self.front[at >> 6] & bit:  # active as one that is no seed: asked again
                        self.front[at >> 6] ^= bit
                        self.active -= 1
                    self.active += int(
                        initialise(one, one + np.uint64(1), near, state, reads, params, self.front, np.uint32(place))
                    )
            self.drop()
        # The last slot stands for vertices that have no arcs: it has a state, but is never active.
        last = np.uint64(slots.body)
        state, reads = self.window(slots.body, slots.count)
        unused = np.zeros(len(self.front), np.uint64)
        initialise(last, last + np.uint64(1), last, state, reads, params, unused, np.uint32(0))

    def drop(self) -> None:
        if self.spilled:
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
        self.arcs: dict[str, Resident | Streamed] = {}
        if self.plan.tier == "memory":
            self.arcs = {self.store.direction(name).name: self.engine.resident(name, columns) for name in names}
            return
        if not self.fused or self.program.frontier:
            _ = self.totals
        sides = self.engine.streamed(names, columns, keeping(self.program))
        self.arcs = {self.store.direction(name).name: side for name, side in sides.items()}

    def side(self, name: str) -> Resident | Streamed:
        return self.arcs[self.store.direction(name).name]

    def beside(self, name: str) -> dict[str, Any]:
        """What a visit of this side is given beside its columns: the fields of its arcs."""
        direction = self.store.direction(name).name
        if direction not in self.edge_state:
            return {}
        arrays = self.edge_state[direction]
        if self.plan.tier == "memory":
            return {"beside": arrays}

        everything = not self.program.frontier and not self.ranged

        @contextlib.contextmanager
        def using(begin: int, end: int) -> Iterator[None]:
            for array in arrays if everything else ():
                fetch(array, begin, end)
            try:
                yield
            finally:
                for array in arrays:
                    let_go(array, begin, end)

        return {"beside": arrays, "using": using}

    # ---- checkpoints

    def vectors(self) -> dict[str, np.ndarray]:
        """What a checkpoint holds."""
        state = dict(zip(self.program.state, self.state, strict=True))
        return {**state, **named_arcs(self.arc_fields()), "front.bits": self.front}

    def arc_fields(self) -> dict[str, dict[str, np.ndarray]]:
        """What arcs keep, by side and field."""
        names = self.program.edge_state
        return {side: dict(zip(names, arrays, strict=True)) for side, arrays in self.edge_state.items()}

    def scalars(self) -> dict[str, Any]:
        names = ("step", "active", "tally", "change", "pulling", "before", "unseen")
        return {name: getattr(self, name) for name in names}
