"""Programs that see vertices by themselves, on all threads."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from penstock.engine.cpu.parts import chunks, kernels_of
from penstock.engine.defaults import always, leave, nothing
from penstock.engine.kernels import bits
from penstock.engine.kernels import slots as templates
from penstock.engine.program import Each
from penstock.engine.vectors import Slots, in_file

if TYPE_CHECKING:
    from penstock.engine.engine import Engine

PIECE = 1 << 18
"""Slots at a time of vectors in files, or whose columns are read: whole words of bits."""


@dataclass(frozen=True)
class Chosen:
    """The vertices that a program was for."""

    count: int
    total: Any
    """What was measured; the monoid's zero where nothing was."""
    members: np.ndarray | None = None
    """Their bitmap, where it was asked for."""


def _whole(x):
    return np.int64(x)


def _real(x):
    return np.float64(x)


def functions(program: Each) -> dict[str, Any]:
    """What templates are made around, besides constants."""
    found = {
        "chosen": program.chosen or always, "measure": program.measure or nothing, "update": program.update or nothing,
        "fold": program.fold.combine, "kind": _whole if np.dtype(program.measured).kind == "i" else _real,
    }  # fmt: skip
    return found if program.update is not None else found | {"store": leave}


def constants(program: Each) -> dict[str, Any]:
    zero = program.fold.zero(np.dtype(program.measured))
    return {"zero": zero, "measuring": program.measure is not None, "updating": program.update is not None}


def run(
    engine: Engine,
    program: Each,
    params: dict[str, Any],
    slots: Slots,
    vectors: Mapping[str, np.ndarray],
    members: bool,
) -> Chosen:
    """Go over all vertices with arcs."""
    state = tuple(vectors[name] for name in program.state)
    kernels = engine.once(
        program, "on CPU", lambda: kernels_of(program, templates, constants=constants(program), **functions(program))
    )
    words = np.zeros(bits.words_for(slots.count) if members else 0, np.uint64)
    given = (*params.values(), slots.vertices, 0, 0.0)
    columns = [engine.store.vertex_column(name) for name in program.stored_reads()]
    spilled = any(in_file(vector) for vector in state)
    count, total = 0, program.fold.zero(np.dtype(program.measured))
    for lo in range(0, slots.active, PIECE if spilled or columns else max(1, slots.active)):
        hi = min(lo + PIECE, slots.active) if spilled or columns else slots.active
        here = tuple(vector[lo:hi] for vector in state)
        reads = tuple(column.read(lo, hi) for column in columns)
        found = _share(engine, kernels.each, hi - lo, np.uint64(lo), here, reads, given, words)
        count += sum(int(one) for one, _ in found)
        for _, part in found:
            total = program.fold.combine(total, part)
        if spilled:
            engine.vectors.drop()
    return Chosen(count, total, words if members else None)


def _share(engine: Engine, kernel: Callable[..., Any], count: int, *args: Any) -> list[tuple[int, Any]]:
    counter, cuts = np.zeros(1, np.uint64), chunks(count)
    return engine.team.run(lambda worker: kernel(counter, cuts, *args), alone=len(cuts) == 2)


__all__ = ["Chosen", "constants", "functions", "run"]
