"""The functions of `import penstock`: they turn keywords into options and settings, and call what does the work."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.config import Settings, settings
from penstock.errors import UsageError

if TYPE_CHECKING:
    from penstock.engine.explain import Explanation
    from penstock.engine.program import Program
    from penstock.engine.rates import Rates
    from penstock.graph import Graph
    from penstock.ingest.build.builder import BuildReport
    from penstock.result import Result

_SETTINGS = {field.name for field in fields(Settings)}


def _split(options: dict[str, Any]) -> tuple[Settings, dict[str, Any]]:
    """A call's keywords: those that are settings, and the rest."""
    mine = {name: value for name, value in options.items() if name in _SETTINGS}
    return settings(**mine), {name: value for name, value in options.items() if name not in _SETTINGS}


def build_store(edges: Any, store: str | os.PathLike[str], /, **options: Any) -> BuildReport:
    """Build a store from a path, several paths, a table, arrays or a graph object, and say what it took."""
    from penstock.ingest.build.builder import build
    from penstock.ingest.open import open_source, open_vertices, split_options

    chosen, rest = _split(options)
    build_options, source_options, vertices = split_options(rest)
    source = open_source(edges, **source_options)
    return build(source, store, build_options, chosen, open_vertices(vertices, string_ids=source.string_ids))


def ingest(edges: Any, store: str | os.PathLike[str], /, **options: Any) -> Graph:
    """Build a store out of core, and open it. Among the options, `source=` and `target=` name columns.

    >>> g = ingest("edges.parquet", "web.pen", memory_limit="2GB")   # doctest: +SKIP
    """
    build_store(edges, store, **options)
    return open_graph(store)


def generate(kind: str, target: str | os.PathLike[str], **options: Any) -> Graph:
    """Make a graph: `generate("kron", "k20.pen", scale=20, seed=1, undirected=True)`."""
    generate_store(kind, target, **options)
    return open_graph(target)


def generate_store(kind: str, target: str | os.PathLike[str], **options: Any) -> BuildReport:
    """Like `generate`, but returns what it took."""
    from penstock.ingest.build.builder import build
    from penstock.ingest.generate.registry import generator
    from penstock.ingest.open import split_options

    chosen, rest = _split(options)
    build_options, params, vertices = split_options(rest)
    if vertices is not None:  # here it is how many there are, not a table of them
        params["vertices"] = vertices
    edges = generator(kind, **params)
    if build_options.undirected and build_options.duplicates is None and rest.get("self_loops") is None:
        # "Kronecker N symmetrised" means what everybody means by it: no duplicates, no loops.
        build_options = replace(build_options, self_loops="drop")
    return build(edges, target, build_options, chosen)


def open_graph(path: str | os.PathLike[str]) -> Graph:
    """Open a store."""
    from penstock.graph import Graph

    return Graph.open(path)


def from_edges(edges: Any = None, target: Any = None, weight: Any = None, **options: Any) -> Graph:
    """A graph from arrays or from anything that `ingest` takes, in a temporary store that is deleted with it.

    >>> from_edges([1, 2], [2, 3], weight=[0.5, 1.5])             # doctest: +SKIP
    >>> from_edges(frame, source="payer", target="payee")         # doctest: +SKIP
    """
    from penstock.given import temporary

    if edges is None:
        edges = options.pop("source", None)
    if target is not None and not isinstance(target, str):
        edges, target = {"source": edges, "target": target} | ({} if weight is None else {"weight": weight}), None
        weight = None
    if weight is not None:
        raise UsageError("weight= is for arrays; of a table say columns=['weight'], and an algorithm takes the name")
    chosen, rest = _split(options)
    return temporary(edges, chosen, rest if target is None else rest | {"target": target})


def from_networkx(graph: Any, **options: Any) -> Graph:
    """A graph from a NetworkX graph, in a temporary store that is deleted with it."""
    return from_edges(graph, **options)


def run(algorithm: str | Program, graph: Any, **options: Any) -> Any:
    """Run an algorithm by its name, or a program of your own, on a graph, a store, or edges as `ingest` takes them,
    which are read for this run only; of those, `undirected=True` takes each edge both ways.

    >>> run("bfs", g, source=7, memory_limit="1GB").top(10)   # doctest: +SKIP
    """
    from penstock.algorithms import custom, registry
    from penstock.observe.events import current

    chosen, rest = _split(options)
    handle = _graph(algorithm, graph, chosen, rest)
    if isinstance(algorithm, str):
        result = registry.run(algorithm, handle, chosen, rest)
    else:
        result = custom.run(algorithm, handle, chosen, rest)
    result.graph, result.events = handle, current()
    return result


