"""Several simulated devices: what one CPU finds, however state and pages are shared out. Started by
test_gpu_devices.py in a process that Numba's simulator was chosen for."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from penstock.memory import gpu

# A thread of the device is a thread of Python here, so there are few; set before the modules that read them.
gpu.WARP = 4
from penstock.memory import tasks  # noqa: E402

tasks.BLOCK, tasks.HEAVY, tasks.SEGMENT = 4, 60, 256

import penstock as pk  # noqa: E402
from engine.test_edge_state import Killed, killed_after  # noqa: E402
from penstock.config import settings  # noqa: E402
from penstock.engine.gpu.devices import Member  # noqa: E402
from penstock.errors import DoesNotFit  # noqa: E402
from penstock.graph import Graph  # noqa: E402
from penstock.memory.frames import DevicePages  # noqa: E402
from penstock.memory.ledger import Ledger  # noqa: E402
from penstock.memory.pinned import Pinned  # noqa: E402
from penstock.memory.share import Share, pages_between  # noqa: E402
from penstock.observe import energy  # noqa: E402
from penstock.observe.events import recording  # noqa: E402

VERTICES = 70
"""More than two words of a frontier: three devices have a range each."""


def arcs() -> dict[str, np.ndarray]:
    """A vertex whose arcs take several pages, others that are heavy, a ring so that all are reached, some loops."""
    rng = np.random.default_rng(3)
    ring = np.arange(VERTICES)
    source = np.concatenate([ring, np.full(2100, 5), rng.integers(0, VERTICES, 500), np.full(90, 66), ring[:4]])
    target = np.concatenate([np.roll(ring, -1), rng.integers(0, VERTICES, 2690), ring[:4]])
    return {"source": source, "target": target, "weight": rng.integers(1, 9, len(source)).astype(np.int32)}


@pytest.fixture(scope="module")
def graphs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Graph]]:
    folder = Path(tmp_path_factory.mktemp("devices"))
    found: dict[str, Graph] = {}
    table, options = pa.table(arcs()), {"page_size": 4096, "duplicates": "keep"}
    alone = pa.table({"id": np.arange(VERTICES + 2)})
    found["directed"] = pk.ingest(table, folder / "directed.pen", vertices=alone, **options)
    found["undirected"] = pk.ingest(table, folder / "undirected.pen", undirected=True, **options)
    found["sparse"] = pk.ingest(table[: VERTICES + 40], folder / "sparse.pen", undirected=True)
    tiny = pa.table({"source": [1], "target": [1], "weight": np.array([1], np.int32)})
    found["one"] = pk.ingest(tiny, folder / "one.pen", **options)
    found["empty"] = pk.ingest(tiny[:0], folder / "empty.pen", allow_empty=True, **options)
    yield found
    for graph in found.values():
        graph.close()


OPTIONS: dict[str, dict[str, Any]] = {
    "pagerank": {"max_iter": 2, "stop": "fixed"},
    "bfs": {"source": 66},
    "sssp": {"source": 66, "weight": "weight", "parents": True},
    "kcore": {},
    "hits": {"max_iter": 1},
    "ppr": {"source": 66, "max_iter": 2},
    "closeness": {"samples": 2},
    "radius": {"lanes": 2, "max_iter": 3},
}
KNOWN: dict[tuple[str, str], pa.Table] = {}


def check(name: str, graphs: dict[str, Graph], which: str, strategy: str, devices: int, **limits: Any) -> Any:
    graph, options = graphs[which], OPTIONS[name]
    if (name, which) not in KNOWN:
        KNOWN[name, which] = pk.run(name, graph, device="cpu", **options).table
    settings = {"device": "gpu", "gpu_devices": devices, "gpu_strategy": strategy, "threads": 2} | limits
    found = pk.run(name, graph, **options, **settings)
    for column in KNOWN[name, which].column_names:
        wanted, mine = (np.array(table[column].to_pylist(), float) for table in (KNOWN[name, which], found.table))
        exact = column != "rank" and KNOWN[name, which][column].type != pa.float64()
        np.testing.assert_allclose(mine, wanted, rtol=0 if exact else 1e-9, atol=0 if exact else 1e-12, err_msg=column)
    return found


SHARED_OUT = [
    ("directed", "P", 2, "resident"),
    ("undirected", "P", 3, "streamed"),
    ("directed", "S", 3, "streamed"),
    ("undirected", "S", 2, "resident"),
]


QUICK = {"pagerank": "resident", "bfs": "resident streamed", "sssp": "streamed"}
"""Each of these shared out both ways, of a graph with directions and of one without."""


@pytest.mark.parametrize(
    ("name", "which", "strategy", "devices", "place"),
    [
        pytest.param(name, *shared, marks=() if shared[-1] in QUICK.get(name, "") else pytest.mark.slow)
        for shared in SHARED_OUT
        for name in OPTIONS
        if name != "radius"
    ],
)
def test_results_do_not_depend_on_the_devices(
    name: str, which: str, strategy: str, devices: int, place: str, graphs: dict[str, Graph]
) -> None:
    if name == "kcore" and strategy == "S":
        which = "sparse"  # of few supersteps
    if place == "resident":
        found = check(name, graphs, which, strategy, devices)
        assert "bytes_copied" not in found.stats["supersteps"][-1]
    else:
        found = streamed(name, graphs, which, strategy, devices)
    assert (found.stats["gpu_devices"], found.stats["gpu_strategy"]) == (devices, strategy)


def streamed(name: str, graphs: dict[str, Graph], *args: Any, **limits: Any) -> Any:
    """With as little as the refusal says; an algorithm of several programs is refused more than once."""
    limit = 1
    for _ in range(4):
        try:
            return check(name, graphs, *args, gpu_memory_limit=limit, **limits)
        except DoesNotFit as error:
            if error.setting != "gpu_memory_limit" or error.needed <= limit:
                raise
            limit = error.needed
    raise AssertionError(f"{limit} bytes are not enough, though they were asked for")


@pytest.mark.parametrize("strategy", ["P", "S"])
def test_lanes(strategy: str, graphs: dict[str, Graph]) -> None:
    check("radius", graphs, "sparse", strategy, 3)


@pytest.mark.parametrize("strategy", ["P", "S"])
def test_two_gpus_for_three_devices(strategy: str, graphs: dict[str, Graph], monkeypatch: pytest.MonkeyPatch) -> None:
    """Each thing is done on the GPU that it belongs to, and streams wait for one another."""
    entered: list[int] = []

    @contextmanager
    def using(number: int) -> Iterator[None]:
        entered.append(number)
        yield

    waits: list[Any] = []
    monkeypatch.setattr(gpu, "count", lambda: 2)
    monkeypatch.setattr(gpu, "using", using)
    monkeypatch.setattr(gpu.Stream, "wait", lambda stream, event: waits.append(event))
    check("pagerank", graphs, "sparse", strategy, 3)
    assert set(entered) == {0, 1}
    assert waits


@pytest.mark.parametrize(("name", "gpus", "joules"), [("pagerank", 2, 30.0), ("pagerank", 1, 10.0), ("wcc", 2, 10.0)])
def test_each_gpu_counts_once(
    name: str, gpus: int, joules: float, graphs: dict[str, Graph], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of three devices, however many share it; not where one GPU does it all. The first takes 10 J, the second 20."""
    counters = {f"at {k}": count(0, 10_000 * (k + 1)) for k in range(2)}
    library = SimpleNamespace(
        nvmlInit=lambda: None,
        nvmlShutdown=lambda: None,
        nvmlDeviceGetHandleByPciBusId=lambda bus: bus,
        nvmlDeviceGetTotalEnergyConsumption=lambda handle: next(counters[handle]),
    )
    monkeypatch.setitem(sys.modules, "pynvml", library)
    monkeypatch.setattr(energy, "_OPEN", {})
    monkeypatch.setattr(energy, "LEAST", 0.0)
    monkeypatch.setattr(gpu, "count", lambda: gpus)
    monkeypatch.setattr(gpu, "bus", lambda number: f"at {number}")
    options = {"max_iter": 1, "stop": "fixed"} if name == "pagerank" else {}
    stats = pk.run(name, graphs["sparse"], device="gpu", gpu_devices=3, **options).stats
    assert stats["gpu"]["energy"]["joules"] == joules


