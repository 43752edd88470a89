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
from penstock.memory.device import parallel_kernel, prange

HALF = 8 << 20
"""Bytes. The pool of pinned memory keeps both halves for the next copy."""

_THREADS = max(4, min(8, available_threads() // 2))
"""Copy as fast as the bus: one alone does 8 GB/s, less into memory that is touched for the first time."""
_PART = 1 << 20
"""Bytes that are worth another thread."""


@functools.cache
def _crew() -> ThreadPoolExecutor:
    # Twice: copies go both ways at the same time.
    return ThreadPoolExecutor(max(1, min(2 * _THREADS, available_threads())), "penstock-staging")


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


@parallel_kernel()
def _copy_words(target, source, parts):
    n = np.uint64(source.size)
    for part in prange(parts):
        begin, end = n * np.uint64(part) // np.uint64(parts), n * np.uint64(part + 1) // np.uint64(parts)
        target[begin:end] = source[begin:end]


def copy_bytes(target: np.ndarray, source: np.ndarray) -> None:
    """Between arrays of the host without gaps and of the same bytes, by all threads. One thread at a time calls this,
    and it pays for less than copies by a pool of threads do."""
    flat, given = _flat(target), _flat(source)
    words = given.nbytes // 8 * 8
    if words < _PART:
        flat[...] = given
        return
    parts = min(available_threads(), -(-words // _PART))
    _copy_words(flat[:words].view(np.uint64), given[:words].view(np.uint64), parts)
    flat[words:] = given[words:]


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


class Ring:
    """Pieces of pinned memory that copies on any stream go through, one direction for each ring. Unlike `upload` and
    `download` it holds up no other stream. One thread at a time."""

    def __init__(self, nbytes: int = HALF, pieces: int = 3) -> None:
        """Pieces of at most so many bytes, and of 4 KiB at least: powers of two, as the pool has no others."""
        size = 1 << max(12, nbytes.bit_length() - 1)
        self.nbytes = size * pieces
        found = [gpu.pinned(size) for _ in range(pieces)]
        self._pieces = [np.empty(size, np.uint8) if piece is None else piece for piece in found]
        self._events: list[gpu.Event | None] = [None] * pieces
        self._next = 0

    def send(self, stream: gpu.Stream, target: Any, source: np.ndarray) -> None:
        """Begin to copy host memory to the device. The source is read when this returns, and may be changed."""
        flat, given = _flat(target), _flat(source)
        step = len(self._pieces[0])
        for a in range(0, given.nbytes, step):
            b = min(a + step, given.nbytes)
            number, piece = self._take()
            _copy(piece[: b - a], given[a:b])
            stream.copy(flat[a:b], piece[: b - a])
            self._events[number] = stream.record()

    def receive(self, stream: gpu.Stream, target: np.ndarray, source: Any) -> None:
        """Copy an array on the device to the host, after what was put into the stream before; complete when this
        returns."""
        flat, out = _flat(source), _flat(target)
        step = len(self._pieces[0])
        waiting: list[tuple[int, int, int]] = []

        def settle() -> None:
            number, a, b = waiting.pop(0)
            event = self._events[number]
            if event is not None:
                event.synchronize()
            _copy(out[a:b], self._pieces[number][: b - a])

        for a in range(0, flat.nbytes, step):
            b = min(a + step, flat.nbytes)
            if len(waiting) == len(self._pieces):
                settle()
            number, piece = self._take()
            stream.fetch(piece[: b - a], flat[a:b])
            self._events[number] = stream.record()
            waiting.append((number, a, b))
        while waiting:
            settle()

    def _take(self) -> tuple[int, np.ndarray]:
        number = self._next
        self._next = (number + 1) % len(self._pieces)
        event = self._events[number]
        if event is not None:
            event.synchronize()
        return number, self._pieces[number]


__all__ = ["HALF", "Ring", "copy_bytes", "download", "upload"]
