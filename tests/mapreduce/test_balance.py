"""Longest processing time first: the papers' example, its bound, and what it is compared with."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.errors import UsageError
from penstock.mapreduce.balance import compare, imbalance, lpt, round_robin


def test_the_papers_example() -> None:
    dealt = lpt([8, 5, 4, 3, 1], 3)
    assert dealt.part.tolist() == [0, 1, 2, 2, 1]
    assert dealt.loads.tolist() == [8, 6, 7]
    assert dealt.imbalance == pytest.approx((8 - 7) / 7 * 100)
    other = round_robin([8, 5, 4, 3, 1], 3)
    assert other.loads.tolist() == [11, 6, 4]
    assert other.imbalance == pytest.approx((11 - 7) / 7 * 100)


@given(st.lists(st.integers(0, 50), min_size=1, max_size=7), st.integers(1, 4))
@settings(max_examples=60, deadline=None)
def test_within_four_thirds_of_the_best(weights: list[int], parts: int) -> None:
    dealt = lpt(weights, parts)
    assert np.bincount(dealt.part, weights, minlength=parts).tolist() == dealt.loads.tolist()
    ways = itertools.product(range(parts), repeat=len(weights))
    best = min(np.bincount(way, weights, minlength=parts).max() for way in ways)
    assert dealt.loads.max() <= best * (4 / 3 - 1 / (3 * parts)) + 1e-9


def test_many_parts_and_ties_go_by_number() -> None:
    weights = np.random.default_rng(1).zipf(1.8, 3000).clip(max=10_000)
    loads = [0] * 37
    expected = np.empty(3000, np.int64)
    for item in np.argsort(-weights, kind="stable"):
        taker = loads.index(min(loads))
        loads[taker] += int(weights[item])
        expected[item] = taker
    assert lpt(weights, 37).part.tolist() == expected.tolist()


def test_skewed_degrees_are_dealt_out_more_evenly() -> None:
    # The degrees of a skewed Kronecker graph (0.80, 0.05, 0.05, 0.10): a product over the bits of the vertex.
    ids = np.arange(1 << 14)
    ones = np.array([int(number).bit_count() for number in ids])
    degrees = np.round(16 * len(ids) * 0.85 ** (14 - ones) * 0.15**ones)
    found = compare(degrees, 32)
    assert found["lpt"] < found["round robin"] / 2


def test_the_measure() -> None:
    assert imbalance([4, 4, 4]) == 0
    assert imbalance([6, 3, 3]) == pytest.approx(50)
    assert imbalance([0, 0]) == imbalance([]) == 0
    assert lpt([], 3).loads.tolist() == [0, 0, 0]


@pytest.mark.parametrize(("weights", "parts"), [([1], 0), ([-1], 2), ([np.nan], 2), ([[1]], 2)])
def test_bad_weights_are_refused(weights: list[float], parts: int) -> None:
    with pytest.raises(UsageError):
        lpt(weights, parts)