@pytest.mark.parametrize("strategy", ["P", "S"])
@pytest.mark.parametrize("which", ["one", "empty"])
@pytest.mark.parametrize("name", ["hits", "kcore"])
def test_graphs_with_next_to_nothing(name: str, which: str, strategy: str, graphs: dict[str, Graph]) -> None:
    check(name, graphs, which, strategy, 3)


@pytest.mark.parametrize("strategy", ["P", "S"])
def test_a_source_without_arcs(strategy: str, graphs: dict[str, Graph]) -> None:
    options = {"source": VERTICES + 1, "device": "gpu", "gpu_devices": 2, "gpu_strategy": strategy}
    level = pk.run("bfs", graphs["directed"], **options).table.to_pydict()
    assert [v for v, found in zip(level["vertex"], level["level"], strict=True) if found == 0] == [VERTICES + 1]


def test_state_and_pages_are_shared_out(graphs: dict[str, Graph], monkeypatch: pytest.MonkeyPatch) -> None:
    """P: every n-th page and all of the state; S: a range of the state, and to pull only its pages."""
    members: dict[int, Member] = {}
    original = Member.open_sides

    def watched(self: Member) -> None:
        original(self)
        members[self.place] = self

    monkeypatch.setattr(Member, "open_sides", watched)
    graph = graphs["undirected"]
    whole = graph.store.direction("out")
    slots = VERTICES + 1
    for strategy in ("P", "S"):
        lengths, parts = [], []
        check("pagerank", graphs, "undirected", strategy, 3)
        for member in members.values():
            lengths.append(member.length)
            side = member.direction("out")
            assert isinstance(side, Share)
            parts.append(side.part)
        if strategy == "P":
            assert lengths == [slots] * 3
            assert [part[::2] for part in parts] == [(0, 3), (1, 3), (2, 3)]
        else:
            assert lengths == [32, 32, slots - 64]
            wanted = [pages_between(whole, *ends) for ends in ((0, 32), (32, 64), (64, slots))]
            assert [part[:2] for part in parts] == [(each.start, each.stop) for each in wanted]


