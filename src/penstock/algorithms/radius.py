"""Effective radius: within how many arcs a vertex reaches nine tenths of all that it ever reaches (HADI).

Returns   radius, an integer per vertex; 0 for a vertex without arcs. stats: effective_diameter, max_radius, and
          neighbourhood, an estimate for each h of the pairs (u, v) with v within h arcs of u.
Needs     outgoing arcs, along which a vertex reaches; bits travel against them.
Defined   Flajolet-Martin: a vertex starts with one bit in each of its bitstrings, bit i with probability 2^-(i+1),
          drawn from (seed, lane, internal number). b(h, v) = b(h-1, v) | b(h-1, u) over the arcs v->u.
          N(h, v) = 2^(mean over lanes of the lowest clear bit of b(h, v)) / 0.77351
          radius(v) = the least whole h with N(h, v) >= 0.9 N(H, v); at step H nothing changed, or H = max_iter.
          effective_diameter = the least h with N(h) >= 0.9 N(H), interpolated between whole h; N(h) = sum_v N(h, v).
          A vertex without arcs counts itself, exactly.
Passes    one over the arcs per step, less where bitstrings no longer change. All lanes share it.
Ref       Kang et al. 2011 (HADI, PEGASUS); Flajolet and Martin 1985
"""

from __future__ import annotations

import math
from functools import partial
from typing import Annotated, Any

import numpy as np

from penstock.algorithms.job import Job
from penstock.algorithms.shared import Shared, stages_of
from penstock.engine.cpu.parts import chunks
from penstock.engine.explain import Stage
from penstock.engine.kernels.bits import ONE
from penstock.engine.monoid import OR
from penstock.engine.program import Combine
from penstock.engine.words import drawn, lowest_zero
from penstock.errors import UsageError
from penstock.memory.device import atomic_add, kernel
from penstock.result import Result
from penstock.store.reader import Store

CORRECTION = 0.77351
"""Of Flajolet and Martin: 2^(lowest clear bit) is too large by so much."""
SHARE = 0.9
LAST = np.uint64(31)
LIKELY = 8
"""Steps in which most graphs are done; those of long ways take more."""


def start(v, p):
    """One bit: how many ones a random word ends with is i with probability 2^-(i+1)."""
    bit = min(lowest_zero(drawn(p.seed, v.lane, v.number)), LAST)
    bits = np.uint32(np.uint64(1) << bit)
    return bits, np.uint8(lowest_zero(bits)), True


def bitstring(v, p):
    return v.bits


def unite(v, arriving, p):
    bits = np.uint32(v.bits | arriving)
    return bits, np.uint8(lowest_zero(bits)), bits != v.bits


def program(lanes: int) -> Combine:
    """A step of h per superstep."""
    return Combine(
        name="radius",
        state={"bits": "uint32", "lowest": "uint8"},
        reads=("number", "lane"),
        params={"seed": 1},
        init=start,
        along="in",
        message="uint32",
        emit=bitstring,
        combine=OR,
        update=unite,
        frontier=True,
        lanes=lanes,
    )


def radius(
    job: Job,
    *,
    lanes: Annotated[int, "Bitstrings per vertex: more are more exact."] = 32,
    max_iter: Annotated[int, "Stop after so many steps."] = 256,
    seed: Annotated[int, "Of the random bits."] = 1,
) -> Result:
    """Within how many arcs a vertex reaches nine tenths of all that it ever reaches."""
    if not 1 <= lanes <= 1024:
        raise UsageError(f"lanes must be from 1 to 1024, not {lanes}")
    if not 0 <= max_iter < 1 << 16:
        raise UsageError(f"max_iter must be from 0 to 65535, not {max_iter}")
    if not 0 <= seed < 1 << 32:
        raise UsageError(f"seed must be from 0 to 2**32 - 1, not {seed}")
    search = program(lanes)
    history = History(job, search)
    if job.engine.checkpoint is not None:
        job.engine.checkpoint.accompany(*history.kept())

    def until(step: int, change: float) -> bool:
        history.record(step)
        return step >= max_iter

    outcome = job.engine.run(
        search, params={"seed": seed}, vectors=history.shared.of(search), slots=history.shared.slots, until=until
    )
    if not history.pairs:  # no arcs, no steps
        history.record(0)
    found = history.radius()
    return job.result(
        outcome,
        {"radius": found},
        types={"radius": "int64"},
        iterations=outcome.steps,
        max_radius=int(found.max(initial=0)),
        effective_diameter=effective_diameter(history.pairs),
        neighbourhood=history.pairs,
    )


