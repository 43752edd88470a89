from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from time import perf_counter

import pytest

from penstock.observe.events import Events, count, current, record, recording


def test_nobody_records_by_default(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("something was collected")

    monkeypatch.setattr(Events, "record", refuse)
    monkeypatch.setattr(Events, "count", refuse)
    assert current() is None
    record("engine", "superstep", 0.0, 1.0, frontier=3)
    count("bytes held/cache", 5)


def test_what_is_recorded_inside_the_block_is_kept() -> None:
    before = perf_counter()
    with recording() as events:
        assert current() is events
        record("engine", "superstep", 1.0, 2.0, name="bfs", frontier=3)
        count("bytes held/cache", 5)
    record("engine", "superstep", 2.0, 3.0)
    count("bytes held/cache", 6)
    assert current() is None
    assert events.slices == [("engine", "superstep", 1.0, 2.0, {"name": "bfs", "frontier": 3})]
    (level,) = events.levels
    assert (level.name, level.value) == ("bytes held/cache", 5)
    assert before <= events.began <= level.time <= perf_counter()
    assert events.left_out == 0


def test_a_block_that_fails_ends_the_recording() -> None:
    with pytest.raises(ZeroDivisionError), recording():
        raise ZeroDivisionError
    assert current() is None


def test_a_recording_inside_another_has_its_events_to_itself() -> None:
    with recording() as outer:
        record("engine", "one", 0.0, 1.0)
        with recording() as inner:
            record("engine", "two", 1.0, 2.0)
        record("engine", "three", 2.0, 3.0)
    assert [each.name for each in outer.slices] == ["one", "three"]
    assert [each.name for each in inner.slices] == ["two"]


def test_slices_come_by_time_the_outer_first() -> None:
    with recording() as events:
        record("engine", "inner", 1.0, 2.0)
        record("engine", "outer", 1.0, 5.0)
        record("engine", "first", 0.0, 1.0)
    assert [each.name for each in events.slices] == ["first", "outer", "inner"]


def test_lanes_in_the_order_people_count() -> None:
    with recording() as events:
        for lane in ("worker 10", "worker 9", "engine", "reader 1", "reader 0"):
            record(lane, "x", 0.0, 1.0)
    assert events.lanes == ["engine", "reader 0", "reader 1", "worker 9", "worker 10"]


def test_threads_add_to_the_recording_they_were_handed() -> None:
    threads, each = 8, 1000
    together = threading.Barrier(threads)

    def task(events: Events | None, number: int) -> None:
        assert current() is None, "a thread has a context of its own"
        assert events is not None
        together.wait()
        for k in range(each):
            events.record(f"worker {number}", "page", k, k + 1, item=k)
            events.count("pages", k)

    with recording() as events, ThreadPoolExecutor(threads) as pool:
        for done in [pool.submit(task, current(), number) for number in range(threads)]:
            done.result()
    assert events.lanes == [f"worker {number}" for number in range(threads)]
    assert len(events.slices) == len(events.levels) == threads * each
    for lane in events.lanes:
        assert [one.args["item"] for one in events.slices if one.lane == lane] == list(range(each))
    assert [one.time for one in events.levels] == sorted(one.time for one in events.levels)


def test_two_callers_record_apart() -> None:
    def caller(name: str) -> list[str]:
        with recording() as events:
            together.wait()
            record("engine", name, 0.0, 1.0)
            together.wait()
        return [each.name for each in events.slices]

    together = threading.Barrier(2)
    with ThreadPoolExecutor(2) as pool:
        found = [pool.submit(copy_context().run, caller, name) for name in ("one", "two")]
        assert [each.result() for each in found] == [["one"], ["two"]]


def test_a_long_recording_keeps_its_beginning_and_counts_the_rest() -> None:
    with recording(limit=10) as events:
        with ThreadPoolExecutor(1) as pool:
            pool.submit(events.record, "worker 0", "page", 0.0, 1.0).result()
        for k in range(100):
            record("engine", "superstep", k, k + 1)
            count("frontier", k)
    engine = [each for each in events.slices if each.lane == "engine"]
    assert [each.begin for each in engine] == [0, 1, 2, 3, 4], "two threads: half of the limit each"
    assert [level.value for level in events.levels] == [0, 1, 2, 3, 4]
    assert events.left_out == 190
