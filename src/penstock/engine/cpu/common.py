"""A common program on CPU threads: lists of all neighbours are made once, then each range of them is held against all
lists that may share an edge with it, in each pass again."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import numpy as np

from penstock.engine.cpu.oriented import Oriented
from penstock.engine.cpu.parts import chunks, initialise, kernels_of, read_column
from penstock.engine.kernels import common as templates
from penstock.engine.kernels import slots as each
from penstock.engine.kernels import sweep
from penstock.engine.pairing import MOST_STREAMED, SPILLING
from penstock.engine.plan import SLACK, Plan, number_dtype
from penstock.engine.program import Common
from penstock.engine.vectors import Slots
from penstock.errors import DoesNotFit
from penstock.observe.progress import progress

if TYPE_CHECKING:
    from penstock.engine.engine import Engine, Outcome, Until


class CommonRun:
    """One run: state, lists, marks; the passes one after the other."""

    def __init__(
        self,
        engine: Engine,
        program: Common,
        plan: Plan,
        params: dict[str, Any],
        slots: Slots,
        vectors: dict[str, np.ndarray],
    ) -> None:
        self.engine, self.program, self.slots, self.team = engine, program, slots, engine.team
        self.params, self.step = dict(params), 0
        self.kernels = kernels_of(
            program, templates, sweep, each, constants={},
            init=program.init, least=program.least, edge=program.edge, vertex=program.vertex,
        )  # fmt: skip
        self.state = tuple(
            vectors[name] if name in vectors else engine.vectors.make(slots.count, kind, name)
            for name, kind in program.fields().items()
        )
        # Before the lists, which take what is left.
        wanted = program.stored_reads() if set(program.state) - set(vectors) else ()
        self.reads = {name: vectors[name] if name in vectors else self._read(name) for name in wanted}
        self._counts_neighbours = "neighbours" in wanted and "neighbours" not in vectors
        self.initialised = not set(program.state) - set(vectors)
        threads, words = engine.settings.threads, (slots.active + 63) // 64
        self.marks = engine.vectors.make(threads * words, np.uint64, "marks").reshape(threads, words)
        self.lists = Oriented(engine, plan, f"{program.name} of {engine.store.vertices:,} vertices", everyone=True)
        self._theirs = self._passing = np.empty(0, self.lists.kind)

    def _read(self, name: str) -> np.ndarray:
        if name == "neighbours":
            return self.engine.vectors.make(self.slots.count, number_dtype(self.engine.store), name)
        return read_column(self.engine, self.slots, name)

    def given(self) -> tuple[Any, ...]:
        return (*self.params.values(), self.slots.vertices, self.step, 0.0)

    def initialise(self) -> None:
        """Give all slots their first state, unless it was given."""
        if self.initialised:
            return
        slots, offsets = self.slots, self.lists.offsets
        if self._counts_neighbours:
            found = self.reads["neighbours"][: slots.active]
            np.subtract(offsets[1:], offsets[:-1], out=found, casting="unsafe")
        reads = tuple(self.reads.values())
        initialise(self.kernels, self.engine, slots, 0, slots.count, self.state, reads, self.given())
        self.reads.clear()

    def take_room(self) -> None:
        """Lists that lie in a file have two places in memory: one to be held, one to stream past."""
        held, ledger, what = self.lists, self.engine.ledger, self.program.name
        if held.whole is not None:
            return
        size = held.kind.itemsize
        free = (ledger.free - SLACK // 2 - SPILLING) // size
        streamed = max(held.longest, min(free // 4, MOST_STREAMED // size))
        if free - streamed < held.longest:
            streamed = held.longest
        room = min(free - streamed, held.entries)
        if room < held.longest:
            raise DoesNotFit(what, needed=ledger.used + (held.longest - room) * size + SLACK, limit=ledger.limit)
        if (forced := self.engine.settings.state_ranges or 1) > 1:
            room = min(room, max(held.longest, -(-held.entries // forced)))
        self._theirs = ledger.empty(room, held.kind, "lists held")
        self._passing = ledger.empty(min(streamed, held.entries), held.kind, "lists that stream past")

    def one_pass(self) -> None:
        """All edges, a range of lists at a time; then all vertices."""
        held, began, counts = self.lists, time.perf_counter(), np.zeros(2, np.int64)
        ranges = [(0, held.count)] if held.whole is not None else [*held.ranges(max(1, len(self._theirs)))]
        for lo, hi in ranges:
            counts += self._range(lo, hi)
        if self.program.vertex is not None:
            number, counter = np.zeros(1, number_dtype(self.engine.store)), np.zeros(1, np.uint64)
            cuts, params = chunks(self.slots.active), self.given()
            self.team.run(lambda _: self.kernels.vertices(counter, cuts, number, self.state, params))
        self.engine.stats.iteration(
            program=self.program.name, ranges=len(ranges), looked_at=int(counts[0]), enough=int(counts[1]),
            seconds=time.perf_counter() - began,
        )  # fmt: skip
        self.step += 1

    def _range(self, lo: int, hi: int) -> np.ndarray:
        """The edges u, v of all v in a range, and (how many edges, how many with enough)."""
        held, params = self.lists, self.given()
        theirs, base = held.read(lo, hi, self._theirs), held.offsets[lo]
        counts = np.zeros(2, np.int64)
        last = hi if held.falling else held.count  # the longer list of an edge comes first, or may be anywhere
        whole = held.whole is not None
        for first, end in [(0, held.count)] if whole else held.ranges(max(1, len(self._passing))):
            if first >= last:
                break
            mine, mine_base = held.read(first, end, self._passing), held.offsets[first]

            def work(worker: int, counter: Any, cuts: Any, mine: Any = mine, mine_base: Any = mine_base) -> Any:
                return self.kernels.edges(
                    counter, cuts, held.offsets, mine, mine_base, theirs, base, np.uint64(lo), np.uint64(hi),
                    self.state, params, self.marks[worker],
                )  # fmt: skip

            counts += np.array(held.share(work, first, end), np.int64).sum(axis=0)
        return counts


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

    with engine.stats.phase("orient"):
        held = CommonRun(engine, program, plan, params, slots, vectors)
    try:
        held.initialise()
        held.take_room()
        with (
            engine.stats.phase("run"),
            progress(program.name, total=None, unit="passes", settings=engine.settings) as bar,
        ):
            while until is None or not until(held.step, np.inf):
                held.one_pass()
                bar.advance(1)
                if until is None:
                    break
        figures = {"windows": held.lists.windows, "spilled_lists": held.lists.spilled}
    finally:
        held.lists.close()
    return Outcome(dict(zip(program.state, held.state, strict=True)), slots, held.step, 0.0, totals=figures)
