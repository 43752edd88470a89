"""Copies through a pinned stage: here the device copies at once, or only what is waited for."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any, ClassVar

import numpy as np
import pytest

from penstock.memory import gpu, staging
from penstock.memory.gpu import arrays


class Late:
    """A stream that copies only what is waited for; or early, at once."""

    begun: ClassVar[list[Callable[[], None]]] = []
    early = failing = False

    def __init__(self, *, null: bool = False) -> None:
        assert null  # it is to come after all that was started

    def copy(self, target: np.ndarray, source: np.ndarray) -> None:
        self.begun.append(lambda: np.copyto(target, source))
        if self.early:
            self.synchronize()

    fetch = copy

    def record(self) -> Any:
        count = len(self.begun)

        class Event:
            def synchronize(self) -> None:
                if Late.failing:
                    raise RuntimeError("the device is gone")
                for place in range(min(count, len(Late.begun))):
                    done, Late.begun[place] = Late.begun[place], lambda: None
                    done()

        return Event()

    def synchronize(self) -> None:
        for each in self.begun:
            each()
        self.begun.clear()


@pytest.fixture(scope="module", autouse=True)
def no_threads_left() -> Iterator[None]:
    yield
    staging._crew().shutdown()
    staging._crew.cache_clear()


@pytest.fixture(autouse=True, params=[False, True], ids=["late", "early"])
def small(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> list[int]:
    """A stage of two halves of 64 bytes, copied by all threads; how often one was asked for."""
    taken: list[int] = []

    def pinned(nbytes: int) -> np.ndarray | None:
        taken.append(nbytes)
        return np.zeros(nbytes, np.uint8) if len(taken) % 2 else None

    Late.begun, Late.early, Late.failing = [], request.param, False
    monkeypatch.setattr(gpu, "Stream", Late)
    monkeypatch.setattr(gpu, "using", lambda device: contextlib.nullcontext())
    monkeypatch.setattr(gpu, "device_of", lambda array: 0)
    monkeypatch.setattr(gpu, "pinned", pinned)
    monkeypatch.setattr(arrays, "STAGED", 64)
    monkeypatch.setattr(staging, "HALF", 64)
    monkeypatch.setattr(staging, "_PART", 10)
    return taken


@pytest.mark.parametrize("count", [8, 9, 16, 17, 24, 25, 1000])
def test_there_and_back(small: list[int], count: int) -> None:
    given = np.random.default_rng(count).integers(0, 1 << 60, count)
    there, back = np.zeros(count, np.int64), np.zeros(count, np.int64)
    gpu.fill(there, given)
    assert np.array_equal(there, given)
    assert gpu.download(there, back) is back
    assert np.array_equal(back, given)
    assert np.array_equal(gpu.download(there), given)
    assert small == [64] * 6


def test_any_type_and_shape() -> None:
    for dtype in (np.bool_, np.uint8, np.float32, np.complex128):
        given = np.arange(300).reshape(3, 100).astype(dtype)
        there, back = np.zeros_like(given), np.zeros_like(given)
        gpu.fill(there, given)
        assert np.array_equal(gpu.download(there, back), given)


def test_a_part_of_an_array() -> None:
    there, back = np.arange(500), np.zeros(700, np.int64)
    gpu.download(there[100:400], back[50:350])
    assert np.array_equal(back[50:350], there[100:400])
    assert not back[:50].any()
    assert not back[350:].any()


def test_a_copy_that_fails_leaves_nothing_under_way() -> None:
    Late.failing = True
    for copy in (staging.upload, staging.download):
        with pytest.raises(RuntimeError, match="the device is gone"):
            copy(np.zeros(500, np.int64), np.zeros(500, np.int64))
        assert Late.begun == []
