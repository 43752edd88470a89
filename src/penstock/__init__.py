"""Penstock: graphs and key-value data that do not fit, streamed through the memory you allow.

>>> import penstock as pk
>>> g = pk.ingest("edges.parquet", "web.pen", memory_limit="2GB")      # doctest: +SKIP
>>> pk.pagerank(g, memory_limit="4GB").top(10)                         # doctest: +SKIP
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from penstock.config import config

if TYPE_CHECKING:
    from penstock.api import check, export, from_edges, from_networkx, generate, ingest, pagerank, run
    from penstock.api import open_graph as open
    from penstock.graph import Graph
    from penstock.result import Result

__version__ = "0.1.0"

# Loaded when first used: `import penstock` costs nothing, and Numba comes with the first kernel.
_LAZY = {
    "Graph": ("graph", "Graph"),
    "Result": ("result", "Result"),
    "open": ("api", "open_graph"),
    **{
        name: ("api", name)
        for name in ("check", "export", "from_edges", "from_networkx", "generate", "ingest", "pagerank", "run")
    },
}


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module 'penstock' has no attribute {name!r}")
    module, attribute = _LAZY[name]
    value = getattr(importlib.import_module(f"penstock.{module}"), attribute)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *_LAZY])


__all__ = [
    "Graph",
    "Result",
    "__version__",
    "check",
    "config",
    "export",
    "from_edges",
    "from_networkx",
    "generate",
    "ingest",
    "open",
    "pagerank",
    "run",
]
