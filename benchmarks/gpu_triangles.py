"""Triangles: all lists of neighbours on the device, and a device that holds a tenth of the pages, which lists pass."""

from __future__ import annotations

from typing import Any

from gpu_graphs import about, call, kronecker, middle, page_bytes
from gpu_section import Section, table

import penstock as pk
from penstock.graph import Graph


def run(section: Section) -> None:
    graph = kronecker(section, section.sizes.small)
    section.keep("graph", about(graph, section))
    section.step("cpu", _on_cpu, graph)
    section.step("whole", _one, section, graph, {})
    section.step("passing", _one, section, graph, {"gpu_memory_limit": _tenth(section, graph)})
    _show(section)


def _on_cpu(graph: Graph) -> dict[str, Any]:
    stats = pk.run("triangles", graph, device="cpu", per_vertex=False, progress=False).stats
    return {"run_seconds": stats["phases"]["run"], "orient_seconds": stats["phases"]["orient"],
            "triangles": stats["triangles"]}  # fmt: skip


def _tenth(section: Section, graph: Graph) -> int:
    """Of the pages; of the simulator's, which are few, as little as will do."""
    if not section.tiny:
        return page_bytes(graph) // 10
    smallest = pk.explain("triangles", graph, device="gpu", gpu_memory_limit=1 << 30, per_vertex=False).smallest_gpu
    assert smallest is not None
    return smallest


def _one(section: Section, graph: Graph, options: dict[str, Any]) -> dict[str, Any]:
    found = []
    for _ in range(1 + section.sizes.repeats):
        result, figures = call("triangles", graph, per_vertex=False, **options)
        stats = result.stats
        device = stats["gpu"]
        figures |= {
            "orient_seconds": stats["phases"]["orient"], "triangles": stats["triangles"], "source": device["source"],
            "ranges": len(stats["supersteps"]), "bytes_copied": device["bytes_copied"], "peak": device["ledger_peak"],
            "limit": device["memory_limit"], "arcs_per_second": graph.arcs / figures["run_seconds"],
        }  # fmt: skip
        found.append(figures)
    known = section.figures.get("cpu", {}).get("triangles")
    assert known in (None, found[0]["triangles"]), f"{found[0]['triangles']} triangles, but the CPU finds {known}"
    assert found[0]["peak"] <= found[0]["limit"]
    first, *rest = found
    best = middle(rest or found, "run_seconds")
    return {**best, "first_call_seconds": first["call_seconds"], "verified": "as many as the CPU finds"}


def _show(section: Section) -> None:
    found, rows = section.figures, []
    for name, what in (("cpu", "CPU"), ("whole", "all lists on the GPU"), ("passing", "lists that pass")):
        if one := found.get(name):
            beside = (str(one["ranges"]), f"{one['bytes_copied'] / 1e9:.2f}") if "ranges" in one else ("", "")
            rows.append((what, f"{one['run_seconds'] * 1e3:.1f}", f"{one['orient_seconds'] * 1e3:.0f}", *beside))
    title = f"Triangles, {found['graph']['graph']}, {found['graph']['arcs']:,} arcs"
    table(title, ("", "ms", "ms to make lists", "ranges", "GB copied"), rows)
