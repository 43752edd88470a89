"""Several devices, or one that stands for several: pages dealt out (P) or state dealt out (S)."""

from __future__ import annotations

from typing import Any

import numpy as np
from common import median
from gpu_graphs import about, call, devoted, kronecker, pagerank, random_sources, values
from gpu_section import Section, table

from penstock.errors import DoesNotFit
from penstock.graph import Graph


def run(section: Section) -> None:
    sizes = section.sizes
    graph = kronecker(section, sizes.small)
    section.keep("graph", about(graph, section))
    known: dict[str, np.ndarray] = {}
    found: dict[str, Any] = {}
    for place, limit in (("resident", None), ("streamed", devoted(graph, 0.1, "bfs"))):
        for strategy in ("P", "S"):
            for count in sizes.devices:
                key = f"{place} {strategy} {count}"
                options = {"gpu_devices": count, "gpu_strategy": strategy, "gpu_memory_limit": limit}
                one = section.step(key, _fitted, section, graph, known, options)
                if one:
                    found[key] = section.figures.pop(key)
                    section.keep("runs", found)
    _show(section)


def _fitted(section: Section, graph: Graph, known: dict[str, np.ndarray], options: dict[str, Any]) -> dict[str, Any]:
    """With replicated state a device needs more: a limit that is too small grows to what is asked for."""
    while True:
        try:
            return _one(section, graph, known, options)
        except DoesNotFit as error:
            limit = options["gpu_memory_limit"]
            if limit is None or error.needed <= limit:
                raise
            # Room for batches of more than one page, where the graph has many.
            spare = graph.store.page_size * min(64, len(graph.store.direction("out")) // 8)
            options = options | {"gpu_memory_limit": error.needed + spare}


def _one(section: Section, graph: Graph, known: dict[str, np.ndarray], options: dict[str, Any]) -> dict[str, Any]:
    """PageRank and searches; all must agree with the first, which is one device's."""
    sizes = section.sizes
    # Two iterations compile all kernels: those of the last one count the change, too.
    call("pagerank", graph, dtype="float32", stop="fixed", max_iter=2, direct_io=False, **options)
    result, ranked = pagerank(graph, sizes, direct_io=False, **options)
    rank = values(result, "rank")
    first = known.setdefault("rank", rank.copy())
    off = float(np.abs(first.astype(np.float64) - rank).sum())
    assert off < 1e-3, f"the ranks differ from those of one device by {off} in all"
    sources = random_sources(graph, 1 + sizes.traversals, seed=5)[1]
    call("bfs", graph, source=sources[0], max_depth=section.shallow, direct_io=False, **options)
    searches = []
    for source in sources[1:]:
        result, one = call("bfs", graph, source=source, direct_io=False, **options)
        level = values(result, "level")
        assert np.array_equal(known.setdefault(f"level {source}", level.copy()), level), f"levels from {source} differ"
        searches.append(one)
    keys = ("superstep_seconds", "call_seconds", "bytes_copied")
    return {
        **options, "pagerank": ranked, "bfs": {key: median([one.get(key, 0) for one in searches]) for key in keys},
        "differs_from_one_device_by": off,
    }  # fmt: skip


def _show(section: Section) -> None:
    rows = [
        (
            name, f"{one['pagerank']['seconds'] * 1e3:.2f}", f"{one['pagerank']['arcs_per_second'] / 1e9:.1f}",
            f"{one['bfs']['superstep_seconds'] * 1e3:.2f}",
        )
        for name, one in section.figures.get("runs", {}).items()
    ]  # fmt: skip
    title = f"{section.figures['graph']['graph']} over logical devices of one GPU, strategies P and S"
    table(title, ("", "PageRank ms", "G arcs/s", "BFS ms"), rows)
