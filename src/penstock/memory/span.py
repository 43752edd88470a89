"""Frames of the device and pages in the host's memory as parts of one stretch of addresses: kernels that can read both
find a page of either by a frame number, counted from the lower one on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from penstock.memory import gpu
from penstock.memory.pinned import Pinned
from penstock.memory.shelf import NOWHERE


@dataclass(frozen=True)
class Span:
    """`words` reach over both; the frame numbers at which the device's frames and the host's pages begin."""

    words: Any
    device: int
    host: int


def span(pool: Any, stored: Pinned | None, page_words: int) -> Span | None:
    """Over the words of a pool and those that are stored. None where kernels cannot read the latter, where the one does
    not begin a whole number of pages from the other, or too many for a frame number."""
    if stored is None or not stored.mapped or not gpu.reads_host():
        return None
    size, kept = 4 * page_words, stored.arrays[0]
    device, host = gpu.address(pool), gpu.address(kept)
    start, end = min(device, host), max(device + pool.nbytes, host + kept.nbytes)
    if (device - host) % size or (end - start) // size >= int(NOWHERE):
        return None
    words = gpu.stretch(pool, start, (end - start) // np.dtype(np.uint32).itemsize)
    return Span(words, (device - start) // size, (host - start) // size)


__all__ = ["Span", "span"]
