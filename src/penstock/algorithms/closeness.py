"""Closeness centrality: how near the vertices that reach a vertex are to it.

Returns   closeness, a float per vertex; 0 where nobody else arrives.
Needs     arcs in both directions to turn around; outgoing ones are enough. Arcs are followed forwards, unweighted.
Defined   c(v) = r / sum_u d(u, v) * r / (n - 1), where r other vertices u reach v (Wasserman and Faust).
          harmonic: c(v) = sum_u 1 / d(u, v). samples=k: over k random u only; r, and harmonic sums, scaled by n / k.
Passes    one traversal for each 64 sources: they share the arcs, a bit each.
Ref       Then et al. 2014 (MS-BFS); Wasserman and Faust 1994; Marchiori and Latora 2000
"""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np

from penstock.algorithms.job import Job
from penstock.algorithms.shared import Shared, stages_of
from penstock.engine.explain import Stage
from penstock.engine.monoid import OR
from penstock.engine.program import Combine, Each
from penstock.engine.words import count_ones
from penstock.result import Result
from penstock.store.reader import Store

BATCH = 64
"""Sources that search together: the bits of a word."""
ALL = np.uint64(0xFFFFFFFFFFFFFFFF)


def start(v, p):
    return np.uint64(0), np.uint64(0), 0.0, 0.0, False


def newcomers(v, p):
    return v.fresh


def awaited(v, p):
    """Whether a source of the batch has not arrived yet."""
    return v.seen != ALL >> np.uint64(64 - p.sources)


def meet(v, arriving, p):
    """Whole numbers, exact in a float."""
    fresh = arriving & ~v.seen
    count = float(count_ones(fresh))
    return v.seen | fresh, fresh, v.reached + count, v.far + count * (p.step + 1), fresh != 0


def meet_harmonic(v, arriving, p):
    fresh = arriving & ~v.seen
    count = float(count_ones(fresh))
    return v.seen | fresh, fresh, v.reached + count, v.far + count / (p.step + 1), fresh != 0


def nearness(v, p):
    return v.reached, v.reached / v.far * (p.scale * v.reached) / p.others if v.far > 0 else 0.0


def nearness_harmonic(v, p):
    return v.reached, v.far * p.scale


def ending(harmonic: bool) -> Each:
    """From sums of distances to what is asked for."""
    return Each(
        name="nearness", state={"reached": "float64", "far": "float64"}, params={"scale": 1.0, "others": 1.0},
        update=nearness_harmonic if harmonic else nearness,
    )  # fmt: skip


def program(harmonic: bool) -> Combine:
    """A level per superstep; the message is which sources were first here in the last one."""
    return Combine(
        name="closeness",
        state={"seen": "uint64", "fresh": "uint64", "reached": "float64", "far": "float64"},
        params={"sources": BATCH},
        init=start,
        message="uint64",
        emit=newcomers,
        combine=OR,
        wants=awaited,
        update=meet_harmonic if harmonic else meet,
        frontier=True,
    )


def closeness(
    job: Job,
    *,
    samples: Annotated[int | None, "Measure from so many random vertices only, and scale the sums up."] = None,
    harmonic: Annotated[bool, "The sum of 1 / distance instead."] = False,
    seed: Annotated[int, "Of the random choice."] = 0,
) -> Result:
    """How near the vertices that reach a vertex are to it."""
    n = job.store.vertices
    search, scale = program(harmonic), 1.0
    chosen = np.arange(job.store.active)
    if samples is not None:
        chosen, scale = job.sample(samples, seed), n / samples
    # Vertices without arcs neither reach nor are reached. Sources of similar degree finish in as many levels.
    chosen = np.sort(chosen[chosen < job.store.active])
    shared = Shared(job.engine, [search])
    for at in range(0, len(chosen), BATCH):
        traverse(job, shared, search, chosen[at : at + BATCH])
    shared.each(ending(harmonic), scale=scale, others=max(n - 1, 1))
    batches = -(-len(chosen) // BATCH)
    return job.result(shared.slots, {"closeness": shared["far"]}, searches=len(chosen), batches=batches)


def traverse(job: Job, shared: Shared, search: Combine, sources: np.ndarray) -> None:
    """Add the distances from a batch of sources."""
    shared.fill("seen", 0)
    for bit, source in enumerate(sources.tolist()):
        for name in ("seen", "fresh"):
            shared.put(name, source, np.uint64(1 << bit))
    job.engine.run(
        search,
        params={"sources": len(sources)},
        vectors=shared.of(search),
        active=shared.of_numbers(sources.tolist()),
        slots=shared.slots,
    )


def stages(store: Store, *, samples: int | None = None, harmonic: bool = False, **options: Any) -> list[Stage]:
    """What a run would do."""
    batches = -(-(store.active if samples is None else samples) // BATCH)
    note = f"one for each {BATCH} sources"
    return stages_of([Stage(program(harmonic), note=note, times=max(1, batches))])
