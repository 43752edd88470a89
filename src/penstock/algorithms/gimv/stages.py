"""GIM-V in two MapReduce stages, as published: the second executor of combine programs.

Stage 1  joins the matrix's elements with the vector by column, and makes one result of each element (combine2).
Stage 2  brings the results of each row together (combineAll); each element of the vector takes its row's in (assign).

The matrix is grouped by column once, and the vector keeps the order of its keys: the join reads both from first to
last. What moves in an iteration are the results of stage 1, in one collate; where each of them goes is found in the
first one, if there is room to keep it. All data stays in memory between stages as far as the budget goes. Elements that
have not converged are counted by each process, and the counts of all summed up. A GPU sorts and groups, where the
session's placing lets it; the stages themselves run on the CPU.

Ref       Kang et al. 2009 (PEGASUS); Shirahata et al. 2014
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any, cast

import numpy as np

from penstock.algorithms.gimv.aligned import Dense, Sparse
from penstock.algorithms.gimv.kernels import kernels_of
from penstock.algorithms.gimv.route import Route
from penstock.engine.engine import Engine, Outcome, Until
from penstock.engine.monoid import MAX
from penstock.engine.plan import Plan, number_dtype, read_dtype
from penstock.engine.program import Combine, Program
from penstock.engine.vectors import Slots
from penstock.errors import UsageError
from penstock.mapreduce.chunk import Groups
from penstock.mapreduce.keyvalue import KeyValue
from penstock.mapreduce.multivalue import KeyMultiValue
from penstock.mapreduce.session import MapReduce
from penstock.store.reader import Store

ACTIVE = "_active"
"""The field of an element that says whether it sends."""
ROW = "_row"
KEY = np.dtype(np.uint64)
"""Of columns and rows. Grouping carries values of 8 bytes along with keys of 8 bytes, which is faster than fetching."""
WHY_NOT_GPU = "method='mapreduce' only sorts and groups on a GPU, its stages run on the CPU: use method='fused'"
_PIECE = 1 << 18
"""Elements initialised together."""


class TwoStage(Engine):
    """An engine whose combine programs run as MapReduce."""

    chunk_size: Any = None
    force_out_of_core = False
    remember = True
    """Whether later collates may go the way that the first one found."""

    def _executor(self, program: Program, slots: Slots) -> tuple[Callable[..., Outcome], str]:
        if not isinstance(program, Combine):
            raise UsageError(f"{program.name} is a {program.form} program: only combine programs run in two stages")
        if program.edge_state:
            raise UsageError(f"program {program.name} has edge_state, which method='mapreduce' does not keep")
        self.stats.note(device="mapreduce")
        return run, "mapreduce"


def run(
    engine: TwoStage,
    program: Combine,
    plan: Plan,
    params: dict[str, Any],
    slots: Slots,
    vectors: dict[str, np.ndarray],
    active: np.ndarray | None,
    until: Until | None,
) -> Outcome:
    """Iterations until nothing is active, or `until` says so; one if there is neither."""
    found = {
        name: vectors[name] if name in vectors else engine.vectors.make(slots.count, kind, name, lanes=program.lanes)
        for name, kind in program.fields().items()
    }
    if active is not None:
        raise UsageError(f"program {program.name} was given a frontier, which method='mapreduce' does not take")
    with (
        engine.stats.phase("run"),
        MapReduce(
            memory_limit=max(1, engine.ledger.free),
            temp_directory=engine.settings.temp_directory,
            max_temp_directory_size=engine.settings.max_temp_directory_size,
            threads=engine.settings.threads,
            device=engine.settings.device,
            gpu_memory_limit=engine.spare_gpu_memory,
            chunk_size=engine.chunk_size,
            force_out_of_core=engine.force_out_of_core,
        ) as mr,
    ):
        held = Iteration(mr, engine.store, program, params, slots, remember=engine.remember)
        held.start(vectors, found)
        while not program.frontier or held.active:
            if until is not None and until(held.step, held.change):
                break
            began, frontier = time.perf_counter(), held.active
            held.next(found)
            figures: dict[str, Any] = {"frontier": frontier} if program.frontier else {}
            if program.change:
                figures["change"] = held.change
            engine.stats.iteration(program=program.name, **figures, seconds=time.perf_counter() - began, **held.seconds)
            if not program.frontier and until is None:
                break
        if mr.placing.wanted:
            engine.stats.note(why_not_gpu=WHY_NOT_GPU)
        engine.stats.note(mapreduce=mr.stats())
    return Outcome(found, slots, held.step, float(held.change))


class Iteration:
    """The matrix by column, the vector, and what an iteration makes of them."""

    def __init__(
        self,
        mr: MapReduce,
        store: Store,
        program: Combine,
        params: dict[str, Any],
        slots: Slots,
        *,
        remember: bool = True,
    ) -> None:
        self.mr, self.program, self.slots, self._params = mr, program, slots, params
        self.number = number_dtype(store)
        self.kernels = kernels_of(program, self.number)
        self.step, self.tally, self.change, self.active = 0, 0.0, np.inf, 0
        self.seconds: dict[str, float] = {}
        lanes: tuple[int, ...] = () if program.lanes == 1 else (program.lanes,)
        reads = program.stored_reads()
        self.element = np.dtype(
            [
                *((name, kind, *([lanes] if lanes else [])) for name, kind in program.fields().items()),
                *((name, read_dtype(store, name)) for name in reads),
                (ACTIVE, np.uint8),
            ]
        )
        """An element of the vector: the fields of a vertex, what functions read of it, and whether it sends."""
        self.result = program.contribution_dtype(self.number)
        if lanes:
            self.result = np.dtype([("lanes", self.result, lanes)])
        self._message = np.dtype(np.uint8 if program.numbered else program.message)
        self._reads = reads
        self._store = store
        self._route: Route | None = None
        self._remember = remember and self.kernels.plain
        self.matrix: KeyMultiValue = self._grouped()
        self.vector: KeyValue

    # ---- before the first iteration

    def _grouped(self) -> KeyMultiValue:
        """The matrix's elements by column: the row, and the edge's columns."""
        entries = self.mr.keyvalue(self._entries(), key=KEY, value=self._entry())
        return entries.sort_keys().convert()

    def _entry(self) -> np.dtype:
        columns = self.program.columns
        if not columns:
            return KEY
        direction = self._store.direction("out")
        return np.dtype([(ROW, KEY), *((name, direction.column_dtype(name)) for name in columns)])

    def _entries(self) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """(columns, rows): messages travel from the column to the row."""
        from penstock.graph import Graph

        kind, names = self._entry(), list(self.program.columns)
        ways = ("out",) if not self._store.directed else {"both": ("out", "in")}.get(
            self.program.along, (self.program.along,)
        )  # fmt: skip
        for way in ways:
            for source, target, columns in Graph(self._store).edge_arrays(None, names, both_ways=True, size=1 << 20):
                column, row = (source, target) if way == "out" else (target, source)
                if not names:
                    yield column.astype(KEY, copy=False), row.astype(KEY, copy=False)
                    continue
                entry = np.empty(len(row), kind)
                entry[ROW] = row
                for name in names:
                    entry[name] = columns[name]
                yield column.astype(KEY, copy=False), entry

    def start(self, given: dict[str, np.ndarray], found: dict[str, np.ndarray]) -> None:
        """The first vector."""
        slots, program = self.slots, self.program
        seeds = slots.seed_column()
        fresh = bool(set(program.state) - set(given))
        writer = self.mr.writer(KEY, self.element)
        for lo in range(0, slots.count, _PIECE):
            hi = min(lo + _PIECE, slots.count)
            elements = np.zeros(hi - lo, self.element)
            for name in self._reads:
                elements[name] = seeds[lo:hi] if name == "seed" else self._column(name, lo, hi)
            state, reads = self._parts(elements)
            if fresh:
                self.kernels.initialise(np.uint64(lo), state, reads, seeds[lo:hi], self._given(), elements[ACTIVE])
            else:
                elements[ACTIVE] = not program.frontier
                for name in program.state:
                    elements[name] = given[name][lo:hi]
            if hi == slots.count and program.frontier:
                elements[ACTIVE][-1] = 0  # it stands for vertices without arcs
            self.active += int(elements[ACTIVE].sum())
            self._publish(lo, elements, found)
            writer.add_chunk(np.arange(lo, hi, dtype=KEY), elements)
        self.vector = writer.done()

    def _column(self, name: str, lo: int, hi: int) -> np.ndarray:
        """A vertex column by slot; that of the last slot, which stands for many vertices, is 0."""
        column, slots = self._store.vertex_column(name), self.slots
        values = np.zeros(hi - lo, column.dtype)
        inside = min(hi, slots.active)
        if inside > lo:
            values[: inside - lo] = column.read(lo, inside)
        for slot, number in enumerate(slots.alone, slots.active):
            if lo <= slot < hi:
                values[slot - lo] = column.read(number, number + 1)[0]
        return values

    def _given(self) -> tuple[Any, ...]:
        return (*self._params.values(), self.slots.vertices, self.step, float(self.tally))

    def _parts(self, elements: np.ndarray) -> tuple[tuple[np.ndarray, ...], tuple[np.ndarray, ...]]:
        """(fields, reads) of elements, as functions take them."""
        return tuple(elements[name] for name in self.program.state), tuple(elements[name] for name in self._reads)

    def _publish(self, lo: int, elements: np.ndarray, found: dict[str, np.ndarray]) -> None:
        for name, values in found.items():
            values[lo : lo + len(elements)] = elements[name]

    # ---- an iteration

    def next(self, found: dict[str, np.ndarray]) -> None:
        """Stage 1, collate, stage 2."""
        times = [time.perf_counter()]
        if self.program.tally is not None:
            self.tally = self._tallied()
        results = self._stage1()
        times.append(time.perf_counter())
        groups = self._collated(results)
        results.close()
        times.append(time.perf_counter())
        totals = self._combined(groups)
        self._assigned(totals, found)
        totals.close()
        times.append(time.perf_counter())
        self.step += 1
        self.seconds = dict(zip(("stage1", "collate", "stage2"), np.diff(times).tolist(), strict=True))

    def _tallied(self) -> float:
        slots, total = self.slots, 0.0
        for base, elements in self._elements():
            state, reads = self._parts(elements)
            total += self.kernels.tallied(
                np.uint64(base), np.uint64(len(elements)), state, reads, self._given(), np.uint64(slots.body),
                float(slots.rest),
            )  # fmt: skip
        return float(self.mr.communicator.allreduce(total, "sum"))

    def _elements(self) -> Iterator[tuple[int, np.ndarray]]:
        for chunk in cast(Iterator[Any], self.vector.chunks()):
            if len(chunk):
                yield int(chunk.keys[0]), chunk.values

    def _stage1(self) -> KeyValue:
        writer = self.mr.writer(KEY, self.result)
        vector = Dense(self.vector.chunks(), self.element)
        for groups in cast(Iterator[Any], self.matrix.groups()):
            if not len(groups):
                continue
            keys, offsets, entries = groups.keys, groups.offsets, groups.values
            base, elements = vector.span(int(keys[0]), int(keys[-1]) + 1)
            rows = entries[ROW] if self.program.columns else entries
            for to, out in self._joined(keys, offsets, rows, entries, base, elements):
                writer.add_chunk(to, out)
        return writer.done()

    def _joined(
        self,
        keys: np.ndarray,
        offsets: np.ndarray,
        rows: np.ndarray,
        entries: np.ndarray,
        base: int,
        elements: np.ndarray,
    ) -> list[tuple[np.ndarray, np.ndarray]]:
        """The results of some columns, cut into about equal parts for the threads."""
        program, kernels, given = self.program, self.kernels, self._given()
        (state, reads), active = self._parts(elements), elements[ACTIVE]
        columns = tuple(entries[name] for name in program.columns)
        to = rows if kernels.plain else np.empty(len(rows), KEY)
        out = np.empty(len(rows), self.result)
        place = out if program.lanes == 1 else out["lanes"]
        cuts = self._cuts(offsets)
        written = [0] * (len(cuts) - 1)

        def work(k: int) -> None:
            message = np.empty(program.lanes, self._message)
            first, last = np.uint64(cuts[k]), np.uint64(cuts[k + 1])
            written[k] = int(
                kernels.join(
                    first, last, np.uint64(offsets[cuts[k]]), keys, offsets, rows, columns, np.uint64(base), state,
                    reads, active, given, message, to, place,
                )
            )  # fmt: skip

        self._share(work, len(written))
        if kernels.plain:
            return [(to, out)]
        begins = [int(offsets[cut]) for cut in cuts[:-1]]
        return [(to[b : b + n], out[b : b + n]) for b, n in zip(begins, written, strict=True) if n]

    def _cuts(self, offsets: np.ndarray) -> list[int]:
        """Where to cut groups so that each thread has about as many values."""
        parts = self.mr.team.threads if len(offsets) > 1 << 12 else 1
        goals = np.arange(1, parts) * (int(offsets[-1]) // parts)
        return sorted({0, *np.searchsorted(offsets[:-1], goals).tolist(), len(offsets) - 1})

    def _share(self, work: Callable[[int], None], parts: int) -> None:
        turns = iter(range(parts))

        def take(worker: int) -> None:
            for k in turns:
                work(k)

        self.mr.team.run(take, alone=parts == 1)

    def _collated(self, results: KeyValue) -> Iterator[Groups]:
        """The results of each row. Where every element has one, the keys are those of the iteration before."""
        if self._remember and self.step == 0:
            self._route = Route.learn(results)
        if self._route is not None:
            return iter([self._route.collate(results)])
        return _closing(results.collate())

    def _combined(self, grouped: Iterator[Any]) -> KeyValue:
        """One total per row, by ascending row. The values of a row may be cut over several chunks of groups."""
        writer = self.mr.writer(KEY, self.result)
        lanes, combine = self.program.lanes, self.program.combine.combine
        key, last = np.empty(0, KEY), np.empty(0, self.result)
        for groups in grouped:
            if not len(groups):
                continue
            totals = np.empty(len(groups), self.result)
            cuts, offsets = self._cuts(groups.offsets), groups.offsets
            values, place = (array if lanes == 1 else array["lanes"] for array in (groups.values, totals))

            def work(
                k: int, cuts: Any = cuts, offsets: Any = offsets, values: Any = values, place: Any = place
            ) -> None:
                self.kernels.combine_all(np.uint64(cuts[k]), np.uint64(cuts[k + 1]), offsets, values, place)

            self._share(work, len(cuts) - 1)
            if groups.continues and len(last):
                before = last if lanes == 1 else last["lanes"]
                for j in np.ndindex(place[0].shape):
                    place[(0, *j)] = combine(before[(0, *j)], place[(0, *j)])
            else:
                writer.add_chunk(key, last)
            writer.add_chunk(groups.keys[:-1], totals[:-1])
            key, last = np.array(groups.keys[-1:]), totals[-1:]
        writer.add_chunk(key, last)
        return writer.done().sort_keys()

    def _assigned(self, totals: KeyValue, found: dict[str, np.ndarray]) -> None:
        """The next vector."""
        program, slots = self.program, self.slots
        sums = Sparse(totals.chunks(), KEY, self.result)
        writer = self.mr.writer(KEY, self.element)
        changes, self.active = [0.0], 0
        for base, old in self._elements():
            elements = old.copy()
            rows, values = sums.upto(base + len(old))
            state, reads = self._parts(elements)
            moved, awake = self.kernels.assign(
                np.uint64(base), state, reads, self._given(), rows,
                values if program.lanes == 1 else values["lanes"], elements[ACTIVE],
                np.uint64(slots.body), float(slots.rest),
            )  # fmt: skip
            changes.append(moved)
            self.active += int(awake)
            self._publish(base, elements, found)
            writer.add_chunk(np.arange(base, base + len(old), dtype=KEY), elements)
        largest = program.change_by == MAX
        change = max(changes) if largest else float(np.sum(changes))
        self.change = float(self.mr.communicator.allreduce(change, "max" if largest else "sum"))
        if program.change is None:
            self.change = np.inf
        self.active = int(self.mr.communicator.allreduce(self.active, "sum"))
        done = writer.done()
        self.vector.close()
        self.vector = done


def _closing(grouped: KeyMultiValue) -> Iterator[Groups]:
    with grouped:
        yield from grouped.groups()


__all__ = ["TwoStage", "run"]
