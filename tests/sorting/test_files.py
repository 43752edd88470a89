"""Files of records, sorted into files of records, in core and out of core."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from penstock.errors import DiskFull, InputError, TargetExists
from penstock.sorting.files import sort_file


def records(count: int, keys: int) -> np.ndarray:
    made = np.empty((count, 2), np.uint64)
    made[:, 0] = np.random.default_rng(count).integers(0, keys, count, dtype=np.uint64)
    made[:, 1] = np.arange(count)
    return made


@pytest.mark.parametrize("count", [0, 1, 255, 256, 90_001, 400_000])
@pytest.mark.parametrize("keys", [1, 1000, 1 << 63])
@pytest.mark.parametrize("memory", [1 << 20, 1 << 26])
def test_same_as_numpy(tmp_path: Path, count: int, keys: int, memory: int) -> None:
    rows = records(count, keys)
    source, target = tmp_path / "in", tmp_path / "out"
    rows.tofile(source)
    done = sort_file(source, target, memory=memory, threads=2)
    assert done.records == count
    assert done.in_core == (done.spilled == 0)
    assert done.in_core == (count < 90_000 or memory > 1 << 20)
    found = np.fromfile(target, np.uint64).reshape(-1, 2)
    assert (found == rows[np.argsort(rows[:, 0], kind="stable")]).all()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in", "out"]


def test_refusals(tmp_path: Path) -> None:
    source, target = tmp_path / "in", tmp_path / "out"
    with pytest.raises(InputError, match="no such file"):
        sort_file(source, target, memory=1 << 26, threads=2)
    source.write_bytes(bytes(17))
    with pytest.raises(InputError, match="17 bytes are no whole number of 16-byte records"):
        sort_file(source, target, memory=1 << 26, threads=2)
    source.write_bytes(bytes(16))
    target.write_bytes(b"mine")
    with pytest.raises(TargetExists):
        sort_file(source, target, memory=1 << 26, threads=2)
    assert target.read_bytes() == b"mine"
    sort_file(source, target, memory=1 << 26, threads=2, overwrite=True)
    assert target.read_bytes() == bytes(16)


def test_a_quota_leaves_nothing(tmp_path: Path) -> None:
    source = tmp_path / "in"
    records(200_000, 1 << 60).tofile(source)
    with pytest.raises(DiskFull, match="max_temp_directory_size"):
        sort_file(source, tmp_path / "out", memory=1 << 20, threads=2, quota=100_000)
    assert [path.name for path in tmp_path.iterdir()] == ["in"]
