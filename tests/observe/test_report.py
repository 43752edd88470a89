"""The run report: what it says of runs of every kind, and that it says nothing it does not know."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import penstock as pk
from penstock.errors import InputError, TargetExists
from penstock.observe.events import Events, Slice
from penstock.observe.report import Run, page, words
from penstock.observe.report.memory import stacked
from penstock.observe.report.pipes import busy_seconds
from penstock.observe.report.timeline import kind, lanes
from penstock.observe.trace import write_trace
from penstock.observe.traced import read_trace

VOID = {"meta", "link", "br", "hr", "img", "input"}


class Page(HTMLParser):
    """A page taken apart: its sections, places of drawings, tables and data. Elements must close in order."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.sections: list[str] = []
        self.charts: list[str] = []
        self.outside: list[str] = []
        self.words, self.data = "", ""
        self._into: str | None = None
        self.feed(text)
        self.close()
        assert not self.open
        self.drawings: dict[str, Any] = json.loads(self.data)
        self.words = " ".join(self.words.split())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if tag not in VOID:
            self.open.append(tag)
        if tag == "section":
            self.sections.append(str(given["id"]))
        if "data-chart" in given:
            self.charts.append(str(given["data-chart"]))
            assert given["role"] == "img"
            assert given["aria-label"]
        self.outside += [value for key in ("src", "href") if (value := given.get(key)) and value[0] != "#"]
        if tag == "script":
            self._into = "data" if given.get("type") == "application/json" else "script"

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag
        self._into = None if tag == "script" else self._into

    def handle_data(self, data: str) -> None:
        if self._into == "data":
            self.data += data
        elif self._into is None and "style" not in self.open:
            self.words += f"{data} "


def taken_apart(path: Path) -> Page:
    text = path.read_text(encoding="utf-8")
    found = Page(text)
    # One file: nothing is asked for from anywhere, and every drawing has its place and its data.
    assert found.outside == ["data:,"]
    assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)", text)
    assert sorted(found.charts) == sorted(found.drawings)
    return found


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Iterator[pk.Graph]:
    target = tmp_path_factory.mktemp("report") / "k.pen"
    options = {"scale": 9, "edge_factor": 8, "seed": 1, "undirected": True, "weights": "1:9", "page_size": "4KiB"}
    with pk.generate("kron", target, **options) as made:
        yield made


def report(result: Any, tmp_path: Path) -> Page:
    return taken_apart(result.report(tmp_path / "run.html"))


def test_a_recorded_run_from_disk_shows_everything(graph: pk.Graph, tmp_path: Path) -> None:
    with pk.recording():
        result = pk.pagerank(graph, tier="disk", memory_limit="3MB", max_iter=4)
    found = report(result, tmp_path)
    assert found.sections == ["time", "plan", "pipes", "steps", "timeline", "memory", "graph", "result", "machine"]
    assert {"seconds", "residual", "pages", "timeline", "memory-host", "degrees", "matrix", "values"} <= set(
        found.charts
    )
    assert "pagerank on k.pen" in found.words
    assert "from disk, with 3.0 MB of memory allowed" in found.words
    steps = result.stats["supersteps"]
    assert found.drawings["residual"]["series"][0]["y"] == [step["change"] for step in steps]
    cached, read = found.drawings["pages"]["series"]
    assert sum(cached["y"]) == sum(step["hits"] for step in steps)
    assert sum(cached["y"]) + sum(read["y"]) == sum(step["pages"] for step in steps)
    rows = {row["lane"] for row in found.drawings["timeline"]["rows"]}
    assert {"phases", "engine", "worker 0"} <= rows
    assert {"reader 0", "reader 1"} & rows  # which of them comes first to a page is luck
    moved = sum(sum(row.get("bytes", ())) for row in found.drawings["timeline"]["rows"])
    assert moved == result.stats["bytes_read"]
    first = result.top(1).to_pylist()[0]
    assert f"1 {first['vertex']} {first['rank']:.6g} 2 " in found.words
    for chart in found.drawings.values():
        for series in chart.get("series", ()):
            assert len(series["x"]) == len(series["y"])


