"""Pages streamed to the GPU from pinned host memory: how near to the rate of bare copies, with how many streams, and
with how much of the graph cached on the device."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from unittest import mock

from common import median
from gpu_graphs import about, call, card, devoted, kronecker, page_bytes, pagerank, random_sources
from gpu_section import Section, table
from gpu_timeline import busy, lanes

from penstock.config import settings
from penstock.graph import Graph
from penstock.memory import frames
from penstock.observe.events import recording
from penstock.observe.trace import write_trace

STREAMS = settings().gpu_streams
"""What a user has who says nothing."""


def run(section: Section) -> None:
    from gpu_kernels import pinned_rate

    sizes = section.sizes
    graph = kronecker(section, sizes.scale, weights=True)
    section.keep("graph", about(graph, section))
    rates: list[float] = []

    def measure() -> list[float]:
        rates.append(pinned_rate(sizes.pinned))
        return rates

    section.step("pinned_rates", measure)
    tenth = _tenth(section, graph)
    if not section.tiny:
        section.step("warm up", _pair, section, graph, tenth, 0.1, STREAMS)
        section.figures.pop("warm up", None)
    streams: dict[str, Any] = {}
    for count in sizes.streams:
        found = section.step(f"{count} streams", _pair, section, graph, tenth, 0.1, count)
        streams |= {str(count): section.figures.pop(f"{count} streams")} if found else {}
        section.keep("streams", streams)
    section.step("again", _again, section, graph, tenth)
    section.step("bfs copied", _copied, section, graph, 0.1)
    section.step("timeline", _timeline, section, graph)
    section.step("pinned_rates", measure)
    cached: dict[str, Any] = {}
    for share in sizes.cached:
        limit = devoted(graph, share / 100)
        found = section.step(f"{share} % cached", _pair, section, graph, limit, share / 100, STREAMS)
        cached |= {str(share): section.figures.pop(f"{share} % cached")} if found else {}
        section.keep("cached", cached)
    section.step("pinned_rates", measure)
    if rates:
        section.keep("pinned_rate", median(rates))
        section.step("shares", _shares, section)
    _show(section)


def _again(section: Section, graph: Graph, limit: int) -> list[float]:
    """Bytes per second of PageRank as the default has it, each time in memory of its own: where pages lie matters."""
    found = []
    for _ in range(section.sizes.repeats):
        with card(graph, gpu_streams=STREAMS, gpu_memory_limit=limit):
            _, ranked = pagerank(graph, replace(section.sizes, iterations=min(section.sizes.iterations, 16)))
        found.append(ranked["bytes_per_second"])
    return found


def _tenth(section: Section, graph: Graph) -> int:
    """A tenth of the graph; a tiny graph's state takes more."""
    return (devoted(graph, 0.1) or 0) if section.tiny else page_bytes(graph) // 10


def _pair(section: Section, graph: Graph, limit: int | None, share: float, streams: int) -> dict[str, Any]:
    """PageRank under a limit, and some searches with so much of the graph cached: their state takes more."""
    sizes = section.sizes
    with card(graph, gpu_streams=streams, gpu_memory_limit=limit):
        # Those after the first eight count: of a second and more, enough.
        _, ranked = pagerank(graph, replace(sizes, iterations=min(sizes.iterations, 16)))
    # Which pages stay differs: a search has a cache of its own.
    beside = devoted(graph, share, "bfs")
    bfs = _searches(section, graph, beside, streams)
    return {"limit": limit, "bfs_limit": beside, "streams": streams, "pagerank": ranked, "bfs": bfs}


def _searches(section: Section, graph: Graph, limit: int | None, streams: int) -> dict[str, Any]:
    with card(graph, gpu_streams=streams, gpu_memory_limit=limit):
        sources = random_sources(graph, 1 + section.sizes.traversals, seed=5)[1]
        call("bfs", graph, source=sources[0], max_depth=section.shallow)  # loads the pages
        searches = [call("bfs", graph, source=source)[1] for source in sources[1:]]
    keys = ("superstep_seconds", "call_seconds", "bytes_copied", "hits", "in_place")
    return {key: median([one.get(key, 0) for one in searches]) for key in keys} | {"searches": searches}


def _copied(section: Section, graph: Graph, share: float) -> dict[str, Any]:
    """Searches that copy all pages they want, where they would read some in place."""
    with mock.patch.object(frames, "span", return_value=None):
        return _searches(section, graph, devoted(graph, share, "bfs"), STREAMS)


