"""Array files: partial reads across MiB borders, and damage found in whatever is read."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import DamagedStore
from penstock.store.blob import Blob, BlobWriter, sum_path, write_blob
from penstock.store.checksum import BLOCK, checksum
from penstock.store.columns import COLUMN_RECORD

from .graphs import reads

VALUES = np.arange(400_000, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)


@pytest.fixture(scope="module")
def blob(tmp_path_factory: pytest.TempPathFactory) -> Blob:
    path = tmp_path_factory.mktemp("blob") / "values"
    return Blob(path, np.uint64, write_blob(path, VALUES))


@given(a=st.integers(0, 400_000), length=st.integers(0, 400_000))
def test_any_part(blob: Blob, a: int, length: int) -> None:
    assert np.array_equal(blob.read(a, a + length), VALUES[a : a + length])


@given(border=st.integers(1, 3), before=st.integers(0, 3), after=st.integers(0, 3))
def test_across_a_border(blob: Blob, border: int, before: int, after: int) -> None:
    at = border * BLOCK // 8
    assert np.array_equal(blob.read(at - before, at + after), VALUES[at - before : at + after])


def test_into_an_array(blob: Blob) -> None:
    out = np.zeros(10, np.uint64)
    blob.read(5, 12, out)
    assert np.array_equal(out, np.append(VALUES[5:12], np.zeros(3, np.uint64)))
    assert np.array_equal(np.concatenate(list(blob.pieces(1000))), VALUES)
    assert len(blob) == len(VALUES)


@given(positions=st.lists(st.integers(0, 399_999), max_size=20))
def test_scattered(blob: Blob, positions: list[int]) -> None:
    assert np.array_equal(blob.at(np.array(positions, np.int64)), VALUES[positions])


@given(sizes=st.lists(st.integers(0, 200_000), max_size=6))
def test_pieces_do_not_matter(tmp_path_factory: pytest.TempPathFactory, sizes: list[int]) -> None:
    root = tmp_path_factory.mktemp("pieces")
    ends = np.minimum(np.cumsum([0, *sizes]), len(VALUES))
    pieces = [VALUES[a:b] for a, b in pairwise(ends)]
    one = write_blob(root / "one", iter(pieces))
    two = write_blob(root / "two", VALUES[: ends[-1]].copy())
    assert one == two
    assert sum_path(root / "one").read_bytes() == sum_path(root / "two").read_bytes()
    assert np.array_equal(Blob(root / "one", np.uint64, one).read(), VALUES[: ends[-1]])


def test_records_that_do_not_divide_a_block(tmp_path: Path) -> None:
    records = np.zeros(60_000, COLUMN_RECORD)
    records["offset"] = np.arange(60_000)
    entry = write_blob(tmp_path / "r", records)
    found = Blob(tmp_path / "r", COLUMN_RECORD, entry)
    assert np.array_equal(found.read(26_000, 27_000), records[26_000:27_000])
    assert np.array_equal(found.at(np.array([0, 26_214, 59_999])), records[[0, 26_214, 59_999]])


def test_checksums_are_seeded_with_the_block(tmp_path: Path) -> None:
    write_blob(tmp_path / "b", np.zeros(2 * BLOCK + 5, np.uint8))
    sums = np.frombuffer(sum_path(tmp_path / "b").read_bytes(), "<u8")
    assert sums.tolist() == [checksum(bytes(n), k) for k, n in enumerate((BLOCK, BLOCK, 5))]


def fresh(tmp_path: Path) -> tuple[Path, dict[str, Any]]:
    return tmp_path / "b", write_blob(tmp_path / "b", VALUES)


def test_damage_is_found_where_it_is_read(tmp_path: Path) -> None:
    path, entry = fresh(tmp_path)
    data = bytearray(path.read_bytes())
    data[2 * BLOCK + 7] ^= 1
    path.write_bytes(data)
    blob = Blob(path, np.uint64, entry)
    assert np.array_equal(blob.read(0, 1000), VALUES[:1000])
    with pytest.raises(DamagedStore, match=f"{path} is damaged in bytes {2 * BLOCK} to {3 * BLOCK}"):
        blob.read()
    with pytest.raises(DamagedStore):
        blob.read(2 * BLOCK // 8 + 50, 2 * BLOCK // 8 + 51)


def test_a_damaged_part_is_not_remembered_as_good(tmp_path: Path) -> None:
    path, entry = fresh(tmp_path)
    data = path.read_bytes()
    path.write_bytes(b"\xff" + data[1:])
    blob = Blob(path, np.uint64, entry)
    for _ in range(2):
        with pytest.raises(DamagedStore):
            blob.read(3, 4)


def test_single_values_are_read_once_per_block(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, entry = fresh(tmp_path)
    blob = Blob(path, np.uint64, entry)
    read = reads(monkeypatch)
    for at in (0, 5, 140_000, 6, 140_001):
        assert blob.read(at, at + 1)[0] == VALUES[at]
    assert read == [0, 1]


@pytest.mark.parametrize("change", [lambda b: b[:-1], lambda b: b + b"\0", lambda b: b""])
def test_a_wrong_size_is_found_at_once(tmp_path: Path, change: Any) -> None:
    path, entry = fresh(tmp_path)
    path.write_bytes(change(path.read_bytes()))
    with pytest.raises(DamagedStore, match="truncated or grew"):
        Blob(path, np.uint64, entry)


def test_it_is_truncated_while_it_is_open(tmp_path: Path) -> None:
    path, entry = fresh(tmp_path)
    blob = Blob(path, np.uint64, entry)
    path.write_bytes(path.read_bytes()[: BLOCK + 3])
    with pytest.raises(DamagedStore, match=f"ends at byte {BLOCK + 3}"):
        blob.read()
    path.unlink()
    with pytest.raises(DamagedStore, match="is missing"):
        blob.read()


def test_its_sums_are_checked_too(tmp_path: Path) -> None:
    path, entry = fresh(tmp_path)
    sums = bytearray(sum_path(path).read_bytes())
    sums[9] ^= 1
    sum_path(path).write_bytes(sums)
    with pytest.raises(DamagedStore, match=r"b\.sum is damaged"):
        Blob(path, np.uint64, entry)
    sum_path(path).unlink()
    with pytest.raises(DamagedStore, match=r"b\.sum is missing"):
        Blob(path, np.uint64, entry)


def test_values_that_do_not_divide_the_file(tmp_path: Path) -> None:
    entry = write_blob(tmp_path / "b", np.zeros(13, np.uint8))
    with pytest.raises(DamagedStore, match="no whole number"):
        Blob(tmp_path / "b", np.uint64, entry)


def test_too_few_sums(tmp_path: Path) -> None:
    path, entry = fresh(tmp_path)
    sums = sum_path(path).read_bytes()[:-8]
    sum_path(path).write_bytes(sums)
    with pytest.raises(DamagedStore, match="checksums"):
        Blob(path, np.uint64, entry | {"sums": f"{checksum(sums):016x}"})


def test_a_failed_write_leaves_no_open_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    writers: list[BlobWriter] = []
    append = BlobWriter.append

    def watched(self: BlobWriter, values: np.ndarray) -> None:
        writers.append(self)
        append(self, values)

    monkeypatch.setattr(BlobWriter, "append", watched)

    def pieces() -> Any:
        yield VALUES[:10]
        raise RuntimeError("the source broke")

    with pytest.raises(RuntimeError):
        write_blob(tmp_path / "b", pieces())
    assert writers[0]._file.closed
