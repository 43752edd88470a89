"""Columns: made from anything, ordered by their codes, hashed, taken apart and put together."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.errors import InputError, UsageError
from penstock.mapreduce.columns import (
    NOTHING,
    Bytes,
    as_column,
    as_kind,
    cast,
    codes,
    concat,
    empty,
    equal,
    from_arrow,
    hash64,
    is_exact,
    is_nothing,
    kind_of,
    slice,
    take,
    to_arrow,
    to_list,
)  # fmt: skip

PAIR = np.dtype([("a", "i8"), ("b", "f8")])
WORDS = ["", "a", "a\0", "ä", "\0", "longer than eight bytes", "longer than nine", "longer "]


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        ([1, 2], "int64"),
        ([1, 2.5], "float64"),
        ([True, False], "bool"),
        (["a", ""], "string"),
        ([b"a", b"\xff\0"], "bytes"),
        ((3, 4), "int64"),
        (np.array([1, 2], ">i4"), "int32"),
        (np.array(["x", "yy"]), "string"),
        (np.array([b"x", b"yy"]), "bytes"),
        (np.array(["x", "yy"], object), "string"),
        (np.arange(6)[::3], "int64"),
        (np.broadcast_to(np.float32(1), 2), "float32"),
        (np.array([(1, 2.0), (3, 4.0)], PAIR), PAIR),
        (np.array(["2020-01-01", "2021-01-01"], "M8[s]"), "M8[s]"),
        (pa.array([1, 2], pa.uint8()), "uint8"),
        (pa.array(["x", "yy"]), "string"),
        (pa.array([b"x", b"\xff"]), "bytes"),
        (pa.array(["x", "x"]).dictionary_encode(), "string"),
        (pa.chunked_array([[1], [2]]), "int64"),
        (pa.array([True, False]), "bool"),
        (pd.Series([1.5, 2.5]), "float64"),
        (pd.Series(["x", "yy"]), "string"),
        (pl.Series(["x", "yy"]), "string"),
        (range(2), "int64"),
        ([None, None], NOTHING),
        (pa.nulls(2), NOTHING),
    ],
)
def test_made_from_what_users_have(data: object, kind: object) -> None:
    column = as_column(data)
    assert kind_of(column) == kind
    assert len(column) == 2
    if isinstance(column, np.ndarray):
        assert column.flags.c_contiguous
        assert column.flags.writeable
        assert column.dtype.isnative


@pytest.mark.parametrize(
    ("data", "match"),
    [
        ("text", "no column"),
        (5, "no column"),
        (np.zeros((2, 2)), "one dimension"),
        ([1, [2, 3]], "differ in kind"),
        (["a", 1], "nothing else"),
        (["a", None], "nothing else"),
        ([-1, 2**63], "64 bits"),
        ([(1, 2), (3,)], "differ in kind"),
        (np.array([{}, {}]), "Python objects"),
    ],
)
def test_what_is_no_column_is_one_sentence(data: object, match: str) -> None:
    with pytest.raises(UsageError, match=match):
        as_column(data)


def test_nulls_are_refused() -> None:
    with pytest.raises(InputError, match="1 nulls"):
        as_column(pa.array([1, None]))
    with pytest.raises(InputError, match="list"):
        as_column(pa.array([[1], [2]]))


def test_kinds_by_name() -> None:
    names = [as_kind(kind) for kind in (int, float, str, bytes, "U5", "S3", ">u4", "nothing", PAIR)]
    assert names == ["int64", "float64", "string", "bytes", "string", "bytes", "uint32", NOTHING, PAIR]
    for wrong in ("no such", object, [("a", "O")], "3f8"):
        with pytest.raises(UsageError):
            as_kind(wrong)


def test_a_column_of_nothing_has_a_length() -> None:
    column = as_column(None, 5)
    assert is_nothing(kind_of(column))
    assert len(column) == 5
    assert column.nbytes == 0
    assert len(take(column, np.array([1, 1]))) == 2
    assert len(concat([column, column])) == 10
    assert to_list(slice(column, 1, 3)) == [None, None]
    assert codes(column).tolist() == [0] * 5
    assert len(set(hash64(column).tolist())) == 1
    with pytest.raises(UsageError, match="count"):
        as_column(None)


def test_casting_keeps_the_values_or_says_which_it_cannot() -> None:
    assert cast(as_column([1, 2]), as_kind("uint8")).dtype == np.uint8
    assert cast(as_column([0.1]), as_kind("float32")).dtype == np.float32
    assert kind_of(cast(as_column([b"a"]), "string")) == "string"
    for data, kind in (([1, 300], "uint8"), ([-1], "uint64"), ([1.5], "int64"), ([1e300], "float32"), ([2**63], "i8")):
        with pytest.raises(UsageError, match=r"row \d"):
            as_column(data, kind=kind)
    with pytest.raises(UsageError, match="string is no column of int64"):
        as_column(["a"], kind="int64")
    assert as_column([(1, 2), (3, 4)], kind=PAIR)["b"].tolist() == [2.0, 4.0]
    assert len(as_column([], kind="string")) == 0
    with pytest.raises(UsageError, match="does not go with"):
        as_column([1, 2], 3)


@given(st.lists(st.binary(max_size=20), max_size=30), st.data())
@settings(max_examples=60, deadline=None)
def test_bytes_are_as_lists_of_bytes(rows: list[bytes], data: st.DataObject) -> None:
    column = Bytes.of(rows, text=False)
    n = len(rows)
    begin = data.draw(st.integers(0, n))
    end = data.draw(st.integers(begin, n))
    assert column.to_list() == rows == [column[i] for i in range(n)]
    part = slice(column, begin, end)
    assert part.to_list() == rows[begin:end]
    assert part.offsets[0] == 0
    assert part.offsets[-1] == len(part.data)
    positions = data.draw(st.lists(st.integers(0, n - 1), max_size=10)) if n else []
    assert take(column, np.array(positions, np.int64)).to_list() == [rows[i] for i in positions]
    assert take(column, np.array(positions, np.uint32)).to_list() == [rows[i] for i in positions]
    assert concat([column, part]).to_list() == rows + rows[begin:end]
    prefix = [int.from_bytes(row[:8].ljust(8, b"\0"), "big") for row in rows]
    assert codes(column).tolist() == prefix
    hashes = hash64(column).tolist()
    assert len(set(hashes)) == len(set(rows))
    assert equal(from_arrow(to_arrow(column)), column)


def test_text_that_is_no_utf8_comes_back_as_it_was() -> None:
    raw = Bytes.of([b"\xff", b"ok"])
    text = cast(raw, "string")
    assert Bytes.of(text.to_list()).data.tobytes() == b"\xffok"
    with pytest.raises(InputError, match="UTF-8"):
        text.to_arrow()
    words = Bytes.of(WORDS)
    assert words.to_arrow().to_pylist() == WORDS
    assert words[np.array([True] + [False] * 7)].to_list() == [""]
    assert words[::-1].to_list() == WORDS[::-1]
    assert words[-1] == WORDS[-1]
    assert words[2:1].to_list() == []
    with pytest.raises(IndexError):
        words[8]


@pytest.mark.parametrize("kind", ["int8", "int64", "uint16", "uint64", "float32", "float64", "bool", "float16"])
def test_codes_order_as_the_values_do(kind: str) -> None:
    rng = np.random.default_rng(1)
    column = rng.integers(0, 256, 800 * np.dtype(kind).itemsize, np.uint8).astype(np.uint8).view(kind)
    if kind == "bool":
        column = rng.random(800) < 0.5
    elif kind[0] == "f":
        column = np.concatenate([column, np.array([0.0, -0.0, np.nan, -np.nan, np.inf, -np.inf], kind)])
    assert is_exact(column.dtype)
    found = codes(column)
    by_code, by_value = column[np.argsort(found, kind="stable")], np.sort(column)
    assert np.array_equal(by_code, by_value, equal_nan=kind[0] == "f")
    assert len(np.unique(found)) == len(np.unique(column))
    assert len(np.unique(hash64(column))) == len(np.unique(column))


def test_equal_numbers_of_other_kinds_have_the_same_hash() -> None:
    small = hash64(np.array([7, -1], np.int8))
    assert small[0] == hash64(np.array([7], np.uint64))[0]
    assert small.tolist() == hash64(np.array([7, -1], np.int64)).tolist()
    assert hash64(Bytes.of(["a"]))[0] == hash64(Bytes.of([b"a"]))[0]
    assert hash64(np.array([1.5], "f4"))[0] == hash64(np.array([1.5], "f8"))[0]


def test_structs_and_opaque_values() -> None:
    pairs = np.array([(2, 1.0), (1, 0.0), (1, -0.0)], PAIR)
    assert not is_exact(PAIR)
    assert codes(pairs).tolist() == codes(pairs["a"].copy()).tolist()
    hashes = hash64(pairs)
    assert hashes[1] == hashes[2] != hashes[0]
    assert to_arrow(pairs).to_pylist()[0] == {"a": 2, "b": 1.0}
    opaque = np.frombuffer(bytearray(b"0123456789abcdef" + b"0123456789abcdeg"), "V16")
    assert codes(opaque)[0] == codes(opaque)[1]
    assert hash64(opaque)[0] != hash64(opaque)[1]
    assert to_arrow(opaque).to_pylist()[0] == b"0123456789abcdef"
    numbers = np.array([1 + 2j, 1 + 3j])
    assert hash64(numbers)[0] != hash64(numbers)[1]
    assert equal(pairs, pairs.copy())
    assert not equal(pairs, pairs[:2])
    assert not equal(opaque, numbers)
    assert len(empty("string", 3)) == 3
    assert len(empty(PAIR, 2)) == 2
    assert len(concat([], PAIR)) == 0
