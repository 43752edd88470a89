"""The vertices of a run as the functions of a program see them: fields and reads by slot."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from penstock.engine.compile import params_class, vertex_class
from penstock.engine.monoid import Monoid
from penstock.engine.plan import read_dtype
from penstock.engine.program import Program
from penstock.engine.vectors import Slots

if TYPE_CHECKING:
    from penstock.engine.engine import Engine

_KINDS = {bool: np.bool_, int: np.int64, float: np.float64}


def cast(value: Any, dtype: np.dtype) -> Any:
    """The value as a number of this type, as C would convert it."""
    return np.asarray(value).astype(dtype)[()]


def params_of(program: Program, values: Mapping[str, Any], slots: Slots, step: int = 0, tally: float = 0.0) -> Any:
    """`p`: the program's parameters, and those that the engine adds."""
    own = [_KINDS.get(type(value), lambda same: same)(value) for value in values.values()]
    return params_class(program)(*own, np.int64(slots.vertices), np.int64(step), np.float64(tally))


def standing_for(slots: Slots, slot: int) -> int:
    """How many vertices a slot is."""
    return slots.rest if slot == slots.body else 1


def fold(monoid: Monoid, moved: float, change: Any, vertices: int) -> float:
    """The change so far and that of so many vertices alike."""
    if not vertices:
        return moved
    return float(monoid.combine(moved, float(change) * (vertices if monoid.known == "sum" else 1)))


class State:
    """Fields that change, and columns that are read."""

    def __init__(self, engine: Engine, program: Program, slots: Slots, vectors: Mapping[str, np.ndarray]) -> None:
        self.program, self.slots, self.store = program, slots, engine.store
        self.lanes = getattr(program, "lanes", 1)
        self.kinds = program.fields()
        self.flagged = bool(getattr(program, "frontier", False))
        self.fields = {
            name: vectors[name] if name in vectors else engine.vectors.make(slots.count, kind, name, lanes=self.lanes)
            for name, kind in self.kinds.items()
        }
        self.reads = {
            name: vectors[name] if name in vectors else self._read(name)
            for name in program.reads
            if name not in ("number", "lane")
        }
        self._class = vertex_class(program)

    def _read(self, name: str) -> np.ndarray:
        if name == "seed":
            return self.slots.seed_column()
        found = np.zeros(self.slots.count, read_dtype(self.store, name))
        column = self.store.vertex_column(name)
        for slot, number in enumerate([*range(self.slots.active), *self.slots.alone]):
            found[slot] = column.read(number, number + 1)[0]
        return found  # the last slot stands for many vertices: its columns are 0

    def at(self, slot: int, lane: int) -> Any:
        return slot if self.lanes == 1 else (slot, lane)

    def vertex(self, slot: int, lane: int = 0) -> Any:
        """`v`: one vertex, or one lane of it."""
        special = {"number": np.uint64(slot), "lane": np.uint64(lane)}
        fields = [values[self.at(slot, lane)] for values in self.fields.values()]
        reads = [special[name] if name in special else self.reads[name][slot] for name in self.program.reads]
        return self._class(*fields, *reads)

    def take(self, slot: int, lane: int, new: Any) -> bool:
        """Give a vertex the fields that a function returned; whether it is active."""
        single = len(self.kinds) == 1 and not self.flagged
        for (name, kind), value in zip(self.kinds.items(), [new] if single else new, strict=False):
            self.fields[name][self.at(slot, lane)] = cast(value, kind)
        return bool(new[len(self.kinds)]) if self.flagged else True

    def initialise(self, p: Any) -> np.ndarray:
        """Give all slots their first state; which of them are active. The last one stands for vertices without arcs,
        and is never active."""
        active = np.zeros(self.slots.count, bool)
        for slot in range(self.slots.count):
            for lane in range(self.lanes):
                active[slot] |= self.take(slot, lane, self.program.init(self.vertex(slot, lane), p))
        active[self.slots.body] = False
        return active
