"""`penstock bench`: how fast algorithms run on this machine, measured the same way each time."""

from __future__ import annotations

import contextlib
import json
import statistics
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from penstock.interfaces.cli.options import Limits, limits, names, placement, spill, with_options
from penstock.interfaces.cli.summary import tell

if TYPE_CHECKING:
    from penstock.graph import Graph

DEFAULT = "pagerank,bfs,wcc"
ITERATIONS = 20
"""Of PageRank, in every trial: a tolerance would measure the graph."""


@dataclass(frozen=True)
class Measured:
    """One algorithm's trials. Seconds are those of the run itself: no start of Python, no compiling, no reading of
    arcs into memory, which `load` tells."""

    algorithm: str
    options: dict[str, Any]
    seconds: list[float]
    load: float
    rate: float
    """In the best trial: arcs a second, or of searches edges a second as Graph500 counts them, by harmonic mean."""
    unit: str
    tier: str
    problems: list[str]
    """What the checker found, if it was asked."""


@with_options(limits=limits, placement=placement, spill=spill)
def bench(
    limits: Limits,
    placement: dict[str, Any],
    spill: dict[str, Any],
    store: Annotated[
        Path | None,
        typer.Argument(metavar="[GRAPH]", help="A store; without one a graph is generated.", show_default=False),
    ] = None,
    algorithms: Annotated[str, typer.Option("--algorithms", metavar="A,B", help="What to run.")] = DEFAULT,
    trials: Annotated[int, typer.Option("--trials", "-n", metavar="N", help="Runs of each.", min=1)] = 3,
    scale: Annotated[
        int, typer.Option("--scale", "-g", metavar="N", help="Of the Kronecker graph: 2 to the power of N.", min=1)
    ] = 18,
    verify: Annotated[bool, typer.Option("--verify", help="Check the results, too; exit 1 if one is wrong.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """Measure how fast algorithms run on this machine.

    On a store of yours, or on a Graph500 Kronecker graph: undirected, edge factor 16. Each algorithm runs once to be
    compiled, then --trials times. Searches start at the same random vertices each time.
    """
    from penstock.observe.stats import machine

    chosen = list(dict.fromkeys(names([algorithms])))
    _check(chosen)
    settings = limits.settings | placement | spill
    with _graph(store, scale, settings, spill, quiet=limits.quiet) as graph:
        found = []
        for name in chosen:
            tell(f"{name} ...", quiet=limits.quiet)
            found.append(measure(name, graph, trials, settings, check=verify))
        about = {"vertices": graph.vertices, "edges": graph.edges, "arcs": graph.arcs, "directed": graph.directed}
    if as_json:
        told = {"machine": machine(), "graph": about | {"name": str(store or f"kron{scale}")}}
        typer.echo(json.dumps(told | {"results": [asdict(each) for each in found]}, indent=2, default=str))
    else:
        _show(found)
    for each in found:
        for problem in each.problems:
            tell(f"{each.algorithm}: {problem}")
    if any(each.problems for each in found):
        raise typer.Exit(1)


def _check(chosen: Sequence[str]) -> None:
    from penstock.algorithms.registry import find, options_of
    from penstock.errors import UsageError

    if not chosen:
        raise UsageError("--algorithms names none")
    for name in chosen:
        find(name)
        for key, parameter in options_of(name).items():
            if parameter.default is parameter.empty and key != "source":
                raise UsageError(f"{name} needs {key}, which a benchmark has no choice for: measure it with run --json")


@contextlib.contextmanager
def _graph(
    store: Path | None, scale: int, settings: dict[str, Any], spill: dict[str, Any], *, quiet: bool
) -> Iterator[Graph]:
    from penstock import api
    from penstock.interfaces.cli.opening import opened

    if store is not None:
        with opened(store, settings, quiet=quiet) as graph:
            yield graph
        return
    place = spill.get("temp_directory")
    if place is not None:
        place.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="penstock-bench-", dir=place) as folder:
        tell(f"generating a Kronecker graph of scale {scale} ...", quiet=quiet)
        mine = {name: value for name, value in settings.items() if name in ("memory_limit", "threads", "progress")}
        options: dict[str, Any] = {"scale": scale, "undirected": True, "weights": "1:255", "seed": 1, **mine}
        with api.generate("kron", Path(folder) / "kron.pen", **options) as graph:
            yield graph


def measure(name: str, graph: Graph, trials: int, settings: dict[str, Any], *, check: bool = False) -> Measured:
    """Run an algorithm once for its kernels, then so many times for the clock."""
    from penstock import api
    from penstock.algorithms.registry import options_of

    options: dict[str, Any] = {"stop": "fixed", "max_iter": ITERATIONS} if name == "pagerank" else {}
    starts = _starts(graph, trials) if "source" in options_of(name) else []
    seconds, rates, load, problems, plans = [], [], 0.0, [], []
    for trial in range(-1, trials):
        given = options | ({"source": starts[max(trial, 0)]} if starts else {})
        result = api.run(name, graph, **given, **settings)
        if trial < 0:
            if check:
                problems = api.verify(name, graph, result, **given)
            continue
        stats = result.stats
        phases, plans = stats["phases"], stats.get("plans", [])
        seconds.append(phases.get("run", stats.get("seconds", 0.0)))
        load = max(load, phases.get("load", 0.0))
        work = _reached(graph, result) if name == "bfs" else graph.arcs * stats.get("iterations", 1)
        rates.append(work / max(seconds[-1], 1e-9))
    rate = statistics.harmonic_mean(rates) if name == "bfs" else max(rates)
    tier = plans[0].get("tier", "-") if plans else "-"
    shown = options | ({"source": starts} if starts else {})
    return Measured(name, shown, seconds, load, rate, "edges" if name == "bfs" else "arcs", tier, problems)


def _starts(graph: Graph, count: int) -> list[Any]:
    """Vertices with arcs, drawn at random, the same each time."""
    import numpy as np

    store = graph.store
    if not store.active:
        from penstock.errors import UsageError

        raise UsageError(f"{graph.path} has no edges: there is nothing to measure")
    draws = np.random.default_rng(1).integers(0, store.active, count)
    return [store.ids.of(int(number)) for number in draws]


def _reached(graph: Graph, result: Any) -> int:
    """The edges of what a search reached: its arcs, or half of them where an edge is two."""
    column, total, at = graph.store.degree_column("out"), 0, 0
    for values, valid in result.pieces_of("level"):
        total += int(column.read(at, at + len(values))[valid].sum())
        at += len(values)
    return total if graph.directed else total // 2


def _show(found: Sequence[Measured]) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table

    from penstock.observe.bar import format_rate

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("algorithm")
    for title in ("trials", "best", "median", "rate", "to load", "tier"):
        table.add_column(title, justify="right")
    for each in found:
        note = f" x {ITERATIONS}" if each.algorithm == "pagerank" else ""
        best, middle = min(each.seconds), statistics.median(each.seconds)
        table.add_row(
            each.algorithm + note,
            str(len(each.seconds)),
            _seconds(best),
            _seconds(middle),
            format_rate(each.rate, each.unit),
            _seconds(each.load),
            each.tier,
        )
    Console(highlight=False).print(table)


def _seconds(seconds: float) -> str:
    return f"{seconds * 1e3:.3g} ms" if seconds < 1 else f"{seconds:.3g} s"


__all__ = ["Measured", "bench", "measure"]
