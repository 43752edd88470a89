"""Programs whose arcs remember, on a GPU, real or simulated: as the obvious loop has it."""

from __future__ import annotations

from typing import Any

import pytest

import penstock as pk
from engine.test_edge_state import alike, edge_rows, naive
from penstock.engine.program import Combine
from penstock.graph import Graph
from places import at


def check(program: Combine, graph: Graph, place: str, steps: int = 3, **more: Any) -> Any:
    """Vertices and arcs after so many supersteps, and that they were the GPU's."""
    seeds = [graph.store.ids.of(0)] if graph.vertices else []
    given = {"source": seeds} if seeds else {}
    right, rows = naive(graph, program, seeds, steps)
    result = at(place, lambda **chosen: pk.run(program, graph, max_iter=steps, **given, **{**chosen, **more}))
    assert result.stats["device"] == "gpu", result.stats
    columns = [result.table[field].to_pylist() for field in program.state]
    found = dict(zip(result.table["vertex"].to_pylist(), zip(*columns, strict=True), strict=True))
    real = program.name == "real"
    assert found.keys() == right.keys()
    assert list(found.values()) == ([pytest.approx(x) for x in right.values()] if real else list(right.values()))
    assert alike(edge_rows(result), rows, real), f"arcs of {program.name} in {place}"
    figures = result.stats["gpu"]
    assert figures["ledger_peak"] <= figures["memory_limit"]
    return result


def goes_over(program: Combine, kind: str) -> bool:
    """Whether the arcs that it goes over are stored in a graph of this kind."""
    return kind != "outgoing" or program.along == "out"


__all__ = ["check", "goes_over"]
