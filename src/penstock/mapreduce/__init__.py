"""Key-value work under one memory budget: map, shuffle, group, reduce and sort, in memory and beyond it."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

# The modules of these names are loaded before the functions take them over.
import penstock.mapreduce.chunk
import penstock.mapreduce.lines  # noqa: F401  (loaded, not used)
from penstock.mapreduce.functions import chunk, compiled, emit, pairwise, python
from penstock.mapreduce.text import lines, words

if TYPE_CHECKING:
    from penstock.mapreduce.balance import compare, imbalance, lpt, round_robin
    from penstock.mapreduce.keyvalue import KeyValue
    from penstock.mapreduce.mrmpi import MRMPI
    from penstock.mapreduce.multivalue import KeyMultiValue
    from penstock.mapreduce.session import MapReduce
    from penstock.mapreduce.splitters import Splitter
    from penstock.mapreduce.varying import Bytes

# Loaded when first used, as the names of the package itself are.
_LAZY = {
    "balance": ("compare", "imbalance", "lpt", "round_robin"),
    "keyvalue": ("KeyValue",),
    "mrmpi": ("MRMPI",),
    "multivalue": ("KeyMultiValue",),
    "session": ("MapReduce",),
    "splitters": ("Splitter",),
    "varying": ("Bytes",),
}
_HOMES = {name: module for module, names in _LAZY.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})


__all__ = [
    "MRMPI",
    "Bytes",
    "KeyMultiValue",
    "KeyValue",
    "MapReduce",
    "Splitter",
    "chunk",
    "compare",
    "compiled",
    "emit",
    "imbalance",
    "lines",
    "lpt",
    "pairwise",
    "python",
    "round_robin",
    "words",
]
