"""The external sorter: same result whatever the budget, stable, and it cleans up after itself."""

from __future__ import annotations

import threading
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.errors import DiskFull
from penstock.memory.spill import Spill
from penstock.sorting.external import ExternalSorter
from penstock.sorting.partition import choose_splitters, partition


def sort(
    folder: Path,
    keys: np.ndarray,
    payload: dict[str, np.ndarray],
    *,
    memory: int,
    step: int = 700,
    quota: int | None = None,
    **kwargs: object,
) -> tuple[np.ndarray, dict[str, np.ndarray], Spill, int]:
    with Spill(folder, quota=quota) as spill:
        types = {name: values.dtype for name, values in payload.items()}
        sorter = ExternalSorter(spill, memory=memory, threads=2, payload=types, **kwargs)  # type: ignore[arg-type]
        for at in range(0, len(keys), step):
            sorter.add(keys[at : at + step], {name: values[at : at + step] for name, values in payload.items()})
        assert sorter.count == len(keys)
        runs = [(k.copy(), {name: values.copy() for name, values in p.items()}) for k, p in sorter.sorted()]
        assert spill.used == 0
        out = {name: np.concatenate([p[name] for _, p in runs]) for name in payload}
        return np.concatenate([k for k, _ in runs]), out, spill, len(runs)


@pytest.mark.parametrize("bits", [0, 1, 5, 20, 64])
@pytest.mark.parametrize("memory", [1, 200_000, 1 << 26])
@pytest.mark.parametrize("columns", [0, 2])
def test_same_as_a_stable_sort(tmp_path: Path, bits: int, memory: int, columns: int) -> None:
    rng = np.random.default_rng(bits)
    keys = rng.integers(0, (1 << bits) - 1, 30_000, dtype=np.uint64, endpoint=True)
    payload = (
        {"at": np.arange(len(keys), dtype=np.int64), "low": (keys & np.uint64(255)).astype(np.uint8)} if columns else {}
    )
    found, carried, spill, runs = sort(tmp_path, keys, payload, memory=memory)
    order = np.argsort(keys, kind="stable")
    assert (found == keys[order]).all()
    for name, values in carried.items():
        assert (values == payload[name][order]).all()
    assert (spill.written == 0) == (memory == 1 << 26)
    assert (runs > 1) == (memory < 1 << 26)


@settings(max_examples=30, deadline=None)
@given(st.lists(st.integers(0, (1 << 64) - 1) | st.integers(0, 3), min_size=1, max_size=4000), st.randoms())
def test_skewed_keys(tmp_path_factory: pytest.TempPathFactory, values: list[int], random: object) -> None:
    keys = np.array(values * 3, np.uint64)
    at = np.arange(len(keys), dtype=np.int64)
    found, carried, *_ = sort(tmp_path_factory.mktemp("s"), keys, {"at": at}, memory=1)
    order = np.argsort(keys, kind="stable")
    assert (found == keys[order]).all()
    assert (carried["at"] == order).all()


def test_input_that_is_sorted_already_splits_again(tmp_path: Path) -> None:
    # The first splitters know only the smallest keys: the last bucket gets nearly everything and must be split.
    keys = np.arange(50_000, dtype=np.uint64) << np.uint64(20)
    found, *_ = sort(tmp_path, keys, {}, memory=1, expected=None)
    assert (found == keys).all()


def test_given_splitters(tmp_path: Path) -> None:
    keys = np.random.default_rng(0).integers(0, 1 << 40, 20_000, dtype=np.uint64)
    splitters = np.array([1 << 38, 1 << 39], np.uint64)
    found, *_ = sort(tmp_path, keys, {}, memory=1, splitters=splitters, expected=len(keys))
    assert (found == np.sort(keys)).all()


