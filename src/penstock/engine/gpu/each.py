"""Programs that see vertices by themselves, on the GPU: where their vectors are already."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from penstock.engine.compile import usable
from penstock.engine.cpu.each import Chosen, constants, functions
from penstock.engine.gpu.functions import Kernel, gpu_adapters, make_kernel, plain_kernel
from penstock.engine.gpu.held import blocks
from penstock.engine.gpu.kernels import combine as along
from penstock.engine.gpu.kernels import slots as templates
from penstock.engine.kernels import bits
from penstock.engine.plan import read_dtype
from penstock.engine.program import Each
from penstock.engine.vectors import Slots
from penstock.memory import gpu
from penstock.memory.card import Array, Card
from penstock.memory.fingerprint import fingerprint
from penstock.memory.tasks import BLOCK

if TYPE_CHECKING:
    from penstock.engine.engine import Engine

GRID = 1024
"""Blocks at most: each leaves one number to be added up."""
_FOLDS: dict[str, Any] = {"sum": np.sum, "min": np.min, "max": np.max}
_KEPT: dict[str, Kernel] = {}


def _made(program: Each) -> Kernel:
    key = fingerprint(program.makeup(), BLOCK)
    if key not in _KEPT:
        parts = gpu_adapters(program, flagged=False)
        for name, function in functions(program).items():
            setattr(parts, name, usable(function))
        for name, value in constants(program).items():
            setattr(parts, name, value)
        parts.kind, parts.block = np.dtype(program.measured).type, BLOCK
        _KEPT[key] = make_kernel(templates.each, parts, program)
    return _KEPT[key]


def bytes_of(engine: Engine, program: Each, slots: Slots, vectors: Mapping[str, np.ndarray], members: bool) -> int:
    """What it takes on the device besides vectors that are there."""
    marks = slots.count + slots.count // 8 if members else 0
    missing = sum(vectors[name].nbytes for name in program.state if not engine.near.has(vectors[name]))
    reads = sum(slots.active * read_dtype(engine.store, name).itemsize for name in program.stored_reads())
    return missing + reads + marks + 16 * GRID + (1 << 16)


def run(
    engine: Engine, program: Each, params: dict[str, Any], slots: Slots, vectors: dict[str, np.ndarray], members: bool
) -> Chosen:
    """Go over all vertices with arcs."""
    device, kind = engine.gpu, np.dtype(program.measured)
    held: list[Array] = []

    def kept(count: int, dtype: Any, what: str) -> Array:
        held.append(device.empty(count, dtype, what))
        return held[-1]

    try:
        state = tuple(engine.near.at(vectors[n], changing=program.update is not None).arg for n in program.state)
        reads = []
        for name in program.stored_reads():
            reads.append(kept(slots.active, read_dtype(engine.store, name), "reads"))
            device.read_columns([name], reads[-1].array)
        grid = max(1, min(GRID, blocks(slots.active)))
        counts, totals = kept(grid, np.uint32, "counts"), kept(grid, kind, "totals")
        scalars = kept(along.TALLY + 1, np.float64, "scalars")
        marks = kept(slots.count if members else 1, np.uint8, "active")
        engine.once(program, "on GPU", lambda: _made(program))(
            device.stream, grid, BLOCK, np.uint32(slots.active), np.uint32(slots.active if members else 0), state,
            tuple(read.arg for read in reads), (*params.values(), slots.vertices, 0, 0.0), scalars.arg, marks.arg,
            counts.arg, totals.arg,
        )  # fmt: skip
        words = _words(device, slots, marks, kept) if members else None
        count = int(gpu.download(counts.array).sum(dtype=np.int64))
        total = _FOLDS[program.fold.known](gpu.download(totals.array)) if count else program.fold.zero(kind)
        return Chosen(count, total, words)
    finally:
        device.take(held)


def _words(device: Card, slots: Slots, marks: Array, kept: Any) -> np.ndarray:
    """The bitmap of what is marked."""
    words = kept(2 * bits.words_for(slots.count), np.uint32, "frontier")
    none, counts = kept(1, np.uint32, "degrees"), kept(2, np.uint64, "counts")
    words.array.fill(0)
    plain_kernel(templates.pack, BLOCK)(
        device.stream, blocks(-(-slots.active // 32)), BLOCK, np.uint32(slots.active), marks.arg, none.arg, words.arg,
        counts.arg,
    )  # fmt: skip
    return gpu.download(words.array).view(np.uint64)


__all__ = ["bytes_of", "run"]
