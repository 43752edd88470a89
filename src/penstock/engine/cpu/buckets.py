"""Bucketed combine programs on CPU threads: delta-stepping in memory; elsewhere supersteps of one bucket at a time."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import numpy as np

from penstock.engine.compile import make_kernel
from penstock.engine.cpu.combine import CombineRun
from penstock.engine.cpu.kernels import CombineKernels
from penstock.engine.kernels import bits, buckets
from penstock.engine.kernels.buckets import BLOCK, ROW, Bins, pool_blocks
from penstock.engine.plan import Plan, number_dtype
from penstock.engine.program import Bucketed, Combine
from penstock.engine.vectors import Slots
from penstock.observe.progress import progress

if TYPE_CHECKING:
    from penstock.engine.engine import Engine, Outcome, Until

_PIECE = 1 << 20
_FEW = 1 << 13
"""Buckets of up to so many arcs are run by one thread, without a word to the others."""


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
    """Until no vertex waits, or `until` says so."""
    from penstock.engine.engine import Outcome

    stats, saver = engine.stats, engine.checkpoint
    with stats.phase("prepare"):
        held = CombineRun(engine, program, plan, params, slots, vectors, active)
        # What a checkpoint calls the frontier are here the vertices that wait.
        if saver is not None and (found := saver.begin(program, params, slots.seeds)) is not None:
            for name, value in saver.restore(found, held.vectors()).items():
                setattr(held, name, value)
        in_memory = plan.tier == "memory" and until is None and program.stepped and len(held.sides.push) == 1
        rounds = DeltaStepping(held) if in_memory else BucketSteps(held, until)
    with stats.phase("run"), progress(program.name, total=None, unit="buckets", settings=engine.settings) as bar:
        while figures := rounds.step():
            stats.iteration(program=program.name, **figures)
            bar.advance(1)
            if saver is not None and saver.due(held.step):
                with stats.phase("checkpoint"):
                    rounds.note_waiting()
                    saver.save(held.vectors(), held.scalars())
    return Outcome(dict(zip(program.state, held.state, strict=True)), slots, held.step, float(held.change), held.front)


_KEPT: WeakKeyDictionary[CombineKernels, dict[str, Any]] = WeakKeyDictionary()


def _kernel(held: CombineRun, template: Callable[..., Any]) -> Any:
    """A kernel of the program, made when first used and kept for the next run."""
    program, kept = held.program, _KEPT.setdefault(held.kernels, {})
    if template.__name__ not in kept:
        assert program.bucketed is not None
        parts = held.kernels.functions()
        parts.field = list(program.state).index(program.bucketed.field)
        parts.real = program.fields()[program.bucketed.field].kind == "f"
        kept[template.__name__] = make_kernel(template, parts, program, str(held.kernels.number))
    return kept[template.__name__]


class DeltaStepping:
    """All arcs in memory: threads with bins of their own."""

    def __init__(self, held: CombineRun) -> None:
        self.held, self.team = held, held.team
        program, store = held.program, held.store
        self.side = held.engine.resident(held.sides.push[0], program.columns)
        self.advance, self.together = _kernel(held, buckets.advance), _kernel(held, buckets.together)
        assert program.bucketed is not None
        delta, real = float(held.params[program.bucketed.delta]), held.state[0].dtype.kind == "f"
        self.width: Any = 1.0 / delta if real else np.uint64(max(0, math.frexp(delta)[1] - 1))
        self.bins = self._bins(store.active, number_dtype(store))
        # The seeds wait as if the pool had run dry. A seed without arcs has nothing to do.
        spare = self.bins.spare
        spare[:] = held.front[: len(spare)]
        if store.active % 64:
            spare[-1] &= np.uint64((1 << store.active % 64) - 1)
        held.front[:] = 0
        self.bins.meter[buckets.DRY] = 1

    def _bins(self, active: int, number: np.dtype) -> Bins:
        make, threads = self.held.engine.vectors.make, self.team.threads
        blocks = pool_blocks(active, threads)
        return Bins(
            entries=make(blocks * BLOCK, number, "bins"),
            after=make(blocks, np.uint32, "bins"),
            head=np.zeros((threads, ROW), np.uint64),
            count=np.zeros((threads, ROW), np.uint64),
            free=np.zeros((threads, 8), np.uint64),
            work=make(blocks, np.uint32, "bins"),
            fill=make(blocks, np.uint32, "bins"),
            spare=make(bits.words_for(active), np.uint64, "bins"),
            meter=np.zeros(8, np.uint64),
        )

    def step(self) -> dict[str, Any]:
        """Small buckets up to a large one, and that one by all threads; its figures, empty at the end."""
        held, side, began = self.held, self.side, time.perf_counter()
        arcs = (side.offsets, side.neighbours, side.values, held.state, held.reads, held.given(), self.bins)
        entries, ran = self.advance(np.uint64(_FEW), self.width, *arcs)
        held.step += int(ran)
        if entries:
            counter = np.zeros(1, np.uint64)
            self.team.run(lambda worker: self.together(np.uint64(worker), counter, self.width, *arcs))
            held.step += 1
        elif not ran:
            held.front[:] = 0
            return {}
        bucket = int(self.bins.meter[buckets.NOW])
        return {
            "bucket": bucket, "frontier": int(entries), "small": int(ran), "seconds": time.perf_counter() - began
        }  # fmt: skip

    def note_waiting(self) -> None:
        """For a checkpoint: all vertices of this bucket and of later ones, though not all of them wait."""
        field, active, now = self.held.state[0], self.held.store.active, int(self.bins.meter[buckets.NOW])
        far, marks = self.held.zero, self.held.front.view(np.uint8)
        for lo in range(0, active, _PIECE):
            piece = field[lo : min(lo + _PIECE, active)]
            real = piece.dtype.kind == "f"
            later = (piece * self.width if real else piece >> piece.dtype.type(self.width)) >= now
            packed = np.packbits(later & (piece != far), bitorder="little")
            marks[lo // 8 : lo // 8 + len(packed)] = packed


class BucketSteps:
    """From disk, in ranges, in lanes: the ordinary supersteps, but of the vertices below the limit only, so that only
    the pages of the current bucket are read."""

    def __init__(self, held: CombineRun, until: Until | None) -> None:
        self.held, self.until = held, until
        held.open_sides()
        assert held.program.bucketed is not None
        self.kind = held.program.fields()[held.program.bucketed.field]
        self.delta = float(held.params[held.program.bucketed.delta])
        self.select = _kernel(held, buckets.select)
        self.most = self.kind.type(np.inf if self.kind.kind == "f" else np.iinfo(self.kind).max)
        self.limit = self.kind.type(0)
        self.waiting = held.front.copy()

    def step(self) -> dict[str, Any]:
        """One superstep; its figures, empty at the end."""
        held = self.held
        if self.until is not None and self.until(held.step, held.change):
            return {}
        chosen, least = self._below()
        if not chosen:
            if least == self.most and not self.waiting.any():
                return {}
            self.limit = Bucketed.end(least, self.delta, self.kind)
            chosen, least = self._below()
        held.active = chosen
        figures = held.superstep()
        self.waiting |= held.front
        return {"limit": float(self.limit), **figures}

    def note_waiting(self) -> None:
        """For a checkpoint."""
        self.held.front[:] = self.waiting

    def _below(self) -> tuple[int, Any]:
        """Make what waits below the limit the frontier: (how many, the least value that still waits)."""
        held, chosen, least = self.held, 0, self.most
        held.front[:] = 0
        for lo, hi in held.windows:
            state, _ = held.window(lo, hi)
            # Words that two windows share are looked at twice, each time by one thread.
            cuts = held.cuts((hi + 63) // 64 - lo // 64, 1 << 8) + np.uint64(lo // 64)
            counter = np.zeros(1, np.uint64)

            def call(worker: int, args: tuple[Any, ...] = (counter, cuts, lo, hi, state)) -> Any:
                counter, cuts, lo, hi, state = args
                return self.select(
                    counter, cuts, self.waiting, np.uint64(lo), np.uint64(hi), np.uint64(lo), state, self.limit,
                    self.most, held.front,
                )  # fmt: skip

            found = held.team.run(call, alone=len(self.waiting) < 1 << 12)
            held.drop()
            chosen += sum(int(count) for count, _ in found)
            least = min([least, *(value for _, value in found)])
        return chosen, least
