"""The GPU benchmark runs where there is no GPU: tiny, in the simulator. Its own checks find what is wrong."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import penstock as pk

ROOT = Path(__file__).parents[1]
SCRIPT = ROOT / "benchmarks" / "gpu.py"
FIGURES = {
    "resident": {"pagerank", "bfs", "wcc", "sssp", "energy"},
    "streamed": {"pinned_rate", "streams", "cached", "shares", "timeline"},
    "disk": {"raw", "engine"},
    "shapes": {
        "default", "input order", "skewed", "uniform", "input_order_slower_per_arc", "skewed_slower_per_arc",
        "uniform_share_of_gather",
    },
    "triangles": {"cpu", "whole", "passing"},
    "devices": {"runs"},
    "mapreduce": {"bus", "sort on CPU", "sort in core", "sort out of core", "sort shares", "operations", "overlap"},
    "tests": {"tests"},
    "algorithms": {"kcore on GPU", "kcore on CPU", "scc on GPU", "pagerank on CPU"},
    "big": {"pagerank", "bfs", "wcc", "sssp"},
}  # fmt: skip


def script(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"NUMBA_ENABLE_CUDASIM": "1"}
    command = [sys.executable, str(SCRIPT), "--tiny", *map(str, arguments)]
    return subprocess.run(command, env=environment, capture_output=True, text=True, cwd=ROOT, check=False)


QUICK = ("disk", "shapes", "triangles", "mapreduce")
"""The others take a minute or more together on the simulator."""


@pytest.mark.parametrize(
    "section", [pytest.param(name, marks=() if name in QUICK else pytest.mark.slow) for name in FIGURES]
)
def test_a_section_runs_in_the_simulator(section: str, tmp_path: Path) -> None:
    output, folder = tmp_path / "gpu.json", tmp_path / "graphs"
    done = script("--only", section, "--output", output, "--folder", folder)
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-3000:]
    found = json.loads(output.read_text())
    assert found["gpu"]["name"] == "simulated"
    assert found["machine"]["cpus"]
    assert found["sections"].keys() == {section}
    assert found["sections"][section]["errors"] == []
    figures = found["sections"][section]["figures"]
    assert figures.keys() >= FIGURES[section]
    if section in ("resident", "big"):
        assert all(figures[name]["verified"] for name in ("pagerank", "bfs", "wcc", "sssp"))
    if section == "streamed":
        assert figures["streams"]["2"]["pagerank"]["bytes_copied"] > 0
        assert figures["timeline"]["pagerank"]["copy seconds"] > 0
        assert figures["timeline"]["bfs"]["busy_seconds"] > 0
    if section == "big":
        assert figures["sssp"]["bytes_copied"] > 0
    if section == "tests":
        assert figures["tests"]["passed"] > 0
    if section == "triangles":
        assert figures["passing"]["bytes_copied"] > 0
    if section == "algorithms":
        assert all(one["verified"] for name, one in figures.items() if name.endswith("CPU"))
    assert found["targets"] or section in ("devices", "triangles", "algorithms")
    assert not folder.exists()


def test_a_section_that_takes_too_long_leaves_the_others(tmp_path: Path) -> None:
    output = tmp_path / "gpu.json"
    output.write_text(json.dumps({"sections": {"disk": {"figures": {}, "errors": [], "seconds": 1.0}}}))
    kept = tmp_path / "graphs" / "mine"
    kept.mkdir(parents=True)
    done = script("--only", "resident", "--output", output, "--folder", kept.parent, "--cap", "0.01")
    assert done.returncode == 1
    sections = json.loads(output.read_text())["sections"]
    assert sections.keys() == {"disk", "resident"}
    assert "stopped" in sections["resident"]["errors"][-1]["error"]
    assert list(kept.parent.iterdir()) == [kept]


# ---- its parts


@pytest.fixture
def load(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Modules of the benchmark. At the end of the path: they have plain names."""
    monkeypatch.setattr(sys, "path", [*sys.path, str(SCRIPT.parent)])

    def module(name: str) -> ModuleType:
        return __import__(name)

    return module