@pytest.mark.parametrize("strategy", ["P", "S"])
def test_lanes_of_a_timeline_say_which_device(strategy: str, graphs: dict[str, Graph]) -> None:
    graph, devices = graphs["undirected"], {f" of device {k}" for k in range(2)}
    with recording() as events:
        streamed("pagerank", graphs, "undirected", strategy, 2)
    lanes = {lane for lane in events.lanes if lane.startswith(("gpu", "stream"))}
    assert {"gpu of device 0", "gpu of device 1", "stream 0 of device 0", "stream of copies of device 0"} <= lanes
    assert {lane[lane.index(" of device") :] for lane in lanes} == devices
    # Pages that stay for the next run are named as it wants them.
    graph.load(device="gpu")
    for several, wanted in ((1, {"gpu"}), (2, {"gpu" + device for device in devices}), (1, {"gpu"})):
        with recording() as events:
            pk.run("pagerank", graph, device="gpu", gpu_devices=several, gpu_strategy=strategy, **OPTIONS["pagerank"])
        assert {lane for lane in events.lanes if lane.startswith("gpu")} == wanted
    graph.unload()


def test_sweeps_say_that_they_run_on_one(graphs: dict[str, Graph]) -> None:
    options: dict[str, Any] = {"device": "gpu", "gpu_devices": 2}
    cpu = pk.run("wcc", graphs["one"], device="cpu").table
    found = pk.run("wcc", graphs["one"], **options)
    assert found.table.equals(cpu)
    assert found.stats["why_one_gpu"] == "sweep programs run on one GPU"


@pytest.mark.parametrize("strategy", ["P", "S"])
def test_what_does_not_fit_is_refused_before_anything_is_allocated(
    strategy: str, graphs: dict[str, Graph], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*args: Any) -> Any:
        raise AssertionError("memory was taken")

    monkeypatch.setattr(gpu, "empty", refuse)
    options: dict[str, Any] = {"device": "gpu", "gpu_devices": 2, "gpu_strategy": strategy, "gpu_memory_limit": 4096}
    with pytest.raises(DoesNotFit, match=r"on each of 2 GPUs needs .* set gpu_memory_limit to at least"):
        pk.run("pagerank", graphs["directed"], **options)


