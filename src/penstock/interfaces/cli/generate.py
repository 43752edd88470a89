"""`penstock generate KIND`: graphs made from a formula and a seed."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from penstock.interfaces.cli.examples import epilog
from penstock.interfaces.cli.options import Limits, Target, build, limits, spill, with_options
from penstock.interfaces.cli.summary import build_details, build_summary, tell

app = typer.Typer(
    no_args_is_help=True,
    help="Make a graph: the same one for the same seed, whatever the threads and the memory.",
    epilog=epilog("generate"),
)

Vertices = Annotated[int, typer.Option("--vertices", "-n", metavar="N", help="How many vertices.")]


def made(
    seed: Annotated[int, typer.Option("--seed", help="The same seed makes the same graph.")] = 1,
    weights: Annotated[
        str | None,
        typer.Option("--weights", metavar="LOW:HIGH", help="Random weights: 1:255 whole numbers, 0.0:1.0 float32."),
    ] = None,
) -> dict[str, Any]:
    return {"seed": seed, "weights": weights}


shared = with_options(made=made, build=build, limits=limits, spill=spill)


def _make(
    kind: str,
    output: Path,
    params: dict[str, Any],
    made: dict[str, Any],
    build: dict[str, Any],
    limits: Limits,
    spill: dict[str, Any],
) -> None:
    from penstock import api

    report = api.generate_store(kind, output, **params, **made, **build, **limits.settings, **spill)
    tell(*build_summary(report), *(build_details(report) if limits.verbose else ()), quiet=limits.quiet)


@app.command()
@shared
def kron(
    output: Target,
    scale: Annotated[int, typer.Option("--scale", "-s", metavar="N", help="2 to the power of N vertices.")],
    made: dict[str, Any],
    build: dict[str, Any],
    limits: Limits,
    spill: dict[str, Any],
    edge_factor: Annotated[float, typer.Option("--edge-factor", "-k", help="Edges per vertex.")] = 16,
    a: Annotated[float, typer.Option("--a", help="Probability of the upper left quarter.")] = 0.57,
    b: Annotated[float, typer.Option("--b", help="Upper right.")] = 0.19,
    c: Annotated[float, typer.Option("--c", help="Lower left.")] = 0.19,
    d: Annotated[float | None, typer.Option("--d", help="Lower right; if not given, what is left.")] = None,
    no_scramble: Annotated[bool, typer.Option("--no-scramble", help="Leave high degrees at low ids.")] = False,
) -> None:
    """A Kronecker (R-MAT) graph after Graph500."""
    params = {"scale": scale, "edge_factor": edge_factor, "a": a, "b": b, "c": c, "d": d, "scramble": not no_scramble}
    _make("kron", output, params, made, build, limits, spill)


@app.command()
@shared
def uniform(
    output: Target,
    vertices: Vertices,
    edges: Annotated[int, typer.Option("--edges", "-m", metavar="N", help="How many edges.")],
    made: dict[str, Any],
    build: dict[str, Any],
    limits: Limits,
    spill: dict[str, Any],
) -> None:
    """Edges between ends drawn at random (Erdos-Renyi)."""
    _make("uniform", output, {"vertices": vertices, "edges": edges}, made, build, limits, spill)


@app.command()
@shared
def grid(
    output: Target,
    rows: Annotated[int, typer.Option("--rows", metavar="N", help="Vertices from top to bottom.")],
    columns: Annotated[int, typer.Option("--columns", metavar="N", help="Vertices from left to right.")],
    made: dict[str, Any],
    build: dict[str, Any],
    limits: Limits,
    spill: dict[str, Any],
    diagonal: Annotated[bool, typer.Option("--diagonal", help="Add both diagonals.")] = False,
    torus: Annotated[bool, typer.Option("--torus", help="Wrap round each side longer than two.")] = False,
) -> None:
    """A grid: each vertex has its neighbours right and below. Undirected unless --directed."""
    params = {"rows": rows, "columns": columns, "diagonal": diagonal, "torus": torus}
    _make("grid", output, params | _direction(build), made, build, limits, spill)


@app.command()
@shared
def tree(
    output: Target,
    height: Annotated[int, typer.Option("--height", metavar="N", help="Edges from the root to a leaf.")],
    made: dict[str, Any],
    build: dict[str, Any],
    limits: Limits,
    spill: dict[str, Any],
    branching: Annotated[int, typer.Option("--branching", metavar="N", help="Children of each vertex.")] = 2,
) -> None:
    """A balanced tree. Undirected unless --directed."""
    _make("tree", output, {"height": height, "branching": branching} | _direction(build), made, build, limits, spill)


def _direction(build: dict[str, Any]) -> dict[str, Any]:
    """The regular families are undirected by nature and draw other edges when they are not."""
    return {"directed": build.get("undirected") is False}


def _family(kind: str, text: str) -> None:
    @shared
    def command(
        output: Target,
        vertices: Vertices,
        made: dict[str, Any],
        build: dict[str, Any],
        limits: Limits,
        spill: dict[str, Any],
    ) -> None:
        _make(kind, output, {"vertices": vertices} | _direction(build), made, build, limits, spill)

    app.command(kind, help=f"{text} Undirected unless --directed.")(command)


_family("chain", "A path: 0, 1, 2, ...")
_family("ring", "A path whose ends meet.")
_family("star", "Vertex 0 in the middle of all others.")
_family("complete", "Every vertex joined to every other.")