@pytest.mark.parametrize(
    ("name", "options", "charts"),
    [
        ("bfs", {"source": 1, "tier": "disk"}, {"seconds", "frontier", "degrees", "matrix", "values"}),
        ("wcc", {"tier": "memory"}, {"degrees", "matrix", "values"}),
        ("sssp", {"source": 1, "weight": "weight", "tier": "memory"}, {"degrees", "matrix", "values"}),
        ("triangles", {"tier": "memory"}, {"degrees", "matrix", "values"}),
        ("degree", {}, {"degrees", "matrix", "values"}),
        ("egonet", {"source": 1}, {"degrees", "matrix"}),
    ],
)
def test_runs_of_every_kind(graph: pk.Graph, tmp_path: Path, name: str, options: Any, charts: set[str]) -> None:
    found = report(pk.run(name, graph, **options), tmp_path)
    assert charts <= set(found.charts)
    assert "timeline" not in found.charts
    assert "No timeline was recorded" in found.words
    assert "memory-host" not in found.charts


def test_an_empty_graph_has_a_report(tmp_path: Path) -> None:
    (tmp_path / "none.txt").write_text("# nothing\n")
    with pk.ingest(tmp_path / "none.txt", tmp_path / "none.pen", allow_empty=True) as graph:
        found = report(pk.pagerank(graph), tmp_path)
    assert "0 vertices" in found.words
    assert "The graph has no arcs." in found.words


def test_a_closed_graph_is_opened_again_and_a_lost_one_is_said(tmp_path: Path) -> None:
    from penstock.store.draft import remove_store

    target = tmp_path / "g.pen"
    with pk.generate("ring", target, vertices=20) as graph:
        result = pk.wcc(graph)
    assert "matrix" in report(result, tmp_path).charts
    remove_store(target)
    found = taken_apart(pk.Result.report(result_without_ids(result), tmp_path / "lost.html"))
    assert "The graph cannot be shown" in found.words
    assert "matrix" not in found.charts


def result_without_ids(result: pk.Result) -> pk.Result:
    """The ids of a removed store are gone, too: what is left is what is in memory."""

    class Left(pk.Result):
        def batches(self, size: int = 1) -> Any:
            return iter(())

    left = Left(result._ids, result._values, result._isolated, result.stats, references=result.references)
    left.graph = result.graph
    return left


def test_what_users_call_things_is_text(tmp_path: Path) -> None:
    nasty = '</script><img src=x onerror="alert(1)">{{data}}'
    with pk.from_edges([nasty, "b"], ["b", nasty]) as graph:
        result = pk.pagerank(graph)
        result.stats["store"] = nasty + ".pen"
        path = result.report(tmp_path / "run.html")
        text = path.read_text()
        found = taken_apart(path)
    assert "<img" not in text
    assert text.count("<script") == 2
    assert nasty in found.words


def test_limits_and_predictions_are_compared_or_missed(graph: pk.Graph, tmp_path: Path) -> None:
    result = pk.pagerank(graph, tier="disk", memory_limit="3MB", max_iter=3)
    figures = result.stats | {"limits": None, "prediction": None}
    bare = Page(page(Run(figures)))
    assert bare.words.count("penstock doctor --measure") == 2
    assert "limit not measured" in bare.words
    seconds = figures["phases"]["run"]
    figures["limits"] = {"disk": 4 * figures["bytes_read"] / seconds, "memory": 1e12, "date": "2026-01-01"}
    figures["prediction"] = {
        "seconds": 2 * seconds, "phases": {"run": 2 * seconds}, "bytes_read": figures["bytes_read"], "bound": "disk",
    }  # fmt: skip
    known = Page(page(Run(figures)))
    assert "penstock doctor" not in known.words
    assert "25 % of what was measured for this machine" in known.words
    assert "bound by the disk" in known.words
    assert re.search(r"bytes read.*1\.00", known.words)


