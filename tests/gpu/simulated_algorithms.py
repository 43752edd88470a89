"""Every algorithm on a simulated GPU, resident, streamed and in ranges: what the oracle says. Started by
test_gpu_simulated.py in a process that Numba's simulator was chosen for."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from functools import partial
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from penstock.memory import gpu

# A thread of the device is a thread of Python here, so there are few; set before the modules that read them.
gpu.WARP = 4
from penstock.memory import tasks  # noqa: E402

tasks.BLOCK = 4

import cases  # noqa: E402
import oracle  # noqa: E402
import penstock as pk  # noqa: E402
from penstock.algorithms.registry import ALGORITHMS, options_of  # noqa: E402
from penstock.config import format_size  # noqa: E402
from penstock.engine.checkpoint import Checkpoint  # noqa: E402
from penstock.engine.representatives import Representatives  # noqa: E402
from penstock.errors import DoesNotFit  # noqa: E402
from penstock.graph import Graph  # noqa: E402
from penstock.interfaces.cli.explain import app as explain_app  # noqa: E402
from penstock.interfaces.cli.run import app as run_app  # noqa: E402
from penstock.observe.events import recording  # noqa: E402
from penstock.observe.trace import write_trace  # noqa: E402
from places import GPU_PLACES, at  # noqa: E402
from shapes import Shape  # noqa: E402
from test_docs import ROOT, blocks_run  # noqa: E402

Built = list[tuple[Shape, Graph, oracle.G]]
TINY = [shape for shape in cases.shapes() if shape.name in ("loops", "duplicates", "several SCCs")]
NAMES = list(ALGORITHMS)
SMALLEST = next(place for place, shape in enumerate(TINY) if shape.name == "duplicates")
LONG = ("scc", "betweenness", "closeness", "radius")
"""Of many supersteps: these take the smallest shape only."""


def dense() -> Shape:
    """Few vertices, and arcs for several pages."""
    rng = np.random.default_rng(4)
    ends = np.sort(rng.integers(0, 24, (1500, 2)), axis=0).tolist()
    edges = [(u, v, int(rng.integers(1, 9))) for u, v in ends] + [(0, v % 24, 3) for v in range(1100)]
    return Shape("dense", list(range(26)), edges)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Built]:
    folder = Path(tmp_path_factory.mktemp("simulated"))
    found = []
    for number, shape in enumerate([*TINY, dense()]):
        graph = shape.build(folder / f"{number}.pen", undirected=number == 0)
        found.append((shape, graph, oracle.of(graph)))
    yield found
    for _, graph, _ in found:
        graph.close()


def options(name: str, g: oracle.G, turn: int) -> dict[str, Any]:
    """One case, made short: a simulated thread is slow."""
    found = cases.CASES[name](g)
    chosen = found[turn % len(found)]
    known = options_of(name)
    if "samples" in known and "sources" not in chosen:
        chosen = {**chosen, "samples": 1}
    return {**chosen, "max_iter": 2} if "max_iter" in known else chosen


def check(name: str, place: str, shape: Shape, graph: Graph, g: oracle.G, chosen: dict[str, Any]) -> Any:
    result = at(place, partial(pk.run, name, graph, **chosen))
    assert bool(result.stats.get("why_not_gpu")) == (not result.stats["plans"])
    try:
        cases.compare(name, cases.found(name, result), cases.expected(name, g, chosen))
    except AssertionError as error:
        raise AssertionError(f"{name} of {shape.name!r}, {chosen}, in {place}: {error}") from None
    return result


@pytest.mark.parametrize("place", GPU_PLACES)
@pytest.mark.parametrize("name", NAMES)
def test_an_algorithm_in_a_place(built: Built, name: str, place: str) -> None:
    turn = NAMES.index(name) + list(GPU_PLACES).index(place)
    chosen = {SMALLEST} if name in LONG else {turn % 3, (turn + 1) % 3} if place == "gpu" else {turn % 3}
    for which in chosen:
        shape, graph, g = built[which]
        check(name, place, shape, graph, g, options(name, g, turn + which))


@pytest.mark.parametrize("name", ["pagerank", "bfs", "wcc", "kcore", "cdlp", "triangles"])
def test_tasks_of_a_page_that_differ_in_width(name: str, tmp_path: Path) -> None:
    """A program of each form that goes over tasks, on a page that mixes degrees."""
    rng = np.random.default_rng(1)
    source = np.repeat(np.arange(90), np.where(np.arange(90) % 45 == 7, 70, 1))
    ends = zip(source.tolist(), rng.integers(0, 90, len(source)).tolist(), strict=True)
    shape = Shape("mixed", list(range(90)), [(u, v, int(rng.integers(1, 9))) for u, v in ends])
    with shape.build(tmp_path / "g.pen", undirected=True, order="input") as graph:
        found = tasks.cut(graph.store.direction("out")).tasks
        assert len({(page, width) for page, _, _, width in found.tolist()}) > len(set(found[:, 0].tolist()))
        g = oracle.of(graph)
        check(name, "gpu", shape, graph, g, options(name, g, 0))


@pytest.mark.parametrize("name", ["pagerank", "bfs", "wcc", "sssp"])
def test_pages_that_do_not_fit_are_streamed(built: Built, name: str) -> None:
    shape, graph, g = built[-1]
    chosen = {"pagerank": {"max_iter": 2, "stop": "fixed"}, "wcc": {}}.get(name, {"source": [3]})
    with recording() as events:
        stats = check(name, "gpu-streamed", shape, graph, g, chosen).stats["gpu"]
    assert stats["resident"] is False
    assert stats["source"] == "host"
    # A search may read the few arcs it wants where they lie.
    assert stats["bytes_copied"] > graph.store.page_size or (name == "bfs" and stats["in_place"])
    assert "gpu" in events.lanes
    assert any(lane.startswith("stream") for lane in events.lanes)
    assert stats["ledger_peak"] <= stats["memory_limit"]


@pytest.mark.parametrize("name", ["pagerank", "hits", "ppr"])
def test_near_state_comes_with_its_pages(built: Built, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is sent fits: of the rest a window at a time, and each page passes once."""
    monkeypatch.setattr("penstock.engine.gpu.plan.LEAST_WINDOW", 4)
    _, graph, g = built[-1]
    chosen = {"max_iter": 2} if name == "hits" else {"max_iter": 2, "stop": "fixed"}
    if name == "ppr":
        chosen = {"source": [3], "max_iter": 2}
    whole = pk.run(name, graph, device="gpu", **chosen).stats["gpu"]["plans"]
    pages, state = whole[0]["least_bytes"], whole[0]["state_bytes"]
    result = pk.run(name, graph, device="gpu", gpu_memory_limit=pages + state - 16, **chosen)
    cases.compare(name, cases.found(name, result), cases.expected(name, g, chosen))
    plans = result.stats["gpu"]["plans"]
    assert [plan["ranges"] for plan in plans] == [1] * len(plans)
    assert max(plan["windows"] for plan in plans) > 1
    count = len(graph.store.direction("in"))
    assert result.stats["gpu"]["bytes_copied"] <= (count + 2) * graph.store.page_size * 2 * len(plans)


