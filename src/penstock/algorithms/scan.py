"""SCAN: clusters of vertices that have most of their neighbours in common, the hubs between them, and outliers.

Returns   cluster, a vertex: of the cores of a cluster the one of the smallest id; null for vertices in none.
          core, whether mu vertices are similar; hub, whether a vertex in no cluster has neighbours in several.
          Who is in no cluster and is no hub is an outlier.
Needs     any graph; it is taken as a simple, undirected one: directions, loops and parallel edges are dropped. With
          `similarity`, an undirected graph with that edge column; there each parallel edge counts.
Defined   G(v) = v and its neighbours; neighbours u and v are similar if
          |G(u) & G(v)| >= epsilon sqrt(|G(u)| |G(v)|), or if the column says so: similarity >= epsilon.
          A core is similar to mu vertices or more, itself among them. Cores that are similar are in one cluster; who
          is none, but similar to one, is in its cluster, and of several in the one that is named by the smallest id.
Passes    two over the arcs, to make for each vertex the list of its neighbours; three over the lists, for cores, for
          clusters, for those around them, which look only at edges that still matter; one over the arcs for hubs. With
          `similarity`, four over the arcs.
Ref       Xu et al. 2007; what need not be looked at: Chang et al. 2016 (pSCAN), Che et al. 2018 (ppSCAN)
"""

from __future__ import annotations

import math
from typing import Annotated, Any

import numpy as np

from penstock.algorithms.job import Job
from penstock.algorithms.shared import PIECE
from penstock.algorithms.wcc import compress, link
from penstock.engine.atomics import atomic_add, atomic_max, atomic_min
from penstock.engine.explain import Stage
from penstock.engine.plan import number_dtype
from penstock.engine.program import NEVER, Common, Sweep
from penstock.engine.ranks import from_ranks, ranks
from penstock.engine.representatives import Representatives
from penstock.engine.vectors import Slots
from penstock.errors import UsageError
from penstock.result import Result
from penstock.store.reader import Store

CORES, CLUSTERS, AROUND = 0, 1, 2
"""What the passes find."""
_BESIDE = 6
"""Bytes per vertex that are there when hubs are looked for: how many are similar, and two flags."""
NEARLY = 1 - 1e-12
"""What is similar but for rounding is similar."""

# ---- what becomes of an edge whose ends are similar


def is_core(u, state, p):
    return state.similar[u] >= p.mu


def root(component, u):
    while component[u] != u:
        u = component[u]
    return u


def matters(u, v, state, p, finding):
    """Whether it can make a difference that u and v are similar."""
    first, second = is_core(u, state, p), is_core(v, state, p)
    if finding == CORES:
        return not (first and second)
    if finding == CLUSTERS:
        return first and second and root(state.component, u) != root(state.component, v)
    return first != second


def adopt(u, v, state, p):
    """Whoever of the two is no core is in the cluster of the other."""
    if is_core(u, state, p):
        atomic_min(state.cluster, v, state.cluster[u])
    else:
        atomic_min(state.cluster, u, state.cluster[v])


# ---- similar by the neighbours that they have in common


def init(v, p):
    return v.neighbours + 1, v.similar, v.component, v.cluster


def least(u, v, state, p):
    if not matters(u, v, state, p, p.step):
        return NEVER
    both = math.sqrt(float(state.size[u]) * float(state.size[v]))
    return max(0, int(math.ceil(p.epsilon * both * NEARLY)) - 2)


def together(u, v, state, p):
    if p.step == CORES:
        atomic_add(state.similar, u, np.uint32(1))
        atomic_add(state.similar, v, np.uint32(1))
    elif p.step == CLUSTERS:
        link(u, v, (), state, p)
    else:
        adopt(u, v, state, p)


def shorten(u, state, p):
    if p.step == CLUSTERS:
        compress(u, state, p)


def by_neighbours(number: np.dtype, name: np.dtype) -> Common:
    """All three passes; clusters are compared by the ranks of the ids that name them."""
    return Common(
        name="scan",
        state={"size": number, "similar": "uint32", "component": number, "cluster": name},
        reads=("neighbours",),
        params={"epsilon": 0.5, "mu": 2},
        init=init,
        least=least,
        edge=together,
        vertex=shorten,
    )


