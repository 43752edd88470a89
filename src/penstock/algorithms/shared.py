"""What several programs of one algorithm share: vectors by slot, and sets of vertices as bitmaps."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from penstock.engine.engine import Engine
from penstock.engine.program import Combine
from penstock.engine.vectors import Slots
from penstock.errors import DoesNotFit

PIECE = 1 << 18
"""Slots looked at together between programs; a multiple of 64."""


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
        programs, wide = list(programs), dict(lanes or {})
        kinds = {name: np.dtype(kind) for name, kind in (others or {}).items()}
        for program in programs:
            kinds |= program.fields()
            wide |= dict.fromkeys(program.fields(), program.lanes)
        kinds = {name: kind for name, kind in kinds.items() if name not in without}
        width = {name: kind.itemsize * wide.get(name, 1) for name, kind in kinds.items()}
        self.split = self._must_split(programs, width)
        self._sets = engine.ledger.reserve(self.slots.count // 2, "sets of vertices")
        self._vectors = {
            name: engine.vectors.make(self.slots.count, kind, name, lanes=wide.get(name, 1), spilled=self.split)
            for name, kind in kinds.items()
        }

    def _must_split(self, programs: list[Combine], width: Mapping[str, int]) -> bool:
        """Plan all programs beside the vectors that are not theirs, so that what cannot fit is said at once."""
        engine, before, split, refused = self.engine, self.engine.headroom, False, []
        for program in programs:
            # And a byte: for four sets, and as large vectors are rounded up to whole pages.
            engine.headroom = before + 1 + sum(width[name] for name in width if name not in program.state)
            try:
                split |= engine.plan(program, self.slots.count).ranges > 1
            except DoesNotFit as error:
                refused.append(error)
        engine.headroom = before
        if refused:
            raise max(refused, key=lambda error: error.needed)
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


__all__ = ["PIECE", "Shared"]
