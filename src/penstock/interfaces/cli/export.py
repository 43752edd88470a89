"""`penstock export`: the edges of a store as a file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from penstock.errors import UsageError
from penstock.interfaces.cli.options import Limits, Overwrite, Store, limits, names, with_options
from penstock.interfaces.cli.summary import number, tell


@with_options(limits=limits)
def export(
    store: Store,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILE", help="The file to write; its ending names the format.")
    ],
    limits: Limits,
    columns: Annotated[
        list[str] | None,
        typer.Option("--columns", metavar="A,B", help="Edge columns to write; all if not given.", show_default=False),
    ] = None,
    format: Annotated[
        str | None, typer.Option("--format", metavar="NAME", help="The format, if the name does not tell.")
    ] = None,
    renumber: Annotated[
        bool, typer.Option("--renumber", help="Number vertices anew, for formats that allow only 1 to N.")
    ] = False,
    weight: Annotated[
        str | None,
        typer.Option("--weight", metavar="COLUMN", help="The column that is the weight, or one number for all edges."),
    ] = None,
    compression: Annotated[
        str | None, typer.Option("--compression", metavar="CODEC", help="Codec inside Parquet and Arrow files.")
    ] = None,
    vertices: Annotated[
        bool, typer.Option("--vertices", help="Write the table of vertices and their columns instead of the edges.")
    ] = False,
    overwrite: Overwrite = False,
) -> None:
    """Write the edges to a file, under the ids they came with."""
    from penstock import api
    from penstock.config import format_size

    if vertices and (renumber or weight is not None):
        raise UsageError("--renumber and --weight are for edges: leave out --vertices")
    given = {
        "columns": None if columns is None else names(columns),
        "format": format,
        "compression": compression,
        "weight": int(weight) if weight is not None and weight.isdecimal() else weight,
        "renumber": renumber or None,
    }
    options = {name: value for name, value in given.items() if value is not None} | limits.settings
    with api.open_graph(store) as graph:
        if vertices:
            from penstock.export.files import export_vertices

            written, what = (
                export_vertices(graph, output, overwrite=overwrite, **options),
                number(graph.vertices, "vertex", "vertices"),
            )
        else:
            written, what = api.export(graph, output, overwrite=overwrite, **options), number(graph.edges, "edge")
    tell(f"{written}: {what}, {format_size(written.stat().st_size)}", quiet=limits.quiet)