# ---- similar by a column


def init_given(v, p):
    return v.similar, v.component, v.cluster


def along_arc(u, v, e, state, p):
    """Each of the two arcs of an edge is its source's."""
    if u == v or not e[0] >= p.epsilon or not matters(u, v, state, p, p.finding):  # NaN is not similar
        return
    if p.finding == CORES:
        atomic_add(state.similar, u, np.uint32(1))
    elif p.finding == CLUSTERS:
        link(u, v, e, state, p)
    else:
        adopt(u, v, state, p)


def shorten_given(u, state, p):
    if p.finding == CLUSTERS:
        compress(u, state, p)


def by_column(number: np.dtype, name: np.dtype, column: str) -> Sweep:
    """One of the passes: the parameter `finding` says which."""
    return Sweep(
        name="scan",
        state={"similar": "uint32", "component": number, "cluster": name},
        params={"epsilon": 0.5, "mu": 2, "finding": CORES},
        columns=(column,),
        init=init_given,
        arc=along_arc,
        vertex=shorten_given,
    )


# ---- hubs


def init_met(v, p):
    return v.cluster, v.low, v.high


def meet(u, v, e, state, p):
    """Who is in no cluster sees those of its neighbours: the first and the last of them."""
    one, other = state.cluster[u], state.cluster[v]
    who, met = (v, one) if one < other else (u, other)
    if one != other and max(one, other) == p.vertices:
        atomic_min(state.low, who, met)
        atomic_max(state.high, who, met)


def neighbouring(name: np.dtype) -> Sweep:
    """The clusters around vertices that are in none."""
    return Sweep(
        name="hubs",
        state={"cluster": name, "low": name, "high": name},
        init=init_met,
        arc=meet,
        once=True,
    )


# ---- the algorithm


class Clusters:
    """The vectors of a run, and what is made of them between its passes."""

    def __init__(self, job: Job, mu: int) -> None:
        self.job, self.mu, store, engine = job, mu, job.store, job.engine
        self.active, self.none = store.active, store.vertices
        self._names = Representatives(engine)
        number, name = number_dtype(store), name_dtype(store)
        count = Slots(store).count
        with job.stats.phase("ranks"):
            self.cluster = ranks(engine, name)
        self.similar = engine.vectors.make(count, np.uint32, "similar")
        self.component = engine.vectors.make(count, number, "component")
        self.similar[:] = 1
        self.component[:] = np.arange(count, dtype=number)
        self.counts = {"clusters": 0, "cores": 0}

    def given(self) -> dict[str, np.ndarray]:
        return {"similar": self.similar, "component": self.component, "cluster": self.cluster}

    def between(self, done: int) -> None:
        """When cores have been joined: cores have the ranks of their clusters' names, and the others none yet."""
        if done != CLUSTERS + 1:
            return
        with self.job.stats.phase("name"):
            self._names.give(self.component, lowest=True)
            self.cluster[self.active :] = self.none
            for lo in range(0, self.active, PIECE):
                some = slice(lo, min(lo + PIECE, self.active))
                core, name = self.similar[some] >= self.mu, self.component[some]
                # A name is a core, whose rank stays: the order of the pieces does not matter.
                self.cluster[some] = np.where(core, self.cluster[name], self.none)
                self.counts["cores"] += int(core.sum())
                self.counts["clusters"] += int((core & (name == np.arange(lo, some.stop))).sum())

    def cores(self) -> np.ndarray:
        """Who is one."""
        found = self._flags("cores")
        np.greater_equal(self.similar, self.mu, out=found)
        return found

    def hubs(self) -> np.ndarray:
        """Of those in no cluster, who has neighbours in several."""
        engine, kind = self.job.engine, self.cluster.dtype
        engine.make_room(2 * self.cluster.nbytes)
        low, high = (engine.vectors.make(len(self.cluster), kind, name) for name in ("low", "high"))
        low[:] = self.none
        engine.run(neighbouring(kind), vectors={"cluster": self.cluster, "low": low, "high": high})
        found = self._flags("hubs")
        np.less(low, high, out=found)
        return found

    def _flags(self, what: str) -> np.ndarray:
        engine, count = self.job.engine, len(self.cluster)
        engine.make_room(count)
        return engine.vectors.make(count, np.bool_, what)


