"""`penstock verify`: is this the answer? By another method than the one that found it."""

from __future__ import annotations

import inspect
import json
import time
from pathlib import Path
from typing import Annotated, Any

import typer

from penstock.errors import UsageError, meant
from penstock.interfaces.cli.options import Store, with_options
from penstock.interfaces.cli.summary import number, tell

RUN = "Options of the run whose result this is"


def _option(name: str, help: str, metavar: str | None = None) -> Any:
    return typer.Option(name, rich_help_panel=RUN, help=help, metavar=metavar, show_default=False)


def options(
    source: Annotated[list[str] | None, _option("--source", "Where it started.", "ID[,ID]|@FILE")] = None,
    weight: Annotated[str | None, _option("--weight", "The edge column of lengths.", "COLUMN")] = None,
    damping: Annotated[float | None, _option("--damping", "How likely the surfer follows an edge.")] = None,
    tol: Annotated[float | None, _option("--tol", "When it stopped, or how exact values must be.")] = None,
    max_iter: Annotated[int | None, _option("--max-iter", "How many iterations it could take.")] = None,
    dangling: Annotated[str | None, _option("--dangling", "Where ranks without arcs go.", "spread|drop")] = None,
    stop: Annotated[str | None, _option("--stop", "What stopped it.", "l1|max|vertex|fixed")] = None,
    dtype: Annotated[str | None, _option("--dtype", "What it was computed in.", "TYPE")] = None,
    max_depth: Annotated[int | None, _option("--max-depth", "How deep it went.")] = None,
    hops: Annotated[int | None, _option("--hops", "How far it went.")] = None,
    samples: Annotated[int | None, _option("--samples", "From how many random vertices.")] = None,
    sources: Annotated[list[str] | None, _option("--sources", "From these vertices only.", "ID[,ID]|@FILE")] = None,
    seed: Annotated[int | None, _option("--seed", "The seed of the samples.")] = None,
    harmonic: Annotated[bool | None, _option("--harmonic", "Sums of 1 / distance.")] = None,
    normalized: Annotated[bool | None, _option("--normalized/--raw", "Divided by the number of pairs.")] = None,
    epsilon: Annotated[float | None, _option("--epsilon", "How similar neighbours had to be.")] = None,
    mu: Annotated[int | None, _option("--mu", "How many similar vertices made a core.")] = None,
    similarity: Annotated[str | None, _option("--similarity", "The edge column of similarities.", "COLUMN")] = None,
) -> dict[str, Any]:
    """What was given, by name."""
    given = locals().copy()
    return {name: value for name, value in given.items() if value is not None}


@with_options(options=options)
def verify(
    algorithm: Annotated[str, typer.Argument(metavar="ALGORITHM", help="What was run.", show_default=False)],
    store: Store,
    result: Annotated[
        Path,
        typer.Argument(metavar="RESULT", help="What came out: .parquet .csv .tsv .json .arrow", show_default=False),
    ],
    options: dict[str, Any],
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of lines.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Say nothing but what is wrong.")] = False,
) -> None:
    """Check a result against its graph by another method; one line for every rule it breaks, and exit 1."""
    from penstock import api
    from penstock.interfaces.cli.parameters import read_ids
    from penstock.observe.bar import format_seconds
    from penstock.verify import CHECKERS, read_result

    if algorithm not in CHECKERS:
        near = meant(algorithm, CHECKERS)
        raise UsageError(f"there is no check of {algorithm!r}{near or ';'} there are {', '.join(CHECKERS)}")
    check = CHECKERS[algorithm]
    known = inspect.signature(check).parameters
    for name in options:
        if name not in known:
            raise UsageError(f"--{name.replace('_', '-')} means nothing to the check of {algorithm}")
    began = time.perf_counter()
    with api.open_graph(store) as graph:
        for name in {"source", "sources"} & options.keys():
            options[name] = read_ids(f"--{name}", options[name], graph.store.ids.kind)
        table = read_result(result, graph)
        problems = check(graph, table, **options)
        seconds = time.perf_counter() - began
        facts = {
            "algorithm": algorithm,
            "store": str(store),
            "result": str(result),
            "options": options,
            "sound": not problems,
            "problems": problems,
            "rows": table.num_rows,
            "vertices": graph.vertices,
            "arcs": graph.arcs,
            "seconds": seconds,
        }
    if as_json:
        typer.echo(json.dumps(facts, indent=2))
    else:
        typer.echo("\n".join(problems) or "sound")
    checked = f"{number(table.num_rows, 'row')} against {number(facts['arcs'], 'arc')}"
    broken = f", {number(len(problems), 'rule')} broken" if problems else ""
    tell(f"{algorithm}: {checked} in {format_seconds(seconds)}{broken}", quiet=quiet)
    if problems:
        raise typer.Exit(1)


__all__ = ["verify"]
