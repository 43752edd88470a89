"""The user's ids, both ways: negative, above 2**63, and text that is not ASCII."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.errors import DamagedStore, VertexNotFound
from penstock.ingest.source import VertexTable
from penstock.store.blob import Blob, write_blob
from penstock.store.ids import Ids
from penstock.store.reader import Store

from .graphs import edit, make, reads

TEXT = ["", "a", "ab", "b", "Zoë", "Ünal", "北京", "🜁", "z" * 500]


def of_list(path: Path, ids: list[Any]) -> Store:
    """A store whose vertices are these, all but two of them isolated."""
    if isinstance(ids[0], str):
        array: Any = pa.array(ids)
        ends = array.slice(0, 1), array.slice(len(ids) - 1, 1)
    else:
        array = np.array(ids, np.uint64 if max(ids) >= 2**63 else np.int64)
        ends = array[:1], array[-1:]
    return Store(make(path, *ends, table=VertexTable(array)))


@pytest.mark.parametrize(
    "ids",
    [
        [5, -3, 0, -(2**63), 2**63 - 1, 2**40],
        [2**64 - 1, 2**63, 0, 7],
        [0, 1, 2, 3, 4],
        TEXT,
    ],
    ids=["int64", "uint64", "dense", "text"],
)
def test_both_ways(tmp_path: Path, ids: list[Any]) -> None:
    store = of_list(tmp_path / "g.pen", ids)
    assert sorted(store.ids.all().to_pylist(), key=lambda i: i.encode() if isinstance(i, str) else i) == sorted(
        ids, key=lambda i: i.encode() if isinstance(i, str) else i
    )
    for user in ids:
        number = store.ids.number(user)
        assert store.ids.of(number) == user
    assert store.ids.read(1, 3).to_pylist() == store.ids.all().to_pylist()[1:3]
    ranked = store.ids.all().take(pa.array(store.ids.order.read())).to_pylist()
    assert ranked == sorted(ids, key=lambda i: i.encode() if isinstance(i, str) else i)


@settings(max_examples=15)
@given(ids=st.sets(st.text(max_size=8), min_size=2, max_size=40))
def test_any_text(tmp_path_factory: pytest.TempPathFactory, ids: set[str]) -> None:
    listed = sorted(ids)
    store = of_list(tmp_path_factory.mktemp("text") / "g.pen", listed)
    assert {store.ids.of(store.ids.number(user)) for user in listed} == ids


def test_what_is_not_there(tmp_path: Path) -> None:
    numbers = of_list(tmp_path / "n.pen", [5, -3, 9]).ids
    for wanted in (4, "4", "x", -(2**70), 2**70, 5.0, None, True, b"5"):
        with pytest.raises(VertexNotFound, match="there is no vertex"):
            numbers.number(wanted)
    assert numbers.number("-3") == numbers.number(np.int8(-3)) == numbers.number(-3)
    texts = of_list(tmp_path / "t.pen", TEXT).ids
    for missing in ("A", "aa", "zz", 5, None):
        with pytest.raises(VertexNotFound, match="ids are string"):
            texts.number(missing)


def test_numbers_above_2_to_the_32_in_the_permutation(tmp_path: Path) -> None:
    # The format has room for 64-bit numbers; nothing else of a store this large is needed to read them.
    order = np.array([1 << 40, 3, (1 << 48) - 1], np.uint64)
    entry = write_blob(tmp_path / "ids" / "order", order)
    assert Blob(tmp_path / "ids" / "order", "uint64", entry).read().tolist() == order.tolist()
    entry = write_blob(tmp_path / "ids" / "order", np.array([1, 0, 2], np.uint64))
    values = write_blob(tmp_path / "ids" / "values", np.array([7, -7, 9]))
    meta = {
        "vertices": 3,
        "ids": {"kind": "int64", "order": "uint64"},
        "blobs": {"ids/order": entry, "ids/values": values},
    }
    assert [Ids(tmp_path, meta).number(user) for user in (-7, 7, 9)] == [1, 0, 2]


def test_a_lookup_checks_what_it_reads(tmp_path: Path) -> None:
    store = of_list(tmp_path / "g.pen", [5, -3, 9])
    edit(tmp_path / "g.pen" / "ids/values", np.int64, lambda values: values.__setitem__(1, 1))
    with pytest.raises(DamagedStore, match="ids/values is damaged"):
        store.ids.number(5)


def test_a_lookup_in_many_ids_reads_few_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = np.arange(400_000) * 3
    store = Store(make(tmp_path / "g.pen", source, source[::-1].copy(), order="input", page_size=1 << 16))
    read = reads(monkeypatch)
    assert store.ids.of(store.ids.number(3 * 123_456)) == 3 * 123_456
    assert len(read) < 10


def test_a_wrong_count_is_found(tmp_path: Path) -> None:
    store = of_list(tmp_path / "g.pen", [5, -3, 9])
    with pytest.raises(DamagedStore, match="3 ids for 4 vertices"):
        Ids(store.path, store.meta | {"vertices": 4})