def name_dtype(store: Store) -> np.dtype:
    """Of ranks, and of a number that is none."""
    return np.dtype(np.uint32 if store.vertices < 1 << 32 else np.uint64)


def scan(
    job: Job,
    *,
    epsilon: Annotated[float, "How similar neighbours must be: above 0 and up to 1, or as the column has it."] = 0.5,
    mu: Annotated[int, "How many similar vertices make a core, itself among them; at least 2."] = 2,
    similarity: Annotated[str | None, "An edge column that says how similar the ends are."] = None,
) -> Result:
    """Clusters of vertices that share most of their neighbours, hubs and outliers."""
    job.require(stages(job.store, epsilon=epsilon, mu=mu, similarity=similarity))
    if similarity is not None:
        epsilon = _as_stored(job.store.direction("out").column_dtype(similarity), epsilon)
    held, engine, params = Clusters(job, mu), job.engine, {"epsilon": float(epsilon), "mu": int(mu)}
    number, name = number_dtype(job.store), name_dtype(job.store)
    if similarity is None:

        def until(done: int, change: float) -> bool:
            held.between(done)
            return done > AROUND

        outcome = engine.run(by_neighbours(number, name), params=params, vectors=held.given(), until=until)
    else:
        program = by_column(number, name, similarity)
        for finding in (CORES, CLUSTERS, AROUND):
            outcome = engine.run(program, params=params | {"finding": finding}, vectors=held.given())
            held.between(finding + 1)
    slots, figures = outcome.slots, outcome.totals
    held.component = np.zeros(0, number)
    del outcome  # it has vectors that are not needed any more
    core, hub = held.cores(), held.hubs()
    members = int((held.cluster[: slots.active] != held.none).sum())
    with job.stats.phase("label"):
        cluster = from_ranks(engine, held.cluster)
        cluster[held.cluster == held.none] = held.none
    counts: dict[str, Any] = held.counts | {"members": members, "hubs": int(hub.sum())}
    counts["outliers"] = job.store.vertices - members - counts["hubs"]
    return job.result(
        slots, {"cluster": cluster, "core": core, "hub": hub}, nulls={"cluster": held.none},
        references=("cluster",), **counts, **figures,
    )  # fmt: skip


def _as_stored(kind: np.dtype, epsilon: float) -> float:
    """What a column of short floats has for it: 0.7 is as similar as 0.7."""
    return float(kind.type(epsilon)) if kind.kind == "f" else epsilon


def _check(store: Store, epsilon: float, mu: int, similarity: str | None) -> None:
    if similarity is None and not 0 < epsilon <= 1:
        raise UsageError(f"epsilon must be above 0 and at most 1, not {epsilon}")
    if not math.isfinite(epsilon):
        raise UsageError(f"epsilon must be a number, not {epsilon}")
    if mu < 2:
        raise UsageError(f"mu must be at least 2, as a vertex counts itself, not {mu}")
    if similarity is None:
        return
    if store.directed:
        raise UsageError("similarity is a column of an undirected graph: build it with undirected=True")
    column = store.direction("out")
    if column.column_dtype(similarity).kind not in "uifb" or column.columns[similarity].endswith("]"):
        raise UsageError(f"edge column {similarity!r} holds {column.columns[similarity]}, which is no similarity")


def stages(store: Store, *, epsilon: float = 0.5, mu: int = 2, similarity: str | None = None) -> list[Stage]:
    """What a run would do."""
    _check(store, epsilon, mu, similarity)
    number, name = number_dtype(store), name_dtype(store)
    held = Representatives.needed(store)
    if similarity is None:
        first = Stage(by_neighbours(number, name), 3, held=held)
    else:
        first = Stage(by_column(number, name, similarity), 3, held=held)
    return [first, Stage(neighbouring(name), 1, held=held, headroom=_BESIDE)]