@pytest.mark.parametrize("strategy", ["P", "S"])
@pytest.mark.parametrize("devices", [2, 4])
def test_what_it_needs_is_explained(strategy: str, devices: int, graphs: dict[str, Graph]) -> None:
    options = {"device": "gpu", "gpu_devices": devices, "gpu_strategy": strategy} | OPTIONS["bfs"]
    least = pk.explain("bfs", graphs["directed"], gpu_memory_limit=1 << 30, **options).smallest_gpu
    with pytest.raises(DoesNotFit) as refused:
        pk.run("bfs", graphs["directed"], gpu_memory_limit=least // 2, **options)
    assert 0.99 * least < refused.value.needed <= least  # it may be that seeds have slots of their own
    pk.run("bfs", graphs["directed"], gpu_memory_limit=least, **options)


# ---- pages of a share


@pytest.mark.parametrize("policy", ["resident", "lru"])
@pytest.mark.parametrize("source", ["device", "host", "disk"])
def test_a_share_of_the_pages(source: str, policy: Any, graphs: dict[str, Graph]) -> None:
    whole = graphs["undirected"].store.direction("out")
    share = Share(whole, slice(1, None, 2))
    room = 1 << 30 if source == "device" else DevicePages.least(share, ["weight"])
    host, chosen = Ledger(1 << 30), settings(threads=1)
    if source == "disk":
        with DevicePages(share, ["weight"], Ledger(room), host, chosen, policy=policy, room=room, streams=1) as pages:
            stored = len(share) - (pages.kept if policy == "resident" else 0)
            held = Pinned.needed(pages.layout.arrays(stored))
            reading = pages._pool.reading_bytes(1) + pages._stage_bytes()
        host = Ledger(held + reading - 1)
    with DevicePages(share, ["weight"], Ledger(room), host, chosen, policy=policy, room=room, streams=1) as pages:
        for wanted in (None, np.array([0, 2]), None):
            assert contents(pages, wanted) == sorted(range(len(share)) if wanted is None else wanted.tolist())
        assert pages.source == source
    assert host.used == 0


def contents(pages: DevicePages, wanted: np.ndarray | None) -> list[int]:
    """Visit pages; each that comes must be what the whole direction has under its number."""
    share, seen = pages.direction, []
    assert isinstance(share, Share)

    def launch(stream: Any, order: Any, tasks: int, segment_order: Any, segments: int) -> None:
        here = {int(pages.tasks[k, 0]) for k in order[:tasks]}
        here |= {int(pages.segments[k, 0]) for k in segment_order[:segments]}
        for page in here:
            block, frame = share.whole.block(share.number(page)), int(pages.frame_of[page])
            words = pages.words[frame * pages.page_words :]
            np.testing.assert_array_equal(words[: len(block.neighbours)], block.neighbours)
            values = pages.columns[0][frame * int(pages.strides[0]) :][: len(block.neighbours)]
            np.testing.assert_array_equal(values, share.whole.read_column("weight", share.number(page)))
        seen.extend(here)

    pages.visit(wanted, launch)
    return sorted(seen)


def test_pages_that_another_device_has_on_the_host(graphs: dict[str, Graph]) -> None:
    whole = Share(graphs["undirected"].store.direction("out"), slice(None))
    room = DevicePages.least(whole, ["weight"])
    host, chosen = Ledger(1 << 30), settings(threads=2)
    args = (whole, ["weight"]), (host, chosen)
    with DevicePages(*args[0], Ledger(room), *args[1], room=room, streams=1) as lender:
        lender.load()
        held = host.used
        with DevicePages(*args[0], Ledger(room), *args[1], room=room, streams=1, lender=lender) as pages:
            assert contents(pages, None) == list(range(len(whole)))
            assert pages.source == "host"
            assert host.used - held < len(whole) * 4096 // 2
        assert contents(lender, None) == list(range(len(whole)))


PLACES: dict[str, dict[str, Any]] = {
    "cpu": {"device": "cpu"},
    "one": {"device": "gpu"},
    "P": {"device": "gpu", "gpu_devices": 2, "gpu_strategy": "P"},
    "S": {"device": "gpu", "gpu_devices": 3, "gpu_strategy": "S"},
}


@pytest.mark.parametrize(
    ("first", "second"), [("P", "P"), ("S", "S"), ("cpu", "P"), ("P", "one"), ("one", "S"), ("S", "cpu")]
)
@pytest.mark.parametrize("name", ["pagerank", "bfs"])
def test_several_go_on_from_a_checkpoint(
    graphs: dict[str, Graph], name: str, first: str, second: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From where they were themselves, or others."""
    graph, options = graphs["directed"], OPTIONS[name]
    right = pk.run(name, graph, device="cpu", **options).table
    saved: dict[str, Any] = {"checkpoint": tmp_path / "saved", "checkpoint_every": "1", "threads": 2}
    with killed_after(1, monkeypatch), pytest.raises(Killed):
        pk.run(name, graph, **options, **saved, **PLACES[first])
    found = pk.run(name, graph, **options, **saved, **PLACES[second])
    assert found.stats["resumed_at"] == 1
    assert found.stats["device"] == PLACES[second]["device"]
    assert found.stats.get("gpu_devices", 1) == PLACES[second].get("gpu_devices", 1)
    if name == "bfs":
        assert found.table.equals(right)
    else:
        np.testing.assert_allclose(found.table.column("rank").to_numpy(), right.column("rank").to_numpy(), rtol=1e-12)