def _graph(algorithm: str | Program, graph: Any, chosen: Settings, rest: dict[str, Any]) -> Graph:
    """What to run on. Of edges that are no store yet, the algorithm says which columns to read."""
    from penstock.algorithms import registry
    from penstock.given import graph_of, is_store

    if is_store(graph):
        return graph_of(graph, chosen)
    columns: Sequence[str] | None
    if not isinstance(algorithm, str):
        columns = algorithm.columns
    else:
        registry.check(algorithm, {name: value for name, value in rest.items() if name != "undirected"})
        columns = registry.columns_of(algorithm, rest)
    build = {"columns": columns, "undirected": rest.pop("undirected", None)}
    return graph_of(graph, chosen, {name: value for name, value in build.items() if value is not None})


def explain(algorithm: str | Program, graph: Any, *, analyze: bool = False, **options: Any) -> Explanation:
    """What running an algorithm would do and take, without running it; with `analyze`, beside what it did and took.

    >>> print(explain("pagerank", g, memory_limit="1GB"))   # doctest: +SKIP
    """
    import sys

    from penstock.algorithms import registry
    from penstock.algorithms.job import how_many
    from penstock.engine.explain import Stage
    from penstock.engine.explain import explain as told

    chosen, rest = _split(options)
    handle = _graph(algorithm, graph, chosen, rest)
    options.pop("undirected", None)
    if isinstance(algorithm, str):
        name, stages = algorithm, registry.stages_of(algorithm, handle.store, rest)
    else:
        most = rest.get("max_iter")
        note = "at most, stops at the tolerance" if "tol" in rest else ""
        seeds = how_many(rest["source"]) if rest.get("source") is not None else 0
        name, stages = algorithm.name, [Stage(algorithm, None if most is None else int(most), note, seeds=seeds)]
    # Who has run programs of this form has the kernels' library loaded, if not the kernels.
    warm = any(f"penstock.engine.cpu.{stage.program.form}" in sys.modules for stage in stages)
    card = handle.card if handle.card is not None and handle.card.answers(chosen) else None
    found = told(name, handle.store, stages, chosen, loaded=bool(handle.loaded), card=card, warm=warm)
    if not analyze or not found.fits:
        return found
    return replace(found, happened=run(algorithm, handle, **options).stats)


def measure(folder: str | os.PathLike[str] = ".", **options: Any) -> Rates:
    """Measure the rates of this machine and of the disk that a folder lies on, and keep them for predictions.

    It takes about half a minute on an idle machine, which it needs, and 200 MB in the folder meanwhile.
    """
    from penstock.algorithms import pagerank, wcc
    from penstock.engine import rates
    from penstock.engine.calibrate import measure, starting
    from penstock.engine.plan import number_dtype

    chosen, rest = _split(options)
    if rest:
        raise UsageError(f"measure has no option {next(iter(rest))!r}")
    place = Path(folder)
    with (
        tempfile.TemporaryDirectory(prefix=".penstock-measure-", dir=place) as made,
        generate("kron", Path(made) / "k.pen", scale=19, undirected=True, progress=False) as graph,
        generate(
            "uniform", Path(made) / "u.pen", vertices=1 << 21, edges=1 << 22, undirected=True, progress=False
        ) as wide,
    ):
        programs: dict[str, Program] = {
            "gather4": pagerank.program("float32"),
            "gather8": pagerank.program("float64"),
            "sweep": wcc.program(number_dtype(graph.store)),
        }
        found = replace(measure([graph.store, wide.store], chosen, programs), start=starting(graph.path))
    rates.save(found, place)
    return found


def pagerank(graph: Any, **options: Any) -> Result:
    """PageRank of every vertex, inside `memory_limit`.

    >>> pagerank(g, memory_limit="4GB").top(10)   # doctest: +SKIP
    >>> pagerank("edges.txt").to_pandas()         # doctest: +SKIP
    """
    return run("pagerank", graph, **options)


