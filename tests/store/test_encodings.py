"""Ids written into pages come back, whatever the encoding and however big the numbers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import UsageError
from penstock.store import encodings
from penstock.store.encodings import ENCODINGS, PHYSICAL, check_physical, choose_encoding, decode
from penstock.store.index import RECORD, cut_pages
from penstock.store.reader import Store

from .graphs import make, random_edges

BIG = 1 << 40


def written(name: str, degrees: np.ndarray, neighbours: np.ndarray, home: np.ndarray, cuts: int) -> list[np.ndarray]:
    """Write arcs piece by piece, decode the pages, and give back the neighbours of each vertex."""
    encoding = ENCODINGS[name]
    records = cut_pages(degrees, encoding.id_bytes, 4096)
    records["encoding"] = encoding.code
    pages = np.zeros((len(records), 4096), np.uint8)
    where = encodings.heads(home)
    for at in range(0, len(neighbours), cuts):
        piece = neighbours[at : at + cuts]
        encodings.write_ids(pages, encoding.id_bytes, encoding.q, records, 0, piece, at, *where)
    encodings.write_slots(pages, records, 0, degrees)
    found: list[list[np.ndarray]] = [[] for _ in degrees]
    scratch = np.empty(4096, neighbours.dtype)
    for page, record in zip(pages, records, strict=True):
        block = decode(page, record, np.ascontiguousarray(home["first_vertex"]), scratch)
        for i in range(len(block.offsets) - 1):
            piece = block.neighbours[block.offsets[i] : block.offsets[i + 1]]
            found[block.first_vertex + i].append(piece.copy())
    return [np.concatenate(parts) for parts in found]


def homes(first: int) -> np.ndarray:
    """An `out` index: ten small pages of 100 vertices, then one vertex in three large pages, then one more."""
    home = np.zeros(14, RECORD)
    home["first_vertex"] = first + np.array([*range(0, 1000, 100), 1000, 1000, 1000, 1001], np.uint64)
    home["part"] = [0] * 11 + [1, 2, 0]
    home["vertices"] = [100] * 10 + [1] * 4
    return home


@given(data=st.data(), name=st.sampled_from(sorted(ENCODINGS)), cuts=st.sampled_from([7, 1000, 10**6]))
def test_round_trip(data: st.DataObject, name: str, cuts: int) -> None:
    encoding = ENCODINGS[name]
    # Only six-byte and physical ids have room for vertices above 2**32.
    first = BIG if encoding.physical else 0
    most = 1001 if encoding.physical else (1 << 8 * encoding.p) - 1
    wide = np.uint32 if name == "plain" else np.uint64
    degrees = np.array(data.draw(st.lists(st.one_of(st.integers(0, 9), st.integers(600, 2500)), max_size=6)), np.uint32)
    random = np.random.default_rng(data.draw(st.integers(0, 99)))
    neighbours = (first + random.integers(0, most, int(degrees.sum()), dtype=np.uint64, endpoint=True)).astype(wide)
    if len(neighbours):
        neighbours[0], neighbours[-1] = first, first + most
    found = written(name, degrees, neighbours, homes(first), cuts)
    assert np.array_equal(np.concatenate([np.zeros(0, wide), *found]), neighbours)
    assert [len(each) for each in found] == degrees.tolist()


def test_six_bytes_reach_2_to_the_48() -> None:
    ids = np.array([0, 1 << 32, (1 << 48) - 1], np.uint64)
    assert written("logical6", np.array([3], np.uint32), ids, homes(0), 9)[0].tolist() == ids.tolist()


def test_bytes_on_disk_are_those_of_format_md() -> None:
    home = homes(0)
    expected = {
        "plain": "2b010000",
        "logical6": "2b0100000000",
        "physical22": "02006300",
        "physical33": "020000630000",
        "physical24": "020063000000",
        "physical42": "020000006300",
    }
    for name, encoding in ENCODINGS.items():
        records = cut_pages(np.array([1], np.uint32), encoding.id_bytes, 4096)
        page = np.zeros((1, 4096), np.uint8)
        ids = np.array([299], np.uint32)
        encodings.write_ids(page, encoding.id_bytes, encoding.q, records, 0, ids, 0, *encodings.heads(home))
        encodings.write_slots(page, records, 0, np.array([1], np.uint32))
        assert page[0, : encoding.id_bytes].tobytes().hex() == expected[name]
        assert page[0, -8:].tobytes().hex() == "0000000001000000"
        assert not page[0, encoding.id_bytes : -8].any()


def test_plain_pages_are_read_where_they_lie() -> None:
    page = np.zeros(4096, np.uint8)
    record = np.zeros(1, RECORD)
    record["arcs"], record["vertices"] = 5, 2
    block = decode(page, record[0], np.zeros(0, np.uint64), np.zeros(0, np.uint32))
    assert np.shares_memory(block.neighbours, page)
    assert np.shares_memory(block.offsets, page)


def test_a_page_number_that_does_not_exist_is_no_vertex() -> None:
    page = np.full(4096, 0xEE, np.uint8)
    record = np.zeros(1, RECORD)
    record["arcs"], record["vertices"], record["encoding"] = 5, 1, 0x33
    block = decode(page, record[0], np.zeros(3, np.uint64), np.zeros(9, np.uint64))
    assert (block.neighbours == np.iinfo(np.uint64).max).all()


def test_choice() -> None:
    assert choose_encoding(None, 1 << 32).name == "plain"
    assert choose_encoding(None, (1 << 32) + 1).name == "logical6"
    assert choose_encoding("physical33", 5).id_bytes == 6
    with pytest.raises(UsageError, match="logical6"):
        choose_encoding("plain", (1 << 32) + 1)
    with pytest.raises(UsageError, match="there is no encoding"):
        choose_encoding("varint", 5)
    with pytest.raises(UsageError):
        choose_encoding("logical6", (1 << 48) + 1)


@pytest.mark.parametrize(
    ("name", "pages", "slots", "advice"),
    [
        ("physical22", 65537, 100, "use physical33"),
        ("physical22", 100, 65537, "use physical33"),
        ("physical24", 65537, 1 << 25, "use logical6"),
        ("physical33", (1 << 24) + 1, 100, "use physical42"),
        ("physical33", 100, (1 << 24) + 1, "use physical24"),
        ("physical42", 100, 65537, "use physical33"),
    ],
)
def test_too_small_names_the_one_that_fits(name: str, pages: int, slots: int, advice: str) -> None:
    with pytest.raises(UsageError, match=advice):
        check_physical(ENCODINGS[name], pages, slots)


@pytest.mark.parametrize("encoding", PHYSICAL, ids=lambda e: e.name)
def test_just_big_enough(encoding: encodings.Encoding) -> None:
    check_physical(encoding, 1 << 8 * encoding.p, 1 << 8 * encoding.q)


def test_advice_knows_that_wider_ids_need_more_pages() -> None:
    shapes = {4: (70_000, 900), 6: ((1 << 24) + 1, 600)}
    with pytest.raises(UsageError, match="use physical42"):
        check_physical(ENCODINGS["physical22"], *shapes[4], shapes.__getitem__)


def test_too_small_fails_at_ingest_and_leaves_nothing(tmp_path: Path) -> None:
    # Vertices without outgoing arcs take four bytes: 70000 of them lie in one page of 1 MiB, 65536 can be addressed.
    source, target = np.full(70_000, 70_000), np.arange(70_000)
    with pytest.raises(UsageError, match="pages of up to 70001: use physical33"):
        make(tmp_path / "g.pen", source, target, encoding="physical22", page_size=1 << 20)
    assert list(tmp_path.iterdir()) == []
    make(tmp_path / "g.pen", source, target, encoding="physical33", page_size=1 << 20)


@pytest.mark.parametrize("name", ENCODINGS)
def test_stores_hold_the_same_graph(tmp_path: Path, name: str) -> None:
    make(tmp_path / "plain.pen", *random_edges())
    make(tmp_path / "other.pen", *random_edges(), encoding=name)
    plain, other = Store(tmp_path / "plain.pen"), Store(tmp_path / "other.pen")
    for direction in ("out", "in"):
        one, two = plain.direction(direction), other.direction(direction)
        ends = [[d.block(page).neighbours.astype(np.uint64) for page in range(len(d))] for d in (one, two)]
        assert np.array_equal(np.concatenate(ends[0]), np.concatenate(ends[1]))
