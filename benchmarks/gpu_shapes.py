"""PageRank on graphs of other shapes: skewed, where few vertices have most arcs, and uniform, where no cache helps."""

from __future__ import annotations

from typing import Any

from gpu_graphs import SKEWED, about, host, kronecker, middle, pagerank, uniform
from gpu_section import Section, table

from penstock.graph import Graph


def run(section: Section) -> None:
    scale = section.sizes.small
    makers = {
        "default": lambda: kronecker(section, scale),
        "skewed": lambda: kronecker(section, scale, quadrants=SKEWED),
        "uniform": lambda: uniform(section, scale),
    }
    for name, make in makers.items():
        section.step(name, _one, section, make, bare=name == "uniform")
    found = section.figures
    if "default" in found and "skewed" in found:
        slower = found["default"]["pagerank"]["arcs_per_second"] / found["skewed"]["pagerank"]["arcs_per_second"]
        section.keep("skewed_slower_per_arc", slower)
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
        gather = {"gather": gathers(arcs.offsets, arcs.neighbours)}
        del arcs
    graph.load(device="gpu")
    try:
        runs = [pagerank(graph, sizes)[1] for _ in range(1 + sizes.repeats)]
    finally:
        graph.unload()
    degrees = graph.store.vertex_column("out_degree").read(0, 1)
    return {
        "graph": about(graph, section) | {"largest_degree": int(degrees[0]) if len(degrees) else 0},
        "pagerank": middle(runs[1:] or runs, "seconds"), **gather,
    }  # fmt: skip


def _show(section: Section) -> None:
    found, rows = section.figures, []
    for name in ("default", "skewed", "uniform"):
        if one := found.get(name):
            pr, arcs = one["pagerank"], one["graph"]["arcs"]
            largest = f"{one['graph']['largest_degree']:,}"
            rows.append(
                (name, f"{arcs:,}", largest, f"{pr['seconds'] * 1e3:.2f}", f"{pr['arcs_per_second'] / 1e9:.1f}")
            )
            if "gather" in one:
                bare = one["gather"]
                rows.append(
                    ("  bare gather", "", "", f"{bare['seconds'] * 1e3:.2f}", f"{bare['arcs_per_second'] / 1e9:.1f}")
                )
    title = f"PageRank float32 by shape, scale {section.sizes.small}"
    table(title, ("", "arcs", "largest degree", "ms", "G arcs/s"), rows)
    if "skewed_slower_per_arc" in found:
        print(f"skewed is {found['skewed_slower_per_arc']:.2f} times slower per arc")
    if "uniform_share_of_gather" in found:
        print(f"uniform runs at {found['uniform_share_of_gather']:.2f} of the bare gather")