def test_too_little_of_the_gpus_memory_is_said(built: Built) -> None:
    graph = built[-1][1]
    with pytest.raises(DoesNotFit, match="set gpu_memory_limit to at least") as refused:
        pk.run("bfs", graph, source=3, device="gpu", gpu_memory_limit=100)
    found = pk.explain("bfs", graph, source=3, device="gpu", gpu_memory_limit=100)
    assert not found.fits
    assert found.smallest_gpu >= refused.value.needed
    assert pk.explain("bfs", graph, source=3, device="gpu", gpu_memory_limit=found.smallest_gpu).fits


def test_figures_and_lanes(built: Built, tmp_path: Path) -> None:
    graph = built[-1][1]
    with recording() as events:
        stats = pk.run("pagerank", graph, device="gpu", max_iter=2, stop="fixed").stats
    assert stats["device"] == "gpu"
    figures = stats["gpu"]
    assert figures["name"] == "simulated"
    assert (figures["resident"], figures["source"]) == (True, "device")
    assert figures["plans"][0]["ranges"] == 1
    assert figures["ledger_peak"] >= figures["plans"][0]["pages_bytes"]
    assert figures["energy"] is None  # nothing counts it here
    assert stats["bytes_read"] > 0
    json.dumps(stats)
    write_trace(tmp_path / "run.json", events, stats)
    names = [row["args"]["name"] for row in json.loads((tmp_path / "run.json").read_text())["traceEvents"]
             if row["name"] == "thread_name"]  # fmt: skip
    assert "gpu" in names
    cpu = pk.run("pagerank", graph, device="cpu", max_iter=2, stop="fixed").stats
    assert "gpu" not in cpu


def test_energy(built: Built, monkeypatch: pytest.MonkeyPatch) -> None:
    counter = count(5_000, 2_000)
    library = SimpleNamespace(
        nvmlInit=lambda: None,
        nvmlShutdown=lambda: None,
        nvmlDeviceGetHandleByIndex=lambda index: index,
        nvmlDeviceGetTotalEnergyConsumption=lambda handle: next(counter),
    )
    monkeypatch.setitem(sys.modules, "pynvml", library)
    monkeypatch.setattr("penstock.observe.energy._OPEN", {})
    monkeypatch.setattr("penstock.observe.energy.LEAST", 0.0)
    graph = built[SMALLEST][1]
    stats = pk.run("pagerank", graph, device="gpu", max_iter=1, stop="fixed").stats
    energy = stats["gpu"]["energy"]
    assert energy["joules"] == 2.0
    assert energy["arcs_per_joule"] == pytest.approx(graph.store.direction("in").arcs / 2.0)
    assert energy["watts"] * energy["energy_delay"] == pytest.approx(4.0)


