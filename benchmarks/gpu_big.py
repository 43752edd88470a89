"""Two billion arcs under 2 GiB of device memory: the four algorithms finish, and are right."""

from __future__ import annotations

import shutil
from typing import Any

import gpu_check
from gpu_graphs import about, call, generated, host, kronecker, random_sources, values
from gpu_section import Section, table

from penstock.errors import DoesNotFit
from penstock.graph import Graph
from penstock.memory.topology import Resident

_ARC_BYTES = 8
_AFTER = 110.0
"""Seconds that the runs and checks take, besides making the graph: 80 where kernels were compiled before."""


def run(section: Section) -> None:
    sizes = section.sizes
    name = f"k{sizes.big}w"
    if not (section.folder / f"{name}.pen").exists() and not section.tiny:
        seconds, room = _guess(section), 3 * _ARC_BYTES * (32 << sizes.big)
        free = shutil.disk_usage(section.folder).free
        print(
            f"  making {name} will take about {seconds:.0f} s and up to {room / 1e9:.0f} GB of {free / 1e9:.0f} GB free"
        )
        if seconds + _AFTER > section.left:
            why = f"skipped: making {name} would take {seconds:.0f} s, runs and checks {_AFTER:.0f} s more"
            section.fail("graph", f"{why}, and {section.left:.0f} s are left; give more by --cap or a --folder with it")
            return
        if free < room:
            print("  that may not be enough; trying all the same", flush=True)
    graph = kronecker(section, sizes.big, weights=True)
    section.keep("graph", about(graph, section) | {"gpu_memory_limit": sizes.big_limit})
    into: dict[str, Resident] = {}
    section.step("host arcs", _host, graph, into)
    arcs = into.get("arcs")
    number, source = (one[0] for one in random_sources(graph, 1, seed=6))
    limits = {"gpu_memory_limit": sizes.big_limit, "direct_io": False}
    searched: dict[str, Any] = {}
    if not section.tiny:
        section.step("warm up", _warm_up, section, limits)
        section.figures.pop("warm up", None)
    section.step("bfs", _bfs, graph, arcs, limits, searched)
    section.step("pagerank", _pagerank, graph, arcs, limits, sizes.checked_iterations)
    section.step("wcc", _wcc, graph, arcs, limits, searched)
    section.step("sssp", _sssp, graph, arcs, limits | {"delta": sizes.delta}, int(number), source)
    _show(section)


def _guess(section: Section) -> float:
    """From a graph that was made here, if one was; else from 20 million edges a second."""
    sizes, known = section.sizes, generated(section.folder)
    seconds = known.get(f"k{sizes.scale}w")
    if seconds is not None and sizes.scale < sizes.big:
        return 1.15 * seconds * 2.0 ** (sizes.big - sizes.scale)
    return (16 << sizes.big) / 20e6


def _call(name: str, graph: Graph, gpu_memory_limit: int, **options: Any) -> tuple[Any, dict[str, Any]]:
    """Under the limit; one that only the tiny graph can be asked to keep grows to the least that will do."""
    while True:
        try:
            return call(name, graph, gpu_memory_limit=gpu_memory_limit, **options)
        except DoesNotFit as error:
            if gpu_memory_limit > 1 << 20 or error.needed <= gpu_memory_limit:
                raise
            gpu_memory_limit = error.needed


def _warm_up(section: Section, limits: dict[str, Any]) -> dict[str, Any]:
    """The same on a small graph: what follows finds its kernels."""
    graph = kronecker(section, 16, weights=True)
    source = int(graph.store.ids.values.read(0, 1)[0])
    limits = limits | {"gpu_memory_limit": limits["gpu_memory_limit"] >> 8}
    _bfs(graph, None, limits, {})
    _pagerank(graph, None, limits, 2)
    _wcc(graph, None, limits, {})
    _sssp(graph, None, limits, 0, source)
    return {}


def _host(graph: Graph, into: dict[str, Resident]) -> dict[str, int]:
    into["arcs"] = host(graph, ("weight",))
    return {"bytes": into["arcs"].nbytes}


def _bfs(graph: Graph, arcs: Resident | None, limits: dict[str, Any], into: dict[str, Any]) -> dict[str, Any]:
    """From the vertex of the most arcs, which is in the largest component."""
    result, found = _call("bfs", graph, source=int(graph.store.ids.values.read(0, 1)[0]), **limits)
    if arcs is not None:
        level = values(result, "level")
        gpu_check.settled(gpu_check.bfs(arcs, level, values(result, "parent"), 0))
        into["level"] = level
        found["verified"] = "every arc, level and parent"
    return found


def _pagerank(graph: Graph, arcs: Resident | None, limits: dict[str, Any], iterations: int) -> dict[str, Any]:
    result, found = _call("pagerank", graph, dtype="float32", stop="fixed", max_iter=iterations, **limits)
    found["iterations"] = iterations
    if arcs is not None:
        gpu_check.settled(gpu_check.pagerank(graph, arcs, values(result, "rank"), iterations))
        found["verified"] = f"{iterations} iterations, again on the CPU in float64"
    return found


def _wcc(graph: Graph, arcs: Resident | None, limits: dict[str, Any], searched: dict[str, Any]) -> dict[str, Any]:
    result, found = _call("wcc", graph, **limits)
    if arcs is not None and "level" in searched:
        gpu_check.settled(gpu_check.wcc(graph, arcs, values(result, "component"), searched["level"]))
        found["verified"] = "every arc; names; connected"
    return found


def _sssp(graph: Graph, arcs: Resident | None, limits: dict[str, Any], number: int, source: int) -> dict[str, Any]:
    result, found = _call("sssp", graph, source=source, parents=True, dtype="float32", **limits)
    if arcs is not None:
        gpu_check.settled(gpu_check.sssp(arcs, values(result, "distance"), values(result, "parent"), number))
        found["verified"] = "every arc and parent"
    return found


def _show(section: Section) -> None:
    found = section.figures
    rows = [
        (
            name, f"{one['run_seconds']:.2f}", f"{one['call_seconds']:.1f}",
            f"{one.get('bytes_copied', 0) / 1e9:.1f}", one.get("verified", "no"),
        )
        for name in ("pagerank", "bfs", "wcc", "sssp")
        if (one := found.get(name))
    ]  # fmt: skip
    known = found["graph"]
    title = f"{known['graph']}, {known['arcs']:,} arcs, gpu_memory_limit {known['gpu_memory_limit'] / 2**30:.3g} GiB"
    table(title, ("", "run s", "whole call s", "GB copied", "verified"), rows)
