"""The whole graph on the GPU: PageRank beside cuSPARSE, breadth-first search, components, shortest paths; energy."""

from __future__ import annotations

import time
from typing import Any

import gpu_check
import numpy as np
from common import median
from gpu_graphs import about, call, host, kronecker, middle, pagerank, random_sources, values
from gpu_section import Section, table

from penstock.graph import Graph
from penstock.memory.topology import Resident
from penstock.observe.energy import Energy


def run(section: Section) -> None:
    sizes = section.sizes
    graph = kronecker(section, sizes.scale, weights=True)
    section.keep("graph", about(graph, section))
    into: dict[str, Resident] = {}
    section.step("host arcs", _host, graph, into)
    arcs = into.get("arcs")
    section.step("load", _load, graph)
    section.step("pagerank", _pagerank, section, graph, arcs)
    section.step("bfs", _bfs, section, graph, arcs)
    section.step("wcc", _wcc, section, graph, arcs)
    section.step("sssp", _sssp, section, graph, arcs)
    section.step("energy", _energy, section, graph)
    graph.unload()
    if arcs is not None:
        from gpu_kernels import cusparse

        section.step("cusparse", cusparse, arcs.offsets, arcs.neighbours)
    _show(section)


def _host(graph: Graph, into: dict[str, Resident]) -> dict[str, float]:
    began = time.perf_counter()
    into["arcs"] = host(graph, ("weight",))
    return {"seconds": time.perf_counter() - began}


def _load(graph: Graph) -> dict[str, float]:
    began = time.perf_counter()
    graph.load(device="gpu", columns=["weight"])
    seconds = time.perf_counter() - began
    assert graph.card is not None
    return {"seconds": seconds, "device_bytes": graph.card.ledger.used}


def _pagerank(section: Section, graph: Graph, arcs: Resident | None) -> dict[str, Any]:
    sizes = section.sizes
    first, *runs = [pagerank(graph, sizes)[1] for _ in range(1 + sizes.repeats)]
    runs = runs or [first]
    found = middle(runs, "seconds")
    found |= {"first_call_seconds": first["call_seconds"], "all_seconds": [run["seconds"] for run in runs]}
    few = sizes.checked_iterations
    result, _ = call("pagerank", graph, dtype="float32", stop="fixed", max_iter=few)
    if arcs is not None:
        wrong = gpu_check.pagerank(graph, arcs, values(result, "rank"), few)
        found["verified"] = gpu_check.settled(wrong) and f"{few} iterations, again on the CPU in float64"
    return found


