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
import penstock.ingest  # noqa: F401
from penstock.api import check, explain, export, from_edges, from_networkx, generate, ingest, pagerank, run
from penstock.api import open_graph as open
from penstock.config import config
from penstock.version import VERSION as __version__

if TYPE_CHECKING:
    from penstock.export.objects import to_arrow, to_networkx, to_numpy, to_scipy
    from penstock.graph import Graph
    from penstock.result import Result

# Loaded when first used: `import penstock` costs nothing, and Numba comes with the first kernel.
_LAZY = {
    "Graph": "graph",
    "Result": "result",
    "to_arrow": "export.objects",
    "to_networkx": "export.objects",
    "to_numpy": "export.objects",
    "to_scipy": "export.objects",
}


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module 'penstock' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"penstock.{_LAZY[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_LAZY})


__all__ = [
    "Graph",
    "Result",
    "__version__",
    "check",
    "config",
    "explain",
    "export",
    "from_edges",
    "from_networkx",
    "generate",
    "ingest",
    "open",
    "pagerank",
    "run",
    "to_arrow",
    "to_networkx",
    "to_numpy",
    "to_scipy",
]
