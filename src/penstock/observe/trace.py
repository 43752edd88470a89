"""A recording as a timeline: Chrome's Trace Event JSON, which ui.perfetto.dev and chrome://tracing open."""

from __future__ import annotations

import contextlib
import errno
import heapq
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from penstock.errors import DiskFull, StoreError
from penstock.observe.events import Events, Slice
from penstock.observe.plain import strict

Row = dict[str, Any]

_PROCESS = 1  # and threads from 1: the viewers take number 0 for the idle task


def write_trace(
    path: str | Path, events: Events, meta: Mapping[str, Any] | None = None, *, process: str = "penstock"
) -> None:
    """Write a recording; `meta` is kept in the file as `otherData`. A file of this name is replaced, whole or not."""
    target = Path(path)
    partial = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    try:
        with open(partial, "w", encoding="utf-8") as file:
            # Row by row: a long recording is not held a second time as text.
            file.write('{"displayTimeUnit":"ms","traceEvents":[')
            separator = "\n"
            for row in _rows(events, process):
                file.write(separator + json.dumps(row, separators=(",", ":"), allow_nan=False))
                separator = ",\n"
            other = strict(dict(meta or {})) | ({"events_left_out": events.left_out} if events.left_out else {})
            file.write('\n],"otherData":' + json.dumps(other, allow_nan=False) + "}\n")
        os.replace(partial, target)
    except OSError as error:
        full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        raise (DiskFull if full else StoreError)(f"cannot write {target}: {error.strerror or error}") from error
    finally:
        with contextlib.suppress(OSError):
            partial.unlink()  # already renamed if all went well


def _rows(events: Events, process: str) -> Iterator[Row]:
    """Names first, then everything in the order of time."""
    slices = events.slices
    origin = min(events.began, slices[0].begin if slices else events.began)
    tracks, names = _tracks(slices, events.lanes, origin)
    yield _name("process_name", 0, process)
    for number, name in enumerate(names, start=1):
        yield _name("thread_name", number, name)
        yield _row("M", "thread_sort_index", tid=number, args={"sort_index": number})
    yield from heapq.merge(
        _slices(slices, tracks, origin), _moved(slices, origin), _levels(events, origin), key=lambda row: row["ts"]
    )


def _row(phase: str, name: str, **fields: Any) -> Row:
    return {"ph": phase, "name": name, "pid": _PROCESS, **fields}


def _name(kind: str, thread: int, name: str) -> Row:
    return _row("M", kind, tid=thread, args={"name": name})


def _nanoseconds(time: float, origin: float) -> int:
    """Whole numbers: rounded apart, the end of an inner slice could come after that of the outer one."""
    return round((time - origin) * 1e9)


def _tracks(slices: Sequence[Slice], lanes: Sequence[str], origin: float) -> tuple[list[int], list[str]]:
    """The thread number each slice is shown under, and the names of the threads.

    Slices of one thread must nest or follow one another. Where two runs at once use lanes of the same name they do
    not, and the lane gets a second track.
    """
    open_ends: dict[str, list[list[int]]] = {lane: [] for lane in lanes}
    places = [
        (each.lane, _place(open_ends[each.lane], _nanoseconds(each.begin, origin), _nanoseconds(each.end, origin)))
        for each in slices
    ]
    numbers: dict[tuple[str, int], int] = {}
    names = []
    for lane in lanes:
        for place in range(len(open_ends[lane])):
            names.append(f"{lane} ({place + 1})" if place else lane)
            numbers[lane, place] = len(names)
    return [numbers[place] for place in places], names


def _place(tracks: list[list[int]], begin: int, end: int) -> int:
    """The first track with room; a track is the ends of its slices that are still open, the innermost last."""
    for place, track in enumerate(tracks):
        while track and track[-1] <= begin:
            track.pop()
        if not track or end <= track[-1]:
            track.append(end)
            return place
    tracks.append([end])
    return len(tracks) - 1


def _slices(slices: Sequence[Slice], tracks: Sequence[int], origin: float) -> Iterator[Row]:
    for each, track in zip(slices, tracks, strict=True):
        begin, end = _nanoseconds(each.begin, origin), _nanoseconds(each.end, origin)
        kind = each.lane.partition(" ")[0]
        yield _row(
            "X", each.name, cat=kind, tid=track, ts=begin / 1000, dur=(end - begin) / 1000, args=strict(each.args)
        )


def _moved(slices: Sequence[Slice], origin: float) -> Iterator[Row]:
    """What the slices moved so far: read from disk, copied to a device."""
    total: dict[str, int] = {}
    for each in sorted((each for each in slices if "bytes" in each.args), key=lambda each: each.end):
        total[each.name] = total.get(each.name, 0) + int(each.args["bytes"])
        yield _counter("bytes moved", each.name, _nanoseconds(each.end, origin), total[each.name])


def _levels(events: Events, origin: float) -> Iterator[Row]:
    for level in events.levels:
        value = strict(level.value)
        if not isinstance(value, str):  # a counter has no place for infinity
            group, _, series = level.name.partition("/")
            yield _counter(group, series or "value", _nanoseconds(level.time, origin), value)


def _counter(name: str, series: str, at: int, value: float) -> Row:
    return _row("C", name, tid=0, ts=at / 1000, args={series: value})


__all__ = ["write_trace"]
