"""The timeline: what the viewers require of a Chrome trace."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import penstock as pk
from penstock.errors import DiskFull, StoreError
from penstock.observe.events import Events, recording
from penstock.observe.trace import write_trace

Row = dict[str, Any]


def refuse_constant(name: str) -> None:
    raise AssertionError(f"{name} is no JSON")


def read_trace(path: Path) -> tuple[dict[str, list[Row]], dict[str, Any]]:
    """Check what must hold for every trace; the slices by lane, and the whole file."""
    trace = json.loads(path.read_text(), parse_constant=refuse_constant)
    assert trace.keys() == {"displayTimeUnit", "traceEvents", "otherData"}
    rows: list[Row] = trace["traceEvents"]
    for row in rows:
        assert row.keys() >= {"ph", "name", "pid", "tid", "args"}
        assert isinstance(row["name"], str)
        assert row["name"]
    assert {row["pid"] for row in rows} == {1}
    assert {row["ph"] for row in rows} <= {"M", "X", "C"}
    assert [row["ph"] for row in rows].count("M") == len([row for row in rows if "ts" not in row])
    assert [row["args"]["name"] for row in rows if row["name"] == "process_name"] == ["penstock"]

    names = {row["tid"]: row["args"]["name"] for row in rows if row["name"] == "thread_name"}
    assert len(set(names.values())) == len(names)
    assert 0 not in names
    times = [row["ts"] for row in rows if row["ph"] != "M"]
    assert times == sorted(times)
    assert all(time >= 0 for time in times)
    lanes: dict[str, list[Row]] = {name: [] for name in names.values()}
    for row in rows:
        if row["ph"] == "X":
            assert row["dur"] >= 0
            lanes[names[row["tid"]]].append(row)
        if row["ph"] == "C":
            assert all(isinstance(value, int | float) for value in row["args"].values())
    for slices in lanes.values():
        check_nesting(slices)
    return lanes, trace


def check_nesting(slices: list[Row]) -> None:
    open_ends: list[int] = []
    for row in slices:
        begin = round(row["ts"] * 1000)
        end = begin + round(row["dur"] * 1000)
        while open_ends and open_ends[-1] <= begin:
            open_ends.pop()
        assert not open_ends or end <= open_ends[-1], f"{row} overlaps the slice before it"
        open_ends.append(end)


def counters(trace: dict[str, Any], name: str) -> list[tuple[float, dict[str, float]]]:
    return [(row["ts"], row["args"]) for row in trace["traceEvents"] if row["ph"] == "C" and row["name"] == name]


def test_lanes_slices_and_args(tmp_path: Path) -> None:
    events = Events()
    t = events.began
    events.record("worker 0", "page", t + 1.5, t + 2, item=np.int64(7), source="hit")
    events.record("engine", "superstep", t + 1, t + 4, frontier=3, change=math.inf)
    events.record("engine", "emit", t + 1, t + 1.25)
    events.record("engine", "update", t + 3, t + 4)
    write_trace(tmp_path / "run.json", events, {"algorithm": "bfs", "residual": [math.nan, np.float32(0.5)]})
    lanes, trace = read_trace(tmp_path / "run.json")
    assert list(lanes) == ["engine", "worker 0"]
    assert [(row["name"], row["ts"], row["dur"]) for row in lanes["engine"]] == [
        ("superstep", 1e6, 3e6),
        ("emit", 1e6, 0.25e6),
        ("update", 3e6, 1e6),
    ]
    assert lanes["engine"][0]["args"] == {"frontier": 3, "change": "inf"}
    (page,) = lanes["worker 0"]
    assert page["args"] == {"item": 7, "source": "hit"}
    assert page["cat"] == "worker"
    assert trace["otherData"] == {"algorithm": "bfs", "residual": ["nan", 0.5]}
    assert os.listdir(tmp_path) == ["run.json"]


def test_slices_that_overlap_get_a_track_of_their_own(tmp_path: Path) -> None:
    events = Events()
    t = events.began
    for begin, end in [(0, 4), (1, 5), (2, 6), (2, 3), (4, 7), (5, 5)]:
        events.record("worker 1", f"{begin}-{end}", t + begin, t + end)
    events.record("worker 2", "alone", t, t + 1)
    write_trace(tmp_path / "run.json", events)
    lanes, _ = read_trace(tmp_path / "run.json")
    assert {lane: [row["name"] for row in rows] for lane, rows in lanes.items()} == {
        "worker 1": ["0-4", "2-3", "4-7", "5-5"],
        "worker 1 (2)": ["1-5"],
        "worker 1 (3)": ["2-6"],
        "worker 2": ["alone"],
    }


def test_times_that_do_not_round_well_still_nest(tmp_path: Path) -> None:
    events = Events()
    random = np.random.default_rng(4)

    def divide(begin: float, end: float, depth: int) -> None:
        events.record("engine", f"depth {depth}", begin, end)
        if depth < 6:
            cuts = sorted([begin, *random.uniform(begin, end, 3).tolist(), end])
            for a, b in pairwise(cuts):
                divide(a, b, depth + 1)

    divide(events.began + 1 / 3, events.began + 1 / 3 + 1e-4, 0)
    write_trace(tmp_path / "run.json", events)
    lanes, _ = read_trace(tmp_path / "run.json")
    assert list(lanes) == ["engine"]
    assert len(lanes["engine"]) == sum(4**k for k in range(7))


def test_counters(tmp_path: Path) -> None:
    events = Events()
    t = events.began
    events.record("reader 1", "read", t + 1, t + 3, bytes=100)
    events.record("reader 0", "read", t + 1, t + 2, bytes=np.int64(10))
    events.record("gpu copy", "copy", t + 2, t + 3, bytes=7)
    levels: list[tuple[str, Any]] = [("bytes held/cache in", 5), ("frontier", np.int32(3))]
    for name, value in [*levels, ("change", math.inf), ("change", 0.5)]:
        events.count(name, value)
    write_trace(tmp_path / "run.json", events)
    _, trace = read_trace(tmp_path / "run.json")
    moved = counters(trace, "bytes moved")
    assert [at for at, _ in moved] == [2e6, 3e6, 3e6]
    assert [args for _, args in moved if "read" in args] == [{"read": 10}, {"read": 110}]
    assert [args for _, args in moved if "copy" in args] == [{"copy": 7}]
    assert [args for _, args in counters(trace, "bytes held")] == [{"cache in": 5}]
    assert [args for _, args in counters(trace, "frontier")] == [{"value": 3}]
    assert [args for _, args in counters(trace, "change")] == [{"value": 0.5}]


def test_what_began_before_the_recording_comes_first(tmp_path: Path) -> None:
    events = Events()
    events.record("engine", "plan", events.began - 1, events.began)
    write_trace(tmp_path / "run.json", events)
    lanes, _ = read_trace(tmp_path / "run.json")
    assert [(row["ts"], row["dur"]) for row in lanes["engine"]] == [(0, 1e6)]


def test_an_empty_recording_and_one_that_was_cut_short(tmp_path: Path) -> None:
    write_trace(tmp_path / "run.json", Events())
    lanes, trace = read_trace(tmp_path / "run.json")
    assert lanes == {}
    assert trace["otherData"] == {}
    events = Events(limit=1)
    for k in range(3):
        events.record("engine", "superstep", events.began + k, events.began + k + 1)
    write_trace(tmp_path / "run.json", events)
    _, trace = read_trace(tmp_path / "run.json")
    assert trace["otherData"] == {"events_left_out": 2}


def failing(number: int) -> Callable[..., None]:
    def replace(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    return replace


@pytest.mark.parametrize(("number", "error"), [(28, DiskFull), (13, StoreError)])
def test_a_failure_leaves_the_old_file_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, error: type[Exception]
) -> None:
    (tmp_path / "run.json").write_text("old")
    monkeypatch.setattr(os, "replace", failing(number))
    with pytest.raises(error, match=r"cannot write .*run\.json: "):
        write_trace(tmp_path / "run.json", Events())
    assert os.listdir(tmp_path) == ["run.json"]
    assert (tmp_path / "run.json").read_text() == "old"


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"run\.json: No such file or directory"):
        write_trace(tmp_path / "missing" / "run.json", Events())


@pytest.mark.parametrize(
    "options", [{"tier": "disk", "memory_limit": "2MB"}, {"tier": "memory"}], ids=["disk", "memory"]
)
def test_a_real_run_is_what_perfetto_takes(tmp_path: Path, options: dict[str, Any]) -> None:
    with pk.generate("kron", tmp_path / "k.pen", scale=9, undirected=True, page_size="4KiB") as graph:
        with recording() as events:
            done = pk.pagerank(graph, max_iter=3, threads=2, **options)
        write_trace(tmp_path / "t.json", events, done.stats)
    lanes, trace = read_trace(tmp_path / "t.json")
    assert [row["name"] for row in lanes["engine"]] == ["superstep 1", "superstep 2", "superstep 3"]
    assert {"phases", "worker 0"} <= set(lanes)
    assert options["tier"] == "memory" or {"reader 0", "reader 1"} & set(lanes)  # which comes first to a page is luck
    held = counters(trace, "host memory")
    assert 0 < max(value for _, series in held for value in series.values()) <= done.stats["ledger_peak"]
