"""Every operation, on every kind of data, in memory and with all of it spilled at every step: the same as on lists."""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.mapreduce import KeyMultiValue, KeyValue, MapReduce, chunk

from . import oracle
from .oracle import Pairs, order

PLACES: dict[str, dict[str, Any]] = {
    "in memory": {"memory_limit": "64MB"},
    "spilled": {"memory_limit": "1MiB", "chunk_size": 512, "force_out_of_core": True},
}
numbers = st.integers(-(1 << 63), (1 << 63) - 1)
texts = st.text(max_size=6) | st.sampled_from(["", "\0", "a\0", "a\0b", "\udcff", "\udcff\0"])
raw = st.binary(max_size=6) | st.sampled_from([b"", b"\0", b"\xff\xfe", b"\0\xff" * 9])


long = st.builds(str.__mul__, st.sampled_from("x\0\u00e9"), st.integers(0, 5000))
seeds = st.integers(0, 99)


def pairs(keys: Any, values: Any, **sizes: Any) -> Any:
    return st.lists(st.tuples(keys, values), **sizes)


def equal(seed: int) -> Pairs:
    return [(-7, seed * k % 11) for k in range(300)]


def skewed(seed: int) -> Pairs:
    return [(int(k), float(k % 5)) for k in np.random.default_rng(seed).zipf(1.4, 400) % 97]


KINDS: dict[str, tuple[Any, Any, Any]] = {
    "empty": ("string", "int64", st.just([])),
    "one key": ("int64", "int64", pairs(numbers, numbers, min_size=1, max_size=1)),
    "all equal": ("int64", "int64", st.builds(equal, seeds)),
    "skewed": ("int64", "float64", st.builds(skewed, seeds)),
    "long values": ("int64", "string", pairs(st.integers(0, 3), long, max_size=12)),
    "text": ("string", "string", pairs(texts, texts, max_size=60)),
    "bytes": ("bytes", "int64", pairs(raw, st.integers(-3, 3), max_size=60)),
    "no values": ("bytes", None, pairs(raw, st.none(), max_size=60)),
}


