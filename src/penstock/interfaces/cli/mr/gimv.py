"""`penstock mr gimv ALGORITHM`: iterated matrix-vector multiplication, in two MapReduce stages or fused."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated, Any

import typer

from penstock.interfaces.cli.mr.outcome import memory_line
from penstock.interfaces.cli.options import Limits, limits, placement, spill, with_options
from penstock.interfaces.cli.run import Targets, delivered, targets
from penstock.interfaces.cli.summary import run_summary, tell

PANEL = "Options of the algorithm"
app = typer.Typer(
    no_args_is_help=True,
    help="PageRank, random walks, components and diameter by GIM-V: in two MapReduce stages as published, or fused.",
)
Graph = Annotated[
    Path, typer.Argument(metavar="EDGES", help="A store, or edges in any format that ingest reads.", show_default=False)
]


def _option(name: str, text: str, metavar: str | None = None) -> Any:
    return typer.Option(name, help=text, metavar=metavar, rich_help_panel=PANEL)


Iterations = Annotated[int, _option("--max-iter", "Iterations at most.")]
Damping = Annotated[float, _option("--damping", "Chance of following an edge.")]


def way(
    method: Annotated[str, _option("--method", "How it is computed.", "mapreduce|fused")] = "mapreduce",
    force_out_of_core: Annotated[
        bool, _option("--force-out-of-core", "Of mapreduce: keep no chunk in memory.")
    ] = False,
    chunk_size: Annotated[
        str | None, _option("--chunk-size", "Of mapreduce: what is worked on at a time.", "SIZE")
    ] = None,
) -> dict[str, Any]:
    given = {"method": method, "force_out_of_core": force_out_of_core or None, "chunk_size": chunk_size}
    return {name: value for name, value in given.items() if value is not None}


shared = with_options(way=way, targets=targets, limits=limits, placement=placement, spill=spill)


def _run(
    name: str, store: Path, given: dict[str, Any], way: dict[str, Any], targets: Targets, limits: Limits, more: Any
) -> None:
    from penstock.algorithms import gimv
    from penstock.config import settings
    from penstock.given import graph_of

    targets.check()
    began = time.perf_counter()
    wanted = limits.settings | more
    with graph_of(store, settings(**wanted)) as graph:
        if "source" in given:
            from penstock.interfaces.cli.parameters import read_ids

            given["source"] = read_ids("--source", given["source"], graph.store.ids.kind)

        def compute() -> Any:
            return getattr(gimv, name)(graph, **given, **way, **wanted)

        figures = delivered(compute, graph, wanted, targets, store=store, began=began)
    first, second = run_summary(figures)
    tell(first, memory_line(figures["mapreduce"]) if "mapreduce" in figures else second, quiet=limits.quiet)


@app.command()
@shared
def pagerank(
    graph: Graph,
    way: dict[str, Any],
    targets: Targets,
    limits: Limits,
    placement: dict[str, Any],
    spill: dict[str, Any],
    damping: Damping = 0.85,
    tol: Annotated[float | None, _option("--tol", "Stop when no rank moves by more; 1/(10 n) if not given.")] = None,
    max_iter: Iterations = 1024,
    dangling: Annotated[str, _option("--dangling", "The mass of vertices without edges.", "drop|spread")] = "drop",
    scale: Annotated[
        str, _option("--scale", "Divide the ranks by the largest, or by their sum.", "none|max|sum")
    ] = "none",
) -> None:
    """PageRank as PEGASUS has it."""
    given = {"damping": damping, "tol": tol, "max_iter": max_iter, "dangling": dangling, "scale": scale}
    _run("pagerank", graph, given, way, targets, limits, placement | spill)


@app.command()
@shared
def rwr(
    graph: Graph,
    source: Annotated[list[str], _option("--source", "Where walks restart.", "ID[,ID]|@FILE")],
    way: dict[str, Any],
    targets: Targets,
    limits: Limits,
    placement: dict[str, Any],
    spill: dict[str, Any],
    damping: Damping = 0.85,
    tol: Annotated[float, _option("--tol", "Stop when it changes by less.")] = 1e-6,
    max_iter: Iterations = 1024,
) -> None:
    """Random walk with restart."""
    given = {"source": source, "damping": damping, "tol": tol, "max_iter": max_iter}
    _run("rwr", graph, given, way, targets, limits, placement | spill)


@app.command()
@shared
def components(
    graph: Graph,
    way: dict[str, Any],
    targets: Targets,
    limits: Limits,
    placement: dict[str, Any],
    spill: dict[str, Any],
    max_iter: Annotated[int | None, _option("--max-iter", "Iterations at most; none if not given.")] = None,
) -> None:
    """Connected components by HCC: the smallest id that each vertex is connected with."""
    _run("components", graph, {"max_iter": max_iter}, way, targets, limits, placement | spill)


@app.command()
@shared
def diameter(
    graph: Graph,
    way: dict[str, Any],
    targets: Targets,
    limits: Limits,
    placement: dict[str, Any],
    spill: dict[str, Any],
    lanes: Annotated[int, _option("--lanes", "Bit strings for each vertex.")] = 32,
    max_iter: Iterations = 256,
    seed: Annotated[int, _option("--seed", "The same seed gives the same result.")] = 1,
) -> None:
    """Radius of each vertex and effective diameter by HADI."""
    _run(
        "diameter", graph, {"lanes": lanes, "max_iter": max_iter, "seed": seed}, way, targets, limits, placement | spill
    )


__all__ = ["app"]
