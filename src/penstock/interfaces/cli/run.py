"""`penstock run ALGORITHM`: results to a file or as a table on stdout, statistics as JSON."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from penstock.errors import UsageError
from penstock.interfaces.cli.options import Limits, Overwrite, Store, limits, with_options
from penstock.interfaces.cli.summary import run_summary, tell

if TYPE_CHECKING:
    from penstock.result import Result

ENDINGS = (".parquet", ".csv", ".tsv", ".txt", ".json", ".arrow")
"""What `Result.write` writes; compared before the run, not after an hour of it."""

app = typer.Typer(no_args_is_help=True, help="Run an algorithm on a store.")


@app.command()
@with_options(limits=limits)
def pagerank(
    store: Store,
    limits: Limits,
    damping: Annotated[float, typer.Option("--damping", help="How likely the surfer follows an edge.")] = 0.85,
    tol: Annotated[float, typer.Option("--tol", help="Stop when all ranks together change by less.")] = 1e-6,
    max_iter: Annotated[int, typer.Option("--max-iter", help="Stop after so many iterations.")] = 100,
    dtype: Annotated[str, typer.Option("--dtype", metavar="TYPE", help="float64, or float32 for half the memory.")] = (
        "float64"
    ),
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help=f"Write all ranks: {' '.join(ENDINGS)}"),
    ] = None,
    json_to: Annotated[
        str | None, typer.Option("--json", metavar="FILE", help="Write the run's statistics; - is stdout.")
    ] = None,
    top: Annotated[
        int | None,
        typer.Option(
            "--top", metavar="K", min=0, help="Show the K highest ranks on stdout (10 without -o and --json -)."
        ),
    ] = None,
    overwrite: Overwrite = False,
) -> None:
    """How often a random surfer is at each vertex; from disk, one pass over the arcs per iteration.

    penstock run pagerank web.pen --memory-limit 2GB -o ranks.parquet --json run.json
    """
    from penstock import api
    from penstock.store.whole import check_target

    if output is not None and output.suffix not in ENDINGS:
        raise UsageError(f"{output} does not end in one of {', '.join(ENDINGS)}")
    if top and json_to == "-":
        raise UsageError("--top and --json - both want stdout: give one of them a file")
    if output is not None and json_to not in (None, "-") and output.absolute() == Path(str(json_to)).absolute():
        raise UsageError(f"-o and --json both write {output}: give them two names")
    for target in (output, json_to):
        if target is not None and target != "-":
            check_target(Path(target), overwrite)
    began = time.perf_counter()
    with api.open_graph(store) as graph:
        opened = time.perf_counter()
        options = {"damping": damping, "tol": tol, "max_iter": max_iter, "dtype": dtype}
        result = api.run("pagerank", graph, **options, **limits.settings)
        ranked = time.perf_counter()
        if output is not None:
            result.write(output)
        written = time.perf_counter()
        phases = {"open": opened - began, "run": ranked - opened, "write": written - ranked}
        if json_to is not None:
            _write_json(statistics(result, store, phases, limits, output), json_to)
        count = top if top is not None else 10 if output is None and json_to != "-" else 0
        if count:
            _show(result, count)
    tell(run_summary(result.stats), quiet=limits.quiet)


def statistics(
    result: Result, store: Path, phases: dict[str, float], limits: Limits, output: Path | None
) -> dict[str, Any]:
    """All figures of a run, ready for `json.dumps`."""
    from penstock.config import settings

    chosen = settings(**limits.settings)
    used = {name: getattr(chosen, name) for name in ("memory_limit", "threads", "direct_io", "verify_checksums")}
    return result.stats | {
        "seconds": sum(phases.values()),
        "phases": result.stats.get("phases", {}) | phases,
        "store": str(store),
        "output": None if output is None else str(output),
        "settings": used,
    }


def _write_json(figures: dict[str, Any], target: str) -> None:
    text = json.dumps(figures, indent=2) + "\n"
    if target == "-":
        sys.stdout.write(text)
        return
    from penstock.store.whole import whole_file

    with whole_file(Path(target), overwrite=True) as partial:  # whether it may be replaced was seen before the run
        partial.write_text(text)


def _show(result: Result, count: int) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table

    best = result.top(count)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("", justify="right", style="dim")
    table.add_column("vertex", justify="right")
    for name in best.column_names[1:]:
        table.add_column(name, justify="right")
    for place, row in enumerate(zip(*(column.to_pylist() for column in best.columns), strict=True), 1):
        table.add_row(str(place), str(row[0]), *(f"{value:.6g}" for value in row[1:]))
    Console(highlight=False).print(table)
