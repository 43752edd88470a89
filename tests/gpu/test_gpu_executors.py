"""Programs of every kind on random graphs, on a GPU: they do what the reference executor does."""

from __future__ import annotations

import runpy
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import penstock as pk
from engine.test_edge_state import Killed, killed_after
from engine.test_executors import PROGRAMS, built, edges, folder, nearly, outcome
from places import GPU_PLACES, at
from test_docs import ROOT, widest

__all__ = ["folder"]

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize("place", GPU_PLACES)
@pytest.mark.parametrize("name", [pytest.param(name, marks=pytest.mark.xdist_group(name)) for name in PROGRAMS])
@settings(max_examples=3)
@given(data=st.data())
def test_the_gpu_agrees_with_the_reference(folder: Path, name: str, place: str, data: st.DataObject) -> None:
    program = PROGRAMS[name]
    kinds = ("directed", "undirected", "outgoing") if program.along == "out" else ("directed", "undirected")
    chosen = data.draw(edges(kinds))
    with built(chosen, folder) as graph:
        expected = outcome(graph, program, chosen.seeds, device="reference")
        found = at(place, lambda **options: outcome(graph, program, chosen.seeds, **options))
        for part, value in expected.items():
            assert found[part] == nearly(name, part, value), f"{part} of {name} in {place}"


@pytest.mark.parametrize("place", GPU_PLACES)
def test_a_users_program(place: str, tmp_path: Path) -> None:
    program = runpy.run_path(str(ROOT / "examples" / "widest_path.py"))["WIDEST"]
    rng = np.random.default_rng(5)
    ends, weight = rng.integers(0, 300, (2, 3000)), rng.random(3000)
    graph = pk.ingest(
        {"source": ends[0], "target": ends[1], "weight": weight}, tmp_path / "g.pen", page_size=4096, columns=["weight"]
    )
    source = int(ends[0][0])
    edges = list(zip(ends[0].tolist(), ends[1].tolist(), weight.tolist(), strict=True))
    found = at(place, lambda **options: pk.run(program, graph, source=source, **options))
    assert found.stats["device"] == "gpu"
    assert found.to_dict() == widest(edges, source)


@pytest.mark.parametrize(("first", "second"), [("gpu", "gpu"), ("gpu", "cpu"), ("cpu", "gpu")])
def test_labels_go_on_where_they_were(first: str, second: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A row program: saved by one, taken up by the other."""
    ends = np.random.default_rng(6).integers(0, 400, (2, 2000))
    graph = pk.ingest({"source": ends[0], "target": ends[1]}, tmp_path / "g.pen", page_size=4096)
    right = pk.cdlp(graph, device="cpu", max_iter=4)
    saved = {"checkpoint": tmp_path / "saved", "checkpoint_every": "1", "max_iter": 4}
    with killed_after(2, monkeypatch), pytest.raises(Killed):
        pk.cdlp(graph, device=first, **saved)
    found = pk.cdlp(graph, device=second, **saved)
    assert (found.stats["device"], found.stats["resumed_at"]) == (second, 2)
    assert found.table.equals(right.table)
