"""Pinned memory: little of it from a pool, and that of others while it is used. A driver stands in for the real one."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from penstock.memory import pinned
from penstock.memory.gpu import pinning as door
from penstock.memory.ledger import Ledger
from penstock.memory.pinned import Pinned, pinning


class Refused(Exception):
    pass


class Driver:
    """Counts what is asked for."""

    def __init__(self) -> None:
        self.pooled: list[int] = []
        self.registered: list[int] = []
        self.refuses = False
        runtime = SimpleNamespace(
            CUDARuntimeError=Refused, hostRegister=self._register, hostUnregister=self._unregister
        )
        self.cuda = SimpleNamespace(runtime=runtime, alloc_pinned_memory=self._pooled)

    def _pooled(self, nbytes: int) -> bytearray:
        if self.refuses:
            raise Refused
        self.pooled.append(nbytes)
        return bytearray(nbytes)

    def _register(self, address: int, nbytes: int, flags: int) -> None:
        if self.refuses:
            raise Refused
        self.registered.append(nbytes)

    def _unregister(self, address: int) -> None:
        if not self.registered:
            raise Refused
        self.registered.pop()


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch) -> Driver:
    made = Driver()
    monkeypatch.setattr(door, "SIMULATED", False)
    monkeypatch.setattr(door, "cupy", made)
    return made


def test_little_comes_from_the_pool_in_few_sizes(driver: Driver) -> None:
    ledger = Ledger(1 << 24)
    for count, size in ((1, 4096), (2049, 16384), (5 << 10, 32768), (1 << 20, 4 << 20)):
        held = Pinned(ledger, [(count, np.uint32), (0, np.float64)], "some")
        assert driver.pooled[-1] == size
        assert [len(array) for array in held.arrays] == [count, 0]
        held.arrays[0][:] = 7
        assert ledger.used == held.nbytes
        held.close()
    assert driver.registered == []
    assert ledger.used == 0


def test_much_is_pinned_by_itself(driver: Driver) -> None:
    held = Pinned(Ledger(1 << 24), [(pinned.POOLED + 1, np.uint8)], "much")
    assert (driver.pooled, driver.registered) == ([], [held.nbytes])
    held.close()
    assert driver.registered == []


def test_a_driver_that_refuses(driver: Driver) -> None:
    driver.refuses = True
    held = Pinned(Ledger(1 << 24), [(100, np.uint32)], "some")
    held.arrays[0][:] = 3
    held.close()


def test_memory_of_somebody_else_is_pinned_while_it_is_used(driver: Driver) -> None:
    with pinning(np.zeros(100, np.uint8)):
        assert driver.registered == [100]
    assert driver.registered == []
