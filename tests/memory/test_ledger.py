from __future__ import annotations

import gc
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from penstock.errors import DoesNotFit
from penstock.memory.ledger import Ledger
from penstock.observe.events import recording

MIB = 1 << 20


def test_reservations_add_up_and_release_once() -> None:
    ledger = Ledger(1000)
    a = ledger.reserve(300, "degrees")
    with ledger.reserve(200, "ring"):
        assert (ledger.used, ledger.free) == (500, 500)
        assert ledger.heartbeat() == {
            "used": 500,
            "peak": 500,
            "limit": 1000,
            "escaped": 0,
            "what": {"degrees": 300, "ring": 200},
        }
    a.release()
    a.release()
    assert (ledger.used, ledger.peak, ledger.heartbeat()["what"]) == (0, 500, {})
    ledger.reserve(100, "less than before")
    assert ledger.peak == 500


def test_what_does_not_fit_says_what_would() -> None:
    ledger = Ledger(1000)
    ledger.reserve(900, "a")
    with pytest.raises(DoesNotFit) as caught:
        ledger.reserve(200, "the sort buffer")
    assert (caught.value.needed, caught.value.limit) == (1100, 1000)
    assert "the sort buffer" in str(caught.value)
    assert ledger.used == 900
    ledger.reserve(100, "fits exactly")
    with pytest.raises(ValueError, match="-1"):
        ledger.reserve(-1, "nonsense")


def test_resize() -> None:
    ledger = Ledger(1000)
    a = ledger.reserve(100, "a")
    a.resize(600)
    assert ledger.used == 600
    with pytest.raises(DoesNotFit):
        a.resize(1001)
    assert (ledger.used, a.nbytes) == (600, 600)
    a.resize(50)
    assert (ledger.used, ledger.peak) == (50, 600)
    a.release()
    assert ledger.used == 0
    with pytest.raises(ValueError, match="released"):
        a.resize(10)


def test_many_threads_never_pass_the_limit_and_lose_nothing() -> None:
    ledger = Ledger(1000)
    refused = []

    def churn(seed: int) -> None:
        random = np.random.default_rng(seed)
        for nbytes in [1, 0, *random.integers(1, 500, 400).tolist()]:
            try:
                with ledger.reserve(nbytes, f"thread {seed}") as held:
                    held.resize(nbytes // 2)
                    assert ledger.used <= 1000
            except DoesNotFit:
                refused.append(nbytes)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(churn, range(8)))
    assert ledger.used == 0
    assert ledger.heartbeat()["what"] == {}
    assert 0 < ledger.peak <= 1000


@pytest.mark.parametrize("count", [0, 3, MIB // 8, 3 * MIB])
def test_scope_gives_arrays_and_takes_all_back(count: int) -> None:
    ledger = Ledger(100 * MIB)
    with ledger.scope("stage") as scope:
        a = scope.empty(count, np.float64, "values")
        b = scope.zeros((2, count), np.uint16)
        scope.reserve(77, "other")
        assert (a.shape, a.dtype, b.shape, b.dtype) == ((count,), np.float64, (2, count), np.uint16)
        assert not b.any()
        what = ledger.heartbeat()["what"]
        assert what.get("values", 0) >= a.nbytes
        assert what.get("stage", 0) >= b.nbytes
        assert a.nbytes + b.nbytes + 77 <= ledger.used < a.nbytes + b.nbytes + 77 + 2 * 4096
        scope.release(a)
        assert "values" not in ledger.heartbeat()["what"]
        with pytest.raises(ValueError, match="stage"):
            scope.release(a)
    assert ledger.used == 0


def test_scope_releases_on_error_and_shows_what_escaped() -> None:
    ledger = Ledger(100 * MIB)
    kept = []
    with pytest.raises(DoesNotFit), ledger.scope("stage") as scope:  # noqa: PT012
        kept.append(scope.empty(2 * MIB, np.uint8, "a"))
        scope.empty(MIB, np.uint8, "b")
        scope.empty(200 * MIB, np.uint8, "too much")
    assert (ledger.used, ledger.heartbeat()["escaped"]) == (0, 2 * MIB)
    kept.clear()
    gc.collect()
    assert ledger.heartbeat()["escaped"] == 0


@pytest.mark.parametrize("count", [10, 2 * MIB])
def test_array_outside_a_scope_is_held_until_its_last_view_dies(count: int) -> None:
    ledger = Ledger(10 * MIB)
    array = ledger.zeros(count, np.uint8, "state")
    view = array[1:5].view(np.uint16)
    used = ledger.used
    assert used >= count
    del array
    assert ledger.used == used
    del view
    assert ledger.used == 0
    assert ledger.empty((3, 4), np.int32, "x").shape == (3, 4)


def test_what_held_the_most_is_known_afterwards() -> None:
    ledger = Ledger(1 << 20)
    first = ledger.reserve(300, "ring")
    with ledger.reserve(500, "cache"):
        first.resize(400)
    ledger.reserve(100, "later")
    assert ledger.peak == 900
    assert ledger.at_peak == {"ring": 400, "cache": 500}


def test_who_records_sees_the_account_rise_and_fall() -> None:
    with recording() as events:
        ledger, device = Ledger(1 << 30), Ledger(1 << 30, "gpu_memory_limit")
    with ledger.reserve(1 << 20, "ring"), device.reserve(1 << 17, "frames"):
        ledger.reserve(8, "small")
    levels = [(level.name, level.value) for level in events.levels]
    assert levels == [
        ("host memory/ring", 1 << 20),
        ("device memory/frames", 1 << 17),
        ("device memory/frames", 0),
        ("host memory/ring", 0),
    ]