def _timeline(section: Section, graph: Graph) -> dict[str, Any]:
    """What streams do with a tenth of the pages cached: transfer against kernels, and how much of both at a time. A run
    that is recorded waits for each visit. The traces lie beside the results."""
    found: dict[str, Any] = {}
    source = random_sources(graph, 1, seed=5)[1][0]
    for name, options in (
        ("pagerank", {"dtype": "float32", "stop": "fixed", "max_iter": min(section.sizes.iterations, 4)}),
        ("bfs", {"source": source, "max_depth": section.shallow}),
    ):
        with card(graph, gpu_streams=STREAMS, gpu_memory_limit=devoted(graph, 0.1, name)):
            call(name, graph, **options)  # compiles, and loads the pages
            with recording() as events:
                call(name, graph, **options)
        one = found[name] = busy(lanes(events))
        one["kernel_times_transfer"] = one.get("kernel seconds", 0.0) / max(one.get("copy seconds", 0.0), 1e-9)
        write_trace(section.beside(f"gpu-{name}-trace.json"), events, {"benchmark": f"{name}, streamed to a GPU"})
    return found


def _shares(section: Section) -> dict[str, Any]:
    """Against bare copies; with pages cached, the time against that of copying the others or of the kernels alone."""
    found, rate = section.figures, section.figures["pinned_rate"]
    streams, cached = found.get("streams", {}), found.get("cached", {})
    shares: dict[str, Any] = {}
    for count, one in streams.items():
        if "bytes_per_second" in one["pagerank"]:
            shares[f"{count} streams"] = one["pagerank"]["bytes_per_second"] / rate
    if f"{STREAMS} streams" in shares:
        each = [shares[f"{STREAMS} streams"], *(again / rate for again in found.get("again", ()))]
        shares |= {"a tenth": median(each), "a tenth, each time": each}
    kernels = cached.get("100", {}).get("pagerank", {}).get("seconds", 0.0)
    for share, one in cached.items():
        copied = one["pagerank"].get("bytes_copied", 0)
        bound = max(copied / rate, kernels)
        if bound:
            one["bound_seconds"] = bound
            shares[f"{share} % cached, times the bound"] = one["pagerank"]["seconds"] / bound
    return shares


def _show(section: Section) -> None:
    found = section.figures
    rate = found.get("pinned_rate")
    if rate is None:
        return
    rows = []
    for kind in ("streams", "cached"):
        for name, one in found.get(kind, {}).items():
            ranked, bfs = one["pagerank"], one["bfs"]
            moved = ranked.get("bytes_per_second")
            limit = f"{one['limit'] / 1e6:.0f}" if one["limit"] else "none"
            rows.append((
                f"{name} streams" if kind == "streams" else f"{name} % cached", limit,
                f"{ranked['seconds'] * 1e3:.2f}", f"{moved / 1e9:.1f}" if moved else "",
                f"{moved / rate:.2f}" if moved else "", f"{ranked['hit_share']:.2f}",
                f"{ranked['seconds'] / one['bound_seconds']:.2f}" if "bound_seconds" in one else "",
                f"{bfs['superstep_seconds'] * 1e3:.1f}", f"{bfs['bytes_copied'] / 1e6:.0f}",
            ))  # fmt: skip
    if copied := found.get("bfs copied"):
        moved = f"{copied['superstep_seconds'] * 1e3:.1f}", f"{copied['bytes_copied'] / 1e6:.0f}"
        rows.append(("none in place", *[""] * 6, *moved))
    title = f"{found['graph']['graph']}, pages of {found['graph']['page_bytes'] / 1e9:.2f} GB in pinned memory, "
    table(
        title + f"which is copied at {rate / 1e9:.1f} GB/s",
        ("", "limit MB", "PageRank ms", "GB/s", "share", "hits", "of bound", "BFS ms", "BFS MB"), rows,
    )  # fmt: skip
    if times := found.get("timeline"):
        kinds = ("copy", "kernel", "in place")
        rows = [
            (name, *(f"{one.get(f'{kind} seconds', 0.0) * 1e3:.1f}" for kind in kinds),
             f"1 : {one['kernel_times_transfer']:.2f}", f"{one['share']:.2f}")
            for name, one in times.items()
        ]  # fmt: skip
        title = "What streams did, a tenth of the pages cached"
        table(title, ("", "copy ms", "kernel ms", "in place ms", "transfer : kernel", "at a time"), rows)