def plot(kind: str, given: Any, path: str | os.PathLike[str] | None = None, **options: Any) -> Any:
    """Draw a graph, or what was found on it, as .png, .svg or .pdf; without a path, returns the matplotlib figure.
    Of a graph, ranks, components and radii are found first; of a result or a file of one, they are there.

    >>> plot("degree", g, "degree.png")                                           # doctest: +SKIP
    >>> plot("correlation", g, "c.svg", x="degree", y="pagerank")                 # doctest: +SKIP
    """
    from penstock.given import graph_of
    from penstock.plots.kinds import Subject, check, picture
    from penstock.plots.style import check_ending, save
    from penstock.plots.table import TableOfValues
    from penstock.rows import Rows
    from penstock.store.whole import check_target
    from penstock.verify.reading import is_result, read_result

    chosen, rest = _split(options)
    overwrite = rest.pop("overwrite", False)
    if wrong := set(rest) - {"column", "direction", "x", "y", "bins"}:
        raise UsageError(f"plot has no option {min(wrong)!r}; it has column, direction, x, y, bins")
    check(kind, rest.get("direction") or "both")
    if path is not None:
        check_ending(path)
        check_target(Path(path), overwrite)
    name = Path(given).name if isinstance(given, str | os.PathLike) else ""
    if isinstance(given, Rows):
        subject = Subject(str(given.stats.get("algorithm", "result")), given.graph, given)
    elif isinstance(given, str | os.PathLike) and is_result(Path(given)):
        subject = Subject(name, result=TableOfValues(read_result(Path(given)), name))
    else:
        graph = graph_of(given, chosen, {"columns": ()})
        mine = {key: value for key, value in options.items() if key in _SETTINGS}
        subject = Subject(name or graph.path.name, graph, run=lambda algorithm: run(algorithm, graph, **mine))
    found = picture(kind, subject, **{key: value for key, value in rest.items() if value is not None})
    return found if path is None else save(found, path, overwrite=overwrite)


def algorithm(name: str) -> Callable[..., Any]:
    """The algorithm of this name as a function of a graph: `algorithm("bfs")(g, source=7)`."""
    import inspect

    from penstock.algorithms.registry import ALGORITHMS, options_of

    known = options_of(name)  # refuses names that are none

    def call(graph: Any, **options: Any) -> Any:
        return run(name, graph, **options)

    call.__name__ = call.__qualname__ = name
    call.__module__ = "penstock"
    lines = [f"    {key}  {getattr(option.annotation, '__metadata__', [''])[0]}" for key, option in known.items()]
    call.__doc__ = "\n".join([f"{ALGORITHMS[name][0].upper()}{ALGORITHMS[name][1:]}.", "", *lines])
    graph = inspect.Parameter("graph", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    rest = inspect.Parameter("settings", inspect.Parameter.VAR_KEYWORD)
    call.__signature__ = inspect.Signature([graph, *known.values(), rest])  # type: ignore[attr-defined]
    return call


def verify(
    algorithm: str,
    graph: Graph | str | os.PathLike[str],
    result: Any,
    **options: Any,
) -> list[str]:
    """Check a result, a table or a file of one, by another method than the one that found it; returns what is wrong.
    The options are those of the run.

    >>> verify("bfs", g, "levels.parquet", source=7)   # doctest: +SKIP
    []
    """
    import inspect

    import pyarrow as pa

    from penstock.algorithms.registry import ALGORITHMS, options_of
    from penstock.graph import Graph
    from penstock.rows import Rows
    from penstock.verify import CHECKERS, read_result

    if algorithm not in CHECKERS:
        raise UsageError(f"there is no check of {algorithm!r}; there are {', '.join(CHECKERS)}")
    check = CHECKERS[algorithm]
    known, also = inspect.signature(check).parameters, options_of(algorithm) if algorithm in ALGORITHMS else {}
    _, rest = _split(options)
    for name in rest:
        if name not in known and name not in also:
            raise UsageError(f"{algorithm} has no option {name!r}")
    handle = graph if isinstance(graph, Graph) else open_graph(graph)
    if isinstance(result, str | os.PathLike):
        table = read_result(Path(result), handle)
    else:
        table = result.table if isinstance(result, Rows) else pa.table(result)
    # How it was run (delta, dtype) is of no matter to some checks.
    return list(check(handle, table, **{name: value for name, value in rest.items() if name in known}))


def check(graph: Graph | str | os.PathLike[str], **options: Any) -> Sequence[str]:
    """Compare every byte of a store with its checksums, and its parts with one another; returns what is wrong."""
    from penstock.graph import Graph
    from penstock.store.check import check_store

    chosen, rest = _split(options)
    if rest:
        raise UsageError(f"check has no option {next(iter(rest))!r}")
    return check_store(graph.path if isinstance(graph, Graph) else Path(graph), chosen)


def export(graph: Graph | str | os.PathLike[str], target: str | os.PathLike[str], **options: Any) -> Path:
    """Write the edges to a file, in the format of its name."""
    from penstock.export.files import export_graph
    from penstock.graph import Graph

    handle = graph if isinstance(graph, Graph) else open_graph(graph)
    return export_graph(handle, target, **options)
