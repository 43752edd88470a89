"""What a GPU would do is planned without one: only its memory must be known, and for times its rates."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import penstock as pk
from penstock.algorithms.registry import ALGORITHMS, options_of
from penstock.engine.rates import GPU_SIZES, GpuRates, save_gpu
from penstock.errors import UsageError
from penstock.graph import Graph
from penstock.interfaces.cli.explain import app
from penstock.observe.gpus import missing

NO_PROGRAM = {"degree", "induced", "cross_edges"}
"""They read without one."""
RATES = GpuRates("some GPU", 8 << 30, 50e9, 2e12, 20e-6, GPU_SIZES, (5e-12,) * len(GPU_SIZES))


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Graph:
    path = tmp_path_factory.mktemp("explained") / "k.pen"
    return pk.generate("kron", path, scale=15, undirected=True, weights="1:9", page_size="4KiB", progress=False)


@pytest.mark.skipif(missing() is None, reason="there is a GPU")
def test_why_not_here(graph: Graph) -> None:
    text = str(pk.explain("pagerank", graph, device="gpu"))
    assert "not here: cupy is not installed" in text or "not here: n" in text
    assert "give gpu_memory_limit to see the plan" in text
    with pytest.raises(UsageError, match="device gpu: "):
        pk.explain("pagerank", graph, device="gpu", analyze=True)


def test_resident_streamed_and_in_ranges(graph: Graph) -> None:
    least = pk.explain("pagerank", graph, device="gpu", gpu_memory_limit="1GB").smallest_gpu
    whole = graph.store.direction("out").records.size * 4096
    for limit, source in ((1 << 30, "device"), (least + whole // 2, "host"), (least, "host")):
        found = pk.explain("pagerank", graph, device="gpu", gpu_memory_limit=limit, max_iter=3)
        device = found.stages[0].gpu
        assert found.fits
        assert device is not None
        assert device.source == source
        assert device.plan.resident == (source == "device")
    assert device.plan.ranges > 1
    assert f"in {device.plan.ranges} ranges" in str(found)
    # What vertices send fits: the rest comes in windows, and pages pass once.
    found = pk.explain("pagerank", graph, device="gpu", gpu_memory_limit=least + 10 * graph.store.active, max_iter=3)
    device = found.stages[0].gpu
    assert device is not None
    assert (device.plan.ranges, device.plan.windows > 1) == (1, True)
    assert device.streamed <= device.plan.pages_bytes
    assert f"in {device.plan.windows} windows" in str(found)
    # The host's memory is too small for the pages, too.
    small = pk.explain("pagerank", graph, device="gpu", gpu_memory_limit=least, memory_limit="3MB", tier="disk")
    assert small.stages[0].gpu is not None
    assert small.stages[0].gpu.source == "disk"
    assert "streamed from disk" in str(small)


@pytest.mark.parametrize("name", [name for name in ALGORITHMS if name not in NO_PROGRAM])
def test_every_algorithm_is_planned_without_a_gpu(graph: Graph, name: str) -> None:
    given = {"source": 1, "sources": [1], "weight": "weight"}
    options = {key: value for key, value in given.items() if key in options_of(name)}
    found = pk.explain(name, graph, device="gpu", gpu_memory_limit="1GB", **options)
    there = [stage.gpu.source for stage in found.stages if stage.gpu is not None and stage.gpu.device == "gpu"]
    assert there
    assert set(there) == {"device"}


def test_too_little(graph: Graph) -> None:
    for name, options in (("bfs", {"source": 1}), ("wcc", {}), ("sssp", {"source": 1, "parents": True})):
        found = pk.explain(name, graph, device="gpu", gpu_memory_limit="10kB", **options)
        assert not found.fits
        assert "set gpu_memory_limit to at least" in str(found)
        held = json.loads(json.dumps(found.as_dict()))
        assert held["smallest_gpu_memory_limit"] == found.smallest_gpu > 10_000
        assert pk.explain(name, graph, device="gpu", gpu_memory_limit=found.smallest_gpu, **options).fits


def test_times_by_rates(graph: Graph) -> None:
    unknown = pk.explain("pagerank", graph, device="gpu", gpu_memory_limit="1GB", max_iter=4)
    assert "how long it takes is not measured here: run penstock doctor --measure" in str(unknown)
    assert unknown.as_dict()["seconds"] is None
    save_gpu(RATES)
    resident = pk.explain("pagerank", graph, device="gpu", gpu_memory_limit="1GB", max_iter=4)
    assert resident.seconds > 0
    prediction = resident.stages[0].prediction
    assert prediction is not None
    assert prediction.phases["run"] >= 4 * prediction.parts["fetch"]
    save_gpu(replace(RATES, copy=1e6))
    streamed = pk.explain("pagerank", graph, device="gpu", gpu_memory_limit=resident.smallest_gpu, max_iter=4)
    prediction, device = streamed.stages[0].prediction, streamed.stages[0].gpu
    assert prediction is not None
    assert device is not None
    assert prediction.phases["run"] >= 4 * device.streamed / 1e6
    assert "bound by copying to the GPU" in str(streamed)
    # Without a limit, the GPU that was measured is planned for.
    if missing() is not None:
        assert "some GPU" in str(pk.explain("pagerank", graph, device="gpu"))


def test_what_runs_on_the_cpu_says_why(graph: Graph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    several: dict[str, Any] = {"device": "gpu", "gpu_devices": 2, "gpu_memory_limit": "1GB", "checkpoint": tmp_path}
    text = str(pk.explain("pagerank", graph, **several))
    assert "on the CPU" not in text
    assert "over 2 devices" in text
    # One of them is enough for a row program.
    assert "over 2 devices" not in str(pk.explain("cdlp", graph, **several))
    assert "GPU" not in str(pk.explain("pagerank", graph, device="cpu"))
    monkeypatch.setattr("penstock.engine.place.FORMS", {"sweep"})
    text = str(pk.explain("pagerank", graph, device="gpu"))
    assert "on the CPU: combine programs run on the CPU" in text
    assert "arcs: in memory" in text


def test_the_command_line(graph: Graph) -> None:
    done = CliRunner().invoke(app, ["wcc", str(graph.path), "--device", "gpu", "--gpu-memory-limit", "1GB", "--json"])
    assert done.exit_code == 0, done.output
    held = json.loads(done.stdout)
    assert held["stages"][0]["gpu"]["source"] == "device"
    done = CliRunner().invoke(app, ["wcc", str(graph.path), "--device", "gpu", "--gpu-memory-limit", "1kB"])
    assert done.exit_code == 3


def test_triangles_pass_where_their_lists_do_not_fit(graph: Graph) -> None:
    def plan(limit: int | str, **settings: Any) -> tuple[str, Any]:
        found = pk.explain("triangles", graph, device="gpu", gpu_memory_limit=limit, **settings)
        assert found.stages[0].gpu is not None
        return str(found), found.stages[0].gpu

    text, whole = plan("1GB")
    assert "all pages on the device" in text
    assert (whole.plan.ranges, whole.plan.lists_bytes) == (1, 0)
    text, parted = plan(whole.smallest + whole.plan.state_bytes // 8)
    assert parted.plan.ranges > 1
    assert parted.plan.state_bytes <= parted.limit < whole.plan.state_bytes
    assert f"in {parted.plan.ranges} ranges" in text
    assert "they stream from host memory" in text
    assert parted.streamed > parted.plan.pages_bytes
    text, least = plan(whole.smallest)
    assert least.plan.ranges > parted.plan.ranges
    assert least.plan.state_bytes <= least.limit
    text, _ = plan("1GB", state_ranges=3)
    assert "they stream from a temporary file" in text
    text, less = plan(whole.smallest - 1)
    assert "does not fit" in text
    assert less.smallest == whole.smallest