@settings(max_examples=30, deadline=None)
@given(st.lists(st.integers(0, (1 << 64) - 1) | st.integers(0, 3), min_size=1, max_size=4000))
def test_grouping(tmp_path_factory: pytest.TempPathFactory, values: list[int]) -> None:
    """Equal keys come together, in input order, whatever the order of the groups."""
    keys = np.array(values * 3, np.uint64)
    at = np.arange(len(keys), dtype=np.int64)
    found, carried, *_ = sort(tmp_path_factory.mktemp("g"), keys, {"at": at}, memory=1, grouping=True)
    changes = np.flatnonzero(found[1:] != found[:-1]) + 1
    assert len(changes) + 1 == len(set(values))
    for group in np.split(np.arange(len(found)), changes):
        key = found[group[0]]
        assert carried["at"][group].tolist() == np.flatnonzero(keys == key).tolist()


def test_quota_is_an_error_and_leaves_nothing(tmp_path: Path) -> None:
    keys = np.random.default_rng(0).integers(0, 1 << 60, 50_000, dtype=np.uint64)
    with pytest.raises(DiskFull, match="max_temp_directory_size"):
        sort(tmp_path, keys, {}, memory=1, quota=10_000)
    assert list(tmp_path.iterdir()) == []


@given(st.lists(st.integers(0, 50), max_size=200), st.integers(1, 20))
def test_splitters_ascend_and_isolate_heavy_keys(sample: list[int], buckets: int) -> None:
    splitters = choose_splitters(np.array(sample, np.uint64), buckets)
    assert (np.diff(splitters.astype(np.int64)) > 0).all()


def test_partition_is_stable() -> None:
    keys = np.random.default_rng(1).integers(0, 100, 10_000, dtype=np.uint64)
    at = np.arange(len(keys), dtype=np.uint32)
    out, carried, position = np.empty_like(keys), np.empty_like(at), np.empty_like(at)
    splitters = np.array([10, 50, 51], np.uint64)
    bounds = partition(keys, [at], splitters, out, [carried], position, 2)
    assert bounds.tolist() == [0, *np.cumsum(np.bincount(np.searchsorted(splitters, keys, side="right"), minlength=4))]
    for begin, end in pairwise(bounds):
        assert (np.diff(carried[begin:end].astype(np.int64)) > 0).all()
    assert (keys[carried] == out).all()


@pytest.mark.parametrize("grouping", [False, True])
def test_a_bucket_of_one_key_is_not_halved_down_to_it(tmp_path: Path, grouping: bool) -> None:
    """Just too many copies for memory: one more pass isolates the key, wherever it lies in its bucket's range."""
    keys = np.full(ExternalSorter.capacity_for(1 << 18, {}) * 11 // 10, 5, np.uint64)
    splitters = None if grouping else np.array([1 << 40], np.uint64)
    with Spill(tmp_path) as spill:
        with ExternalSorter(spill, memory=1 << 18, threads=2, splitters=splitters, grouping=grouping) as sorter:
            sorter.add(keys)
            assert sum(len(run) for run, _ in sorter.sorted()) == len(keys)
        assert spill.written <= 2 * keys.nbytes


def test_closing_early_gives_everything_back(tmp_path: Path) -> None:
    """Also the parts of a bucket that was split on the way."""
    keys = np.random.default_rng(0).integers(0, 1 << 60, 200_000).astype(np.uint64)
    before = threading.active_count()
    with Spill(tmp_path) as spill:
        with ExternalSorter(spill, memory=1 << 18, threads=2, splitters=np.array([7], np.uint64)) as sorter:
            sorter.add(keys)
            next(sorter.sorted())
            assert spill.used > 0
        assert spill.used == 0
        assert threading.active_count() <= before + 1  # the spill's own reader


def test_a_low_estimate_does_not_starve_the_sorter(tmp_path: Path) -> None:
    with Spill(tmp_path) as spill, ExternalSorter(spill, memory=8 << 20, threads=2, expected=1) as sorter:
        assert sorter.capacity >= 1 << 16
