"""PageRank: how often a random surfer is at each vertex.

Returns   a float per vertex; they sum to 1.
Needs     the incoming arcs of a directed graph; of an undirected one, its arcs.
Defined   r'(v) = (1-d)/n + d * sum_{u->v} r(u)/out(u) + d/n * sum_{u: out(u)=0} r(u),  r0 = 1/n
Passes    one over the arcs per iteration, each page read at most once.
Ref       Page et al. 1999; LDBC Graphalytics 2.3.2
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from penstock.config import Settings
from penstock.errors import DoesNotFit, UsageError
from penstock.graph import Graph
from penstock.memory.device import kernel, parallel_kernel, prange, use_threads
from penstock.memory.ledger import Ledger
from penstock.memory.pages import PageFeed
from penstock.observe.progress import progress
from penstock.observe.stats import Stats
from penstock.result import Result
from penstock.store.encodings import Block
from penstock.store.index import LARGE


@kernel(fastmath=True)
def pull(offsets, neighbours, first_vertex, contribution, rank, base, damping):
    """One page of whole vertices: gather what neighbours contribute; returns how much the ranks changed."""
    change = 0.0
    begin = np.uint64(offsets[0])
    for i in range(np.uint64(offsets.size - 1)):
        end = np.uint64(offsets[i + np.uint64(1)])
        total = contribution.dtype.type(0)
        for a in range(begin, end):
            total += contribution[neighbours[a]]
        begin = end
        v = np.uint64(first_vertex) + i
        new = base + damping * total
        change += abs(new - rank[v])
        rank[v] = new
    return change


@kernel(fastmath=True)
def gather_part(neighbours, contribution):
    """One part of a large vertex."""
    total = contribution.dtype.type(0)
    for a in range(np.uint64(neighbours.size)):
        total += contribution[neighbours[a]]
    return total


@parallel_kernel()
def contribute(rank, out_degree, contribution, threads):
    """What each vertex gives along an arc; returns the rank of those that have none to give along."""
    n, t_count = np.uint64(rank.size), np.uint64(threads)
    lost = np.zeros(threads * 8, np.float64)
    for t in prange(threads):
        mine = 0.0
        for v in range(n * np.uint64(t) // t_count, n * np.uint64(t + 1) // t_count):
            if out_degree[v] > 0:
                contribution[v] = rank[v] / out_degree[v]
            else:
                contribution[v] = 0
                mine += rank[v]
        lost[t * 8] = mine
    return lost.sum()


def pagerank(
    graph: Graph,
    settings: Settings,
    *,
    damping: float = 0.85,
    tol: float = 1e-6,
    max_iter: int = 100,
    dtype: str = "float64",
) -> Result:
    """Rank until the ranks change by less than `tol` in total (L1), or `max_iter` times."""
    _check(damping, tol, max_iter, dtype)
    store, stats = graph.store, Stats()
    if not store.has_direction("in"):
        raise UsageError(f"{store.path} stores no incoming arcs, which PageRank pulls along: build it with them")
    direction, n, active = store.direction("in"), store.vertices, store.active
    if n == 0:
        return Result(store.ids, {"rank": np.zeros(0, dtype)}, {"rank": 0.0}, stats.as_dict())
    ledger = Ledger(settings.memory_limit)
    use_threads(settings.threads)
    real = np.dtype(dtype).type
    _check_fits(direction.store.page_size, active, np.dtype(dtype).itemsize, direction.records.nbytes, settings)
    with ledger.scope("pagerank") as scope:
        scope.reserve(direction.records.nbytes, "page index")
        rank = ledger.empty(active, dtype, "rank")  # the result: it outlives the scope
        contribution = scope.empty(active, dtype, "contribution")
        degrees = store.degree_column("out")
        out_degree = scope.empty(active, degrees.dtype, "out-degrees")
        degrees.read(0, active, out=out_degree)
        rank[:] = 1 / n
        isolated = 1 / n
        changes = np.zeros(settings.threads)
        pages = np.arange(len(direction))
        large = np.flatnonzero(direction.records["kind"] == LARGE)
        parts = np.zeros(len(direction), np.float64)
        seconds: list[float] = []
        total_arcs = direction.arcs * max_iter
        with (
            PageFeed(direction, ledger, settings, policy="resident") as feed,
            progress("pagerank", total=total_arcs, unit="arcs", settings=settings) as bar,
        ):
            residual = np.inf
            for iteration in range(max_iter):
                began = time.perf_counter()
                lost = contribute(rank, out_degree, contribution, settings.threads) + isolated * (n - active)
                base = (1 - damping) / n + damping * lost / n
                changes[:] = 0

                def work(worker: int, page: int, block: Block, _: Any, base: float = base) -> None:
                    if direction.records[page]["kind"] == LARGE:
                        parts[page] = gather_part(block.neighbours, contribution)
                    else:
                        changes[worker] += pull(
                            block.offsets,
                            block.neighbours,
                            block.first_vertex,
                            contribution,
                            rank,
                            real(base),
                            real(damping),
                        )
                    bar.advance(len(block.neighbours))

                feed.run(pages, work)
                residual = changes.sum() + _finish_large(direction.records, large, parts, rank, base, damping)
                residual += abs(base - isolated) * (n - active)
                isolated = base
                seconds.append(time.perf_counter() - began)
                bar.update(done=direction.arcs * (iteration + 1), residual=f"{residual:.1e}")
                if residual < tol:
                    bar.update(total=direction.arcs * (iteration + 1))
                    break
            io = feed.stats
    iterations = len(seconds)
    stats.note(
        algorithm="pagerank",
        damping=damping,
        tol=tol,
        dtype=dtype,
        iterations=iterations,
        residual=float(residual),
        converged=bool(residual < tol),
        arcs_per_second=direction.arcs * iterations / max(sum(seconds), 1e-9),
        bytes_per_second=io["bytes_read"] / max(sum(seconds), 1e-9),
        bytes_read=io["bytes_read"],
        page_bytes=len(direction) * store.page_size,
        cache_hits=io["hits"],
        iteration_seconds=seconds,
        memory_limit=settings.memory_limit,
        ledger_peak=ledger.peak,
    )
    return Result(store.ids, {"rank": rank}, {"rank": isolated}, stats.as_dict())


def _finish_large(
    records: np.ndarray, large: np.ndarray, parts: np.ndarray, rank: np.ndarray, base: float, damping: float
) -> float:
    """Update the vertices that span several pages, once all their parts are gathered."""
    if not len(large):
        return 0.0
    vertices, starts = np.unique(records["first_vertex"][large], return_index=True)
    new = base + damping * np.add.reduceat(parts[large], starts)
    change = float(np.abs(new - rank[vertices]).sum())
    rank[vertices] = new
    return change


def _check(damping: float, tol: float, max_iter: int, dtype: str) -> None:
    if not 0 <= damping < 1:
        raise UsageError(f"damping must be at least 0 and less than 1, not {damping}")
    if not tol >= 0:
        raise UsageError(f"tol must not be negative, not {tol}")
    if max_iter < 1:
        raise UsageError(f"max_iter must be at least 1, not {max_iter}")
    if dtype not in ("float32", "float64"):
        raise UsageError(f"dtype must be float32 or float64, not {dtype!r}")


def _check_fits(page_size: int, active: int, width: int, index_bytes: int, settings: Settings) -> None:
    """Say what would be enough before anything starts."""
    frames = (settings.threads + 2) * page_size
    needed = active * (2 * width + 8) + index_bytes + frames + (1 << 20)
    if needed > settings.memory_limit:
        raise DoesNotFit(f"PageRank of {active:,} vertices", needed=needed, limit=settings.memory_limit)
