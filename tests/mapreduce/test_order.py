"""Sorting: the same as Python's, stable, for every kind of column, in core and out of core."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.errors import DiskFull, UsageError
from penstock.mapreduce.columns import NOTHING, Bytes, as_column, to_list
from penstock.mapreduce.permutation import order_of, pack, repeats, words
from penstock.mapreduce.samples import Sorter
from penstock.mapreduce.session import MapReduce

STRUCT = np.dtype([("a", "i4"), ("b", "f8", (2,)), ("c", "u1")])


def nothing_left(mr: MapReduce) -> bool:
    """Whether all chunks are gone from memory and disk, once the room has heard of it."""
    return mr.room.used == 0 and mr.spill.used == 0


@pytest.fixture(scope="module", params=["in core", "out of core"])
def mr(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[MapReduce]:
    forced = request.param == "out of core"
    with MapReduce(
        memory_limit="1MiB" if forced else "64MB",
        chunk_size=4096 if forced else None,
        threads=2,
        temp_directory=tmp_path_factory.mktemp("spill"),
        force_out_of_core=forced,
    ) as made:
        yield made
        assert nothing_left(made)


def by_number(row: Any) -> tuple[bool, float]:
    """What is no number comes last."""
    return (row != row, 0 if row != row else row)


floats = st.floats() | st.sampled_from([0.0, -0.0, np.nan, np.inf, -np.inf])
rows = {
    "int": st.lists(st.integers(-(1 << 63), (1 << 63) - 1) | st.integers(0, 3)),
    "float": st.lists(floats),
    "bytes": st.lists(st.binary(max_size=30) | st.sampled_from([b"", b"\0", b"\0\0", b"a" * 8, b"a" * 8 + b"\0"])),
    "text": st.lists(st.text(max_size=12)),
}


@pytest.mark.parametrize("kind", rows)
@given(st.data())
@settings(max_examples=40, deadline=None)
def test_order_of_is_that_of_python(kind: str, data: st.DataObject) -> None:
    values = data.draw(rows[kind])
    kinds = {"int": "int64", "float": "float64", "bytes": "bytes", "text": "string"}
    column = as_column(values, None, kinds[kind])
    key = {"float": by_number, "text": lambda row: row.encode()}.get(kind, lambda row: row)
    for descending in (False, True):
        expected = sorted(range(len(values)), key=lambda k: key(values[k]), reverse=descending)
        assert order_of(column, 2, descending=descending).tolist() == expected


def test_long_rows_that_begin_alike() -> None:
    random = np.random.default_rng(0)
    values = [b"the same for more than forty bytes of every row/"[: 8 * int(k)] for k in random.integers(0, 7, 3000)]
    values = [row + random.integers(0, 2, int(random.integers(0, 4)), np.uint8).tobytes() for row in values]
    column = Bytes.of(values)
    for descending in (False, True):
        expected = sorted(range(len(values)), key=values.__getitem__, reverse=descending)
        assert order_of(column, 2, descending=descending).tolist() == expected


def structs(count: int, wide: bool) -> np.ndarray:
    random = np.random.default_rng(count)
    made = np.zeros(count, STRUCT)
    made["a"] = random.integers(-2, 3, count)
    made["b"] = random.normal(size=(count, 2)) if wide else random.integers(0, 2, (count, 2))
    made["c"] = random.integers(0, 3, count)
    return made


@pytest.mark.parametrize("wide", [False, True])
def test_structs_field_by_field(wide: bool) -> None:
    column = structs(500, wide)
    plain = [(int(row["a"]), *row["b"].tolist(), int(row["c"])) for row in column]
    for descending in (False, True):
        expected = sorted(range(len(plain)), key=plain.__getitem__, reverse=descending)
        assert order_of(column, 2, descending=descending).tolist() == expected


@pytest.mark.parametrize("dtype", ["bool", "i1", "u2", "f4", "g", "c16", "M8[s]", "V12"])
def test_other_kinds(dtype: str) -> None:
    kind = np.dtype(dtype)
    random = np.random.default_rng(1)
    if kind.kind == "V":
        column = random.integers(0, 2, (300, 12), np.uint8).view(kind).reshape(-1)
        plain: list[Any] = [row.tobytes() for row in column]
    else:
        numbers = random.integers(0, 2 if dtype == "bool" else 60, 300)
        column = numbers.astype(np.float64 if kind.kind in "fc" else np.int64).astype(kind)
        if kind.kind == "c":
            column += 1j * random.integers(0, 3, 300)
        if kind.kind == "g":
            column += np.longdouble(1e-19) * random.integers(0, 3, 300)
        plain = [(row.real, row.imag) if kind.kind == "c" else row for row in column]
    expected = sorted(range(len(plain)), key=plain.__getitem__)
    assert order_of(column, 2).tolist() == expected
    assert repeats(column, order_of(column, 2)).sum() == len(plain) - len(set(plain))


def test_words_of_few_bits_are_packed() -> None:
    assert len(words(structs(9, False))) == 4
    small = np.zeros(9, [("a", "i4"), ("b", "u2"), ("c", "i1")])
    assert len(pack(words(small))) == 1


def pairs_of(kv: Any) -> list[tuple[Any, Any]]:
    return [(key, value) for chunk in kv.chunks() for key, value in zip(*map(to_list, chunk.columns), strict=True)]


def keys_of(kind: str, count: int) -> list[Any]:
    random = np.random.default_rng(count)
    if kind == "one":
        return [7] * count
    if kind == "skewed":
        return np.where(random.random(count) < 0.7, 5, random.integers(0, count, count)).tolist()
    if kind == "float":
        return random.normal(size=count).tolist()
    if kind == "text":
        return [f"https://example.org/{k}" + "é" * (k % 5) for k in random.integers(0, count, count).tolist()]
    if kind == "bytes":
        return [bytes(random.integers(0, 3, int(k), np.uint8)) for k in random.integers(0, 12, count)]
    return random.integers(-(1 << 40), 1 << 40, count).tolist()


@pytest.mark.parametrize("kind", ["int", "one", "skewed", "float", "text", "bytes"])
@pytest.mark.parametrize("count", [0, 1, 6000])
def test_sort_keys_and_values(mr: MapReduce, kind: str, count: int) -> None:
    keys, at = keys_of(kind, count), list(range(count))
    kinds = {"float": "float64", "text": "string", "bytes": "bytes"}
    for descending in (False, True):
        expected = sorted(zip(keys, at, strict=True), key=lambda pair: pair[0], reverse=descending)
        kv = mr.keyvalue(keys, at, key=kinds.get(kind, "int64"), value="int64")
        with kv, kv.sort_keys(descending) as found:
            assert pairs_of(found) == expected
            assert found.order == ("keys descending" if descending else "keys")
        kv = mr.keyvalue(at, keys, key="int64", value=kinds.get(kind, "int64"))
        with kv, kv.sort_values(descending) as found:
            assert pairs_of(found) == [(value, key) for key, value in expected]


def test_values_of_any_length_go_with_their_keys(mr: MapReduce) -> None:
    random = np.random.default_rng(3)
    keys = random.integers(0, 100, 800).tolist()
    values = ["x" * int(k) for k in random.integers(0, 400, 800)]
    values[400] = "y" * 9000  # more than a chunk
    with mr.keyvalue(keys, values) as kv, kv.sort_keys() as found:
        assert pairs_of(found) == sorted(zip(keys, values, strict=True), key=lambda pair: pair[0])


def test_structs_and_empty_values_in_chunks(mr: MapReduce) -> None:
    column = structs(3000, True)
    with mr.keyvalue(column) as kv, kv.sort_keys() as found:
        assert found.value == NOTHING
        expected = np.concatenate([chunk.keys.copy() for chunk in kv.chunks()])
        expected = expected[order_of(expected, 1)]
        assert (np.concatenate([chunk.keys.copy() for chunk in found.chunks()]) == expected).all()


@pytest.mark.parametrize("descending", [False, True])
def test_a_comparator_of_the_user(mr: MapReduce, descending: bool) -> None:
    keys, at = keys_of("text", 1500), list(range(1500))

    def by_length(one: str, other: str) -> int:
        return len(one) - len(other)

    with mr.keyvalue(keys, at) as kv, kv.sort_keys(descending, compare=by_length) as found:
        expected = sorted(zip(keys, at, strict=True), key=lambda pair: len(pair[0]), reverse=descending)
        assert pairs_of(found) == expected
        assert found.order is None
    with mr.keyvalue([1]) as kv, pytest.raises(UsageError, match="compare is a function"):
        kv.sort_keys(compare=3)


@settings(max_examples=30, deadline=None)
@given(keys=st.lists(st.integers(0, 6), max_size=60), size=st.integers(1, 9), descending=st.booleans())
def test_what_is_sorted_is_turned_round(keys: list[int], size: int, descending: bool) -> None:
    """Also where a key lies in several chunks; equal keys stay in input order both ways."""
    with MapReduce(memory_limit="1MiB", chunk_size=16 * size, threads=1) as mr:
        kv = mr.keyvalue(keys, list(range(len(keys))), key="int64", value="int64")
        there = kv.sort_keys(descending)
        back = there.sort_keys(not descending)
        expected = sorted(zip(keys, range(len(keys)), strict=True), key=lambda pair: pair[0], reverse=not descending)
        assert pairs_of(back) == expected
        assert mr.stats()["skipped"]["sort_keys"] == 1


def test_what_is_sorted_already_is_left_alone(mr: MapReduce) -> None:
    with mr.keyvalue([3, 1, 2], [1, 2, 3]) as kv, kv.sort_keys() as once:
        with once.sort_keys() as twice:
            assert twice.kept == once.kept
        with once.sort_values() as other:
            assert [value for _, value in pairs_of(other)] == [1, 2, 3]


def test_out_of_core_is_by_samples_and_does_not_sort_a_bucket_of_one_key(tmp_path: Path) -> None:
    keys = np.full(200_000, 7)
    keys[::100] = np.arange(2000)
    with MapReduce(memory_limit="1MiB", threads=2, temp_directory=tmp_path) as mr, mr.keyvalue(keys, keys) as kv:
        sorter = Sorter(mr, kv.key, kv.value)
        found = sorter.sort(kv.kept)
        assert np.concatenate([chunk.keys.copy() for chunk in mr.room.stream(found)]).tolist() == sorted(keys.tolist())
        assert mr.spill.written > keys.nbytes
        # What lies below the key that fills the memory, and above it; of that key itself nothing.
        assert 0 < sorter.bucket_sorts < 12
        assert mr.budget.peak <= 1 << 20


def test_sorts_inside_a_small_budget(tmp_path: Path) -> None:
    keys = np.random.default_rng(0).integers(0, 1 << 60, 300_000)
    with MapReduce(memory_limit="1MiB", threads=2, temp_directory=tmp_path) as mr:
        with mr.keyvalue(keys, keys) as kv, kv.sort_keys() as found:
            got = np.concatenate([chunk.keys.copy() for chunk in found.chunks()])
            assert (got == np.sort(keys)).all()
            assert mr.budget.peak <= 1 << 20
        assert nothing_left(mr)


def test_a_full_disk_leaves_nothing(tmp_path: Path) -> None:
    keys = np.random.default_rng(0).integers(0, 1 << 60, 100_000)
    with MapReduce(memory_limit="1MiB", temp_directory=tmp_path, max_temp_directory_size="2MB", threads=1) as mr:
        with mr.keyvalue(keys, keys) as kv, pytest.raises(DiskFull):
            kv.sort_keys()
        assert nothing_left(mr)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("kind", ["int", "text"])
@pytest.mark.parametrize("descending", [False, True])
def test_sort_multivalues(mr: MapReduce, kind: str, descending: bool) -> None:
    random = np.random.default_rng(4)
    keys = np.where(random.random(6000) < 0.5, 3, random.integers(0, 50, 6000)).tolist()
    values = keys_of(kind, 6000)
    with mr.keyvalue(keys, values) as kv, kv.convert() as grouped, grouped.sort_multivalues(descending) as found:
        expected: dict[int, list[Any]] = {}
        for key, value in zip(keys, values, strict=True):
            expected.setdefault(key, []).append(value)
        got = {key: list(rows) for key, rows in found}
        assert got == {key: sorted(rows, reverse=descending) for key, rows in expected.items()}


def test_sort_multivalues_by_a_comparator(mr: MapReduce) -> None:
    def last_digit(one: int, other: int) -> int:
        return one % 10 - other % 10

    with mr.keyvalue([1, 2, 1, 1], [10, 3, 21, 12]) as kv, kv.convert() as grouped:
        found = grouped.sort_multivalues(compare=last_digit)
        assert {key: list(rows) for key, rows in found} == {1: [10, 21, 12], 2: [3]}
        found.close()
