"""Checkers: is this the answer? Each is written by another method than the algorithm, and returns what is wrong.

>>> from penstock.verify import CHECKERS
>>> CHECKERS["bfs"](graph, result.table, source=42)   # doctest: +SKIP
[]
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from penstock.verify.checkers import CHECKERS
    from penstock.verify.common import Checker
    from penstock.verify.reading import read_result

_LAZY = {"CHECKERS": "checkers", "Checker": "common", "read_result": "reading"}


def __getattr__(name: str) -> Any:
    # `import penstock` loads this folder, and must stay light.
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_LAZY[name]}"), name)


__all__ = ["CHECKERS", "Checker", "read_result"]
