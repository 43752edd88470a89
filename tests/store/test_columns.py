"""Edge columns: types, file names, smallest and largest values, and pages that are found again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.store.check import check_store
from penstock.store.columns import TYPES, column_file, extremes, from_extreme, padded, type_dtype
from penstock.store.reader import Store

from .graphs import make, random_edges, small

ARROW = [
    *(pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()),
    *(pa.float32(), pa.float64(), pa.bool_(), pa.date32(), pa.date64(), pa.time32("s"), pa.time64("ns")),
    *(pa.duration("ms"), pa.timestamp("us"), pa.timestamp("ns", "Europe/Berlin")),
]


@pytest.mark.parametrize("kind", ARROW, ids=str)
def test_every_type_has_its_width(kind: pa.DataType) -> None:
    width = 1 if kind == pa.bool_() else kind.bit_width // 8
    assert type_dtype(str(kind)).itemsize == width


@pytest.mark.parametrize("name", ["", "string", "decimal128(3, 2)", "halffloat", "timestamp", "timestampfoo", "int128"])
def test_other_types_are_refused(name: str) -> None:
    with pytest.raises(ValueError, match="is no type of a column"):
        type_dtype(name)


@pytest.mark.parametrize("kind", ARROW, ids=str)
def test_values_come_back(tmp_path: Path, kind: pa.DataType) -> None:
    source, target = random_edges(edges=3000)
    random = np.random.default_rng(5)
    dtype = type_dtype(str(kind))
    values = random.integers(0, 2 if kind == pa.bool_() else 100, 3000).astype(dtype)
    store = make(tmp_path / "g.pen", source, target, columns={"c": values}, types={"c": kind}, order="input")
    direction = Store(store).direction("out")
    found: list[tuple[int, int, Any]] = []
    for page in range(len(direction)):
        block = direction.block(page)
        first = np.arange(block.first_vertex, block.first_vertex + len(block.offsets) - 1)
        column = direction.read_column("c", page)
        assert column.dtype == dtype
        found += zip(np.repeat(first, np.diff(block.offsets)), block.neighbours, column, strict=True)
    assert found == sorted(found, key=lambda arc: arc[:2])
    assert sorted(found) == sorted(zip(source, target, values, strict=True))
    assert check_store(store, small()) == []


@given(
    data=st.data(),
    name=st.sampled_from([t for t in TYPES if t != "bool"]),
)
def test_extremes(data: st.DataObject, name: str) -> None:
    dtype = type_dtype(name)
    if dtype.kind == "f":
        elements: Any = st.floats(width=32 if dtype.itemsize == 4 else 64)
    else:
        elements = st.integers(int(np.iinfo(dtype).min), int(np.iinfo(dtype).max))
    values = np.array(data.draw(st.lists(elements, min_size=1)), dtype)
    low, high = (from_extreme(bits, dtype) for bits in extremes(values))
    numbers = values[~np.isnan(values)] if dtype.kind == "f" else values
    if len(numbers):
        assert low == numbers.min()
        assert high == numbers.max()
    else:
        assert np.isnan(low)
        assert np.isnan(high)


def test_extremes_at_the_ends_of_64_bits() -> None:
    for values in (np.array([-(2**63), 2**63 - 1]), np.array([0, 2**64 - 1], np.uint64)):
        assert [int(from_extreme(bits, values.dtype)) for bits in extremes(values)] == values.tolist()
    assert extremes(np.zeros(0)) == (0, 0)
    assert extremes(np.array([-np.inf, np.nan, np.inf])) == (0xFFF0000000000000, 0x7FF0000000000000)


def test_nan_only_pages_are_sound(tmp_path: Path) -> None:
    source, target = random_edges()
    values = np.where(source == 7, np.nan, 1.5)
    store = make(tmp_path / "g.pen", source, target, columns={"w": values}, types={"w": pa.float64()})
    records = Store(store).direction("out").column_records["w"]
    assert np.isnan(from_extreme(int(records["minimum"][0]), np.dtype(np.float64)))
    assert check_store(store, small()) == []


def test_pages_are_aligned_and_padded(tmp_path: Path) -> None:
    source, target = random_edges()
    store = make(
        tmp_path / "g.pen", source, target, columns={"c": np.ones(len(source), np.int8)}, types={"c": pa.int8()}
    )
    records = Store(store).direction("out").column_records["c"]
    assert not (records["offset"] % 4096).any()
    assert (store / "out/c.0").stat().st_size == sum(padded(int(n)) for n in records["bytes"])


ODD = [
    "pages",
    "index",
    "a.b",
    "a/b",
    "../x",
    "a.index",
    "a",
    "",
    "größe",
    "%70ages",
    "x" * 300,
    "x" * 299 + "y",
    "lock",
]


def test_file_names() -> None:
    found = [column_file(name) for name in ODD]
    assert len(set(found)) == len(ODD)
    assert "pages" not in found
    assert all(len(name) <= 128 and not set(name) & set("./\0") for name in found)
    assert column_file("weight_2-x") == "weight_2-x"


def test_any_name_is_a_name(tmp_path: Path) -> None:
    source, target = random_edges(edges=1000)
    values = {name: np.full(1000, k, np.int16) for k, name in enumerate(ODD)}
    store = make(tmp_path / "g.pen", source, target, columns=values, types=dict.fromkeys(ODD, pa.int16()))
    direction = Store(store).direction("in")
    for k, name in enumerate(ODD):
        assert (direction.read_column(name, 0) == k).all()
    assert check_store(store, small()) == []
    assert {path.name for path in tmp_path.iterdir()} == {"g.pen"}
