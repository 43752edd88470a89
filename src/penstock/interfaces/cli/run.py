"""`penstock run ALGORITHM`: a command for each; results to a file or as a table on stdout, figures as JSON."""

from __future__ import annotations

import contextlib
import json
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from penstock.algorithms.registry import ALGORITHMS, nearest, options_of
from penstock.errors import UsageError
from penstock.interfaces.cli.examples import epilog, run_epilog
from penstock.interfaces.cli.options import Given, Limits, Undirected, limits, placement, spill, with_options
from penstock.interfaces.cli.summary import details, remarks, run_summary, tell

if TYPE_CHECKING:
    from penstock.edges import Edges
    from penstock.graph import Graph
    from penstock.result import Result

ENDINGS = (".parquet", ".csv", ".tsv", ".txt", ".json", ".arrow")
"""What `Rows.write` writes; compared before the run, not after an hour of it."""
REPORTED = 60_000
"""Events recorded for a report alone, some 25 MB: a page shows no more of them than a screen."""


class Algorithms(TyperGroup):
    """All algorithms by name. One is imported, and with it the compiler, when it is called; not when it is listed."""

    def list_commands(self, ctx: Any) -> list[str]:
        return list(ALGORITHMS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        return TyperCommand(cmd_name, help=_sentence(cmd_name)) if cmd_name in ALGORITHMS else None

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        name, rest = args[0].replace("-", "_"), args[1:]
        if name in ALGORITHMS:
            return name, command(name), rest
        if ctx.resilient_parsing:  # of a line that is being completed
            return None, None, rest
        raise UsageError(nearest(args[0]))


app = typer.Typer(
    cls=Algorithms,
    no_args_is_help=True,
    help="Run an algorithm on a store, or on a file of edges.",
    epilog=epilog("run"),
)


@app.callback()
def _group() -> None:
    pass


@dataclass(frozen=True)
class Targets:
    """Where results and figures go."""

    output: Path | None = None
    json_to: str | None = None
    trace: Path | None = None
    top: int | None = None
    overwrite: bool = False
    report: Path | None = None

    def check(self) -> None:
        """Refuse at once what would fail after the run."""
        from penstock.store.whole import check_target

        if self.output is not None and self.output.suffix.lower() not in ENDINGS:
            raise UsageError(f"{self.output} does not end in one of {', '.join(ENDINGS)}")
        if self.report is not None and self.report.suffix.lower() not in (".html", ".htm"):
            raise UsageError(f"{self.report} does not end in .html, which a report is")
        if self.top and self.json_to == "-":
            raise UsageError("--top and --json - both want stdout: give one of them a file")
        figures = None if self.json_to in (None, "-") else Path(str(self.json_to))
        taken: dict[Path, str] = {}
        for option, target in (
            ("-o", self.output), ("--json", figures), ("--trace", self.trace), ("--report", self.report),
        ):  # fmt: skip
            if target is None:
                continue
            if target.absolute() in taken:
                raise UsageError(f"{taken[target.absolute()]} and {option} both write {target}: give them two names")
            taken[target.absolute()] = option
            check_target(target, self.overwrite)

    @property
    def shown(self) -> int:
        """How many rows go to stdout."""
        if self.top is not None:
            return self.top
        return 10 if self.output is None and self.json_to != "-" else 0


def _result(*names: str, **rest: Any) -> Any:
    return typer.Option(*names, rich_help_panel="Results", show_default=False, **rest)


Output = Annotated[
    Path | None, _result("--output", "-o", metavar="FILE", help=f"Write the whole result: {' '.join(ENDINGS)}")
]
Top = Annotated[
    int | None,
    _result("--top", metavar="K", min=0, help="Show the K largest values on stdout (10 without -o and --json -)."),
]
Json = Annotated[str | None, _result("--json", metavar="FILE", help="Write the figures of the run; - is stdout.")]
Trace = Annotated[
    Path | None, _result("--trace", metavar="FILE", help="Write a timeline of the run, for ui.perfetto.dev.")
]
Report = Annotated[
    Path | None, _result("--report", metavar="FILE", help="Write a page about the run: what it did and took. .html")
]
Overwrite = Annotated[bool, _result("--overwrite", help="Replace the files if they exist.")]


def targets(
    output: Output = None,
    top: Top = None,
    json_to: Json = None,
    trace: Trace = None,
    report: Report = None,
    overwrite: Overwrite = False,
) -> Targets:
    return Targets(output, json_to, trace, top, overwrite, report)


def job_targets(
    output: Output = None, top: Top = None, json_to: Json = None, trace: Trace = None, overwrite: Overwrite = False
) -> Targets:
    """Those of key-value work, about which there is no page."""
    return Targets(output, json_to, trace, top, overwrite)


def command(name: str) -> Any:
    """The command of one algorithm."""
    from penstock.interfaces.cli.opening import opened
    from penstock.interfaces.cli.parameters import chosen, group, parameters

    known = options_of(name)

    @with_options(options=group(parameters(known)), targets=targets, limits=limits, placement=placement, spill=spill)
    def call(
        store: Given,
        options: dict[str, Any],
        targets: Targets,
        limits: Limits,
        placement: dict[str, Any],
        spill: dict[str, Any],
        undirected: Undirected = None,
        dry_run: Annotated[
            bool, typer.Option("--dry-run", help="Show what it would do and take, like explain, and run nothing.")
        ] = False,
    ) -> None:
        began = time.perf_counter()
        settings = limits.settings | placement | spill
        targets.check()
        with opened(
            store, settings, algorithm=name, options=options, undirected=undirected, quiet=limits.quiet
        ) as graph:
            given = chosen(known, options, graph.store.ids.kind)
            if dry_run or limits.verbose:
                from penstock.interfaces.cli.explain import REFUSED, foretell

                fits = foretell(name, graph, given, settings, to_stderr=not dry_run, called=store)
                if dry_run:
                    raise typer.Exit(0 if fits else REFUSED)
            execute(name, graph, given, settings, targets, limits, store=store, began=began)

    alone = typer.Typer(add_completion=False, rich_markup_mode="rich")
    words = {"help_option_names": ["-h", "--help"]}
    alone.command(name, help=_sentence(name), epilog=run_epilog(name), context_settings=words)(call)
    return typer.main.get_command(alone)


def _sentence(name: str) -> str:
    return f"{ALGORITHMS[name][0].upper()}{ALGORITHMS[name][1:]}."


def execute(
    name: str,
    graph: Graph,
    options: dict[str, Any],
    settings: dict[str, Any],
    targets: Targets,
    limits: Limits,
    *,
    store: Path,
    began: float,
) -> None:
    """Run, write, show and tell. `store` is what it was called in the command, which `began` then."""
    from penstock import api

    def compute() -> Result | Edges:
        return api.run(name, graph, **options, **settings)

    figures = delivered(compute, graph, settings, targets, store=store, began=began)
    lines = [*run_summary(figures), *remarks(figures, verbose=limits.verbose)]
    tell(*lines, *(details(figures) if limits.verbose else ()), quiet=limits.quiet)


def delivered(
    compute: Callable[[], Result | Edges],
    graph: Graph,
    settings: dict[str, Any],
    targets: Targets,
    *,
    store: Path,
    began: float,
) -> dict[str, Any]:
    """Compute, write and show a result, with all that was asked for about the run; its figures."""
    from penstock.observe.events import recording

    opened = time.perf_counter()
    with contextlib.ExitStack() as held:
        events = None
        if targets.trace is not None or targets.report is not None:
            events = held.enter_context(recording() if targets.trace is not None else recording(REPORTED))
        result = compute()
        computed = time.perf_counter()
        if targets.output is not None:
            result.write(targets.output, overwrite=targets.overwrite)
        phases = {"open": opened - began, "write": time.perf_counter() - computed}
        figures = statistics(result, store, phases, time.perf_counter() - began, settings, targets)
        if targets.trace is not None and events is not None:
            from penstock.observe.trace import write_trace

            write_trace(targets.trace, events, figures)
        if targets.json_to is not None:
            write_json(figures, targets.json_to)
        if targets.shown:
            show(result, targets.shown)
        if targets.report is not None:
            from penstock.profile.report import write_report

            write_report(targets.report, figures, result=result, store=graph.store, events=events, overwrite=True)
    return figures


def statistics(
    result: Result | Edges,
    store: Path,
    phases: dict[str, float],
    seconds: float,
    settings: dict[str, Any],
    targets: Targets,
) -> dict[str, Any]:
    """All figures of a run, ready for `json.dumps`."""
    from penstock.config import settings as in_force
    from penstock.observe.plain import strict

    used = in_force(**settings)
    names = [field.name for field in fields(used) if field.name != "progress"]
    figures: dict[str, Any] = strict(
        result.stats
        | {
            "seconds": seconds,
            "phases": result.stats.get("phases", {}) | phases,
            "store": str(store),
            "output": None if targets.output is None else str(targets.output),
            "settings": {name: getattr(used, name) for name in names},
        }
    )
    return figures


def write_json(figures: dict[str, Any], target: str) -> None:
    text = json.dumps(figures, indent=2) + "\n"
    if target == "-":
        sys.stdout.write(text)
        return
    from penstock.store.whole import whole_file

    with whole_file(Path(target), overwrite=True) as partial:  # whether it may be replaced was seen before the run
        partial.write_text(text)


def show(result: Result | Edges, count: int) -> None:
    """The rows of the largest values, or where nothing is large or small the first ones. Of a result that has no rows
    but a total, that."""
    from penstock.profile.report import leading

    names, rows, _ = leading(result, count)
    total = result.stats.get(names[-1])
    if not rows and total is not None:
        typer.echo(total)
    else:
        print_table(names, rows)


def print_table(names: list[str], rows: list[tuple[Any, ...]]) -> None:
    """Numbered rows on stdout."""
    from rich import box
    from rich.console import Console
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("", justify="right", style="dim")
    for name in names:
        table.add_column(name, justify="right")
    for place, row in enumerate(rows, 1):
        table.add_row(str(place), *map(_cell, row))
    Console(highlight=False, markup=False).print(table)


def _cell(value: Any) -> str:
    if value is None:
        return "-"
    return f"{value:.6g}" if isinstance(value, float) else str(value)


__all__ = ["ENDINGS", "Targets", "app", "execute", "print_table", "show", "statistics", "targets", "write_json"]
