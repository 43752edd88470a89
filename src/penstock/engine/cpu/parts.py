"""What executors share: vertex columns by slot; and for forms without a frontier kernels made once, chunks of slots."""

from __future__ import annotations

from collections.abc import Mapping
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

from penstock.engine.compile import adapters, make_kernel, usable
from penstock.engine.plan import Plan, read_dtype
from penstock.engine.program import Combine, Program
from penstock.engine.vectors import Slots
from penstock.memory.fingerprint import fingerprint

if TYPE_CHECKING:
    from penstock.engine.engine import Engine

_CHUNK = 1 << 14
"""Slots that a thread takes at a time."""


class Kernels:
    """The kernels of one program by the names of their templates, made when first used."""

    def __init__(
        self, program: Program, templates: tuple[ModuleType, ...], functions: dict[str, Any], about: tuple[Any, ...]
    ):
        self.program, self.templates, self.about = program, templates, about
        self._parts = adapters(program, flagged=False)
        for name, value in functions.items():
            setattr(self._parts, name, usable(value) if callable(value) else value)
        self._made: dict[str, Any] = {}

    def __getattr__(self, name: str) -> Any:
        if name not in self._made:
            template = next(getattr(module, name) for module in self.templates if hasattr(module, name))
            self._made[name] = make_kernel(template, self._parts, self.program, *self.about)
        return self._made[name]


_KEPT: dict[str, Kernels] = {}


def kernels_of(program: Program, *templates: ModuleType, constants: dict[str, Any], **functions: Any) -> Kernels:
    """The kernels of a program; the same ones for a program that does the same."""
    about = tuple(sorted(constants.items()))
    key = fingerprint(program.form, program.makeup(), about)
    if key not in _KEPT:
        known = {name: function for name, function in functions.items() if function is not None}
        _KEPT[key] = Kernels(program, templates, known | constants, about)
    return _KEPT[key]


def read_column(engine: Engine, slots: Slots, name: str, *, spilled: bool = False) -> np.ndarray:
    """A vertex column by slot."""
    found = engine.vectors.make(slots.count, read_dtype(engine.store, name), name, spilled=spilled)
    if name == "seed":
        found[:] = slots.seed_column()
        return found
    column = engine.store.vertex_column(name)
    column.read(0, slots.active, out=found[: slots.active])
    for slot, number in enumerate(slots.alone, slots.active):
        found[slot] = column.read(number, number + 1)[0]
    # Isolated vertices are alike for all degrees; what the user knows of them cannot matter without arcs.
    return found


def arc_vectors(engine: Engine, program: Combine, plan: Plan) -> dict[str, tuple[np.ndarray, ...]]:
    """The fields of the arcs of each direction, in their order; from disk they lie in files."""
    directions = [engine.store.direction(name) for name in plan.sides] if program.edge_state else []
    return {
        direction.name: tuple(
            engine.vectors.make(
                direction.arcs, kind, f"{name} of the arcs", spilled=plan.tier == "disk" and direction.arcs > 0
            )
            for name, kind in program.edge_fields().items()
        )
        for direction in directions
    }


def named_arcs(fields: Mapping[str, Mapping[str, np.ndarray]]) -> dict[str, np.ndarray]:
    """What arcs keep, by side and field, as a checkpoint has it."""
    return {f"arcs.{side}.{name}": array for side, named in fields.items() for name, array in named.items()}


def initialise(kernels: Kernels, engine: Engine, slots: Slots, lo: int, hi: int, *window: Any) -> None:
    """Give the slots of a window (its state, reads, and the parameters) their first state, then the seeds theirs."""
    near, counter, cuts = np.uint64(lo), np.zeros(1, np.uint64), chunks(hi - lo)
    engine.team.run(lambda worker: kernels.initialise(counter, cuts, near, *window, np.uint32(0)), alone=len(cuts) == 2)
    for place, number in enumerate(slots.seeds, 1):
        at = slots.of(number) - lo
        if 0 <= at < hi - lo:
            one = np.array([at, at + 1], np.uint64)
            kernels.initialise(np.zeros(1, np.uint64), one, near, *window, np.uint32(place))


def chunks(count: int) -> np.ndarray:
    """Cuts of so many slots into what a thread takes at a time."""
    return np.append(np.arange(0, count, _CHUNK), count).astype(np.uint64)