def test_a_run_on_a_gpu_shows_its_copies(graph: pk.Graph) -> None:
    result = pk.pagerank(graph, tier="memory", max_iter=3)
    device = {
        "name": "Some GPU", "memory_limit": 8 << 30, "ledger_peak": 1 << 30, "resident": False, "source": "host",
        "bytes_copied": 10**9, "bytes_read": 0, "hits": 3, "in_place": 0,
        "plans": [{"ranges": 1, "state_bytes": 10**6, "resident": False}],
        "energy": {"joules": 12.0, "watts": 300.0},
    }  # fmt: skip
    limits = {"gpu": {"name": "Some GPU", "copy": 55e9, "memory": 4e12, "date": ""}}
    found = Page(page(Run(result.stats | {"gpu": device, "limits": limits})))
    assert "Host → GPU" in found.words
    assert "of 55.0 GB/s" in found.words
    assert "GPU 1.1 GB of 8.6 GB" in found.words
    assert "12 J" in found.words
    assert "ranges 1, state bytes 1.0 MB, resident no" in found.words
    assert "3 pages were on the GPU already" in found.words
    plans = [{"program": "another", "ranges": 7}, {"program": "pagerank", "ranges": 3}]
    in_ranges = {"plans": [result.stats["plans"][0] | {"ranges": 9}], "limits": limits}
    device |= {"plans": plans, "shared": "4 devices share 1 GPU"}
    found = Page(page(Run(result.stats | in_ranges | {"gpu": device})))
    assert "On the GPU ranges 3" in found.words
    assert "9 ranges" not in found.words  # those are the host's
    assert "GPUs 4 devices share 1 GPU" in found.words


def test_ten_thousand_supersteps_become_a_curve(graph: pk.Graph) -> None:
    steps = [
        {"superstep": k + 1, "program": "p", "seconds": 0.5, "frontier": k % 7, "change": 1 / (k + 1)}
        for k in range(10_000)
    ]
    figures = pk.bfs(graph, source=1, tier="memory").stats | {"supersteps": steps, "supersteps_left_out": 3}
    found = Page(page(Run(figures)))
    line = found.drawings["seconds"]["series"][0]
    assert len(line["x"]) <= 600
    assert sum(line["y"]) == pytest.approx(5_000)
    assert set(found.drawings["frontier"]["series"][0]["y"][:-1]) == {6}
    assert "3 in between were not kept" in found.words


# ---- timelines


def test_spans_of_a_row_neither_overlap_nor_nest() -> None:
    slices = [
        Slice("a", "outer", 0.0, 1.0, {}),
        Slice("a", "inner", 0.1, 0.4, {}),
        Slice("a", "innermost", 0.2, 0.3, {}),
        Slice("a", "next", 0.5, 0.6, {}),
        Slice("b", "read", 0.0, 0.5, {"bytes": 7}),
    ]
    found = {(lane, depth): [span.name for span in spans] for lane, depth, spans in lanes(slices, 0.0)}
    assert found == {("a", 0): ["outer"], ("a", 1): ["inner", "next"], ("a", 2): ["innermost"], ("b", 0): ["read"]}


def test_lanes_of_several_devices_stand_together() -> None:
    names = [f"{lane} of device {k}" for lane in ("stream of copies", "stream 0", "gpu") for k in (1, 0)]
    found = lanes([Slice(name, "kernel", 0.0, 1.0, {}) for name in names], 0.0)
    assert [lane for lane, _, _ in found] == [
        "gpu of device 0", "gpu of device 1", "stream 0 of device 0", "stream of copies of device 0",
        "stream 0 of device 1", "stream of copies of device 1",
    ]  # fmt: skip


def test_too_many_spans_are_drawn_together() -> None:
    slices = [Slice("worker 0", "page", k * 1e-3, k * 1e-3 + 2e-4, {"bytes": 1}) for k in range(5_000)]
    slices.append(Slice("worker 0", "wait", 10.0, 11.0, {}))
    ((_, _, spans),) = lanes(slices, 0.0, most=100)
    assert len(spans) <= 100
    assert sum(span.times for span in spans) == 5_001
    assert sum(span.nbytes for span in spans) == 5_000
    assert spans[-1].name == "wait"
    begins = [span.begin for span in spans]
    assert all(span.begin + span.length <= after for span, after in zip(spans, begins[1:], strict=False))