def test_a_step_that_fails_is_kept_and_the_next_one_runs(load: Any, tmp_path: Path) -> None:
    given = load("gpu_section")
    section = given.Section("some", given.Sizes.tiny(), tmp_path, tmp_path / "part.json", 100.0)
    assert section.step("bad", lambda: 1 // 0) is None
    assert section.step("good", lambda: {"n": np.int64(2), "list": np.arange(2)})["n"] == 2
    found = json.loads((tmp_path / "part.json").read_text())
    assert found["figures"] == {"good": {"n": 2, "list": [0, 1]}}
    assert found["errors"][0]["step"] == "bad"
    assert "ZeroDivisionError" in found["errors"][0]["error"]
    late = given.Section("some", given.Sizes.tiny(), tmp_path, tmp_path / "part.json", 0.0)
    assert late.step("never", lambda: 1) is None
    assert "cap" in late.errors[0]["error"]


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> pk.Graph:
    path = tmp_path_factory.mktemp("graph") / "k.pen"
    return pk.generate("kron", path, scale=8, edge_factor=3, undirected=True, weights="1.0:255.0", page_size="4KiB")


def test_the_checks_find_what_is_wrong(load: Any, graph: pk.Graph) -> None:
    check, graphs = load("gpu_check"), load("gpu_graphs")
    arcs, hub = graphs.host(graph, ("weight",)), int(graph.store.ids.values.read(0, 1)[0])

    def of(name: str, **options: Any) -> dict[str, np.ndarray]:
        result = pk.run(name, graph, device="cpu", progress=False, **options)
        return {column: graphs.values(result, column).copy() for column in result.schema.names[1:]}

    level, parent = of("bfs", source=hub).values()
    assert check.bfs(arcs, level, parent, 0) == {}
    reached = int(np.flatnonzero((level != check.FAR) & (level > 1))[0])
    for column, value, name in (
        (level, 1, "parent"), (level, check.FAR, "unreached beside a reached one"), (level, 9, "level too far"),
        (level, 0, "level 0"), (parent, reached, "parent"),
    ):  # fmt: skip
        before = column[reached]
        column[reached] = value
        assert name in check.bfs(arcs, level, parent, 0)
        column[reached] = before

    distance, above = of("sssp", source=hub, parents=True, dtype="float32").values()
    assert check.sssp(arcs, distance, above, 0) == {}
    for factor in (0.5, 2, np.inf):
        wrong = distance.copy()
        wrong[reached] *= factor
        assert check.sssp(arcs, wrong, above, 0)
    above[reached] = reached
    assert check.sssp(arcs, distance, above, 0) == {"parent": 1}

    (component,) = of("wcc").values()
    assert len(np.unique(component)) > 1
    assert check.wcc(graph, arcs, component, level) == {}
    apart = np.flatnonzero(level == check.FAR)
    merged = component.copy()
    merged[apart] = merged[0]
    assert check.wcc(graph, arcs, merged, level)
    split = component.copy()
    split[apart[0]] = apart[0] if component[apart[0]] != apart[0] else component[0]
    assert check.wcc(graph, arcs, split, level)

    (rank,) = of("pagerank", dtype="float32", stop="fixed", max_iter=4).values()
    assert check.pagerank(graph, arcs, rank, 4) == {}
    assert check.pagerank(graph, arcs, rank, 2)
    with pytest.raises(AssertionError, match="parent 3"):
        check.settled({"parent": 3})


def test_tests_of_the_same_kernels_are_run_together(load: Any) -> None:
    file, other = "tests/gpu/test_gpu_everywhere.py", "tests/gpu/test_b.py"
    ids = [
        f"{other}::test_it[sum, narrow-gpu]", f"{file}::test_it[wcc-gpu-streamed]", f"{other}::test_it[gpu]",
        f"{file}::test_it[sssp-gpu]", f"{other}::test_other", f"{file}::test_it[sssp-gpu-ranges]",
        f"{other}::test_it[sum, narrow-gpu-ranges]", f"{other}::test_it[min-gpu]",
    ]  # fmt: skip
    found = load("gpu_tests").grouped(ids)
    assert list(found) == ["sssp", "programs 0", "wcc", other]
    assert found["sssp"] == [ids[3], ids[5]]
    assert found["programs 0"] == [ids[0], ids[6], ids[7]]
    assert sorted(each for group in found.values() for each in group) == sorted(ids)
    many = load("gpu_tests").grouped([f"{other}::test_it[{k}-gpu]" for k in range(9)])
    assert [len(group) for group in many.values()] == [4, 4, 1]


def test_targets_are_judged(load: Any) -> None:
    sections = {
        "resident": {"figures": {"pagerank": {"arcs_per_second": 170e9}, "wcc": {"call_seconds": 0.051}}},
        "big": {"figures": {name: {"verified": "yes"} for name in ("pagerank", "bfs", "wcc")}},
    }
    met = {row["what"]: row["met"] for row in load("gpu_targets").judged(sections)}
    assert met == {
        "PageRank float32, resident": True, "BFS, resident, harmonic mean": False, "WCC, resident, whole call": False,
        "SSSP with parents, resident, run": False, "big graph under its limit, verified": False,
    }  # fmt: skip


def test_the_experiments_are_drawn(load: Any, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    pair = {
        "pagerank": {"seconds": 0.04, "hit_share": 0.5, "bytes_per_second": 5e10},
        "bfs": {"superstep_seconds": 0.05, "bytes_copied": 2e9}, "bound_seconds": 0.03,
    }  # fmt: skip
    graph = {"graph": "k24w", "arcs": 5 * 10**8, "page_bytes": 2 * 10**9}
    streamed = {"graph": graph, "pinned_rate": 5.5e10, "streams": {"1": pair, "32": pair}, "cached": {"0": pair}}
    devices = {"graph": graph, "runs": {f"{place} {s} 2": pair for place in ("resident", "streamed") for s in "PS"}}
    record = {"gpu": None, "sections": {"streamed": {"figures": streamed}, "devices": {"figures": devices}}}
    (tmp_path / "gpu.json").write_text(json.dumps(record))
    made = load("gpu_plot").draw(tmp_path / "gpu.json")
    assert {path.name for path in made} == {
        f"gpu-{name}.{ending}" for name in ("streams", "cache", "devices") for ending in ("png", "svg")
    }
    assert all(path.stat().st_size > 1000 for path in made)
