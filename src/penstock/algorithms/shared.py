"""What several programs of one algorithm share: vectors by slot, and sets of vertices as bitmaps."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from penstock.engine.cpu.each import Chosen
from penstock.engine.engine import Engine
from penstock.engine.explain import Stage
from penstock.engine.program import Combine, Each
from penstock.engine.vectors import Slots
from penstock.errors import DoesNotFit

PIECE = 1 << 18
"""Slots looked at together between programs."""


def width_of(
    programs: Iterable[Combine], others: Mapping[str, Any], lanes: Mapping[str, int], without: Collection[str]
) -> tuple[dict[str, np.dtype], dict[str, int]]:
    """The types of all vectors of some programs and of others, and how many lanes they have."""
    kinds, wide = {name: np.dtype(kind) for name, kind in others.items()}, dict(lanes)
    for program in programs:
        kinds |= program.fields()
        wide |= dict.fromkeys(program.fields(), program.lanes)
    return {name: kind for name, kind in kinds.items() if name not in without}, wide


def besides(program: Combine, kinds: Mapping[str, np.dtype], wide: Mapping[str, int]) -> int:
    """Bytes per slot of the vectors that are not the program's; and a byte: for four sets, and as large vectors are
    rounded up to whole pages."""
    return 1 + sum(kind.itemsize * wide.get(name, 1) for name, kind in kinds.items() if name not in program.state)


def stages_of(
    stages: Iterable[Stage],
    others: Mapping[str, Any] | None = None,
    *,
    lanes: Mapping[str, int] | None = None,
    without: Collection[str] = (),
) -> list[Stage]:
    """The stages of programs that share their vectors, as `Shared` makes them: each beside those of the others."""
    chosen = list(stages)
    programs = [stage.program for stage in chosen if isinstance(stage.program, Combine)]
    kinds, wide = width_of(programs, others or {}, lanes or {}, without)
    return [
        replace(stage, headroom=besides(program, kinds, wide)) for stage, program in zip(chosen, programs, strict=True)
    ]


class Shared:
    """The fields of some programs, and other vectors, made once: `shared["level"]` is one to read and to write here.

    Where one of the programs must split its state, they all lie in files and are touched a piece at a time. Between
    programs on a GPU they stay there, as long as they are only asked for by `each`, `fill`, `put`, `value` and `equal`.
    """

    def __init__(
        self,
        engine: Engine,
        programs: Iterable[Combine],
        others: Mapping[str, Any] | None = None,
        *,
        lanes: Mapping[str, int] | None = None,
        without: Collection[str] = (),
    ) -> None:
        """`lanes`: of the other vectors. `without`: fields that the engine makes for a run."""
        self.engine, self.slots = engine, Slots(engine.store)
        programs = list(programs)
        engine.by_turns = tuple(programs)
        kinds, wide = width_of(programs, others or {}, lanes or {}, without)
        self.split = self._must_split(programs, kinds, wide)
        self._sets = engine.ledger.reserve(self.slots.count // 2, "sets of vertices")
        self._vectors = {
            name: engine.vectors.make(self.slots.count, kind, name, lanes=wide.get(name, 1), spilled=self.split)
            for name, kind in kinds.items()
        }
        engine.near.offer(*self._vectors.values())
        self._equal: dict[str, Each] = {}

    def _must_split(self, programs: list[Combine], kinds: Mapping[str, np.dtype], wide: Mapping[str, int]) -> bool:
        """Plan all programs beside the vectors that are not theirs, so that what cannot fit is said at once."""
        split, refused, count = False, [], self.slots.count
        for program in programs:
            try:
                plan = self.engine.plan(program, count, beside=besides(program, kinds, wide) * count)
                split |= plan.ranges > 1
                self.engine.refuse_early(program, count)
            except DoesNotFit as error:
                refused.append(error)
        if refused:
            raise max(refused, key=lambda error: (error.setting == "memory_limit", error.needed))
        return split

    def __getitem__(self, name: str) -> np.ndarray:
        self.engine.near.home(self._vectors[name], changing=True)
        return self._vectors[name]

    def of(self, program: Combine) -> dict[str, np.ndarray]:
        """The vectors of a program's fields."""
        return {name: self._vectors[name] for name in program.state if name in self._vectors}

    def pieces(self) -> Iterator[tuple[int, int]]:
        """Ranges of the slots of vertices with arcs."""
        for lo in range(0, self.slots.active, PIECE):
            yield lo, min(lo + PIECE, self.slots.active)
            if self.split:
                self.engine.vectors.drop()

    def fill(self, name: str, value: Any) -> None:
        """Give all slots one value."""
        if self.engine.near.fill(self._vectors[name], value):
            return
        vector = self[name]
        for lo, hi in self.pieces():
            vector[lo:hi] = value
        vector[self.slots.active :] = value

    def put(self, name: str, slot: int, value: Any) -> None:
        """Give one slot a value."""
        if not self.engine.near.fill(self._vectors[name], value, slot, slot + 1):
            self._vectors[name][slot] = value

    def value(self, name: str, slot: int) -> Any:
        """That of one slot."""
        return self.engine.near.value(self._vectors[name], slot)

    def each(self, program: Each, *, members: bool = False, **params: Any) -> Chosen:
        """Run a program that sees vertices by themselves."""
        return self.engine.each(program, self._vectors, params=params, slots=self.slots, members=members)

    def scale(self, name: str, by: float) -> None:
        """Multiply all of a vector, of real numbers."""
        self.each(
            Each(name="scale", state={name: self._vectors[name].dtype}, params={"by": 1.0}, update=_scaled), by=by
        )
        for slot in range(self.slots.active, self.slots.count):
            self.put(name, slot, self.value(name, slot) * by)

    def members(self, program: Each, **params: Any) -> np.ndarray:
        """The set of the vertices with arcs that it chooses."""
        found = self.each(program, members=True, **params).members
        assert found is not None
        return found

    def equal(self, name: str, value: Any) -> np.ndarray:
        """The set of the vertices with arcs that have this value in a vector."""
        kind = self._vectors[name].dtype
        if name not in self._equal:
            self._equal[name] = Each(
                name=f"equal {name}", state={name: kind}, params={"wanted": kind.type(0)}, chosen=_has
            )
        return self.members(self._equal[name], wanted=kind.type(value))

    def of_numbers(self, numbers: Iterable[int]) -> np.ndarray:
        """The set of these vertices."""
        words = np.zeros((self.slots.count + 63) // 64, np.uint64)
        for number in numbers:
            words[number >> 6] |= np.uint64(1 << (number & 63))
        return words


def _scaled(v, p):
    return v[0] * p.by


def _has(v, p):
    return v[0] == p.wanted


__all__ = ["PIECE", "Shared", "stages_of"]
