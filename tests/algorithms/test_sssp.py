"""Shortest paths against the oracle, wherever they run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cases
import oracle
import penstock as pk
from penstock.errors import InputError, UsageError

PLACES: dict[str, dict[str, Any]] = {
    "memory": {"tier": "memory", "threads": 2},
    "disk": {"tier": "disk", "threads": 2},
    "ranges": {"tier": "disk", "state_ranges": 3, "threads": 2},
}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("shape", cases.shapes(), ids=lambda shape: shape.name)
def test_every_shape(tmp_path: Path, shape: cases.Shape, place: str) -> None:
    for undirected in shape.ways:
        graph = shape.build(tmp_path / f"{undirected}.pen", undirected=undirected)
        g = oracle.of(graph)
        more = [{"delta": 1e-6}, {"delta": 1e9}] if place != "ranges" else []
        extra = [{"source": cases.busiest(g), **each} for each in more] if len(g) else []
        for options in [*cases.CASES["sssp"](g), *extra]:
            found = cases.found("sssp", pk.run("sssp", graph, **options, **PLACES[place]))
            cases.compare("sssp", found, cases.expected("sssp", g, options), rel=0, abs=0)