OTHERS = {"sums": "uint16", "passed": "uint16"}
"""What is kept of the steps."""


def slack(lanes: int) -> int:
    """By how much the sum over lanes may be below its last value."""
    return math.floor(lanes * math.log2(1 / SHARE))


@kernel()
def note(counter, cuts, step, lowest, sums, passed, counts):
    """Take in what the lowest clear bits of vertices are after a step: their sums, at which step these passed their
    last values, and how many vertices have which sum."""
    kept = np.uint64(passed.shape[1])
    while True:
        k = atomic_add(counter, 0, ONE)
        if k + ONE >= np.uint64(cuts.size):
            return
        for i in range(cuts[k], cuts[k + ONE]):
            total = np.uint64(0)
            for j in range(np.uint64(lowest.shape[1])):
                total += np.uint64(lowest[i, j])
            counts[total] += 1
            if step > 0:
                value, before = total, np.uint64(sums[i])
                while value > before and total - value < kept:
                    passed[i, value % kept] = step
                    value -= ONE
            sums[i] = total


def _note(given: tuple[Any, ...], counts: np.ndarray, worker: int) -> None:
    note(*given, counts[worker])


class History:
    """What the estimates were at each step, as far as it matters.

    The estimate of a vertex grows with the sum over lanes of its lowest clear bits, and is within 0.9 of its last value
    as soon as that sum is at most `slack` below its own. So the steps at which the sum passed its last `slack + 1`
    values are enough, however many steps there are: that of value s lies at s % (slack + 1).
    """

    def __init__(self, job: Job, search: Combine) -> None:
        self.lanes, self.slack = search.lanes, slack(search.lanes)
        self.shared = Shared(job.engine, [search], OTHERS, lanes={"passed": self.slack + 1}, without=("bits",))
        self.pairs: list[float] = []

    def kept(self) -> tuple[dict[str, np.ndarray], dict[str, list[float]]]:
        """What a checkpoint holds besides the bitstrings: all that was recorded before the step that it is made after,
        which is recorded when the run goes on."""
        return {name: self.shared[name] for name in OTHERS}, {"pairs": self.pairs}

    def record(self, step: int) -> None:
        """Take the estimates after a step in."""
        lowest, sums, team = self.shared["lowest"], self.shared["sums"], self.shared.engine.team
        counts = np.zeros((team.threads, 32 * self.lanes + 1), np.int64)
        for lo, hi in self.shared.pieces():
            given = np.zeros(1, np.uint64), chunks(hi - lo), np.uint16(step)
            rows = lowest[lo:hi].reshape(hi - lo, -1), sums[lo:hi], self._passed(lo, hi)
            team.run(partial(_note, (*given, *rows), counts), alone=len(given[1]) == 2)
        estimates = 2.0 ** (np.arange(counts.shape[1]) / self.lanes) / CORRECTION
        self.pairs.append(float(counts.sum(axis=0) @ estimates) + self.shared.slots.rest)

    def _passed(self, lo: int, hi: int) -> np.ndarray:
        return self.shared["passed"][lo:hi].reshape(hi - lo, -1)

    def radius(self) -> np.ndarray:
        """By slot; takes the place of the sums."""
        found = self.shared["sums"]
        for lo, hi in self.shared.pieces():
            place = (found[lo:hi].astype(np.int64) - self.slack) % (self.slack + 1)
            found[lo:hi] = np.take_along_axis(self._passed(lo, hi), place[:, None], axis=1)[:, 0]
        return found


def effective_diameter(pairs: list[float]) -> float:
    """Where the neighbourhood function crosses nine tenths of its last value, on straight lines between its points."""
    goal = SHARE * pairs[-1]
    after = next(h for h, value in enumerate(pairs) if value >= goal)
    if after == 0:
        return 0.0
    return after - 1 + (goal - pairs[after - 1]) / (pairs[after] - pairs[after - 1])


def stages(store: Store, *, lanes: int = 32, max_iter: int = 256, **options: Any) -> list[Stage]:
    """What a run would do."""
    note = f"assumed; as many as it takes until nothing changes, {max_iter} at most"
    stage = Stage(program(lanes), note=note, times=max(1, min(max_iter, LIKELY)))
    return stages_of([stage], OTHERS, lanes={"passed": slack(lanes) + 1}, without=("bits",))
