"""What several programs of one algorithm share: vectors by slot, and sets of vertices as bitmaps."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from penstock.engine.engine import Engine
from penstock.engine.explain import Stage
from penstock.engine.program import Combine
from penstock.engine.vectors import Slots
from penstock.errors import DoesNotFit

PIECE = 1 << 18
"""Slots looked at together between programs; a multiple of 64."""


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
    """The fields of some programs, and other vectors, made once: `shared["level"]`.

    Where one of the programs must split its state, they all lie in files and are touched a piece at a time.
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
        for lo, hi in self.pieces():
            self[name][lo:hi] = value
        self[name][self.slots.active :] = value

    def matching(self, test: Callable[[int, int], np.ndarray]) -> np.ndarray:
        """The set of the vertices with arcs for which `test(lo, hi)` holds."""
        words = np.zeros((self.slots.count + 63) // 64, np.uint64)
        bytes_of = words.view(np.uint8)
        for lo, hi in self.pieces():
            packed = np.packbits(test(lo, hi), bitorder="little")
            bytes_of[lo // 8 : lo // 8 + len(packed)] = packed
        return words

    def equal(self, name: str, value: Any) -> np.ndarray:
        """The set of the vertices with arcs that have this value in a vector."""
        return self.matching(lambda lo, hi: self[name][lo:hi] == value)

    def of_numbers(self, numbers: Iterable[int]) -> np.ndarray:
        """The set of these vertices."""
        words = np.zeros((self.slots.count + 63) // 64, np.uint64)
        for number in numbers:
            words[number >> 6] |= np.uint64(1 << (number & 63))
        return words


__all__ = ["PIECE", "Shared", "stages_of"]
