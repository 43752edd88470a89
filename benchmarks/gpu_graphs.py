"""Graphs of the GPU benchmark, made once in its folder, and calls on them that are timed."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from gpu_section import Section, Sizes

import penstock as pk
from penstock.config import settings
from penstock.graph import Graph
from penstock.memory.ledger import Ledger
from penstock.memory.topology import Resident

SEED = 1
SKEWED = {"a": 0.80, "b": 0.05, "c": 0.05}


def kronecker(
    section: Section,
    scale: int,
    *,
    weights: bool = False,
    quadrants: dict[str, float] | None = None,
    order: str = "degree",
) -> Graph:
    """Symmetrised, edge factor 16, in the order of degrees unless told otherwise; weights are float32."""
    name = f"k{scale}{'w' if weights else ''}{'-skewed' if quadrants else ''}{'' if order == 'degree' else '-' + order}"
    options: dict[str, Any] = {"scale": scale, "edge_factor": section.sizes.edge_factor, **(quadrants or {})}
    options["order"] = order
    if weights:
        options["weights"] = "1.0:255.0"
    return _made(section, name, "kron", options)


def uniform(section: Section, scale: int) -> Graph:
    edges = section.sizes.edge_factor << scale
    return _made(section, f"u{scale}", "uniform", {"vertices": 1 << scale, "edges": edges})


def grid(section: Section, scale: int) -> Graph:
    """Like a road network: few arcs of each vertex, and far from one side to the other."""
    rows = 1 << scale // 2
    return _made(section, f"g{scale}", "grid", {"rows": rows, "columns": (1 << scale) // rows})


def _made(section: Section, name: str, kind: str, options: dict[str, Any]) -> Graph:
    path = section.folder / f"{name}.pen"
    if not path.exists():
        print(f"  generating {name} ...", flush=True)
        began = time.perf_counter()
        pk.generate(
            kind, path, undirected=True, self_loops="drop", duplicates=section.sizes.duplicates, seed=SEED,
            page_size=section.sizes.page_size, **options,
        ).close()  # fmt: skip
        seconds = time.perf_counter() - began
        print(f"  {name} took {seconds:.1f} s", flush=True)
        _note(section.folder, name, seconds)
    return pk.open(path)


def _note(folder: Path, name: str, seconds: float) -> None:
    """Beside the graphs: how long they took, from which a bigger one's time is guessed."""
    path = folder / "generated.json"
    known = json.loads(path.read_text()) if path.exists() else {}
    path.write_text(json.dumps(known | {name: seconds}))


def generated(folder: Path) -> dict[str, float]:
    """Seconds that graphs in this folder took."""
    path = folder / "generated.json"
    return dict(json.loads(path.read_text())) if path.exists() else {}


def about(graph: Graph, section: Section) -> dict[str, Any]:
    store = graph.store
    direction = store.direction("out")
    return {
        "graph": graph.path.stem, "vertices": graph.vertices, "active": store.active, "edges": graph.edges,
        "arcs": direction.arcs, "pages": len(direction), "page_size": store.page_size,
        "page_bytes": page_bytes(graph), "generate_seconds": generated(section.folder).get(graph.path.stem),
    }  # fmt: skip


def page_bytes(graph: Graph) -> int:
    return len(graph.store.direction("out")) * graph.store.page_size


def host(graph: Graph, columns: tuple[str, ...] = ()) -> Resident:
    """All arcs in the host's memory, for checks and for the peers."""
    chosen = settings(direct_io=False)
    direction = graph.store.direction("out")
    return Resident(direction, columns, Ledger(chosen.memory_limit).scope("check"), chosen)


def random_sources(graph: Graph, count: int, seed: int = 2) -> tuple[np.ndarray, list[int]]:
    """Vertices of degree above 0, by number and by id."""
    active = graph.store.active
    numbers = np.random.default_rng(seed).choice(active, min(count, active), replace=False)
    ids = graph.store.ids.values.read(0, active)[numbers]
    return numbers.astype(np.int64), [int(one) for one in ids]


