"""Commands on the matrix of a graph: which rows are alike, and how far it is from each vertex to each."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from penstock.interfaces.cli.mr.outcome import Tables, running
from penstock.interfaces.cli.mr.session import session
from penstock.interfaces.cli.options import Limits, limits, spill, with_options
from penstock.interfaces.cli.run import Targets, job_targets

if TYPE_CHECKING:
    from penstock.apps.matrix.matrix import Matrix
    from penstock.graph import Graph
    from penstock.mapreduce.keyvalue import KeyValue

PANEL = "Options of the job"
Edges = Annotated[
    Path, typer.Argument(metavar="EDGES", help="A store, or edges in any format that ingest reads.", show_default=False)
]
shared = with_options(targets=job_targets, limits=limits, session=session, spill=spill)


def _option(name: str, text: str, metavar: str | None = None) -> Any:
    return typer.Option(name, help=text, metavar=metavar, rich_help_panel=PANEL)


Weight = Annotated[str | None, _option("--weight", "The edge column of the elements; 1 each without one.", "COLUMN")]


@shared
def similarity(
    edges: Edges,
    targets: Targets,
    limits: Limits,
    session: dict[str, Any],
    spill: dict[str, Any],
    measure: Annotated[str, _option("--measure", "What alike means.", "cosine|jaccard|dot")] = "cosine",
    threshold: Annotated[float, _option("--threshold", "Leave out pairs below it.")] = 0.0,
    weight: Weight = None,
    method: Annotated[str, _option("--method", "How the matrix is multiplied.", "mapreduce|direct")] = "mapreduce",
) -> None:
    """Which vertices have the same neighbours: the similarity of all pairs of rows of the matrix."""
    from penstock.apps.matrix import Matrix, similarity

    with running("similarity", session | spill, targets, limits) as (mr, finish):
        graph = _graph(mr, edges, weight)
        given = Matrix.of(mr, graph, weight=weight)
        # Parallel edges are one element.
        once = Matrix(mr, given.shape, given.entries.compress("sum").collate().reduce("sum"))
        found = similarity(once, measure, threshold=threshold, method=method)
        finish(_table(found, graph, "similarity", ranked=True))


@shared
def shortest_paths(
    edges: Edges,
    targets: Targets,
    limits: Limits,
    session: dict[str, Any],
    spill: dict[str, Any],
    weight: Weight = None,
    method: Annotated[
        str, _option("--method", "Repeated squaring, Floyd-Warshall, or a kernel.", "squaring|floyd-warshall|direct")
    ] = "squaring",
) -> None:
    """The length of a shortest path from each vertex to each (small graphs: there are n times n)."""
    from penstock.apps.matrix import Matrix, shortest_paths

    with running("shortest-paths", session | spill, targets, limits) as (mr, finish):
        graph = _graph(mr, edges, weight)
        found = shortest_paths(Matrix.of(mr, graph, weight=weight), method=method)
        finish(_table(found, graph, "distance"))


def _graph(mr: Any, edges: Path, weight: str | None) -> Graph:
    from penstock.given import graph_of, is_store

    return graph_of(edges, mr.settings, {} if is_store(edges) or weight is None else {"columns": [weight]})


def _table(found: Matrix, graph: Graph, name: str, *, ranked: bool = False) -> Tables:
    """Elements as rows of the user's ids."""
    users = graph.users()
    return Tables(_elements(found), ("source", "target", name), {"source": users, "target": users}, ranked)


def _elements(found: Matrix) -> KeyValue:
    """(row, (column, element)) of each."""
    import numpy as np

    from penstock.apps.grouped import mapped
    from penstock.apps.matrix.matrix import INDEX

    kind = np.dtype([("column", INDEX), ("element", found.dtype)])

    def spread(keys: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        row, column = np.divmod(keys, INDEX.type(max(1, found.shape[1])))
        made = np.empty(len(keys), kind)
        made["column"], made["element"] = column, values
        return row, made

    return mapped(found.entries, spread, INDEX, kind)


__all__ = ["shortest_paths", "similarity"]
