"""The generators by name."""

from __future__ import annotations

import importlib
import inspect
from typing import Any

from penstock.errors import UsageError
from penstock.ingest.source import EdgeSource

GENERATORS: dict[str, tuple[str, str]] = {
    "kron": ("kronecker", "KroneckerSource"),
    "uniform": ("uniform", "UniformSource"),
    "grid": ("families", "GridSource"),
    "chain": ("families", "ChainSource"),
    "ring": ("families", "RingSource"),
    "star": ("families", "StarSource"),
    "complete": ("families", "CompleteSource"),
    "tree": ("families", "TreeSource"),
}
"""Kind to (module, class), so that listing the kinds loads none of them."""

ALIASES = {"kronecker": "kron", "rmat": "kron", "erdos-renyi": "uniform", "path": "chain", "cycle": "ring"}


def generator(kind: str, **params: Any) -> EdgeSource:
    """`generator("kron", scale=20, edge_factor=16, seed=1)`: the edges of a made graph."""
    word = str(kind).lower().replace("_", "-")
    word = ALIASES.get(word, word)
    if word not in GENERATORS:
        raise UsageError(f"there is no generator {kind!r}; the generators are {', '.join(GENERATORS)}")
    module, name = GENERATORS[word]
    make = getattr(importlib.import_module(f"penstock.ingest.generate.{module}"), name)
    known = inspect.signature(make).parameters
    for param in params:
        if param not in known:
            raise UsageError(f"{word} has no parameter {param!r}; it takes {', '.join(known)}")
    for param, spec in known.items():
        if spec.default is inspect.Parameter.empty and param not in params:
            raise UsageError(f"{word} needs {param}=")
    source: EdgeSource = make(**params)
    return source


__all__ = ["GENERATORS", "generator"]
