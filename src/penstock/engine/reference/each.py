"""Programs that see vertices by themselves: one after the other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from penstock.engine.cpu.each import Chosen
from penstock.engine.kernels import bits
from penstock.engine.program import Each
from penstock.engine.reference.state import State, cast, params_of
from penstock.engine.vectors import Slots

if TYPE_CHECKING:
    from penstock.engine.engine import Engine


def run(
    engine: Engine, program: Each, params: dict[str, Any], slots: Slots, vectors: dict[str, np.ndarray], members: bool
) -> Chosen:
    """Go over all vertices with arcs."""
    state, p = State(engine, program, slots, vectors), params_of(program, params, slots)
    kind, count = np.dtype(program.measured), 0
    total = program.fold.zero(kind)
    chosen = np.zeros(64 * bits.words_for(slots.count), bool)
    for slot in range(slots.active):
        v = state.vertex(slot)
        if program.chosen is not None and not program.chosen(v, p):
            continue
        count, chosen[slot] = count + 1, True
        if program.measure is not None:
            total = program.fold.combine(total, cast(program.measure(v, p), kind))
        if program.update is not None:
            state.take(slot, 0, program.update(v, p))
    return Chosen(count, total, np.packbits(chosen, bitorder="little").view(np.uint64) if members else None)


__all__ = ["run"]
