"""Operations of MapReduce from host memory on the GPU, beside the same on all threads of the CPU.

A timeline of one map and one reduce is kept as a trace for chrome://tracing or ui.perfetto.dev: a lane for each stream.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from common import median
from gpu_section import Section, table
from gpu_timeline import busy, lanes

from penstock.mapreduce.functions import chunk, compiled, emit, pairwise
from penstock.mapreduce.session import MapReduce
from penstock.observe.events import recording
from penstock.observe.trace import write_trace


@compiled
def some(key, value, out):
    """None, one or two pairs: what two passes are for."""
    if value > 0.25:
        emit(out, key, value + 1.0)
    if value > 0.75:
        emit(out, key + 1, value)


@compiled
def turned(key, value):
    """One pair of each: nothing to count."""
    return key ^ (key >> 7), value * 0.5


@chunk(parallel=True)
def columns(keys, values):
    """The same by columns."""
    return keys ^ (keys >> 7), values * 0.5


@pairwise
def larger(a, b):
    return a if a > b else b


@compiled
def spread(key, values):
    """Goes through the values of a key in their order."""
    low, high = values[0], values[0]
    for value in values:
        low, high = min(low, value), max(high, value)
    return high - low


STEPS = 8192
"""Of `orbit`, for each pair: a kernel takes about as long as the host takes to bring the next chunk."""


@compiled
def orbit(key, value):
    """The logistic map: much to compute, little to move."""
    x = value
    for _ in range(STEPS):
        x = 3.7 * x * (1.0 - x)
    return key, x


@pairwise
def logadd(a, b):
    """The logarithm of the sum of two numbers that are known by their logarithms."""
    return max(a, b) + math.log1p(math.exp(-abs(a - b)))


def run(section: Section) -> None:
    """Rates by operation; both make the same."""
    random = np.random.default_rng(3)
    count = section.sizes.pairs
    # Skewed as keys are: a tenth of the values are those of one key.
    keys = np.where(random.random(count) < 0.1, 0, random.integers(1, max(2, count // 16), count))
    values = random.random(count)
    limit = section.sizes.pair_limit
    rates: dict[str, Any] = {}
    with (
        MapReduce(memory_limit=limit, device="cpu") as cpu,
        MapReduce(memory_limit=limit, device="gpu", gpu_memory_limit=section.sizes.pair_gpu_limit) as there,
    ):
        pairs = [mr.keyvalue(keys, values) for mr in (cpu, there)]
        groups = [each.convert() for each in pairs]
        works: dict[str, tuple[list[Any], Callable[[Any], Any]]] = {
            "map, two passes": (pairs, lambda data: data.map(some)),
            "map, one pass": (pairs, lambda data: data.map(turned)),
            "map of columns": (pairs, lambda data: data.map(columns)),
            "sort": (pairs, lambda data: data.sort_keys()),
            "group": (pairs, lambda data: data.convert()),
            "reduce, sum": (groups, lambda data: data.reduce("sum")),
            "reduce of two values": (groups, lambda data: data.reduce(larger)),
            "reduce, compiled": (groups, lambda data: data.reduce(spread)),
        }
        for name, (data, work) in works.items():
            found = section.step(name, _both, section, name, data, work)
            rates |= {name: section.figures.pop(name)} if found else {}
            section.keep("operations", rates)
        section.step("overlap", _overlap, section, pairs[1], groups[1])
        section.keep("session", {key: there.stats()["gpu"][key] for key in ("bytes_in", "bytes_out", "why_not_gpu")})
    _show(section)


def _both(section: Section, name: str, data: list[Any], work: Callable[[Any], Any]) -> dict[str, Any]:
    seconds, made = [], []
    data[1].mr.placing.why_not.clear()
    for each in data:
        one, last = _timed(section, each, work)
        seconds.append(one)
        made.append(last)
    _compare(*made)
    placing = data[1].mr.placing
    if placing.why_not:
        raise AssertionError(f"it ran on the CPU: {placing.why_not}")
    rows = section.sizes.pairs
    return {
        "cpu_seconds": seconds[0], "gpu_seconds": seconds[1], "cpu_rows_per_second": rows / seconds[0],
        "gpu_rows_per_second": rows / seconds[1], "times_the_cpu": seconds[0] / seconds[1], "verified": True,
    }  # fmt: skip


def _timed(section: Section, data: Any, work: Callable[[Any], Any]) -> tuple[float, Any]:
    """The median of some runs, after one that compiles."""
    found, made = [], None
    for _ in range(1 + min(2, section.sizes.repeats)):
        if made is not None:
            made.close()
        began = time.perf_counter()
        made = work(data)
        found.append(time.perf_counter() - began)
    return median(found[1:] or found), made


def _compare(one: Any, other: Any) -> None:
    """All of it: the same kinds and the same bits, but for sums, which threads add up in an order of their own."""
    if (len(one), one.key, one.value) != (len(other), other.key, other.value):
        raise AssertionError("the GPU makes other pairs than the CPU")
    (keys, values), (other_keys, other_values) = _whole(one), _whole(other)
    if not np.array_equal(keys, other_keys) or not np.allclose(values, other_values, rtol=1e-9, atol=0):
        raise AssertionError("the GPU makes other pairs than the CPU")


def _whole(data: Any) -> tuple[np.ndarray, np.ndarray]:
    """All pairs: chunks may be cut elsewhere."""
    chunks = [each.pairs() for each in data.groups()] if hasattr(data, "groups") else list(data.chunks())
    return np.concatenate([each.keys for each in chunks]), np.concatenate([each.values for each in chunks])


def _overlap(section: Section, pairs: Any, groups: Any) -> dict[str, Any]:
    """How much of the time in which any stream was busy several were; the trace lies beside the results."""
    found: dict[str, Any] = {}
    if section.tiny:  # compiled functions take it as it is when they are compiled
        globals()["STEPS"] = 4
    for _ in range(2):  # the first time compiles
        with recording() as events:
            pairs.map(orbit).close()
            between = time.perf_counter()
            groups.reduce(logadd).close()
    found |= {"map": busy(lanes(events, end=between)), "reduce": busy(lanes(events, between))}
    path = section.beside("gpu-mapreduce-trace.json")
    write_trace(path, events, {"benchmark": "map and reduce on a GPU", "pairs": section.sizes.pairs})
    return found | {"trace": Path(path).name, "slices": len(lanes(events))}


def _show(section: Section) -> None:
    rows = [
        (name, f"{one['cpu_rows_per_second'] / 1e6:.1f}", f"{one['gpu_rows_per_second'] / 1e6:.1f}",
         f"{one['times_the_cpu']:.2f}")
        for name, one in section.figures.get("operations", {}).items()
    ]  # fmt: skip
    if rows:
        title = f"{section.sizes.pairs:,} pairs of 16 bytes, from host memory to host memory"
        table(title, ("", "CPU, M rows/s", "GPU, M rows/s", "times the CPU"), rows)
    if "overlap" in section.figures:
        shares = [(name, f"{section.figures['overlap'][name]['share']:.2f}") for name in ("map", "reduce")]
        table("Of the time in which a stream was busy, several were", ("", "share"), shares)
