"""Supersteps of a combine program: every active vertex emits, contributions combine in ascending order of the
neighbours, every vertex that something arrives at takes its total in.

The order that `bucketed` asks for is left out: it does not change the result.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import numpy as np

from penstock.engine.compile import edge_class
from penstock.engine.plan import Plan, arcs_of, number_dtype
from penstock.engine.program import Combine
from penstock.engine.reference.arcs import arriving
from penstock.engine.reference.state import State, cast, fold, params_of, standing_for
from penstock.engine.vectors import Slots
from penstock.errors import ProgramError
from penstock.store.reader import Store

if TYPE_CHECKING:
    from penstock.engine.engine import Engine, Outcome, Until


class CombineRun:
    """One run: the vertices, the arcs, and supersteps until it is over."""

    def __init__(
        self,
        engine: Engine,
        program: Combine,
        params: dict[str, Any],
        slots: Slots,
        vectors: dict[str, np.ndarray],
        active: np.ndarray | None,
    ) -> None:
        self.program, self.values, self.slots = program, params, slots
        self.state = State(engine, program, slots, vectors)
        self.arcs = arriving(engine.store, program.along, program.columns)
        self.offsets = self.arcs.offsets(slots.count)
        self.number = number_dtype(engine.store)
        self.kind = program.contribution_dtype(self.number)
        self.zero = program.combine.zero(self.kind)
        self._edge = edge_class(program)
        self.kept = {name: np.zeros(len(self.arcs.far), kind) for name, kind in program.edge_fields().items()}
        """The fields of the arcs, as these are stored."""
        self.step, self.tally, self.change = 0, 0.0, np.inf
        self.front = np.zeros(slots.count, bool)
        """Who is active: who emits."""
        if set(program.state) - set(vectors):
            self.front = self.state.initialise(self.params())
        elif active is not None:
            self.front = members(active, slots.count)
        if not program.frontier:
            self.front[:] = True

    def params(self) -> Any:
        return params_of(self.program, self.values, self.slots, self.step, self.tally)

    def superstep(self) -> None:
        """Emit, combine, update."""
        program, slots = self.program, self.slots
        sent = self.emit()
        if program.tally and not program.frontier:
            self.tally = self.counted()
        p = self.params()
        moved, after = 0.0, np.zeros(slots.count, bool)
        # With a frontier the last slot, at whose vertices nothing can arrive, is never updated.
        for slot in range(slots.body if program.frontier else slots.count):
            if program.edge_state and program.wants and not program.wants(self.state.vertex(slot), p):
                continue  # its arcs are not asked
            totals, arrived = self.gather(slot, sent, p)
            if program.frontier and not arrived:
                continue
            for lane in range(program.lanes):
                old = self.state.vertex(slot, lane)
                if program.wants and not program.wants(old, p):
                    continue
                new = program.update(old, totals[lane], p)  # type: ignore[misc]
                after[slot] |= self.state.take(slot, lane, new)
                if program.change:
                    moved = fold(program.change_by, moved, program.change(old, new, p), standing_for(slots, slot))
        self.front = after if program.frontier else self.front
        self.change = moved if program.change else np.inf
        self.step += 1

    def emit(self) -> dict[int, list[Any]]:
        """The messages of the active vertices, one for each lane."""
        program, p = self.program, self.params()
        senders, lanes = np.flatnonzero(self.front).tolist(), range(program.lanes)
        if program.numbered:
            return {slot: [self.number.type(slot)] * program.lanes for slot in senders}
        kind, emit = np.dtype(program.message), program.emit
        assert emit is not None
        return {slot: [cast(emit(self.state.vertex(slot, lane), p), kind) for lane in lanes] for slot in senders}

    def gather(self, slot: int, sent: dict[int, list[Any]], p: Any) -> tuple[list[Any], bool]:
        """(the total of each lane, whether anything arrived) at one vertex."""
        program, combine = self.program, self.program.combine.combine
        totals, arrived = [self.zero] * program.lanes, False
        for arc in range(self.offsets[slot], self.offsets[slot + 1]):
            sender = int(self.arcs.far[arc])
            messages = sent.get(sender)
            if messages is None or (sender == slot and not program.loops):
                continue
            arrived = True
            place = self.arcs.place[arc]
            kept = (values[place] for values in self.kept.values())
            e = self._edge(*(column[arc] for column in self.arcs.columns), *kept)
            for lane, message in enumerate(messages):
                found = program.edge(message, e, p) if program.edge else message
                if program.edge_state:
                    found = self.keep(place, found)
                totals[lane] = cast(combine(totals[lane], cast(found, self.kind)), self.kind)
            if program.combine.first:
                break
        return totals, arrived

    def keep(self, place: int, new: Any) -> Any:
        """Give an arc the fields that `edge` returned; the contribution."""
        if not isinstance(new, tuple) or len(new) <= len(self.kept):
            names = ", ".join(self.kept)
            raise ProgramError(f"edge of program {self.program.name} must return the contribution, {names}")
        for values, value in zip(self.kept.values(), new[1:], strict=False):
            values[place] = cast(value, values.dtype)
        return new[0]

    def arc_fields(self, store: Store) -> dict[str, dict[str, np.ndarray]]:
        """What arcs keep, by side and field."""
        found, begin = {}, 0
        for name in arcs_of(store, self.program) if self.kept else ():
            direction = store.direction(name)
            found[direction.name] = {
                field: values[begin : begin + direction.arcs] for field, values in self.kept.items()
            }
            begin += direction.arcs
        return found

    def counted(self) -> float:
        """The tally over all vertices and lanes."""
        p, total = self.params(), 0.0
        for slot in range(self.slots.count):
            vertices = standing_for(self.slots, slot)
            for lane in range(self.program.lanes if vertices else 0):
                found = self.program.tally(self.state.vertex(slot, lane), p)  # type: ignore[misc]
                total += float(found) * vertices
        return total


def members(words: np.ndarray, count: int) -> np.ndarray:
    """A bitmap of 64-bit words as one bool for each slot."""
    bits = np.unpackbits(words.astype("<u8").view(np.uint8), bitorder="little").astype(bool)
    found = np.zeros(count, bool)
    found[: len(bits)] = bits[:count]
    return found


def bitmap(chosen: np.ndarray) -> np.ndarray:
    """The other way round."""
    padded = np.zeros((len(chosen) + 63) // 64 * 64, bool)
    padded[: len(chosen)] = chosen
    return np.packbits(padded, bitorder="little").view("<u8").astype(np.uint64)


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
    """Supersteps until nothing is active, or `until` says so; one if there is neither."""
    from penstock.engine.engine import Outcome

    with np.errstate(all="ignore"), engine.stats.phase("run"):
        held = CombineRun(engine, program, params, slots, vectors, active)
        while not program.frontier or held.front.any():
            if until is not None and until(held.step, held.change):
                break
            began, frontier = time.perf_counter(), int(held.front.sum())
            held.superstep()
            figures = {"frontier": frontier} if program.frontier else {}
            changed = {"change": held.change} if program.change else {}
            engine.stats.iteration(program=program.name, **figures, seconds=time.perf_counter() - began, **changed)
            if not program.frontier and until is None:
                break
    front, arcs = bitmap(held.front), held.arc_fields(engine.store)
    return Outcome(held.state.fields, slots, held.step, float(held.change), front, arcs)
