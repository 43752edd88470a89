"""Cutting vertices into pages, and refusing an index that was not cut."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import DamagedStore
from penstock.store.encodings import ENCODINGS, ID_BYTES
from penstock.store.index import LARGE, RECORD, SMALL, check_index, cut_pages

CODES = {4: 0, 6: 6}
# Mostly small degrees, with some just at, below and above what one page of 4 KiB holds.
DEGREES = st.lists(st.one_of(st.integers(0, 30), st.integers(675, 690), st.integers(1015, 1030), st.integers(0, 9000)))


def cut(degrees: np.ndarray, id_bytes: int, page_size: int = 4096) -> np.ndarray:
    records = cut_pages(degrees, id_bytes, page_size)
    records["encoding"] = CODES[id_bytes]
    return records


def check(records: np.ndarray, degrees: np.ndarray, page_size: int = 4096) -> None:
    arcs = int(degrees.sum(dtype=np.uint64))
    check_index(records, active=len(degrees), arcs=arcs, page_size=page_size, name="index", widths=ID_BYTES)


@given(degrees=DEGREES, id_bytes=st.sampled_from([4, 6]), wide=st.sampled_from([np.uint32, np.uint64]))
def test_every_vertex_once_and_arcs_contiguous(degrees: list[int], id_bytes: int, wide: type) -> None:
    values: np.ndarray = np.array(degrees, wide)
    records = cut(values, id_bytes)
    held: dict[int, int] = {}
    arc = 0
    for page, record in enumerate(records):
        assert record["first_arc"] == arc
        arc += int(record["arcs"])
        assert record["payload"] == record["arcs"] * id_bytes + 4 * (int(record["vertices"]) + 1) <= 4096
        first, count = int(record["first_vertex"]), int(record["vertices"])
        mine = values[first : first + count]
        assert record["largest_degree"] == mine.max()
        assert record["smallest_degree"] == mine.min()
        if record["kind"] == SMALL:
            assert record["part"] == 0
            assert record["arcs"] == mine.sum()
            assert not any(vertex in held for vertex in range(first, first + count))
            held |= {first + k: int(d) for k, d in enumerate(mine)}
        else:
            assert record["kind"] == LARGE
            assert count == 1
            assert (record["part"] == 0) == (first not in held)
            assert record["part"] == 0 or records[page - 1]["part"] == record["part"] - 1
            held[first] = held.get(first, 0) + int(record["arcs"])
    assert held == dict(enumerate(degrees))
    assert arc == sum(degrees)
    check(records, values)


@given(degrees=DEGREES)
def test_a_small_page_is_full(degrees: list[int]) -> None:
    values = np.array(degrees, np.uint32)
    records = cut(values, 4)
    for one, two in pairwise(records):
        if one["kind"] == SMALL and two["kind"] == SMALL:
            assert one["payload"] + 4 + 4 * int(values[int(two["first_vertex"])]) > 4096


@pytest.mark.parametrize("page_size", [4096, 1 << 20, 64 << 20])
def test_a_vertex_that_just_fits_is_small(page_size: int) -> None:
    most = (page_size - 8) // 4
    assert cut(np.array([most], np.uint64), 4, page_size)["kind"].tolist() == [SMALL]
    assert cut(np.array([most + 1], np.uint64), 4, page_size)["kind"].tolist() == [LARGE, LARGE]


def test_more_than_2_to_the_32_arcs() -> None:
    # 64 MiB pages hold 16 million arcs: one vertex of 2**34 arcs is 1025 large pages.
    degrees = np.array([1 << 34, 5, 1 << 33], np.uint64)
    records = cut(degrees, 4, 64 << 20)
    check(records, degrees, 64 << 20)
    assert int(records["first_arc"][-1]) > 1 << 34
    assert int(records["largest_degree"][0]) == 1 << 34


def high() -> np.ndarray:
    """Two pages that follow one another far above 2**32."""
    records = np.zeros(2, RECORD)
    records["first_vertex"] = [(1 << 40), (1 << 40) + 3]
    records["first_arc"] = [(1 << 45), (1 << 45) + 10]
    records["arcs"], records["vertices"] = [10, 4], [3, 2]
    return records


def test_records_hold_numbers_above_2_to_the_32() -> None:
    again = np.frombuffer(high().tobytes(), RECORD)
    assert again["first_vertex"].tolist() == [1 << 40, (1 << 40) + 3]
    assert again["first_arc"].tolist() == [1 << 45, (1 << 45) + 10]
    assert RECORD.itemsize == 64
    assert [RECORD.fields[name][1] for name in ("checksum", "vertices", "kind")] == [40, 48, 60]  # type: ignore[index]


SOUND = np.array([3, 2000, 0, 7, 1200], np.uint32)


@pytest.mark.parametrize(
    ("field", "page", "value"),
    [
        ("first_vertex", 0, 1),
        ("first_vertex", 2, 9),
        ("first_arc", 0, 4),
        ("first_arc", 1, 4),
        ("arcs", 1, 5),
        ("arcs", 0, 1 << 63),
        ("vertices", 0, 0),
        ("vertices", 0, 2),
        ("vertices", 1, 2),
        ("part", 1, 1),
        ("part", 2, 0),
        ("part", 3, 7),
        ("kind", 1, SMALL),
        ("kind", 0, 9),
        ("encoding", 0, 7),
        ("encoding", 0, 6),
        ("payload", 0, 0),
        ("largest_degree", 1, 9),
        ("smallest_degree", 0, 9),
    ],
)
def test_a_wrong_record_is_named(field: str, page: int, value: Any) -> None:
    records = cut(SOUND, 4)
    check(records, SOUND)
    records[field][page] = value
    with pytest.raises(DamagedStore, match=r"^index: record"):
        check(records, SOUND)


def test_an_index_that_ends_early_or_is_empty() -> None:
    records = cut(SOUND, 4)
    with pytest.raises(DamagedStore, match="covers 4 vertices"):
        check(records[:-2], SOUND)
    with pytest.raises(DamagedStore, match="is empty"):
        check(records[:0], SOUND)
    check(records[:0], SOUND[:0])


def test_codes_are_what_format_says() -> None:
    assert {name: hex(encoding.code) for name, encoding in ENCODINGS.items()} == {
        "plain": "0x0",
        "logical6": "0x6",
        "physical22": "0x22",
        "physical33": "0x33",
        "physical24": "0x24",
        "physical42": "0x42",
    }
