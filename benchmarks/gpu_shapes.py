"""PageRank on graphs of other shapes: in the order of input, where pages mix degrees, skewed, where few vertices have
most arcs, uniform, where no cache helps, and a grid, whose vertices have few; beside this machine's CPU."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from common import median
from gpu_graphs import SKEWED, about, grid, host, kronecker, middle, pagerank, uniform
from gpu_section import Section, table

import penstock as pk
from penstock.graph import Graph


def run(section: Section) -> None:
    scale = section.sizes.small
    makers = {
        "default": lambda: kronecker(section, scale),
        "input order": lambda: kronecker(section, scale, order="input"),
        "skewed": lambda: kronecker(section, scale, quadrants=SKEWED),
        "uniform": lambda: uniform(section, scale),
        "grid": lambda: grid(section, scale),
    }
    for name, make in makers.items():
        section.step(name, _one, section, make, bare=name == "uniform")
    found = section.figures
    for name in ("input order", "skewed"):
        if "default" in found and name in found:
            slower = found["default"]["pagerank"]["arcs_per_second"] / found[name]["pagerank"]["arcs_per_second"]
            section.keep(f"{name.replace(' ', '_')}_slower_per_arc", slower)
    if "uniform" in found:
        one = found["uniform"]
        section.keep("uniform_share_of_gather", one["pagerank"]["arcs_per_second"] / one["gather"]["arcs_per_second"])
    _show(section)


def _one(section: Section, make: Any, *, bare: bool) -> dict[str, Any]:
    graph: Graph = make()
    sizes, gather = section.sizes, {}
    if bare:
        from gpu_kernels import gathers

        arcs = host(graph)
        # The bound has had offsets of 64 bits from the start: so it stays the same from record to record.
        gather = {"gather": gathers(arcs.offsets.astype(np.uint64), arcs.neighbours)}
        del arcs
    graph.load(device="gpu")
    try:
        runs = [pagerank(graph, sizes)[1] for _ in range(1 + sizes.repeats)]
    finally:
        graph.unload()
    # The first four compile, and touch their memory for the first time.
    steps = pk.run("pagerank", graph, device="cpu", dtype="float32", stop="fixed", max_iter=12, progress=False).stats
    seconds = median([step["seconds"] for step in steps["supersteps"][4:]])
    largest = graph.store.direction("out").records["largest_degree"].max(initial=0)
    return {
        "graph": about(graph, section) | {"largest_degree": int(largest)},
        "pagerank": middle(runs[1:] or runs, "seconds"), **gather,
        "cpu": {"seconds": seconds, "arcs_per_second": graph.arcs / seconds, "cores": os.cpu_count()},
    }  # fmt: skip


def _show(section: Section) -> None:
    found, rows = section.figures, []
    for name in ("default", "input order", "skewed", "uniform", "grid"):
        if one := found.get(name):
            largest = f"{one['graph']['largest_degree']:,}"
            rows.append((name, f"{one['graph']['arcs']:,}", largest, *_rate(one["pagerank"])))
            rows += [("  bare gather", "", "", *_rate(one["gather"]))] if "gather" in one else []
            rows.append((f"  {one['cpu']['cores']} cores", "", "", *_rate(one["cpu"])))
    title = f"PageRank float32 by shape, scale {section.sizes.small}"
    table(title, ("", "arcs", "largest degree", "ms", "G arcs/s"), rows)
    for name in ("input order", "skewed"):
        if slower := found.get(f"{name.replace(' ', '_')}_slower_per_arc"):
            print(f"{name} is {slower:.2f} times slower per arc")
    if "uniform_share_of_gather" in found:
        print(f"uniform runs at {found['uniform_share_of_gather']:.2f} of the bare gather")


def _rate(one: dict[str, Any]) -> tuple[str, str]:
    return f"{one['seconds'] * 1e3:.2f}", f"{one['arcs_per_second'] / 1e9:.1f}"