def test_kinds_of_slices() -> None:
    names = {
        "superstep 12": "superstep", "page (hit)": "cached", "page (read)": "page", "read": "read", "copy in": "copy",
        "batch": "copy", "out pages": "kernel", "prepare": "phase", "wait": "wait",
    }  # fmt: skip
    assert {name: kind(name) for name in names} == names


def test_a_pipe_is_busy_while_any_of_its_lanes_is() -> None:
    spans = [(0.0, 1.0), (0.5, 2.0), (3.0, 4.0), (3.2, 3.4)]
    slices = [Slice(f"reader {k}", "read", *span, {"bytes": 1}) for k, span in enumerate(spans)]
    assert busy_seconds(slices, "reader") == pytest.approx(3.0)
    assert busy_seconds(slices, "stream") is None


def test_levels_are_stacked_and_thinned() -> None:
    points = [(f"w{k % 9}", k / 1000, float(k % 9 + k)) for k in range(5_000)]
    names, times, levels = stacked(points)
    assert names[-1] == "others"
    assert len(names) == len(levels) == 7
    assert len(times) == len(levels[0]) <= 401
    top = max(map(sum, zip(*levels, strict=True)))
    held: dict[str, float] = {}
    fullest = 0.0
    for what, _, value in points:
        held[what] = value
        fullest = max(fullest, sum(held.values()))
    assert top == pytest.approx(fullest)


def test_a_trace_that_is_read_back_gives_the_same_page(graph: pk.Graph, tmp_path: Path) -> None:
    with pk.recording() as events:
        result = pk.pagerank(graph, tier="disk", memory_limit="3MB", max_iter=2)
    write_trace(tmp_path / "run.trace", events, {})
    again = read_trace(tmp_path / "run.trace")
    mine, theirs = (Page(page(Run(result.stats, each))).drawings for each in (events, again))
    assert mine.keys() == theirs.keys()
    for row, other in zip(mine["timeline"]["rows"], theirs["timeline"]["rows"], strict=True):
        assert (row["lane"], row["depth"], row["name"]) == (other["lane"], other["depth"], other["name"])
        assert np.abs(np.cumsum(row["begin"]) - np.cumsum(other["begin"])).max() <= 1
    assert [each["name"] for each in mine["memory-host"]["series"]] == [
        each["name"] for each in theirs["memory-host"]["series"]
    ]


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"traceEvents": [1]}'])
def test_what_is_no_trace_is_said(tmp_path: Path, text: str) -> None:
    (tmp_path / "x").write_text(text)
    with pytest.raises(InputError, match="no trace"):
        read_trace(tmp_path / "x")


def test_a_report_is_not_overwritten_unasked(graph: pk.Graph, tmp_path: Path) -> None:
    result = pk.wcc(graph, tier="memory")
    result.report(tmp_path / "run.html")
    with pytest.raises(TargetExists):
        result.report(tmp_path / "run.html")
    result.report(tmp_path / "run.html", overwrite=True)
    assert [each.name for each in tmp_path.iterdir()] == ["run.html"]


def test_words() -> None:
    assert [words.seconds(each) for each in (0, 4e-5, 0.0042, 0.99, 3.4, 12.34, 75, 3_720)] == [
        "0 µs", "40 µs", "4.2 ms", "990 ms", "3.40 s", "12.3 s", "1 min 15 s", "1 h 2 min",
    ]  # fmt: skip
    assert [words.count(each) for each in (0, 262_144, 3_806_355, 10**9, 2.5e12)] == [
        "0", "262,144", "3,806,355", "1 billion", "2.5 trillion",
    ]  # fmt: skip
    assert (words.share(1, 3), words.share(1, 200), words.share(0, 0)) == ("33 %", "0.5 %", "0 %")
    assert Events().left_out == 0
