"""Where the stores of converted graphs lie: a folder of this process in shared memory, locked while it lives.

A NetworkX graph takes some 500 bytes per edge, its store about ten: it need not go to a disk. What a process left that
was killed is removed by the next one.
"""

from __future__ import annotations

import atexit
import os
import shutil
from pathlib import Path

from penstock.errors import StoreError
from penstock.store.lock import Lock, is_locked, lock_path

SHARED = Path("/dev/shm")
NAME = "penstock-nx-"
_ROOM = 64
"""Bytes of free shared memory wanted per edge before a store goes there."""
_mine: dict[int, Path | None] = {}


def shelf(edges: int) -> Path | None:
    """The folder, if there is room for a graph of so many edges; None: temporary files must do."""
    try:
        if shutil.disk_usage(SHARED).free < _ROOM * edges + (64 << 20):
            return None
    except OSError:
        return None
    process = os.getpid()  # a forked process has its own
    if process not in _mine:
        _mine[process] = _make(SHARED / f"{NAME}{os.getuid()}-{process}")
    return _mine[process]


def _make(folder: Path) -> Path | None:
    try:
        lock = Lock(folder)
        sweep(folder.parent)
        folder.mkdir(mode=0o700, exist_ok=True)
    except (OSError, StoreError):
        return None

    def remove(process: int = os.getpid()) -> None:
        if os.getpid() == process:
            shutil.rmtree(folder, ignore_errors=True)
            lock.release()

    atexit.register(remove)
    return folder


def sweep(place: Path) -> None:
    """Remove the folders of processes that are gone."""
    for folder in place.glob(f"{NAME}{os.getuid()}-*"):
        if not is_locked(folder):
            shutil.rmtree(folder, ignore_errors=True)
            lock_path(folder).unlink(missing_ok=True)


__all__ = ["shelf", "sweep"]
