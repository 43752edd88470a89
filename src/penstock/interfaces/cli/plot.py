"""`penstock plot KIND`: a picture of a store, of a file of edges or of a result."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from penstock.interfaces.cli.options import Limits, limits, with_options
from penstock.interfaces.cli.summary import tell

_KINDS = ("degree", "rank", "components", "radius", "correlation", "adjacency", "values")
"""Those of `plots.kinds`, which is not loaded to list them."""


def _complete(incomplete: str) -> list[str]:
    return [kind for kind in _KINDS if kind.startswith(incomplete)]


@with_options(limits=limits)
def plot(
    kind: Annotated[
        str,
        typer.Argument(metavar="KIND", help=f"{', '.join(_KINDS)}.", show_default=False, autocompletion=_complete),
    ],
    given: Annotated[
        Path,
        typer.Argument(metavar="GRAPH|RESULT", help="A store, a file of edges, or what run wrote.", show_default=False),
    ],
    output: Annotated[
        Path,
        typer.Option("--output", "-o", metavar="FILE", help="The picture: .png .svg .pdf", show_default=False),
    ],
    limits: Limits,
    column: Annotated[
        str | None, typer.Option("--column", metavar="NAME", help="The column of a result.", show_default=False)
    ] = None,
    direction: Annotated[
        str, typer.Option("--direction", metavar="both|out|in|total", help="Of degrees in a directed graph.")
    ] = "both",
    x: Annotated[
        str, typer.Option("--x", metavar="VALUE", help="Of correlation: degree, out_degree, in_degree, an algorithm.")
    ] = "degree",
    y: Annotated[
        str, typer.Option("--y", metavar="VALUE", help="Of correlation: pagerank, radius, kcore, ...")
    ] = "pagerank",
    bins: Annotated[int, typer.Option("--bins", metavar="N", help="Cells of adjacency in a row.", min=1)] = 256,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the file if it exists.")] = False,
) -> None:
    """Draw a graph, or what was found on it.

    degree, rank, components, radius: how they are distributed. correlation: two values of each vertex. adjacency: where
    in the matrix the arcs are. values: any result. Of a graph, ranks, components and radii are found first.
    """
    from penstock import api
    from penstock.plots.kinds import check
    from penstock.plots.style import check_ending
    from penstock.store.whole import check_target

    check(kind, direction)
    check_ending(output)
    check_target(output, overwrite)
    options: dict[str, Any] = {"column": column, "direction": direction, "x": x, "y": y, "bins": bins}
    written = api.plot(kind, given, output, overwrite=overwrite, **options, **limits.settings)
    tell(f"{written}: {kind} of {given}", quiet=limits.quiet)


__all__ = ["plot"]
