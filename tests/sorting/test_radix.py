"""Radix sort against NumPy's, for keys of every shape."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.sorting.radix import FITS, sort_keys, sort_pairs


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(0, (1 << 64) - 1) | st.integers(0, 7), max_size=300), st.integers(1, 3))
def test_sorts_and_is_stable(values: list[int], threads: int) -> None:
    keys = np.array(values, np.uint64)
    expected = np.argsort(keys, kind="stable")
    found, _ = sort_keys(keys.copy(), np.empty_like(keys), threads)
    assert (found == keys[expected]).all()
    ranks = np.arange(len(keys), dtype=np.uint32)
    found, carried, *_ = sort_pairs(keys.copy(), ranks, np.empty_like(keys), np.empty_like(ranks), threads)
    assert (found == keys[expected]).all()
    assert (carried == expected).all()


def shaped(shape: str, count: int) -> np.ndarray:
    """Keys that take each way through the sort."""
    random = np.random.default_rng(count)
    if shape.startswith("bits"):
        return random.integers(0, (1 << int(shape[5:])) - 1, count, dtype=np.uint64, endpoint=True)
    if shape == "one far away":  # a single bucket gets nearly everything and is cut again
        keys = random.integers(0, 1 << 30, count, dtype=np.uint64)
        keys[count // 2] = (1 << 64) - 1
        return keys
    if shape == "low bits only":  # upper digits tell nothing apart: insertion gives up
        high = random.integers(0, 64, count, dtype=np.uint64) << np.uint64(58)
        return high | random.integers(0, 1 << 20, count, dtype=np.uint64) | np.uint64(1 << 40)
    if shape == "sorted":
        return np.arange(count, dtype=np.uint64) * np.uint64(977)
    if shape == "few":
        return random.choice(np.array([3, 1 << 50, (1 << 64) - 2], np.uint64), count)
    return np.left_shift(np.uint64(1), random.integers(0, 64, count, dtype=np.uint64))


@pytest.mark.parametrize(
    "shape", ["bits 1", "bits 11", "bits 44", "bits 64", "one far away", "low bits only", "sorted", "few", "powers"]
)
@pytest.mark.parametrize("count", [FITS - 1, 9 * FITS])
def test_shapes_of_keys(shape: str, count: int) -> None:
    keys = shaped(shape, count)
    expected = np.argsort(keys, kind="stable")
    found, _ = sort_keys(keys.copy(), np.empty_like(keys), 2)
    assert (found == keys[expected]).all()
    ranks = np.arange(count, dtype=np.uint32)
    found, carried, *_ = sort_pairs(keys.copy(), ranks, np.empty_like(keys), np.empty_like(ranks), 2)
    assert (found == keys[expected]).all()
    assert (carried == expected).all()


def test_pairs_that_lie_side_by_side() -> None:
    rows = np.random.default_rng(0).integers(0, 1 << 40, (3 * FITS, 2), dtype=np.uint64)
    scratch = np.empty_like(rows)
    found, carried, *_ = sort_pairs(*rows.copy().T, *scratch.T, 2)
    expected = rows[np.argsort(rows[:, 0], kind="stable")]
    assert (found == expected[:, 0]).all()
    assert (carried == expected[:, 1]).all()
