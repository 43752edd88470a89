"""What arcs remember on a simulated GPU, whether it fits there or passes through it: as the obvious loop has it.
Started by test_gpu_edge_state.py in a process that Numba's simulator was chosen for."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from penstock.memory import gpu

# A thread of the device is a thread of Python here, so there are few; set before the modules that read them. Vertices
# are heavy in small pages, too, and have several segments.
gpu.WARP = 4
from penstock.memory import tasks  # noqa: E402

tasks.BLOCK, tasks.HEAVY, tasks.SEGMENT = 4, 16, 300

import penstock as pk  # noqa: E402
from engine.remembering import check, goes_over  # noqa: E402
from engine.test_edge_state import KINDS, PROGRAMS, SHAPES, Killed, killed_after  # noqa: E402
from penstock.engine.gpu import arcs  # noqa: E402
from penstock.graph import Graph  # noqa: E402
from places import GPU_PLACES  # noqa: E402
from stored import Stored  # noqa: E402


@pytest.fixture(scope="module")
def hubs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Graph]]:
    """Few vertices, for the simulator is slow, and several pages: one of them has arcs for more than one."""
    folder, rng = tmp_path_factory.mktemp("hubs"), np.random.default_rng(2)
    few = rng.integers(0, 36, (2, 400))
    ends = np.concatenate([[np.full(2600, 36), np.arange(2600) % 20], few, [few[1][:4], few[1][:4]]], axis=1)
    table = {"source": ends[0], "target": ends[1], "weight": rng.integers(1, 9, ends.shape[1])}
    options: dict[str, Any] = {"vertices": {"id": np.arange(46)}, "page_size": 4096, "duplicates": "keep"}
    found = {kind: pk.ingest(table, folder / f"{kind}.pen", **options, **KINDS[kind]) for kind in KINDS}
    assert all((graph.store.direction("out").records["kind"] == 1).any() for graph in found.values())
    yield found
    for graph in found.values():
        graph.close()


NAMES = ("empty", "one vertex", "no edges", "one loop", "loops", "duplicates", "string ids")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", NAMES)
def test_small_graphs(stored: Stored, shape: str, kind: str) -> None:
    graph, _ = stored.get(SHAPES[shape], **KINDS[kind])
    for name, program in PROGRAMS.items():
        for place in GPU_PLACES if goes_over(program, kind) else ():
            try:
                check(program, graph, place)
            except AssertionError as error:
                raise AssertionError(f"{name} in {place}: {error}") from None


WAYS = [pytest.param(kind, marks=() if kind == "directed" else pytest.mark.slow) for kind in KINDS]


@pytest.mark.parametrize("kind", WAYS)
@pytest.mark.parametrize("name", PROGRAMS)
def test_arcs_stay_or_pass_through(hubs: dict[str, Graph], name: str, kind: str) -> None:
    program, graph = PROGRAMS[name], hubs[kind]
    if not goes_over(program, kind):
        return
    whole = check(program, graph, "gpu", 2).stats["gpu"]["plans"][0]
    assert whole["arcs_kept_bytes"] == whole["arcs_bytes"] > 0
    result = check(program, graph, "gpu-streamed", 2)
    figures = result.stats["gpu"]
    least = figures["plans"][0]
    assert least["limit"] == least["smallest"] == whole["smallest"]
    assert (least["arcs_kept_bytes"], least["windows"]) == (0, 1)
    assert 0 < least["arcs_window_bytes"] < least["arcs_bytes"]
    # Each superstep brings what the arcs of its pages keep; with a frontier those that have something to do.
    if not program.frontier:
        assert figures["bytes_copied"] >= 2 * least["arcs_bytes"]
    plain = pk.run(program, graph, max_iter=1, device="gpu", gpu_memory_limit=least["limit"]).stats["gpu"]["plans"][0]
    told = pk.explain(program, graph, device="gpu", gpu_memory_limit=least["limit"])
    assert told.stages[0].gpu is not None
    assert {"program": program.name, **told.stages[0].gpu.plan.as_dict()} == plain


@pytest.mark.parametrize("name", PROGRAMS)
def test_some_stay(hubs: dict[str, Graph], name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between the least and all: those of the first pages stay."""
    monkeypatch.setattr(arcs, "RING", 0)
    program, graph = PROGRAMS[name], hubs["directed"]
    plan = pk.explain(program, graph, device="gpu", gpu_memory_limit="1GB").stages[0].gpu.plan  # type: ignore[union-attr]
    limit = int(plan.smallest + 0.6 * plan.arcs_bytes)
    found = check(program, graph, "gpu", 2, gpu_memory_limit=limit).stats["gpu"]["plans"][0]
    assert 0 < found["arcs_kept_bytes"] < found["arcs_bytes"]


@pytest.mark.parametrize("kind", WAYS)
@pytest.mark.parametrize("name", PROGRAMS)
def test_vertices_in_ranges_too(hubs: dict[str, Graph], name: str, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """An arc is asked once, in the window and the range that it belongs to."""
    program, graph = PROGRAMS[name], hubs[kind]
    if not goes_over(program, kind):
        return
    check(program, graph, "gpu-ranges", 2)
    if kind == "undirected":
        return  # as slow as it is like the others
    monkeypatch.setattr("penstock.engine.gpu.plan.LEAST_WINDOW", 16)
    found = check(program, graph, "gpu-streamed", 2).stats["gpu"]["plans"][0]
    assert found["ranges"] > 1
    assert found["arcs_window_bytes"] < found["arcs_bytes"]


def test_fields_in_files(hubs: dict[str, Graph]) -> None:
    """The host has little memory as well."""
    for place in ("gpu", "gpu-streamed"):
        result = check(PROGRAMS["difference"], hubs["directed"], place, 2, tier="disk")
        assert result.stats["plans"][0]["edge_window_bytes"] > 0


def test_on_one_of_several(hubs: dict[str, Graph]) -> None:
    result = check(PROGRAMS["difference"], hubs["directed"], "gpu", 2, gpu_devices=2)
    assert result.stats["why_one_gpu"] == "programs with edge_state run on one GPU"


@pytest.mark.parametrize("name", ["difference", "frontier"])
def test_a_run_goes_on_where_it_was(
    hubs: dict[str, Graph], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    program, graph = PROGRAMS[name], hubs["directed"]
    right = pk.run(program, graph, max_iter=3, device="cpu")
    least = pk.explain(program, graph, device="gpu").smallest_gpu
    places: list[dict[str, Any]] = [
        {"device": "gpu"},
        {"device": "gpu", "gpu_memory_limit": least},
        {"device": "cpu", "tier": "disk"},
        {"device": "gpu", "tier": "disk"},
    ]
    for first, second in zip(places, [*places[1:], places[0]], strict=True):
        folder = tmp_path / "c"
        with killed_after(2, monkeypatch), pytest.raises(Killed):
            pk.run(program, graph, checkpoint=folder, checkpoint_every="1", max_iter=3, **first)
        result = pk.run(program, graph, checkpoint=folder, checkpoint_every="9", max_iter=3, **second)
        assert result.stats["device"] == second["device"]
        assert result.stats["resumed_at"] == 2
        assert result.table.equals(right.table)
        assert result.edges.table.equals(right.edges.table)
