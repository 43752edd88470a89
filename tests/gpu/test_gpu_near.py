"""Vectors stay on a GPU between the programs of an algorithm; and come home where it has no room for them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import penstock as pk
from engine import test_each
from penstock.engine.cpu import each as on_cpu
from penstock.engine.near import Near
from penstock.memory import gpu

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize("check", test_each.CHECKS)
def test_each_vertex(check: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(on_cpu, "run", None)
    check("gpu", tmp_path)


@pytest.mark.parametrize("check", test_each.CHECKS)
def test_vectors_go_home_where_there_is_no_room(check: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Near, "room", lambda *_: False)
    check("gpu", tmp_path)


@pytest.mark.parametrize("name", ["kcore", "betweenness", "scc", "hits", "sssp"])
def test_little_crosses_the_bus_between_programs(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As many large vectors as the result has, however many programs there were."""
    where = pk.generate("kron", tmp_path / "g.pen", scale=15, edge_factor=8, weights="1:255", seed=2)
    options: dict[str, Any] = {"betweenness": {"sources": [0, 1, 2]}, "sssp": {"source": 0, "parents": True}}.get(
        name, {}
    )
    expected = pk.run(name, where, device="cpu", **options)
    moved, download = [], gpu.download

    def counting(array: Any, out: np.ndarray | None = None) -> np.ndarray:
        moved.append(array.nbytes)
        return download(array, out)

    monkeypatch.setattr(gpu, "download", counting)
    found = pk.run(name, where, device="gpu", **options)
    size = 2 * where.store.active  # half of the smallest vector: more than any bitmap
    assert sum(nbytes >= size for nbytes in moved) <= len(found.schema) + 1
    for column in found.schema.names:
        ours, theirs = found.table[column].to_numpy(), expected.table[column].to_numpy()
        np.testing.assert_allclose(ours, theirs, rtol=1e-9)
