"""Row and pair programs on a simulated GPU: the same as the reference; and searches that read pages where they lie on
the host. Numba must be told of the simulator before it is imported, so all of it runs in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import penstock as pk
from engine.test_edge_state import Killed, killed_after
from penstock.engine.mode import mode
from penstock.engine.monoid import MAX
from penstock.engine.program import Pair, Row
from penstock.errors import DoesNotFit
from places import at


def test_forms_on_a_simulated_gpu() -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-p", "no:xdist", __file__]
    command += ["-o", "python_functions=simulated_*", "--durations=5"]
    environment = os.environ | {"NUMBA_ENABLE_CUDASIM": "1"}
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, cwd=Path(__file__).parents[2], check=False
    )
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]


# ---- row


def init(v, p):
    return np.int64(v.number) * 7 % 31 + np.int64(v.seed), np.int64(0)


def emit(v, p):
    return v.x + p.step


def weighed(message, e, p):
    return message * 3 + e.weight


def in_order(v, messages, p):
    """Depends on the order of the messages, and changes them."""
    total = np.int64(len(messages))
    for i in range(len(messages)):
        total = (total * 31 + messages[i]) % 1009
        messages[i] = 0
    return (v.x + total + np.int64(v.in_degree)) % 251, v.steps + 1


def change(v, new, p):
    return abs(new[0] - v.x)


def ordered(**options: Any) -> Row:
    chosen: dict[str, Any] = {
        "name": "in order",
        "state": {"x": "int64", "steps": "int64"},
        "reads": ("number", "seed", "in_degree"),
        "init": init,
        "message": "int64",
        "emit": emit,
        "row": in_order,
        "change": change,
    }
    return Row(**chosen | options)


def first(v, p):
    return np.int64(v.number % 5) - 2, np.int64(0)


def least_first(v, messages, p):
    return (mode(messages) if len(messages) > 0 else v.x), len(messages)


def both_uses(v, messages, p):
    return (mode(messages) + messages[0] if len(messages) > 0 else v.x), 0


def handed_on(v, messages, p):
    mine = messages
    return (mode(mine) if len(messages) > 0 else v.x), 0


def voting(row: Any = least_first) -> Row:
    """Few different labels, some of them negative, and how many there were."""
    return ordered(name="voting", reads=("number",), init=first, row=row, change=None)


def same(program: Any, graph: pk.Graph, place: str = "gpu", **options: Any) -> Any:
    expected = pk.run(program, graph, device="reference", **options)
    found = at(place, lambda **chosen: pk.run(program, graph, **options, **chosen))
    assert found.table.equals(expected.table)
    assert found.stats["device"] == "gpu", found.stats
    for name in ("iterations", "residual", "triangles"):
        assert found.stats.get(name) == expected.stats.get(name), name
    return found


@pytest.fixture(scope="module")
def hubs(tmp_path_factory: pytest.TempPathFactory) -> dict[bool, pk.Graph]:
    """Few vertices, for the simulator is slow; one of them takes several pages, so many parallel arcs it has."""
    folder, rng = tmp_path_factory.mktemp("hubs"), np.random.default_rng(2)
    few = rng.integers(0, 36, (2, 160))
    source, target = np.r_[np.full(1100, 36), few[0]], np.r_[np.arange(1100) % 40, few[1]]
    arcs = {"source": source, "target": target, "weight": rng.integers(1, 9, len(source))}
    options: dict[str, Any] = {"vertices": {"id": np.arange(46)}, "page_size": 4096, "duplicates": "keep"}
    found = {flag: pk.ingest(arcs, folder / f"{flag}.pen", undirected=flag, **options) for flag in (False, True)}
    assert all((graph.store.direction("out").records["kind"] == 1).any() for graph in found.values())
    return found


@pytest.fixture(autouse=True)
def heavy_vertices(monkeypatch: pytest.MonkeyPatch) -> None:
    """In small pages, too, and in several segments."""
    tasks = sys.modules.get("penstock.memory.tasks")
    if tasks is not None:
        monkeypatch.setattr(tasks, "HEAVY", 16)
        monkeypatch.setattr(tasks, "SEGMENT", 300)


def small(path: Path, **options: Any) -> pk.Graph:
    """Loops, parallel arcs both ways, vertices without arcs."""
    rng = np.random.default_rng(5)
    ends = (13 * rng.random((2, 80)) ** 2).astype(np.int64)
    arcs = {"source": ends[0], "target": ends[1]}
    return pk.ingest(arcs, path, vertices={"id": np.arange(20)}, page_size=4096, **options)


@pytest.mark.parametrize(
    ("undirected", "along", "place", "options"),
    [
        (False, "both", "gpu", {"columns": ("weight",), "edge": weighed}),
        (False, "out", "gpu-ranges", {"change_by": MAX}),
        (False, "both", "gpu-streamed", {}),
        (True, "in", "gpu-streamed", {"columns": ("weight",), "edge": weighed}),
    ],
)
def simulated_rows_in_order(
    hubs: dict[bool, pk.Graph], undirected: bool, along: str, place: str, options: dict[str, Any]
) -> None:
    graph = hubs[undirected]
    alone = graph.store.ids.of(graph.vertices - 1)
    found = same(ordered(along=along, **options), graph, place, max_iter=2, source=[alone, 0])
    windows = {step["windows"] for step in found.stats["supersteps"]}
    assert windows == {3} if place == "gpu-ranges" else windows == {1} if place == "gpu" else min(windows) > 1


def simulated_rows_go_on_where_they_were(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    graph, program = small(tmp_path / "g.pen"), ordered(along="both")
    right = pk.run(program, graph, device="reference", max_iter=3)
    for first, second in (("gpu", "gpu"), ("gpu", "cpu"), ("cpu", "gpu")):
        saved: dict[str, Any] = {"checkpoint": tmp_path / "saved", "checkpoint_every": "1", "max_iter": 3}
        with killed_after(2, monkeypatch), pytest.raises(Killed):
            pk.run(program, graph, device=first, **saved)
        found = pk.run(program, graph, device=second, **saved)
        assert (found.stats["device"], found.stats["resumed_at"]) == (second, 2)
        assert found.table.equals(right.table)


def simulated_no_room_for_the_longest_row(hubs: dict[bool, pk.Graph]) -> None:
    with pytest.raises(DoesNotFit, match="gpu_memory_limit"):
        pk.run(ordered(), hubs[True], max_iter=1, device="gpu", gpu_memory_limit="20kB")


def simulated_votes(hubs: dict[bool, pk.Graph], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from penstock.engine.gpu import rows

    monkeypatch.setattr(rows, "SHORT", 24)
    monkeypatch.setattr(rows, "WARP_TABLE", 256)
    monkeypatch.setattr(rows, "BLOCK_TABLE", 2048)
    same("cdlp", hubs[False], max_iter=2)
    monkeypatch.setattr(rows, "SHORT", 6)
    monkeypatch.setattr(rows, "WARP_TABLE", 128)
    monkeypatch.setattr(rows, "BLOCK_TABLE", 256)
    graph = small(tmp_path / "g.pen")
    same("cdlp", graph, "gpu-streamed", max_iter=2)
    same(voting(), graph, max_iter=2)
    # Among these is the number that stands for none in the tables.
    same(ordered(name="most", reads=("number",), init=top, emit=as_it_is, row=least_first, change=None), graph)


def as_it_is(v, p):
    return v.x


def top(v, p):
    return np.iinfo(np.int64).max - np.int64(v.number % 3) * 2**40, np.int64(0)


def simulated_more_values_than_a_table_holds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from penstock.engine.gpu import rows

    monkeypatch.setattr(rows, "SHORT", 2)
    monkeypatch.setattr(rows, "tables", lambda item: (4, 4))
    monkeypatch.setattr(rows, "parts_of", lambda degrees, item: np.where(degrees > 2, 1, 0))
    monkeypatch.setattr("penstock.engine.gpu.row.tables", rows.tables)
    same("cdlp", small(tmp_path / "g.pen"), max_iter=2)


def simulated_what_is_only_voted_on() -> None:
    from penstock.algorithms.cdlp import program
    from penstock.engine.gpu.voting import only_voted

    assert only_voted(program(np.dtype(np.uint32)))
    assert only_voted(voting())
    assert not any(map(only_voted, (voting(both_uses), voting(handed_on), ordered())))


# ---- pair


def nothing(v, p):
    return 0, 0.0


def one_way(arcs, p):
    return p.weight if arcs == 1 else 0.25


def taken(v, total, p):
    return v.neighbours + p.vertices, total + v.out_degree


def own(**changes: Any) -> Pair:
    chosen: dict[str, Any] = {
        "name": "one way",
        "state": {"size": "int64", "weight_across": "float64"},
        "reads": ("out_degree", "neighbours"),
        "params": {"weight": 1.0},
        "init": nothing,
        "corner": one_way,
        "total": "float64",
        "update": taken,
    }
    return Pair(**chosen | changes)


@pytest.mark.parametrize("undirected", [False, True])
@pytest.mark.parametrize("order", ["degree", "input"])
def simulated_triangles(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, undirected: bool, order: str) -> None:
    from penstock.engine.gpu import lists

    graph = small(tmp_path / "g.pen", undirected=undirected, order=order, duplicates="keep")
    if order == "degree":
        same("lcc", graph)
    # Lists in several pieces, sorted a few at a time.
    monkeypatch.setattr(lists, "NARROW", 3)
    monkeypatch.setattr(lists, "PIECE", 4)
    monkeypatch.setattr(lists, "SORTED", 8)
    same(own(), graph, weight=2.5)
    same("triangles", graph, per_vertex=False)


@pytest.mark.parametrize("undirected", [False, True])
def simulated_triangles_of_hubs(hubs: dict[bool, pk.Graph], undirected: bool) -> None:
    """Vertices over several pages, and just enough memory for all lists: pages stream."""
    from penstock.algorithms.triangles import program
    from penstock.engine.gpu.pair import make_pair_plan
    from penstock.memory.frames import DevicePages

    graph = hubs[undirected]
    store, slots = graph.store, graph.store.active + 1
    whole = make_pair_plan(program(), store, slots, 1 << 30)
    limit = whole.state_bytes + DevicePages.least(store.direction("out"), ())
    assert make_pair_plan(program(), store, slots, limit).lists_bytes == 0
    expected = pk.run("triangles", graph, device="reference")
    found = pk.run("triangles", graph, device="gpu", gpu_memory_limit=limit)
    assert found.stats["device"] == "gpu"
    assert found.table.equals(expected.table)


@pytest.mark.parametrize("undirected", [False, True])
@pytest.mark.parametrize("order", ["degree", "input"])
def simulated_triangles_of_lists_that_pass(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, undirected: bool, order: str
) -> None:
    from penstock.engine.gpu import lists, passing

    graph = small(tmp_path / "g.pen", undirected=undirected, order=order, duplicates="keep")
    monkeypatch.setattr(lists, "NARROW", 3)
    monkeypatch.setattr(lists, "PIECE", 4)
    monkeypatch.setattr(lists, "_SOME", 5)
    monkeypatch.setattr(passing, "MOST", 64)
    for place in ("gpu-ranges", "gpu-streamed"):
        found = same(own(), graph, place, weight=2.5)
        figures = found.stats["gpu"]
        assert figures["ledger_peak"] <= figures["memory_limit"]
        # From a file where ranges are asked for, else from memory: the budget of the host is not small.
        assert figures["source"] == ("disk" if place == "gpu-ranges" else "host")
        ranges = [step["lists"] for step in found.stats["supersteps"]]
        assert len(ranges) > 1 or place == "gpu-streamed"
        assert sum(ranges) == graph.store.active
        entries = figures["bytes_copied"] // passing.ENTRY
        assert entries > figures["plans"][0]["pages_bytes"] // passing.ENTRY // 2
        counted = same("triangles", graph, place, per_vertex=False)
        assert (counted.stats["spilled_lists"] > 0) == (place == "gpu-ranges")


@pytest.mark.parametrize("ranges", [None, 2])
def simulated_lists_without_entries(tmp_path: Path, ranges: int | None) -> None:
    """Where there are only loops, and where there is nothing."""
    loop = pk.ingest({"source": [3], "target": [3]}, tmp_path / "loop.pen", vertices={"id": [3, 4]}, page_size=4096)
    none = {"source": np.zeros(0, int), "target": np.zeros(0, int)}
    empty = pk.ingest(none, tmp_path / "none.pen", vertices={"id": [1]}, page_size=4096, allow_empty=True)
    for graph in (loop, empty):
        for name in ("triangles", "lcc", "scan"):
            expected = pk.run(name, graph, device="reference").table
            assert pk.run(name, graph, device="gpu", state_ranges=ranges).table.equals(expected)


def simulated_results_have_room_where_lists_had_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the memory that explain says is enough on the host, and in some more. At a size for which that matters; so
    kernels are not run."""
    from penstock.memory import gpu

    monkeypatch.setattr(gpu.Launcher, "__call__", lambda *args: None)
    ends = np.random.default_rng(1).integers(0, 200_000, (2, 800_000))
    arcs = {"source": ends[0], "target": ends[1]}
    graph = pk.ingest(arcs, tmp_path / "many.pen", undirected=True, page_size=1 << 16)
    told = pk.explain("triangles", graph, device="gpu", gpu_memory_limit="1GB")
    for more in range(0, 8_000_000, 1_000_000):
        limits = {"memory_limit": told.smallest + more, "gpu_memory_limit": told.smallest_gpu + 500_000}
        found = pk.run("triangles", graph, device="gpu", threads=2, **limits).stats
        assert found["gpu"]["source"] in ("host", "disk")
        assert found["ledger_peak"] <= limits["memory_limit"]


