"""A feed that is recorded: from the disk to the timeline."""

from __future__ import annotations

import json
from pathlib import Path
from time import perf_counter

import penstock as pk
from penstock.config import settings
from penstock.memory.ledger import Ledger
from penstock.memory.pages import PageFeed
from penstock.observe.events import record, recording
from penstock.observe.trace import write_trace


def test_a_recorded_feed(tmp_path: Path) -> None:
    graph = pk.generate("complete", tmp_path / "g.pen", vertices=200, page_size=4096)
    direction = graph.store.direction("in")
    pages = range(len(direction))
    with PageFeed(direction, Ledger(1 << 20), settings(threads=2)) as feed:
        with recording() as events:
            for _ in range(2):
                begin = perf_counter()
                feed.run(pages, lambda *_: None)
                record("engine", "superstep", begin, perf_counter())
        stats = feed.stats
    reads = [each for each in events.slices if each.lane.startswith("reader ")]
    work = [each for each in events.slices if each.name == "page"]
    assert {lane.split()[0] for lane in events.lanes} == {"engine", "reader", "worker"}
    assert stats["bytes_read"] == sum(each.args["bytes"] for each in reads) > 0
    assert stats["hits"] == sum(each.args["source"] == "hit" for each in work) > 0
    assert sorted(each.args["item"] for each in work) == sorted([*pages, *pages])
    assert [level.name for level in events.levels] == [f"bytes held/cache {direction.name}"] * 2
    assert events.levels[-1].value == stats["cache"]["used"]
    first, second = (each for each in events.slices if each.lane == "engine")
    assert all(
        any(step.begin <= each.begin and each.end <= step.end for step in (first, second)) for each in reads + work
    )

    write_trace(tmp_path / "run.json", events)
    rows = json.loads((tmp_path / "run.json").read_text())["traceEvents"]
    named = {row["args"]["name"] for row in rows if row["name"] == "thread_name"}
    assert named == set(events.lanes), "no lane needed a second track"
    moved = [row["args"]["read"] for row in rows if row["name"] == "bytes moved"]
    assert moved[-1] == stats["bytes_read"]
