"""Degrees of the vertices of a graph.

Returns   (vertex, degree), by ascending vertex
Defined   out: edges that leave it; both: edges at it, a loop twice
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

import numpy as np

from penstock.apps.grouped import mapped
from penstock.apps.jobs.edges import VERTEX, edges_of
from penstock.errors import UsageError
from penstock.mapreduce.keyvalue import KeyValue
from penstock.mapreduce.session import MapReduce


def degree(
    mr: MapReduce,
    edges: Any,
    *,
    count: Annotated[Literal["out", "both"], "Edges that leave a vertex, or those at it, a loop twice."] = "both",
) -> KeyValue:
    """How many edges each vertex has."""
    if count not in ("out", "both"):
        raise UsageError(f"count must be out or both, not {count!r}")

    def ends(keys: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        found = keys if count == "out" else np.concatenate([keys, values])
        return found, np.ones(len(found), np.int64)

    return mapped(edges_of(mr, edges), ends, VERTEX, np.int64, combine="sum").collate().reduce("sum").sort_keys()


__all__ = ["degree"]
