"""Penstock: graphs and key-value data that do not fit, streamed through the memory you allow.

>>> import penstock as pk
>>> g = pk.ingest("edges.parquet", "web.pen", memory_limit="2GB")      # doctest: +SKIP
>>> pk.pagerank(g, memory_limit="4GB").top(10)                         # doctest: +SKIP
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

# The folders of these names are loaded before the functions take them over: importing a module from them later
# does not set the name again.
import penstock.export
import penstock.ingest
import penstock.verify
from penstock.algorithms.registry import ALGORITHMS
from penstock.api import (
    check,
    explain,
    export,
    from_edges,
    from_networkx,
    generate,
    ingest,
    pagerank,
    plot,
    run,
    verify,
)
from penstock.api import open_graph as open
from penstock.config import config
from penstock.version import VERSION as __version__

if TYPE_CHECKING:
    from penstock.edges import Edges
    from penstock.engine.monoid import ANY, ARGMIN, FIRST, MAX, MIN, OR, SUM, Monoid, pair, pair_number, pair_value
    from penstock.engine.program import NEVER, NUMBER, Combine, Common, Pair, Row, Sweep
    from penstock.export.objects import to_arrow, to_networkx, to_numpy, to_scipy
    from penstock.graph import Graph
    from penstock.mapreduce.keyvalue import KeyValue
    from penstock.mapreduce.multivalue import KeyMultiValue
    from penstock.mapreduce.session import MapReduce
    from penstock.observe.events import recording
    from penstock.result import Result

# Loaded when first used: `import penstock` costs nothing, and Numba comes with the first kernel.
_LAZY = {
    "edges": ("Edges",),
    "engine.monoid": (
        "ANY", "ARGMIN", "FIRST", "MAX", "MIN", "OR", "SUM", "Monoid", "pair", "pair_number", "pair_value"
    ),
    "engine.program": ("NEVER", "NUMBER", "Combine", "Common", "Pair", "Row", "Sweep"),
    "export.objects": ("to_arrow", "to_networkx", "to_numpy", "to_scipy"),
    "graph": ("Graph",),
    "mapreduce.keyvalue": ("KeyValue",),
    "mapreduce.multivalue": ("KeyMultiValue",),
    "mapreduce.session": ("MapReduce",),
    "observe.events": ("recording",),
    "result": ("Result",),
}  # fmt: skip
_HOMES = {name: module for module, names in _LAZY.items() for name in names}
_FOLDERS = {"gimv": "algorithms.gimv", "jobs": "apps.jobs", "mapreduce": "mapreduce", "matrix": "apps.matrix"}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        value = getattr(importlib.import_module(f"penstock.{_HOMES[name]}"), name)
    elif name in _FOLDERS:  # pk.jobs.word_count
        value = importlib.import_module(f"penstock.{_FOLDERS[name]}")
    elif name in ALGORITHMS:  # pk.bfs(g, source=7) is pk.run("bfs", g, source=7)
        value = penstock.api.algorithm(name)
    else:
        raise AttributeError(f"module 'penstock' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES, *_FOLDERS, *ALGORITHMS})


__all__ = [
    "ANY",
    "ARGMIN",
    "FIRST",
    "MAX",
    "MIN",
    "NEVER",
    "NUMBER",
    "OR",
    "SUM",
    "Combine",
    "Common",
    "Edges",
    "Graph",
    "KeyMultiValue",
    "KeyValue",
    "MapReduce",
    "Monoid",
    "Pair",
    "Result",
    "Row",
    "Sweep",
    "__version__",
    "check",
    "config",
    "explain",
    "export",
    "from_edges",
    "from_networkx",
    "generate",
    "gimv",
    "ingest",
    "jobs",
    "mapreduce",
    "matrix",
    "open",
    "pagerank",
    "pair",
    "pair_number",
    "pair_value",
    "plot",
    "recording",
    "run",
    "to_arrow",
    "to_networkx",
    "to_numpy",
    "to_scipy",
    "verify",
]
