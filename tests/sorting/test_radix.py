"""Radix sort against NumPy's, for keys of every shape."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.sorting.radix import _digits, sort_keys, sort_pairs


@given(st.integers(0, (1 << 64) - 1))
def test_digits_cover_every_varying_bit_and_stay_narrow(varying: int) -> None:
    covered = 0
    last = -1
    for shift, bits in _digits(varying):
        assert shift > last
        assert 1 <= bits <= 10
        covered |= ((1 << bits) - 1) << shift
        last = shift + bits - 1
    assert varying & ~covered == 0


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


@pytest.mark.parametrize("bits", [1, 10, 11, 44, 64])
def test_large(bits: int) -> None:
    keys = np.random.default_rng(bits).integers(0, (1 << bits) - 1, 200_000, dtype=np.uint64, endpoint=True)
    found, _ = sort_keys(keys.copy(), np.empty_like(keys), 2)
    assert (found == np.sort(keys)).all()
