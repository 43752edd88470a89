"""The same operations of MapReduce on the CPU and on a GPU, real or simulated, on the same pairs make the same."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from penstock.mapreduce.functions import chunk, compiled, emit, pairwise
from penstock.mapreduce.session import MapReduce

Pairs = tuple[np.ndarray, np.ndarray | None]


@dataclass(frozen=True)
class Size:
    """How many pairs, in chunks of how many bytes, and how little of a device they pass through."""

    rows: int
    chunk: int
    sort_limit: int
    limit: int
    plenty: int
    burst: int


@compiled
def several(key, value, out):
    for k in range(value % 3):
        emit(out, key + k, value * 0.5)


@compiled
def many(key, value, out):
    for k in range(40 + value):
        emit(out, value, np.float32(k))


@compiled
def turned(key, value):
    return value, key


@compiled
def keys_only(key, value, out):
    if value > 5:
        emit(out, key, None)


@compiled
def never(key, value, out):
    if value < 0:
        emit(out, key, value)


@chunk
def columns(keys, values):
    return keys[values > 3] * 2, values[values > 3].astype(np.float32)


@compiled
def spread(key, values):
    low, high = values[0], values[0]
    for value in values:
        low, high = min(low, value), max(high, value)
    return high - low


@compiled
def large(key, values, out):
    for value in values:
        if value > 5:
            emit(out, key, value)


@pairwise
def larger(a, b):
    return a if a > b else b


@contextmanager
def sessions(size: Size, gpu_limit: int, chunk_size: int | None = None) -> Iterator[tuple[MapReduce, MapReduce]]:
    """(on the GPU, on the CPU)."""
    known: dict[str, Any] = {"memory_limit": "64MB", "threads": 2, "chunk_size": chunk_size or size.chunk}
    with (
        MapReduce(**known, device="gpu", gpu_memory_limit=gpu_limit) as there,
        MapReduce(**known, device="cpu") as here,
    ):
        yield there, here
        assert there.placing.stats().get("memory_peak", 0) <= gpu_limit


def whole(data: Any) -> tuple[list[Any], list[Any]]:
    """Keys and values, wherever chunks were cut; values of nothing as None."""
    chunks = [each.pairs() for each in data.groups()] if hasattr(data, "groups") else list(data.chunks())
    return [key for each in chunks for key in each.keys.tolist()], [
        value
        for each in chunks
        for value in (each.values.tolist() if each.values.dtype.itemsize else [None] * len(each))
    ]


def compare(there: Any, here: Any, about: str, *, close: bool = False) -> None:
    assert (there.key, there.value, there.order) == (here.key, here.value, here.order), about
    (keys, values), (other_keys, other_values) = whole(there), whole(here)
    np.testing.assert_array_equal(keys, other_keys, about)
    if close:
        np.testing.assert_allclose(np.array(values, np.float64), np.array(other_values, np.float64), 1e-9, 0)
    else:
        np.testing.assert_array_equal(values, other_values, about)


def shapes(rows: int, seed: int) -> dict[str, Pairs]:
    """Pairs that are hard in some way."""
    random = np.random.default_rng(seed)
    numbers, values = random.integers(-40, 40, rows), random.integers(0, 12, rows)
    strange = random.normal(size=rows).astype(np.float32)
    strange[random.random(rows) < 0.2] = np.nan
    strange[random.random(rows) < 0.2] = -0.0
    return {
        "random": (random.integers(0, 1 << 63, rows, dtype=np.uint64) * np.uint64(2), values),
        "skewed": (np.where(random.random(rows) < 0.6, 7, numbers), values),
        "one key": (np.full(rows, 3), values.astype(np.uint8)),
        "floats": (strange, values.astype(np.float64)),
        "narrow": (numbers.astype(np.int16), random.normal(size=rows)),
        "no values": (numbers, None),
        "few": (numbers[:1], values[:1]),
        "none": (numbers[:0], values[:0]),
    }


def each_way(size: Size, do: Callable[[Any], Any], names: tuple[str, ...], limits: tuple[int, ...], seed: int) -> None:
    """One operation on pairs of these shapes, on both."""
    for limit in limits:
        with sessions(size, limit) as both:
            for name in names:
                pairs = shapes(size.rows, seed)[name]
                there, here = (do(mr.keyvalue(*pairs)) for mr in both)
                compare(there, here, f"{name}, {limit} bytes")


def sorts(size: Size, seed: int = 1) -> None:
    every = tuple(shapes(1, 0))
    limits = (size.sort_limit, size.plenty)
    each_way(size, lambda kv: kv.sort_keys(), every, limits, seed)
    each_way(size, lambda kv: kv.sort_keys(descending=True), ("skewed", "narrow"), limits[:1], seed)
    each_way(size, lambda kv: kv.sort_values(), ("random", "floats", "no values"), limits[:1], seed)


def groups(size: Size, seed: int = 2) -> None:
    every = tuple(shapes(1, 0))
    each_way(size, lambda kv: kv.convert(), every, (size.sort_limit, size.plenty), seed)


def maps(size: Size, seed: int = 3) -> None:
    pairs = shapes(size.rows, seed)["skewed"]
    for limit in (size.limit, size.plenty):
        with sessions(size, limit) as (there, here):
            for function in (several, turned, keys_only, never, columns):
                compare(there.keyvalue(*pairs).map(function), here.keyvalue(*pairs).map(function), function.__name__)
                assert there.placing.why_not == {}
            if limit == size.limit:
                some = tuple(column[: size.rows // 4] for column in pairs)
                # One row makes more than a lane of a small device holds.
                some[1][size.rows // 8] = size.burst
                compare(there.keyvalue(*some).map(many), here.keyvalue(*some).map(many), "many")
            none = (np.empty(0, np.int64), np.empty(0, np.int64))
            compare(there.keyvalue(*none).map(several), here.keyvalue(*none).map(several), "none")


def reduces(size: Size, seed: int = 4) -> None:
    for limit, name, functions in ((size.limit, "skewed", (spread, large)), (size.plenty, "floats", (larger,))):
        pairs = shapes(size.rows, seed)[name]
        with sessions(size, limit) as both:
            there, here = (mr.keyvalue(*pairs).convert() for mr in both)
            for function in ("sum", "min", "max", "mean", "any", "all", *functions):
                about = function if isinstance(function, str) else function.__name__
                compare(there.reduce(function), here.reduce(function), about, close=True)
                assert both[0].placing.why_not == {}
            for assign in ("thread", "warp", "block"):
                for function in ("max", larger) if larger in functions else ("max",):
                    compare(there.reduce(function, assign=assign), here.reduce(function), assign)
            assert both[0].stats()["gpu"]["launches"].keys() == {"thread", "warp", "block"}


def refusals(size: Size) -> None:
    """What stays on the CPU says why, and is right."""
    with sessions(size, size.plenty) as (there, here):
        for do, operation, why in (
            (lambda mr: mr.keyvalue(["b", "a"], [1, 2]).sort_keys(), "sort_keys", "no fixed width"),
            (lambda mr: mr.keyvalue(["b", "a"], [1, 2]).convert(), "convert", "no fixed width"),
            (lambda mr: mr.keyvalue([2, 1], [1, 2]).sort_keys(compare=lambda a, b: a - b), "sort_keys", "comparator"),
            (lambda mr: mr.keyvalue([1, 2], [3, 4]).map(lambda key, value: (key, value)), "map", "plain Python"),
            (lambda mr: mr.keyvalue([1, 2], [3 + 1j, 4]).map(turned), "map", "complex128"),
            (lambda mr: mr.keyvalue([1, 1], [3, 4]).convert().reduce("count"), "reduce", "read off"),
            (lambda mr: mr.keyvalue(["a"], ["b"]).convert().reduce("min"), "reduce", "no fixed width"),
        ):  # fmt: skip
            one, other = do(there), do(here)
            assert list(map(str, one)) == list(map(str, other))
            assert why in there.stats()["gpu"]["why_not_gpu"][operation]


__all__ = ["Size", "groups", "maps", "reduces", "refusals", "sessions", "sorts"]
