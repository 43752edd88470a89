"""The nearest and the farthest vertex."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import penstock as pk
from penstock.algorithms.tight import FAR, farthest, nearest
from penstock.config import settings
from penstock.engine.engine import Engine


@pytest.fixture
def job(count: int, tmp_path: Path) -> Any:
    """Of a ring of so many vertices."""
    ring = np.arange(count)
    where = pk.ingest(
        {"source": ring, "target": (ring + 1) % max(1, count)},
        tmp_path / "ring.pen",
        page_size=4096,
        allow_empty=True,
    )
    with Engine(where.store, settings(device="cpu", threads=3)) as engine:
        yield SimpleNamespace(engine=engine)


@pytest.mark.parametrize("kind", ["uint32", "int64"])
@pytest.mark.parametrize("count", [1, 9, 100])
def test_the_farthest_that_was_reached(job: Any, kind: str, count: int) -> None:
    vector = np.zeros(count + 1, kind)
    distance = vector[:-1]  # the last slot stands for vertices without arcs
    distance[:] = np.random.default_rng(count).integers(0, 1 << 31, count)
    assert farthest(job, vector) == distance.max()
    distance[::2] = FAR[kind]
    assert farthest(job, vector) == distance[1::2].max(initial=0)
    distance[-1] = FAR[kind] - 1
    assert farthest(job, vector) == int(FAR[kind]) - 1
    distance[:] = FAR[kind]
    assert farthest(job, vector) == 0
    distance[:] = 0
    assert farthest(job, vector) == 0


@pytest.mark.parametrize("kind", ["float32", "float64"])
@pytest.mark.parametrize("count", [1, 9, 100])
def test_the_nearest(job: Any, kind: str, count: int) -> None:
    vector = np.zeros(count + 1, kind)
    distance = vector[:-1]
    distance[:] = np.random.default_rng(count).random(count)
    assert nearest(job, vector) == distance.min()
    distance[:-1] = np.inf
    assert nearest(job, vector) == distance[-1]
    distance[count // 2] = -np.inf
    assert nearest(job, vector) == -np.inf


@pytest.mark.parametrize("count", [0])
def test_no_vertices(job: Any, count: int) -> None:
    assert farthest(job, np.zeros(1, np.uint32)) == 0
    assert not nearest(job, np.zeros(1)) < 0
