"""Copies between the device and memory that is not pinned. The driver does them slowly, by one thread, piece by piece;
here the device fills or empties one half of a small pinned stage while threads of the host copy the other."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from typing import Any

import numpy as np

from penstock.config import available_threads
from penstock.memory import gpu

HALF = 8 << 20
"""Bytes. The pool of pinned memory keeps both halves for the next copy."""

_THREADS = 4
"""Copy as fast as the bus: one alone does 8 GB/s, less into memory that is touched for the first time."""
_PART = 1 << 20
"""Bytes that are worth another thread."""


@functools.cache
def _crew() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(max(1, min(_THREADS, available_threads())), "penstock-staging")


def _copy(target: np.ndarray, source: np.ndarray) -> None:
    """Between arrays of bytes, by several threads; NumPy lets go of the GIL."""
    if source.nbytes <= _PART:
        target[...] = source
        return
    part = max(_PART, -(-source.nbytes // _THREADS))
    crew = _crew()
    begun = [
        crew.submit(np.copyto, target[a : a + part], source[a : a + part]) for a in range(part, source.nbytes, part)
    ]
    try:
        np.copyto(target[:part], source[:part])
    finally:
        wait(begun)  # the memory is somebody else's when this returns
    for one in begun:
        one.result()


def _halves() -> list[np.ndarray]:
    found = [gpu.pinned(HALF) for _ in range(2)]
    # Where nothing can be pinned this is no faster than the driver, and as right.
    return [np.empty(HALF, np.uint8) if half is None else half for half in found]


def _pieces(nbytes: int) -> Iterator[tuple[int, int]]:
    return ((a, min(a + HALF, nbytes)) for a in range(0, nbytes, HALF))


def _flat(array: Any) -> Any:
    """The bytes of an array without gaps, wherever it lies."""
    return array.reshape(-1).view(np.uint8)


def download(array: Any, out: np.ndarray) -> None:
    """Copy an array on the device into one of the host's, of the same bytes; complete when this returns. Like a plain
    copy it waits for what was put into streams before."""
    source, target = _flat(array), _flat(out)
    with gpu.using(gpu.device_of(array)):
        stream, halves = gpu.Stream(null=True), _halves()
        waiting: list[tuple[int, int, np.ndarray, gpu.Event]] = []

        def settle() -> None:
            a, b, half, event = waiting.pop(0)
            event.synchronize()
            _copy(target[a:b], half[: b - a])

        try:
            for k, (a, b) in enumerate(_pieces(source.nbytes)):
                if len(waiting) == 2:
                    settle()
                half = halves[k % 2]
                stream.fetch(half[: b - a], source[a:b])
                waiting.append((a, b, half, stream.record()))
            while waiting:
                settle()
        except BaseException:
            stream.synchronize()  # before the halves go to somebody else
            raise


def upload(target: Any, source: np.ndarray) -> None:
    """Copy an array of the host's into one on the device, of the same bytes; complete when this returns."""
    flat, given = _flat(target), _flat(source)
    with gpu.using(gpu.device_of(target)):
        stream, halves = gpu.Stream(null=True), _halves()
        sent: list[gpu.Event | None] = [None, None]
        try:
            for k, (a, b) in enumerate(_pieces(given.nbytes)):
                half, before = halves[k % 2], sent[k % 2]
                if before is not None:
                    before.synchronize()
                _copy(half[: b - a], given[a:b])
                stream.copy(flat[a:b], half[: b - a])
                sent[k % 2] = stream.record()
        finally:
            stream.synchronize()


__all__ = ["HALF", "download", "upload"]
