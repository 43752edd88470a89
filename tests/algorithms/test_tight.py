"""The nearest and the farthest vertex, by pieces and threads."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from penstock.algorithms import tight
from penstock.algorithms.tight import FAR, farthest, nearest
from penstock.memory.team import Team


@pytest.fixture
def job(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(tight, "PIECE", 8)
    monkeypatch.setattr(tight, "LOOK", 3)
    team = Team(3)
    yield SimpleNamespace(engine=SimpleNamespace(team=team, vectors=SimpleNamespace(drop=lambda: None)))
    team.close()


@pytest.mark.parametrize("kind", ["uint32", "int64"])
@pytest.mark.parametrize("count", [1, 8, 9, 100])
def test_the_farthest_that_was_reached(job: Any, kind: str, count: int) -> None:
    distance = np.random.default_rng(count).integers(0, 1 << 31, count).astype(kind)
    assert farthest(job, distance) == distance.max()
    distance[::2] = FAR[kind]
    assert farthest(job, distance) == distance[1::2].max(initial=0)
    distance[-1] = FAR[kind] - 1
    assert farthest(job, distance) == int(FAR[kind]) - 1
    distance[:] = FAR[kind]
    assert farthest(job, distance) == 0
    distance[:] = 0
    assert farthest(job, distance) == 0


@pytest.mark.parametrize("kind", ["float32", "float64"])
@pytest.mark.parametrize("count", [1, 8, 9, 100])
def test_the_nearest(job: Any, kind: str, count: int) -> None:
    distance = np.random.default_rng(count).random(count).astype(kind)
    assert nearest(job, distance) == distance.min()
    distance[:-1] = np.inf
    assert nearest(job, distance) == distance[-1]
    distance[count // 2] = -np.inf
    assert nearest(job, distance) == -np.inf


def test_no_vertices(job: Any) -> None:
    assert farthest(job, np.zeros(0, np.uint32)) == 0
    assert not nearest(job, np.zeros(0)) < 0
