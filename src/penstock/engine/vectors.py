"""The vectors of a run, one value (or row of lanes) per slot: in memory, or in files of which a window is in memory.

A slot is an active vertex, by its number; after them one for each isolated vertex that is a seed; last a slot that
stands for all other isolated vertices, which are alike.
"""

from __future__ import annotations

import contextlib
import errno
import mmap
import os
import sys
import tempfile
import weakref
from bisect import bisect_left
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from penstock.config import Settings, format_size
from penstock.errors import DiskFull
from penstock.memory.ledger import Ledger
from penstock.store.reader import Store

AROUND = 1 << 16
"""Bytes on each side of a touched place that the kernel maps with it."""
_POPULATE_WRITE = 23
"""MADV_POPULATE_WRITE, which the mmap module does not name."""


class Slots:
    """Which slot stands for which vertex."""

    def __init__(self, store: Store, seeds: Sequence[int] = ()) -> None:
        self.active, self.vertices = store.active, store.vertices
        self.seeds = list(dict.fromkeys(map(int, seeds)))
        """Each once, in the order in which they were first given."""
        self.alone = sorted(seed for seed in self.seeds if seed >= self.active)
        """Seeds without arcs."""
        self.body = self.active + len(self.alone)
        self.count = self.body + 1
        self.rest = self.vertices - self.body
        """How many vertices the last slot stands for."""

    def of(self, number: int) -> int:
        """The slot of a vertex that is active or a seed."""
        return number if number < self.active else self.active + bisect_left(self.alone, number)

    def seed_column(self) -> np.ndarray:
        """1 + its place among the seeds for each seed, 0 for all others."""
        found = np.zeros(self.count, np.uint32)
        for place, number in enumerate(self.seeds, 1):
            found[self.of(number)] = place
        return found


class Vectors:
    """Makes vectors; gives memory or files back at the end."""

    def __init__(self, ledger: Ledger, settings: Settings, beside: Path) -> None:
        self.ledger, self._settings, self._beside = ledger, settings, beside
        # Programs come and go: the files of one that is done must not outlive it.
        self._maps: list[weakref.ref[mmap.mmap]] = []
        self.spilled = 0
        """Bytes in files so far."""

    def make(self, slots: int, dtype: Any, what: str, *, lanes: int = 1, spilled: bool = False) -> np.ndarray:
        """Zeros. A spilled vector lies in a file: touch it a window at a time, and `drop` what is done."""
        shape = slots if lanes == 1 else (slots, lanes)
        if not spilled:
            return self.ledger.zeros(shape, dtype, what)
        place = self._settings.temp_directory
        if place is not None:
            place.mkdir(parents=True, exist_ok=True)
        self._maps = [held for held in self._maps if held() is not None]
        # A file without a name: a run that is killed leaves nothing behind.
        with tempfile.TemporaryFile(prefix=".penstock-state-", dir=place or self._beside) as file:
            self._allocate(file.fileno(), slots * lanes * np.dtype(dtype).itemsize, what)
            mapped = np.memmap(file, dtype, "r+", shape=shape)
        self._maps.append(weakref.ref(mapped._mmap))  # type: ignore[attr-defined]
        self.spilled += mapped.nbytes
        return np.asarray(mapped)

    def _allocate(self, descriptor: int, nbytes: int, what: str) -> None:
        """Have the space now: a disk that is full when a mapped page is written ends the process."""
        place, quota = self._settings.temp_directory or self._beside, self._settings.max_temp_directory_size
        needed = f"{what} of a run needs {format_size(nbytes)} of temporary files in {place}"
        used = sum(len(raw) for held in self._maps if (raw := held()) is not None)
        if quota is not None and used + nbytes > quota:
            raise DiskFull(f"{needed}, but max_temp_directory_size is {format_size(quota)}: raise it or memory_limit")
        if not hasattr(os, "posix_fallocate"):
            return
        try:
            os.posix_fallocate(descriptor, 0, nbytes)
        except OSError as error:
            if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
                raise
            advice = "free some space or set temp_directory to a larger disk"
            raise DiskFull(f"{needed}, but there is no such space: {advice}") from error

    def drop(self) -> None:
        """Let the pages go that were touched: the kernel has them, and writes what was changed when it likes."""
        if hasattr(mmap, "MADV_DONTNEED"):
            for held in self._maps:
                if (raw := held()) is not None:
                    raw.madvise(mmap.MADV_DONTNEED)

    def close(self) -> None:
        """Let the files go. Vectors in them stay readable while someone holds them."""
        self._maps.clear()


def fetch(vector: np.ndarray, begin: int, end: int) -> None:
    """Map the pages of these items of a spilled vector at once, to be written: a third of what touching each takes."""
    held = _mapping(vector)
    if held is None or sys.platform != "linux":
        return
    first = begin * vector.itemsize // mmap.PAGESIZE * mmap.PAGESIZE
    with contextlib.suppress(OSError):  # before Linux 5.14
        held.madvise(_POPULATE_WRITE, first, end * vector.itemsize - first)


def let_go(vector: np.ndarray, begin: int, end: int) -> None:
    """Let the pages go that hold these items of a spilled vector; one in memory stays as it is."""
    held = _mapping(vector)
    if held is None or not hasattr(mmap, "MADV_DONTNEED"):
        return
    first = max(0, begin * vector.itemsize - AROUND) // mmap.PAGESIZE * mmap.PAGESIZE
    last = min(len(held), end * vector.itemsize + AROUND)
    if first < last:
        held.madvise(mmap.MADV_DONTNEED, first, last - first)


def in_file(vector: np.ndarray) -> bool:
    """Whether it is a spilled one."""
    return _mapping(vector) is not None


def _mapping(vector: np.ndarray) -> mmap.mmap | None:
    held: Any = vector
    while isinstance(held, np.ndarray):
        held = held.base
    return held if isinstance(held, mmap.mmap) else None


__all__ = ["AROUND", "Slots", "Vectors", "fetch", "in_file", "let_go"]
