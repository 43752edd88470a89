"""Grouping: every key once, with all its values in input order, in core and out of core."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.mapreduce import columns, group
from penstock.mapreduce.columns import to_list
from penstock.mapreduce.session import MapReduce


def nothing_left(mr: MapReduce) -> bool:
    """Whether all chunks are gone from memory and disk, once the room has heard of it."""
    return mr.room.used == 0 and mr.spill.used == 0


@pytest.fixture(scope="module", params=["in core", "out of core"])
def mr(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[MapReduce]:
    forced = request.param == "out of core"
    with MapReduce(
        memory_limit="1MiB" if forced else "64MB",
        chunk_size=4096,
        threads=2,
        temp_directory=tmp_path_factory.mktemp("spill"),
        force_out_of_core=forced,
    ) as made:
        yield made
        assert nothing_left(made)


def same_key(key: Any) -> Any:
    return "nan" if key != key else tuple(key) if isinstance(key, (list, np.void)) else key


def grouped(pairs: Iterator[tuple[Any, Any]]) -> dict[Any, list[Any]]:
    found: dict[Any, list[Any]] = {}
    for key, value in pairs:
        found.setdefault(same_key(key), []).append(value)
    return found


def check(kmv: Any, expected: dict[Any, list[Any]]) -> None:
    """Every key once, or in several blocks where one is full; blocks that go on say so."""
    found: dict[Any, list[Any]] = {}
    last = None
    for chunk in kmv.groups():
        assert chunk.offsets[0] == 0
        assert len(chunk.values) == chunk.offsets[-1]
        assert (np.diff(chunk.offsets) > 0).all()
        values = to_list(chunk.values)
        for row, key in enumerate(map(same_key, to_list(chunk.keys))):
            goes_on = chunk.continues and row == 0
            assert (key in found) == goes_on
            assert not goes_on or key == last
            found.setdefault(key, []).extend(values[chunk.offsets[row] : chunk.offsets[row + 1]])
            last = key
    assert found == expected
    assert len(kmv) == len(expected)


PAIR = np.dtype([("a", "i8"), ("b", "f8")])
keys = {
    "int64": st.integers(-(1 << 63), (1 << 63) - 1) | st.integers(0, 3),
    "float64": st.floats() | st.sampled_from([0.0, -0.0, np.nan]),
    "string": st.text(max_size=3) | st.sampled_from(["", "\0", "a\0"]),
    "bytes": st.binary(max_size=3) | st.binary(min_size=20, max_size=21),
}


@pytest.mark.parametrize("kind", keys)
@given(data=st.data())
@settings(max_examples=25, deadline=None)
def test_same_as_a_dictionary(mr: MapReduce, kind: str, data: st.DataObject) -> None:
    some = data.draw(st.lists(keys[kind], max_size=30))
    times = data.draw(st.integers(1, 40))
    rows = some * times
    with mr.keyvalue(rows, list(range(len(rows))), key=kind, value="int64") as kv, kv.convert() as found:
        check(found, grouped(zip(rows, range(len(rows)), strict=True)))


@pytest.mark.parametrize("kind", ["one", "skewed", "distinct", "struct", "text", "short"])
def test_shapes_of_keys(mr: MapReduce, kind: str) -> None:
    random = np.random.default_rng(5)
    count = 12_000
    made: Any = {
        "one": np.full(count, -3),
        "skewed": np.where(random.random(count) < 0.6, 1, random.integers(0, 4000, count)),
        "distinct": random.permutation(count),
        "short": random.integers(0, 5, count).astype(np.int8),
        "text": [f"word {k}" for k in random.zipf(1.5, count).tolist()],
        "struct": np.array([(k % 7, float(k % 3)) for k in range(count)], PAIR),
    }[kind]
    values = [f"{k}" * (k % 4) for k in range(count)]
    with mr.keyvalue(made, values) as kv, kv.convert() as found:
        check(found, grouped(zip(to_list(made) if isinstance(made, np.ndarray) else made, values, strict=True)))
        largest = max(kept.nbytes for kept in found.kept)
        assert largest <= 2 * mr.chunk_bytes
        if kind == "one":
            assert sum(kept.continues for kept in found.kept) > 5


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("text", [False, True])
def test_what_is_sorted_is_grouped_as_it_passes(mr: MapReduce, descending: bool, text: bool) -> None:
    random = np.random.default_rng(6)
    numbers = np.where(random.random(9000) < 0.3, 40, random.integers(0, 300, 9000)).tolist()
    rows: list[Any] = [f"{k:05}" for k in numbers] if text else numbers
    before = mr.stats()["skipped"].get("sort before convert", 0)
    with mr.keyvalue(rows, list(range(9000))) as kv, kv.sort_keys(descending) as ordered, ordered.convert() as found:
        check(found, grouped(zip(rows, range(9000), strict=True)))
        assert found.order == ordered.order
        listed = [key for key, _, continues in found.blocks() if not continues]
        assert listed == sorted(set(rows), reverse=descending)
    assert mr.stats()["skipped"]["sort before convert"] == before + 1


def test_nothing_at_all(mr: MapReduce) -> None:
    with mr.keyvalue(key="string", value="int64") as kv, kv.convert() as found:
        assert len(found) == 0
        assert (found.key, found.value) == ("string", "int64")
    with mr.keyvalue([5, 5, 6]) as kv, kv.convert() as found:
        assert {key: len(rows) for key, rows in found} == {5: 2, 6: 1}


def test_numbers_in_core_come_out_ascending(tmp_path: Path) -> None:
    with MapReduce(memory_limit="64MB", threads=2, temp_directory=tmp_path) as mr:
        found = mr.keyvalue([3, -1, 3, 2], [0, 1, 2, 3]).convert()
        assert [(key, list(rows)) for key, rows in found] == [(-1, [1]), (2, [3]), (3, [0, 2])]
        assert found.order == "keys"
        again = found.pairs()
        assert again.sort_keys().kept == again.kept
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("same", ["one hash for all", "few hashes"])
def test_hashes_that_collide(mr: MapReduce, same: str, monkeypatch: pytest.MonkeyPatch) -> None:
    bits = np.uint64(0 if same == "one hash for all" else 1 << 63)
    honest = columns.hash64
    monkeypatch.setattr(group.columns, "hash64", lambda column: honest(column) & bits)
    random = np.random.default_rng(7)
    rows = [b"key %d" % k for k in random.integers(0, 9, 8000)]
    with mr.keyvalue(rows, list(range(len(rows)))) as kv, kv.convert() as found:
        check(found, grouped(zip(rows, range(len(rows)), strict=True)))


def test_groups_inside_a_small_budget(tmp_path: Path) -> None:
    random = np.random.default_rng(8)
    made = random.integers(0, 1 << 40, 150_000)
    made[::3] = 11
    with MapReduce(memory_limit="1MiB", threads=2, temp_directory=tmp_path) as mr:
        with mr.keyvalue(made, np.arange(len(made))) as kv, kv.convert() as found:
            assert mr.budget.peak <= 1 << 20
            assert mr.spill.written > made.nbytes
            total = 0
            unique, counts = np.unique(made, return_counts=True)
            expected = dict(zip(unique.tolist(), counts.tolist(), strict=True))
            for key, rows in found:
                assert len(rows) == expected.pop(key)
                assert (np.diff(rows) > 0).all()
                total += len(rows)
            assert not expected
            assert total == len(made)
        assert nothing_left(mr)
