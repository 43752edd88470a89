"""Every algorithm, whole calls: all arcs on the GPU, beside all threads of the CPU with all arcs in memory. What a call
takes besides supersteps shows where algorithms of several programs wait for the host."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from gpu_graphs import about, call, kronecker, middle, values
from gpu_section import Section, table

import penstock as pk
from penstock.graph import Graph

FEW = 4
"""Sources, samples, iterations of what would take long."""


def options(graph: Graph) -> dict[str, dict[str, Any]]:
    """Of the algorithms that go over many arcs."""
    busy = [int(one) for one in graph.store.ids.values.read(0, FEW)]
    fixed = {"max_iter": 10, "tol": 0.0}
    return {
        "pagerank": {"max_iter": 10, "stop": "fixed"}, "ppr": {"source": busy[0], **fixed}, "hits": fixed,
        "bfs": {"source": busy[0]}, "betweenness": {"sources": busy},
        "sssp": {"source": busy[0], "weight": "weight", "dtype": "float32", "parents": True},
        "closeness": {"samples": min(64, graph.vertices)}, "radius": {"max_iter": FEW},
        "wcc": {}, "scc": {}, "cdlp": {"max_iter": FEW}, "kcore": {}, "triangles": {}, "lcc": {},
        "scan": {},
    }  # fmt: skip


def run(section: Section) -> None:
    graph = kronecker(section, section.sizes.scale if section.tiny else section.sizes.small - 2, weights=True)
    section.keep("graph", about(graph, section))
    chosen = options(graph)
    graph.load(device="gpu", columns=["weight"])
    results = {}
    for name, given in chosen.items():
        results[name] = section.step(f"{name} on GPU", _on_gpu, section, name, graph, given)
    graph.unload()
    graph.load(columns=["weight"])
    for name, given in chosen.items():
        # The CPU's kernels are compiled first, which takes longer than all else here.
        if section.left > 10 and results[name]:
            section.step(f"{name} on CPU", _on_cpu, section, name, graph, given)
    graph.unload()
    _show(section, list(chosen))


_FOUND: dict[str, np.ndarray] = {}


def _on_gpu(section: Section, name: str, graph: Graph, given: dict[str, Any]) -> dict[str, Any]:
    found = []
    for _ in range(1 + section.sizes.repeats):
        result, figures = call(name, graph, **given)
        assert "why_not_gpu" not in result.stats, result.stats["why_not_gpu"]
        found.append(figures)
    _FOUND[name] = values(result, result.schema.names[1])
    first, *rest = found
    return {**middle(rest or found, "call_seconds"), "first_call_seconds": first["call_seconds"]}


def _on_cpu(section: Section, name: str, graph: Graph, given: dict[str, Any]) -> dict[str, Any]:
    seconds = []
    for _ in range(1 + min(1, section.sizes.repeats)):
        began = time.perf_counter()
        result = pk.run(name, graph, device="cpu", progress=False, **given)
        seconds.append(time.perf_counter() - began)
    np.testing.assert_allclose(_FOUND[name], values(result, result.schema.names[1]), rtol=1e-4, atol=1e-12)
    return {"call_seconds": seconds[-1], "first_call_seconds": seconds[0], "verified": "the same as on the GPU"}


def _show(section: Section, names: list[str]) -> None:
    rows = []
    for name in names:
        on_gpu, on_cpu = (section.figures.get(f"{name} on {device}") for device in ("GPU", "CPU"))
        if on_gpu:
            whole, steps = on_gpu["call_seconds"], on_gpu["superstep_seconds"]
            slow = on_cpu["call_seconds"] if on_cpu else None
            beside = ("", "") if slow is None else (f"{slow * 1e3:.1f}", f"{slow / whole:.1f}")
            rows.append((name, f"{whole * 1e3:.1f}", f"{steps * 1e3:.1f}", *beside))
    graph = section.figures["graph"]
    title = f"Whole calls, {graph['graph']}, {graph['arcs']:,} arcs"
    table(title, ("", "GPU, ms", "of it supersteps", "CPU, ms", "times as long"), rows)