def test_a_graph_that_is_loaded_keeps_its_ids(built: Built, monkeypatch: pytest.MonkeyPatch) -> None:
    shape, graph, g = built[SMALLEST]
    given: list[Any] = []
    least = Representatives._least
    monkeypatch.setattr(
        Representatives, "_least", lambda self, users, mine: (given.append(users), least(self, users, mine))[1]
    )
    graph.load(device="gpu")
    try:
        ids = graph.loaded_ids
        assert ids is not None
        assert ids.tolist() == graph.store.ids.values.read(0, graph.store.active).tolist()
        assert graph.card is not None
        assert graph.card.host.heartbeat()["what"]["ids"] == ids.nbytes
        found = check("wcc", "gpu", shape, graph, g, {})
        assert [users is ids for users in given] == [True]
        assert found.stats["ledger_peak"] >= ids.nbytes
        # One that would leave too little for the run is left out of it.
        pk.run("wcc", graph, device="cpu", memory_limit="64MB", tier="disk")
        assert given[1] is not ids
    finally:
        graph.unload()
    assert graph.loaded_ids is None


def test_the_command_line(built: Built, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("penstock.engine.gpu.plan.LEAST_WINDOW", 4)
    graph = built[-1][1]
    least = pk.explain("bfs", graph, source=3, device="gpu").smallest_gpu
    there = [str(graph.path), "--source", "3", "--device", "gpu", "--gpu-memory-limit", str(least)]
    files = ["--json", str(tmp_path / "run.json"), "--trace", str(tmp_path / "run.trace")]
    done = CliRunner().invoke(run_app, ["bfs", *there, *files])
    assert done.exit_code == 0, done.output
    assert "on simulated, streamed from host memory" in done.output
    assert json.loads((tmp_path / "run.json").read_text())["gpu"]["source"] == "host"
    ranges = json.loads((tmp_path / "run.json").read_text())["gpu"]["plans"][0]["ranges"]
    assert ranges > 1
    assert f", state in {ranges} ranges, " in done.output  # the GPU's: the host's plan has it in one piece
    rows = json.loads((tmp_path / "run.trace").read_text())["traceEvents"]
    lanes = [row["args"]["name"] for row in rows if row["name"] == "thread_name"]
    assert {"gpu", "engine"} <= set(lanes)
    assert any(lane.startswith("stream") for lane in lanes)
    done = CliRunner().invoke(run_app, ["bfs", *there, "-v"])
    assert done.exit_code == 0, done.output
    assert "bfs: combine over in and out arcs, on the GPU, " in done.output
    assert f" of {format_size(least)} used\n" in done.output
    done = CliRunner().invoke(run_app, ["wcc", *there[:1], *there[3:5], "--gpu-devices", "2"])
    assert done.exit_code == 0, done.output
    assert "share" not in done.output  # it is on one
    done = CliRunner().invoke(explain_app, ["bfs", *there])
    assert done.exit_code == 0, done.output
    assert "on the GPU, simulated" in done.output


def test_the_blocks_of_the_documentation(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    blocks_run(ROOT / "docs" / "gpu.md", tmp_path, capsys)


def test_explained(built: Built) -> None:
    graph = built[-1][1]
    text = str(pk.explain("pagerank", graph, device="gpu", max_iter=2, stop="fixed"))
    for part in ("on the GPU", "all pages on the device", "smallest gpu_memory_limit", "penstock doctor --measure"):
        assert part in text
    least = pk.explain("pagerank", graph, device="gpu").smallest_gpu
    streamed = pk.explain("pagerank", graph, device="gpu", gpu_memory_limit=least)
    assert "streamed from pinned host memory" in str(streamed)
    assert json.loads(json.dumps(streamed.as_dict()))["stages"][0]["gpu"]["plan"]["resident"] is False
    assert "over 2 devices" in str(pk.explain("pagerank", graph, device="gpu", gpu_devices=2, checkpoint="/tmp/none"))


@pytest.mark.parametrize("after", ["gpu", "cpu"])
@pytest.mark.parametrize("name", ["pagerank", "bfs", "sssp", "cdlp"])
def test_a_run_goes_on_from_its_checkpoint(
    built: Built, name: str, after: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On the GPU it was saved by, or from where a CPU left it."""
    shape, graph, g = built[0]
    few = {"pagerank": {"max_iter": 3, "stop": "fixed"}, "cdlp": {"max_iter": 3}}
    chosen = few.get(name, {"source": [shape.edges[0][0]]})
    saved = {"checkpoint": tmp_path / "saved", "checkpoint_every": "1"}
    save = Checkpoint.save

    def stopped(self: Checkpoint, *args: Any) -> None:
        save(self, *args)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Checkpoint, "save", stopped)
        with pytest.raises(KeyboardInterrupt):
            pk.run(name, graph, device=after, **chosen, **saved)
    result = pk.run(name, graph, device="gpu", **chosen, **saved)
    assert result.stats["device"] == "gpu"
    assert result.stats["resumed_at"] >= 1
    cases.compare(name, cases.found(name, result), cases.expected(name, g, chosen))
