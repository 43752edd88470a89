"""Map, filter and scan against plain Python, in memory and with every chunk on disk."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from penstock.errors import ProgramError, UsageError
from penstock.mapreduce.columns import NOTHING, Bytes
from penstock.mapreduce.functions import chunk, compiled, emit
from penstock.mapreduce.session import MapReduce

PLACES = {"memory": {"memory_limit": "256MB"}, "disk": {"memory_limit": "2MB", "force_out_of_core": True}}


@pytest.fixture(scope="module", params=PLACES)
def mr(request: pytest.FixtureRequest) -> Iterator[MapReduce]:
    with MapReduce(threads=2, chunk_size="4KiB" if request.param == "disk" else None, **PLACES[request.param]) as made:
        yield made


checked = settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
NUMBERS = st.lists(st.tuples(st.integers(-50, 50), st.integers(-5, 9)), max_size=300)
TEXT = st.lists(st.tuples(st.binary(max_size=12), st.text(max_size=5)), max_size=100)


def numbers(mr: MapReduce, pairs: list) -> object:
    return mr.keyvalue([k for k, _ in pairs], [v for _, v in pairs], key="int64", value="int64")


def repeated(key, value, out):
    for k in range(value):
        emit(out, key + k, value * 0.5)


def swapped(key, value):
    return value, key


def is_even(key, value):
    return (key + value) % 2 == 0


@checked
@given(NUMBERS)
def test_compiled_with_emit(mr: MapReduce, pairs: list) -> None:
    found = list(numbers(mr, pairs).map(repeated))
    assert found == [(k + i, v * 0.5) for k, v in pairs for i in range(v)]


@checked
@given(NUMBERS)
def test_compiled_for_one(mr: MapReduce, pairs: list) -> None:
    assert list(numbers(mr, pairs).map(swapped, kind="compiled")) == [(v, k) for k, v in pairs]


@checked
@given(NUMBERS)
def test_filter(mr: MapReduce, pairs: list) -> None:
    kv, wanted = numbers(mr, pairs), [(k, v) for k, v in pairs if (k + v) % 2 == 0]
    assert list(kv.filter(is_even, kind="compiled")) == wanted
    assert list(kv.filter(is_even)) == wanted
    assert list(kv.filter(lambda keys, values: (keys + values) % 2 == 0)) == wanted


@checked
@given(TEXT)
def test_plain_python(mr: MapReduce, pairs: list) -> None:
    kv = mr.keyvalue([k for k, _ in pairs], [v for _, v in pairs], key="bytes", value="string")
    assert list(kv.map(lambda k, v: (v, k))) == [(v, k) for k, v in pairs]

    def split(key, value):
        for each in value:
            yield each, len(key)

    assert list(kv.map(split)) == [(each, len(k)) for k, v in pairs for each in v]

    def emitting(key, value, emit):
        if value:
            emit(value, key)

    assert list(kv.map(emitting)) == [(v, k) for k, v in pairs if v]


def test_more_than_a_thread_and_a_chunk_of_them(mr: MapReduce) -> None:
    n = 60_000
    kv = mr.keyvalue(np.arange(n), np.arange(n) % 4)
    want_keys = [k + i for k in range(n) for i in range(k % 4)]
    made = kv.map(repeated)
    assert np.concatenate([chunk.keys for chunk in made.chunks()]).tolist() == want_keys
    rows = [chunk.keys for chunk in kv.map(swapped, kind="compiled").chunks()]
    assert np.array_equal(np.concatenate(rows), np.arange(n) % 4)
    parallel = chunk(lambda keys, values: (values, keys), parallel=True)
    rows = [each.values for each in kv.map(parallel).chunks()]
    assert np.array_equal(np.concatenate(rows), np.arange(n))


def test_one_row_that_makes_more_than_a_chunk(mr: MapReduce) -> None:
    kv = mr.keyvalue([7, 8], [20_000, 3])
    assert [k for k, _ in kv.map(repeated)] == [7 + i for i in range(20_000)] + [8, 9, 10]


def test_of_nothing_comes_nothing(mr: MapReduce) -> None:
    kv = mr.keyvalue(key="int64", value="float64")
    for f, kind in ((repeated, "auto"), (swapped, "compiled"), (swapped, "auto"), (lambda keys, values: None, "auto")):
        made = kv.map(f, kind)
        assert (len(made), made.key, made.value) == (0, "int64", "float64")
    assert len(kv.filter(is_even)) == 0


def test_nothing_as_a_value(mr: MapReduce) -> None:
    def keys_only(key, value, out):
        emit(out, key, None)

    made = mr.keyvalue([1, 2], [3, 4]).map(keys_only)
    assert made.value == NOTHING
    assert list(made) == [(1, None), (2, None)]
    assert list(made.map(lambda k, v: (k, v is None))) == [(1, True), (2, True)]

    def number(key, value, out):
        emit(out, key, 1)

    assert list(made.map(number)) == [(1, 1), (2, 1)]


def test_structs_pass_through(mr: MapReduce) -> None:
    kind = np.dtype([("a", "i8"), ("b", "f8")])
    kv = mr.keyvalue([1, 2], np.array([(1, 0.5), (2, 1.5)], kind))

    def keep(key, value, out):
        if value.a > 1:
            emit(out, key, value)

    assert list(kv.map(keep)) == [(2, (2, 1.5))]


def test_kinds_that_change_are_refused_or_declared(mr: MapReduce) -> None:
    def changing(key, value, out):
        if key < 5000:
            emit(out, key, 1)
        else:
            emit(out, key, 0.5)

    kv = mr.keyvalue(np.arange(3), np.zeros(3, np.int64)).add(mr.keyvalue(np.arange(5000, 5003), np.zeros(3, np.int64)))
    with pytest.raises(ProgramError, match=r"changing .*declare them with @compiled\(value=...\)"):
        kv.map(changing)
    assert [v for _, v in kv.map(compiled(changing, value="float64"))] == [1, 1, 1, 0.5, 0.5, 0.5]


def test_a_function_that_differs_the_second_time(mr: MapReduce) -> None:
    count = np.zeros(1, np.int64)

    def fickle(key, value, out):
        value[0] += 1
        for _ in range(value[0]):
            emit(out, key, 1)

    kmv = mr.keyvalue([1], count).clone()
    with pytest.raises(ProgramError, match=r"fickle .*must do the same both times"):
        kmv.reduce(fickle)


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (lambda keys, values: keys, "returns \\(keys, values\\), not ndarray"),
        (lambda keys, values: (keys, values[:1]), "does not go with"),
        (lambda key, value: 5, "is no pair"),
        (lambda key, value: (key, object()), "differ in kind|Python objects"),
    ],
)
def test_wrong_results_name_the_function(mr: MapReduce, function, words: str) -> None:
    with pytest.raises(ProgramError, match=rf"<lambda> \(.*test_mapping.py:\d+\): .*({words})"):
        mr.keyvalue([1, 2], [3, 4]).map(function)


def test_a_mask_must_fit(mr: MapReduce) -> None:
    with pytest.raises(ProgramError, match="returns 2 booleans"):
        mr.keyvalue([1, 2], [3, 4]).filter(lambda keys, values: keys)


def test_errors_of_the_user_pass(mr: MapReduce) -> None:
    with pytest.raises(ZeroDivisionError):
        mr.keyvalue([1, 2], [3, 4]).map(lambda k, v: (k, 1 // 0))


def test_scan_sees_everything_in_order(mr: MapReduce) -> None:
    kv = mr.keyvalue(["a", "b"], [1, 2])
    seen: list = []
    kv.scan(lambda k, v: seen.append((k, v)))
    assert seen == [("a", 1), ("b", 2)]
    kv.scan(lambda keys, values: seen.extend(keys.to_list()))
    assert seen[2:] == ["a", "b"]


def test_tasks(mr: MapReduce) -> None:
    assert list(mr.map_tasks(4, lambda number: (number, number * number))) == [(0, 0), (1, 1), (2, 4), (3, 9)]
    assert list(mr.map_tasks(2, lambda number, emit: emit("task", number))) == [("task", 0), ("task", 1)]
    assert len(mr.map_tasks(0, lambda number: (number, 1))) == 0

    def task(number, out):
        for k in range(number):
            emit(out, k, number)

    assert list(mr.map_tasks(3, task)) == [(0, 1), (0, 2), (1, 2)]
    columns = chunk(lambda number: (np.full(2, number), Bytes.of(["x", "y"])), parallel=True)
    assert list(mr.map_tasks(3, columns)) == [(k, t) for k in range(3) for t in "xy"]
    with pytest.raises(UsageError, match="-1 tasks"):
        mr.map_tasks(-1, task)


def test_combine_on_the_way(mr: MapReduce) -> None:
    kv = mr.keyvalue(np.arange(10_000), np.ones(10_000, np.int64))

    def parity(key, value, out):
        emit(out, key % 3, value)

    assert sorted(kv.map(parity, combine="sum")) == [(0, 3334), (1, 3333), (2, 3333)]
    words = kv.map(lambda k, v: ("even" if k % 2 == 0 else "odd", 1), combine="count")
    assert sorted(words) == [("even", 5000), ("odd", 5000)]