@pytest.mark.parametrize("name", ["lcc", "scan", "scan by column", "triangles"])
def simulated_results_have_room_where_pages_had_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Pages that stream from disk take what the host has left, and are open when vectors are made later."""
    from penstock.memory import gpu

    monkeypatch.setattr(gpu.Launcher, "__call__", lambda *args: None)
    ends = np.random.default_rng(1).integers(0, 300_000, (2, 3_000_000))
    arcs = {"source": ends[0], "target": ends[1], "alike": np.full(ends.shape[1], 0.5)}
    graph = pk.ingest(arcs, tmp_path / "many.pen", undirected=True, merge={"alike": "min"}, page_size=1 << 14)
    algorithm, *by_column = name.split(" by ")
    options = {"device": "gpu", "threads": 1, **({"similarity": "alike"} if by_column else {})}
    told = pk.explain(algorithm, graph, gpu_memory_limit="1GB", **options)
    plans = [stage.gpu.plan for stage in told.stages]
    limit = max(plan.state_bytes + plan.reads_bytes + plan.least_bytes for plan in plans)
    # Blocks of the simulator have few threads, so tasks are many, which the least of the memory does not foresee.
    for more in (8_000_000, 9_000_000) if by_column else (100_000, 1_000_000):
        limits = {"memory_limit": told.smallest + more, "gpu_memory_limit": limit}
        found = pk.run(algorithm, graph, **limits, **options).stats
        assert found["gpu"]["source"] == "disk"
        assert found["ledger_peak"] <= limits["memory_limit"]


def simulated_no_room_for_two_lists(tmp_path: Path) -> None:
    graph = small(tmp_path / "g.pen")
    with pytest.raises(DoesNotFit, match="longest lists on the GPU"):
        pk.run("triangles", graph, device="gpu", gpu_memory_limit=4096)


@pytest.mark.parametrize("shape", ["short", "few twice", "many twice", "all alike"])
@pytest.mark.parametrize(("ways", "everyone"), [(False, False), (True, False), (False, True)])
def simulated_each_neighbour_once(shape: str, ways: bool, everyone: bool) -> None:
    from gpu.lists import SHAPES, check_simplify

    lengths, most = SHAPES[shape]
    check_simplify(ways=ways, everyone=everyone, lengths=lengths, most=most)


# ---- common


@pytest.mark.parametrize("undirected", [False, True])
@pytest.mark.parametrize("order", ["degree", "input"])
@pytest.mark.parametrize("place", ["gpu", "gpu-ranges", "gpu-streamed"])
def simulated_edges_with_enough_in_common(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, undirected: bool, order: str, place: str
) -> None:
    """All lists there, or a few at a time; in three passes, of which each sees what those before have done."""
    from engine.test_common import own as common
    from penstock.engine.gpu import passing

    graph = small(tmp_path / "g.pen", undirected=undirected, order=order, duplicates="keep")
    monkeypatch.setattr(passing, "MOST", 64)
    found = same(common(), graph, place, enough=2, max_iter=3)
    figures, entries = found.stats["gpu"], found.table["size"].to_numpy().sum()
    assert figures["ledger_peak"] <= figures["memory_limit"]
    ranges = {step["ranges"] for step in found.stats["supersteps"]}
    assert (max(ranges) > 1) == (place == "gpu-ranges") or place == "gpu-streamed"
    plan, copied = figures["plans"][0], figures["bytes_copied"] // passing.ENTRY
    if not plan["lists_bytes"]:
        assert place != "gpu-ranges"
        assert figures["bytes_copied"] <= 2 * plan["pages_bytes"]  # to count, and to write
    else:
        assert copied == entries if max(ranges) == 1 else copied > 3 * entries


@pytest.mark.parametrize("undirected", [False, True])
def simulated_lists_of_everyone(hubs: dict[bool, pk.Graph], monkeypatch: pytest.MonkeyPatch, undirected: bool) -> None:
    """Made on the device of pages that stream; on the host, where it has no room for that; a few sorted at a time. All
    with seeds, which have a place in the plan."""
    from engine.test_common import own as common
    from penstock.engine.gpu import lists
    from penstock.engine.gpu.common import make_common_plan

    monkeypatch.setattr(lists, "SORTED", 8)
    monkeypatch.setattr(lists, "_SOME", 5)
    graph, program = hubs[undirected], common()
    store = graph.store
    options: dict[str, Any] = {"enough": 2, "source": list(range(46)) * 20}
    expected = pk.run(program, graph, device="reference", **options).table

    def plan(limit: int) -> Any:
        return make_common_plan(program, store, store.active + 7, limit, seeds=46)

    whole = plan(1 << 30)
    for limit, made_there in ((whole.state_bytes + whole.least_bytes, True), (whole.smallest, False)):
        assert bool(plan(limit).lists_bytes) != made_there
        found = pk.run(program, graph, device="gpu", gpu_memory_limit=limit, **options)
        assert found.table.equals(expected)
        assert found.stats["gpu"]["ledger_peak"] <= limit


# ---- graphs with little in them


@pytest.mark.parametrize("name", ["cdlp", "lcc", "scan", "triangles"])
def simulated_empty_graphs(tmp_path: Path, name: str) -> None:
    none = {"source": np.zeros(0, int), "target": np.zeros(0, int)}
    loops = {"source": [3, 3, 5], "target": [3, 3, 5]}
    for k, arcs in enumerate((none, loops)):
        for given in ({"vertices": {"id": np.arange(7)}}, {}):
            graph = pk.ingest(arcs, tmp_path / f"{k}{len(given)}.pen", page_size=4096, allow_empty=True, **given)
            same(name, graph)


# ---- combine, from pages that stay on the host


@pytest.mark.parametrize("undirected", [False, True])
def simulated_sparse_frontiers_read_pages_in_place(tmp_path: Path, undirected: bool) -> None:
    rng = np.random.default_rng(8)
    rest = rng.integers(500, 1400, (2, 2600))  # arcs that the search does not come to, for pages to have many
    few = [(0, 100), (0, 300), (100, 101), *((300, 301 + k) for k in range(20)), (301, 400)]
    ends = np.concatenate([np.array(few).T, rest], axis=1)
    arcs = {"source": ends[0], "target": ends[1]}
    graph = pk.ingest(arcs, tmp_path / "g.pen", vertices={"id": np.arange(1400)}, page_size=4096, undirected=undirected)
    expected = pk.bfs(graph, source=0, device="cpu")
    found = at("gpu-streamed", lambda **chosen: pk.bfs(graph, source=0, **chosen))
    assert found.table.equals(expected.table)
    steps = found.stats["supersteps"]
    assert found.stats["gpu"]["in_place"] == sum(step["in_place"] for step in steps) >= 3
    assert {step["direction"] for step in steps} == {"push"}
    # The page of the twenty, which make the largest frontier, is cheaper to copy.
    copied = {step["frontier"]: step["bytes_copied"] for step in steps if step["bytes_copied"]}
    assert copied == {21: 4096}
