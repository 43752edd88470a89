"""Weakly connected components: which vertices are connected, whichever way the arcs point.

Returns   component, a vertex: the one of the smallest id that is connected with this one.
Needs     the arcs of one direction.
Defined   u and v are in one component if a path of arcs, each followed either way, joins them.
Passes    one over the arcs: a lock-free union-find whose trees hang from their smallest number. In memory two arcs of
          each vertex join most of the largest component, whose vertices are then left out.
Ref       Shiloach and Vishkin 1982; Afforest: Sutton et al. 2018
"""

from __future__ import annotations

import numpy as np

from penstock.algorithms.job import Job
from penstock.engine.atomics import compare_and_swap, load
from penstock.engine.explain import Stage
from penstock.engine.plan import number_dtype
from penstock.engine.program import Sweep
from penstock.engine.representatives import Representatives
from penstock.result import Result
from penstock.store.reader import Store

SAMPLE = 1024
"""Vertices asked for their component to find the commonest."""


def init(v, p):
    return v.number


def link(u, v, e, state, p):
    """Join the trees of two vertices: hang the root of the larger number below the other."""
    component = state.component
    a, b = component[u], component[v]
    if a == b:
        return
    while a != b:
        high, low = max(a, b), min(a, b)
        parent = load(component, high)
        if parent == low or (parent == high and compare_and_swap(component, high, high, low)):
            break
        a, b = component[load(component, high)], load(component, low)
    # A shorter way up for u, whose next arcs follow. Roots are left to those who swap.
    parent = load(component, u)
    above = load(component, parent)
    if above != parent:
        component[u] = above


def compress(u, state, p):
    """Hang a vertex directly below its root."""
    component = state.component
    root = component[u]
    while component[root] != root:
        root = component[root]
    component[u] = root


def commonest(state, p):
    """The component that most vertices of a sample are in."""
    n = len(state.component)
    if not n:
        return {}
    chosen = np.random.default_rng(0).integers(0, n, SAMPLE)
    roots, counts = np.unique(state.component[chosen], return_counts=True)
    return {"largest": int(roots[counts.argmax()])}


def settled(u, state, p):
    return np.uint64(state.component[u]) == np.uint64(p.largest)


def program(number: np.dtype) -> Sweep:
    """Afforest."""
    return Sweep(
        name="wcc",
        state={"component": number},
        reads=("number",),
        params={"largest": 0},
        init=init,
        arc=link,
        once=True,
        vertex=compress,
        sampled=2,
        between=commonest,
        settled=settled,
    )


def wcc(job: Job) -> Result:
    """The smallest vertex that is connected with each."""
    names = Representatives(job.engine)
    outcome = job.engine.run(program(number_dtype(job.store)))
    component = outcome.state["component"]
    with job.stats.phase("label"):
        components = names.give(component, lowest=True)
    component[outcome.slots.body] = outcome.slots.body
    return job.result(
        outcome, {"component": component}, references=("component",), components=components + outcome.slots.rest
    )


def stages(store: Store) -> list[Stage]:
    """What a run would do; the names of components take a bit for each vertex."""
    return [Stage(program(number_dtype(store)), 1, held=Representatives.needed(store))]