@contextmanager
def card(graph: Graph, **limits: Any) -> Iterator[Any]:
    """A GPU's memory of this size for the runs inside. Pages come with the first, after its state, and stay."""
    from penstock.memory.card import Card

    graph.unload()
    chosen = settings(device="gpu", direct_io=False, **limits)
    graph.card = Card(graph.store, chosen, Ledger(chosen.memory_limit))
    try:
        yield graph.card
    finally:
        graph.unload()


def values(result: Any, name: str) -> np.ndarray:
    """A column by internal number, of the vertices that have arcs. A table of Arrow would take longer than the run."""
    return np.asarray(result._values[name])


def call(name: str, graph: Graph, **options: Any) -> tuple[Any, dict[str, Any]]:
    """Run an algorithm on the GPU: its result, and the times of the whole call, of its run and of its supersteps."""
    began = time.perf_counter()
    result = pk.run(name, graph, device="gpu", progress=False, **options)
    whole = time.perf_counter() - began
    steps = result.stats.get("supersteps", [])
    figures: dict[str, Any] = {
        "call_seconds": whole, "run_seconds": result.stats["phases"].get("run", 0.0),
        "superstep_seconds": sum(step["seconds"] for step in steps), "supersteps": len(steps),
        "phases": dict(result.stats["phases"]),
    }  # fmt: skip
    for key in ("bytes_copied", "bytes_read", "hits", "in_place"):
        if any(key in step for step in steps):
            figures[key] = sum(step.get(key, 0) for step in steps)
    return result, figures


def pagerank(graph: Graph, sizes: Sizes, **options: Any) -> tuple[Any, dict[str, Any]]:
    """PageRank in float32. What is measured begins after the first supersteps, which compile and fill caches."""
    result, figures = call("pagerank", graph, dtype="float32", stop="fixed", max_iter=sizes.iterations, **options)
    steps = result.stats["supersteps"]
    kept = steps[8:] if len(steps) > 8 else steps
    seconds = sum(step["seconds"] for step in kept)
    figures |= {"iterations": len(kept), "seconds": seconds / len(kept)}
    figures["arcs_per_second"] = graph.arcs * len(kept) / seconds
    figures["best_seconds"] = min(step["seconds"] for step in kept)
    pages = len(graph.store.direction("out"))
    if "bytes_copied" in figures:
        figures["bytes_copied"] = sum(step.get("bytes_copied", 0) for step in kept) / len(kept)
        figures["bytes_per_second"] = figures["bytes_copied"] * len(kept) / seconds
        figures["hit_share"] = sum(step.get("hits", 0) for step in kept) / len(kept) / pages
    else:
        figures["hit_share"] = 1.0
    return result, figures


def middle(runs: list[dict[str, Any]], key: str) -> dict[str, Any]:
    """The run of the median."""
    return sorted(runs, key=lambda run: run[key])[len(runs) // 2]


def devoted(graph: Graph, share: float, name: str = "pagerank", streams: int | None = None) -> int | None:
    """The gpu_memory_limit under which PageRank or BFS has this share of the pages cached beside its state and ring;
    None: no limit."""
    if share >= 1:
        return None
    from penstock.algorithms import bfs, pagerank
    from penstock.engine.gpu.plan import make_device_plan
    from penstock.engine.plan import number_dtype
    from penstock.memory.frames import DevicePages

    store, direction = graph.store, graph.store.direction("out")
    pages, frame = len(direction), DevicePages.frame_bytes(direction, ())
    program = bfs.program(number_dtype(store)) if name == "bfs" else pagerank.program("float32", stop="fixed")
    plan = make_device_plan(program, store, store.active + 2, 1 << 50, seeds=1)
    beside = DevicePages.needed(direction, ()) - pages * frame
    streams = streams or settings().gpu_streams
    batch = max(1, (32 << 20) // frame)
    wanted = round(share * pages)
    # As `DevicePages` shares frames out: a ring of at most a quarter of all; and batches of one page are slow.
    frames = wanted + min(streams * batch, wanted // 3)
    return int(plan.state_bytes + beside + max(2, min(pages // 8, 16 * streams), frames) * frame)