@pytest.fixture(scope="module", params=PLACES)
def mr(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[MapReduce]:
    folder = tmp_path_factory.mktemp("spill")
    with MapReduce(threads=2, temp_directory=folder, **PLACES[request.param]) as made:
        yield made
        assert made.budget.peak <= made.budget.limit
        assert made.room.used == made.spill.used == 0
        assert bool(made.spill.written) == (request.param == "spilled")
    assert list(folder.iterdir()) == []


def listed(found: KeyValue | KeyMultiValue) -> list[Any]:
    """Pairs or groups as lists; gone from the session."""
    with found:
        if isinstance(found, KeyValue):
            return list(found)
        return [(key, list(values)) for key, values in found]


def apart(some: list[Any]) -> list[Any]:
    """In an order that does not depend on how they came."""
    return sorted(some, key=repr)


def bulky(key: Any, value: Any) -> Pairs:
    return [(value is not None, len(repr(key)))] * (len(repr(key)) % 3)


def short(key: Any, value: Any) -> bool:
    return len(repr(key)) % 2 == 0


def third(keys: Any) -> np.ndarray:
    return np.array([len(repr(key)) for key in (keys.tolist() if isinstance(keys, np.ndarray) else keys)], np.int64)


def backwards(one: Any, other: Any) -> int:
    """The order of the last byte only: most keys are equal by it."""
    a, b = (str(order(each))[-2:] for each in (one, other))
    return (a < b) - (a > b)


@chunk(key="int64", value="int64")
def sizes(keys: Any, offsets: np.ndarray, values: Any) -> tuple[np.ndarray, np.ndarray]:
    return np.arange(len(keys)), np.diff(offsets)


def told(key: Any, values: Any) -> tuple[Any, str]:
    return key, repr(values.tolist() if isinstance(values, np.ndarray) else list(values))


def visited(kv: KeyValue) -> Pairs:
    seen: Pairs = []
    kv.scan(lambda key, value: seen.append((key, value)))
    return seen


def saved(kv: KeyValue, folder: Path) -> KeyValue:
    kv.save(folder / "saved", overwrite=True, note={"step": 3})
    found = kv.mr.load(folder / "saved")
    assert found.note == {"step": 3}
    assert (found.key, found.value, found.order) == (kv.key, kv.value, kv.order)
    assert isinstance(found, KeyValue)
    return found


def printed(kv: KeyValue) -> int:
    sink = io.StringIO()
    assert kv.print(sink, stride=2, key=repr, value=False) == len(sink.getvalue().splitlines())
    return len(sink.getvalue().splitlines())


def grouped(kv: KeyValue) -> list[Any]:
    return apart(listed(kv.convert()))


def of_groups(kv: KeyValue, f: Callable[[KeyMultiValue], KeyValue | KeyMultiValue]) -> list[Any]:
    with kv.collate() as groups:
        return apart(listed(f(groups)))


def in_parts(kv: KeyValue, splitter: Any) -> list[Pairs]:
    return [listed(part) for part in kv.partition(3, splitter)]


Make = Callable[[KeyValue, Path], Any]
Right = Callable[[Pairs], Any]
OPERATIONS: dict[str, tuple[Make, Right]] = {
    "records": (lambda kv, _: listed(kv.copy()), list),
    "map": (lambda kv, _: listed(kv.map(bulky)), lambda some: oracle.mapped(some, bulky)),
    "map of columns": (
        lambda kv, _: listed(kv.map(lambda keys, values: (values, keys))),
        lambda some: [(value, key) for key, value in some],
    ),
    "filter": (lambda kv, _: listed(kv.filter(short)), lambda some: oracle.filtered(some, short)),
    "add": (lambda kv, _: listed(kv.add(kv, kv)), lambda some: 3 * some),
    "scan": (lambda kv, _: visited(kv), list),
    "print": (lambda kv, _: printed(kv), lambda some: -(-len(some) // 2)),
    "save, load": (lambda kv, folder: listed(saved(kv, folder)), list),
    "sort keys": (lambda kv, _: listed(kv.sort_keys()), oracle.sort_keys),
    "sort keys, descending": (lambda kv, _: listed(kv.sort_keys(True)), lambda some: oracle.sort_keys(some, True)),
    "sort, then turn": (
        lambda kv, _: listed(kv.sort_keys().sort_keys(True)),
        lambda some: oracle.sort_keys(some, True),
    ),
    "sort keys by a function": (
        lambda kv, _: listed(kv.sort_keys(compare=backwards)),
        lambda some: oracle.sort_keys_by(some, backwards),
    ),
    "sort values": (
        lambda kv, _: listed(kv.sort_values()),
        lambda some: some if all(value is None for _, value in some) else oracle.sort_values(some),
    ),
    "convert": (lambda kv, _: grouped(kv), lambda some: apart(oracle.convert(some))),
    "convert what is sorted": (
        lambda kv, _: listed(kv.sort_keys().convert()),
        lambda some: oracle.convert(oracle.sort_keys(some)),
    ),
    "groups as pairs": (
        lambda kv, _: of_groups(kv, lambda groups: groups.pairs()),
        apart,
    ),
    "reduce, counting": (
        lambda kv, _: of_groups(kv, lambda groups: groups.reduce("count")),
        lambda some: apart(oracle.reduced(oracle.convert(some), len)),
    ),
    "reduce, the last": (
        lambda kv, _: of_groups(kv, lambda groups: groups.reduce("last")),
        lambda some: apart(oracle.reduced(oracle.convert(some), lambda values: values[-1])),
    ),
    "reduce by a function": (
        lambda kv, _: of_groups(kv, lambda groups: groups.reduce(told)),
        lambda some: apart(oracle.reduced(oracle.convert(some), repr)),
    ),
    "reduce of columns": (
        lambda kv, _: sum(count for _, count in of_groups(kv, lambda groups: groups.reduce(sizes))),
        len,
    ),
    "compress": (
        lambda kv, _: apart(listed(kv.compress("count").collate().reduce("sum"))),
        lambda some: apart(oracle.reduced(oracle.convert(some), len)),
    ),
    "map with a combiner": (
        lambda kv, _: apart(
            listed(kv.map(lambda key, value: (key, 2), combine="sum").collate().reduce("sum"))
        ),
        lambda some: apart(oracle.reduced(oracle.convert(some), lambda values: 2 * len(values))),
    ),
    "sort multivalues": (
        lambda kv, _: of_groups(kv, lambda groups: groups.sort_multivalues(True)),
        lambda some: apart(
            oracle.convert(some)
            if all(value is None for _, value in some)
            else oracle.sort_multivalues(oracle.convert(some), True)
        ),
    ),
    "clone": (lambda kv, _: listed(kv.clone()), oracle.clone),
    "collapse": (
        lambda kv, _: listed(kv.map(lambda keys, values: (keys, keys)).collapse("all")),
        lambda some: oracle.collapse([(key, key) for key, _ in some], "all"),
    ),
    "gather, broadcast": (lambda kv, _: listed(kv.gather().broadcast()), list),
    "parts by a function": (
        lambda kv, _: in_parts(kv, third),
        lambda some: oracle.parts(some, lambda key: len(repr(key)), 3),
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", OPERATIONS)
@given(data=st.data())
@settings(max_examples=3, deadline=None)
def test_same_as_on_lists(
    mr: MapReduce, name: str, kind: str, data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    key, value, strategy = KINDS[kind]
    some: Pairs = data.draw(strategy)
    make, right = OPERATIONS[name]
    columns = [key for key, _ in some], None if value is None else [value for _, value in some]
    with mr.keyvalue(*columns, key=key, value=value) as kv:
        assert make(kv, tmp_path_factory.getbasetemp()) == right(some)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("splitter", ["range", "hash", "lpt"])
@given(data=st.data())
@settings(max_examples=3, deadline=None)
def test_parts_hold_every_pair_once_and_every_key_whole(
    mr: MapReduce, splitter: str, kind: str, data: st.DataObject
) -> None:
    key, value, strategy = KINDS[kind]
    some: Pairs = data.draw(strategy)
    columns = [key for key, _ in some], None if value is None else [value for _, value in some]
    with mr.keyvalue(*columns, key=key, value=value) as kv:
        found = in_parts(kv, splitter)
        keys = [{key for key, _ in part} for part in found]
        assert Counter(repr(pair) for part in found for pair in part) == Counter(map(repr, some))
        assert sum(map(len, keys)) == len(set().union(*keys))
        for part in found:
            assert part == [pair for pair in some if pair[0] in {key for key, _ in part}]