def _bfs(section: Section, graph: Graph, arcs: Resident | None) -> dict[str, Any]:
    sizes = section.sizes
    degrees = graph.store.vertex_column("out_degree").read(0, graph.store.active).astype(np.int64)
    _, first = call("bfs", graph, source=random_sources(graph, 1, seed=3)[1][0], max_depth=section.shallow)
    numbers, sources = random_sources(graph, sizes.sources)
    # One after the other: between them the GPU would slow its clocks down.
    done = [call("bfs", graph, source=source) for source in sources]
    runs, verified = [], 0
    for number, source, (result, found) in zip(numbers, sources, done, strict=True):
        level = values(result, "level")
        edges = int(degrees[level != gpu_check.FAR].sum()) // 2
        runs.append({**found, "source": source, "edges": edges})
        if arcs is not None and verified < sizes.verified:
            gpu_check.settled(gpu_check.bfs(arcs, level, values(result, "parent"), int(number)))
            verified += 1
    # A source in a small component has no rate to speak of.
    counted = [run for run in runs if run["edges"] > graph.edges // 2] or runs

    def harmonic(key: str, runs: list[dict[str, Any]] = counted) -> float:
        return len(runs) / sum(run[key] / max(1, run["edges"]) for run in runs)

    return {
        "teps": harmonic("superstep_seconds"), "teps_whole_call": harmonic("call_seconds"),
        "teps_of_all_sources": harmonic("superstep_seconds", runs),
        "seconds": median([run["superstep_seconds"] for run in counted]),
        "call_seconds": median([run["call_seconds"] for run in counted]),
        "sources": len(runs), "counted": len(counted), "verified": f"{verified} of {len(runs)} trees, every arc",
        "first_call_seconds": first["call_seconds"], "runs": runs,
    }  # fmt: skip


def _wcc(section: Section, graph: Graph, arcs: Resident | None) -> dict[str, Any]:
    first, *runs = [call("wcc", graph) for _ in range(1 + section.sizes.repeats)]
    runs = sorted(runs or [first], key=lambda run: run[1]["call_seconds"])
    result, best = runs[len(runs) // 2]
    best["first_call_seconds"] = first[1]["call_seconds"]
    if arcs is not None:
        # From a vertex of the largest component: that of the most arcs.
        hub = int(graph.store.ids.values.read(0, 1)[0])
        search, _ = call("bfs", graph, source=hub)
        level = values(search, "level")
        gpu_check.settled(gpu_check.bfs(arcs, level, values(search, "parent"), 0))
        wrong = gpu_check.wcc(graph, arcs, values(result, "component"), level)
        best["verified"] = gpu_check.settled(wrong) and "every arc; names; connected"
    return best


def _sssp(section: Section, graph: Graph, arcs: Resident | None) -> dict[str, Any]:
    sizes = section.sizes
    numbers, sources = random_sources(graph, 1 + sizes.repeats, seed=4)
    options = {"parents": True, "dtype": "float32", "delta": sizes.delta}
    runs: list[dict[str, Any]] = []
    verified = 0
    done = [call("sssp", graph, source=source, **options) for source in sources]
    for number, source, (result, found) in zip(numbers, sources, done, strict=True):
        distance = values(result, "distance")
        reached = int(np.isfinite(distance).sum())
        runs.append({**found, "source": source, "reached": reached})
        if arcs is not None:
            gpu_check.settled(gpu_check.sssp(arcs, distance, values(result, "parent"), int(number)))
            verified += 1
    counted = [run for run in runs[1:] if run["reached"] > graph.store.active // 2] or runs
    return {
        **{key: median([run[key] for run in counted]) for key in ("call_seconds", "run_seconds", "superstep_seconds")},
        "counted": len(counted), "verified": f"{verified} of {len(runs)}, every arc and parent",
        "first_call_seconds": runs[0]["call_seconds"], "runs": runs,
    }  # fmt: skip


def _energy(section: Section, graph: Graph) -> dict[str, Any] | None:
    """Long enough for the counter. Idling and the host's part of each call are in it."""
    sizes = section.sizes
    known = section.figures
    found: dict[str, Any] = {}
    each = known["pagerank"]["seconds"] if "pagerank" in known else 0.1
    iterations = max(sizes.iterations, int(sizes.metered / each))
    with Energy() as meter:
        call("pagerank", graph, dtype="float32", stop="fixed", max_iter=iterations)
    found["pagerank"] = _figures(meter, graph.arcs * iterations, {"iterations": iterations})
    sources, count, edges = random_sources(graph, sizes.sources)[1], 0, 0
    reached = {run["source"]: run["edges"] for run in known.get("bfs", {}).get("runs", [])}
    with Energy() as meter:
        began = time.perf_counter()
        while not count or time.perf_counter() - began < sizes.metered:
            source = sources[count % len(sources)]
            call("bfs", graph, source=source)
            edges += reached.get(source, 0)
            count += 1
    # An undirected edge is two arcs.
    found["bfs"] = _figures(meter, 2 * edges, {"traversals": count})
    return found


def _figures(meter: Energy, arcs: int, beside: dict[str, Any]) -> dict[str, Any]:
    figures = meter.figures(arcs)
    return {"seconds": meter.seconds, "arcs": arcs, **beside, **(figures.as_dict() if figures else {"joules": None})}


def _show(section: Section) -> None:
    found = section.figures
    rows = []
    if pr := found.get("pagerank"):
        rate = f"{pr['arcs_per_second'] / 1e9:.1f} G arcs/s"
        rows.append(
            ("PageRank float32, an iteration", f"{pr['seconds'] * 1e3:.2f}", "", rate, pr.get("verified", "no"))
        )
    if cs := found.get("cusparse"):
        rows.append(
            (
                "cuSPARSE SpMV float32",
                f"{cs['seconds'] * 1e3:.2f}",
                "",
                f"{cs['arcs_per_second'] / 1e9:.1f} G arcs/s",
                "",
            )
        )
    if bfs := found.get("bfs"):
        rate = f"{bfs['teps'] / 1e9:.1f} GTEPS, {bfs['teps_whole_call'] / 1e9:.1f} by call"
        times = f"{bfs['seconds'] * 1e3:.2f}", f"{bfs['call_seconds'] * 1e3:.1f}"
        rows.append((f"BFS, {bfs['counted']} of {bfs['sources']} sources", *times, rate, bfs["verified"]))
    for name in ("wcc", "sssp"):
        if one := found.get(name):
            times = f"{one['run_seconds'] * 1e3:.1f}", f"{one['call_seconds'] * 1e3:.1f}"
            rows.append((name.upper(), *times, "", one.get("verified", "no")))
    arcs = found["graph"]["arcs"]
    table(
        f"{found['graph']['graph']}, {arcs:,} arcs, all on the GPU",
        ("", "run ms", "whole call ms", "rate", "verified"), rows,
    )  # fmt: skip
    energy = [
        (
            name,
            f"{e['joules']:.1f}",
            f"{e['watts']:.0f}",
            f"{e['arcs_per_joule'] / 1e6:.0f}",
            f"{e['energy_delay']:.1f}",
        )
        for name, e in (found.get("energy") or {}).items()
        if e["joules"] is not None
    ]
    if energy:
        table("Energy", ("", "joules", "watts", "M arcs per joule", "joule seconds"), energy)
