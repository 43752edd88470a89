"""Measuring: every rate is found, and all are of this machine's making."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest

import penstock as pk
from penstock.algorithms import pagerank, wcc
from penstock.config import settings
from penstock.engine import calibrate


def test_measure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calibrate, "_ARCS", 1 << 12)
    monkeypatch.setattr(calibrate, "SIZES", (1 << 12, 1 << 14))
    graph = pk.generate("kron", tmp_path / "k.pen", scale=11, undirected=True, page_size="16KiB")
    programs = {
        "gather4": pagerank.program("float32"),
        "gather8": pagerank.program("float64"),
        "sweep": wcc.program(np.dtype(np.uint32)),
    }
    found = calibrate.measure([graph.store], settings(threads=2, memory_limit="1GB"), programs)
    assert found.measured
    assert found.date
    assert len(found.gather4) == len(found.gather8) == 2
    for each in fields(found):
        value = getattr(found, each.name)
        if isinstance(value, float):
            assert value >= 0, each.name
            assert np.isfinite(value), each.name
    for name in ("disk", "touch", "memory", "load", "emit", "skim"):
        assert getattr(found, name) > 0, name
    assert min(found.gather4 + found.gather8) > 0


def test_start(tmp_path: Path) -> None:
    pk.generate("kron", tmp_path / "k.pen", scale=8, undirected=True, page_size="4KiB")
    assert 0 < calibrate.starting(tmp_path / "k.pen") < 600


@pytest.mark.parametrize(
    ("items", "seconds", "expected"),
    [
        ([(10.0, 1.0), (4.0, 2.0)], [23.0, 14.0], (2.0, 3.0)),
        ([(10.0, 1.0), (4.0, 2.0)], [30.0, 1.0], (1.625, 0.0)),
        ([(10.0, 1.0), (4.0, 2.0)], [1.0, 30.0], (0.0, 8.0)),
        ([(10.0, 1.0)], [20.0], (2.0, 0.0)),
    ],
)
def test_two_unknowns(items: list[tuple[float, float]], seconds: list[float], expected: tuple[float, float]) -> None:
    assert calibrate.solve(items, seconds) == pytest.approx(expected)
