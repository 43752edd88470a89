"""The C library's heap: freed arrays go back to the system, so that what the ledger counts is what the process has.

glibc raises the size from which on an array has pages of its own to that of the largest one freed, up to 32 MB. From
then on chunks come from the heap, between other things, and stay there when they are freed: 128 MiB of key-value
chunks took 200. Pages of their own cost page faults, so this is for work that waits for a disk anyway.
"""

from __future__ import annotations

import ctypes
import functools
from typing import Any

_MMAP_THRESHOLD = -3
"""M_MMAP_THRESHOLD of malloc.h."""
_OWN_PAGES = 1 << 20


@functools.cache
def _libc() -> Any:
    try:
        libc = ctypes.CDLL(None)
        return libc if hasattr(libc, "malloc_trim") and hasattr(libc, "mallopt") else None
    except (OSError, TypeError):
        return None


@functools.cache
def settle() -> None:
    """From now on, arrays of a MiB and more have pages of their own, which are gone when they are."""
    if _libc() is not None:
        _libc().mallopt(_MMAP_THRESHOLD, _OWN_PAGES)
    trim()


def trim() -> None:
    """Give back what is free inside the heap."""
    if _libc() is not None:
        _libc().malloc_trim(0)


__all__ = ["settle", "trim"]
