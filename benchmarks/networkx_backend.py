"""Penstock as a NetworkX backend against plain NetworkX, on a NetworkX graph: Kronecker 16, 0.9 million edges.

`first` is a call that converts the graph, `cached` one that finds it converted. Both sides get the same NetworkX
graph, and their results are compared. Kernels are compiled before anything is timed, by a call on a small graph:
Penstock keeps them on disk, so that a user waits for them once per installation.
"""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import networkx as nx
from common import median, save, table

import penstock as pk

SCALE = 16
TARGETS = {
    ("betweenness_centrality", "first"): 10,
    ("triangles", "first"): 10,
    ("pagerank", "first"): 2,
    ("pagerank", "cached"): 20,
    ("connected_components", "cached"): 20,
    ("single_source_shortest_path_length", "cached"): 20,
    ("core_number", "cached"): 20,
}
LONG = 5.0
"""Seconds above which plain NetworkX is timed once."""


def calls(graph: nx.Graph) -> dict[str, Callable[[str], Any]]:
    """What is timed, by the name of the backend."""
    hub = max(graph, key=graph.degree)
    sample = min(16, len(graph))
    return {
        "betweenness_centrality": lambda name: nx.betweenness_centrality(graph, k=sample, seed=1, backend=name),
        "triangles": lambda name: nx.triangles(graph, backend=name),
        "pagerank": lambda name: nx.pagerank(graph, backend=name),
        "connected_components": lambda name: list(nx.connected_components(graph, backend=name)),
        "single_source_shortest_path_length": lambda name: nx.single_source_shortest_path_length(
            graph, hub, backend=name
        ),
        "core_number": lambda name: nx.core_number(graph, backend=name),
    }


def kronecker(folder: Path, scale: int) -> nx.Graph:
    """The Kronecker graph, symmetrised, built edge by edge as a user of NetworkX would."""
    made = nx.Graph()
    with pk.generate("kron", folder / f"networkx-{scale}.pen", scale=scale, undirected=True, progress=False) as graph:
        made.add_nodes_from(graph)
        for batch in graph.edge_batches([]):
            made.add_edges_from(zip(*(column.to_pylist() for column in batch.columns), strict=True))
    return made


def timed(call: Callable[[str], Any], backend: str) -> tuple[float, Any]:
    begin = time.perf_counter()
    result = call(backend)
    return time.perf_counter() - begin, result


def agree(ours: Any, theirs: Any) -> bool:
    """Equal, real numbers up to the last digits."""
    if not isinstance(theirs, dict):
        return bool(ours == theirs)
    return ours.keys() == theirs.keys() and all(
        math.isclose(ours[key], value, rel_tol=1e-6, abs_tol=1e-12) for key, value in theirs.items()
    )


def main(folder: Path, scale: int, rounds: int) -> None:
    """Time both, print the ratios, keep the figures."""
    scale = min(scale, SCALE)
    warnings.filterwarnings("ignore", message="Note: conversions to backend graphs are saved")
    for call in calls(nx.karate_club_graph()).values():
        call("penstock")
    graph = kronecker(folder, scale)
    figures, rows = [], []
    for name, call in calls(graph).items():
        seconds, theirs = timed(call, "networkx")
        plain = [seconds]
        while seconds < LONG and len(plain) < rounds:
            plain.append(timed(call, "networkx")[0])
        taken: dict[str, list[float]] = {"first": [], "cached": []}
        for _ in range(rounds):
            graph.__networkx_cache__.clear()
            for kind, times in taken.items():
                seconds, ours = timed(call, "penstock")
                times.append(seconds)
                if not agree(ours, theirs):
                    raise SystemExit(f"{name}: Penstock and NetworkX differ ({kind} call)")
        for kind, times in taken.items():
            figure = {
                "function": name,
                "call": kind,
                "networkx_seconds": median(plain),
                "penstock_seconds": median(times),
                "ratio": median(plain) / median(times),
                "target": TARGETS.get((name, kind)),
            }
            figures.append(figure)
            target = figure["target"]
            reached = "" if target is None else f"{target}x {'yes' if figure['ratio'] >= target else 'NO'}"
            rows.append(
                (name, kind, f"{median(plain):.3f}", f"{median(times):.3f}", f"{figure['ratio']:.1f}x", reached)
            )
    header = ("function", "call", "NetworkX, s", "Penstock, s", "ratio", "target")
    table(f"NetworkX backend: Kronecker {scale}, {graph.number_of_edges()} edges", header, rows)
    save(
        "networkx",
        {
            "scale": scale,
            "edges": graph.number_of_edges(),
            "networkx": nx.__version__,
            "kernels": "compiled before timing",
            "calls": figures,
        },
    )
