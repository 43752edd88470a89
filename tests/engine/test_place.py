"""Where a run goes that did not ask for a GPU, and what it is told."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import penstock as pk
from penstock.engine import place
from penstock.graph import Graph
from penstock.observe import gpus


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    return pk.ingest({"source": [1, 2], "target": [2, 3]}, tmp_path / "g.pen")


@pytest.fixture
def nodes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where a driver's files would be, without Python's packages for GPUs."""
    monkeypatch.setattr(gpus, "PACKAGES", ("no_such_package",))
    monkeypatch.setattr(gpus, "NODES", str(tmp_path / "nvidia[0-9]*"))
    return tmp_path


def test_a_gpu_without_packages_is_named(graph: Graph, nodes: Path) -> None:
    (nodes / "nvidia0").touch()
    stats = pk.pagerank(graph).stats
    assert stats["device"] == "cpu"
    assert stats["why_not_gpu"].startswith('no-such-package is not installed: run pip install ".[gpu-cu13]"')
    assert f"on the CPU: {stats['why_not_gpu']}" in str(pk.explain("pagerank", graph))
    assert "why_not_gpu" not in pk.pagerank(graph, device="cpu").stats


def test_nothing_is_said_where_there_is_no_gpu(graph: Graph, nodes: Path) -> None:
    (nodes / "nvidiactl").touch()  # the driver, and no GPU
    stats = pk.pagerank(graph).stats
    assert stats["device"] == "cpu"
    assert "why_not_gpu" not in stats
    assert "GPU" not in str(pk.explain("pagerank", graph))


@pytest.mark.parametrize("there", [False, True])
def test_a_gpu_that_cannot_be_used_says_why(graph: Graph, there: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """With all packages, on a graph that is worth it."""
    from penstock.memory import gpu

    monkeypatch.setattr(place, "uninstalled", lambda: None)
    monkeypatch.setattr(place, "SMALL", 0)
    monkeypatch.setattr(gpu, "unusable", lambda device: "no CUDA device was found")
    monkeypatch.setattr(place, "seen", lambda: there)
    assert pk.pagerank(graph).stats.get("why_not_gpu") == ("no CUDA device was found" if there else None)


@pytest.mark.parametrize(
    ("name", "options"), [("degree", {}), ("induced", {"vertices": [1, 2]}), ("cross_edges", {"vertices": [1]})]
)
def test_what_runs_no_program_says_who_did_it(graph: Graph, name: str, options: dict[str, Any]) -> None:
    why = f"{name} runs no program, and what it reads is not worth the way to a GPU"
    for device in ("auto", "cpu", "gpu", "gpu:1"):
        stats = pk.run(name, graph, device=device, **options).stats
        assert stats["device"] == "cpu"
        assert stats.get("why_not_gpu") == (why if device.startswith("gpu") else None)
        told = pk.explain(name, graph, device=device, **options)
        assert (f"on the CPU: {why}" in str(told)) == device.startswith("gpu")
        assert ("gpu" in told.as_dict()["stages"][0]) == device.startswith("gpu")
