"""A file that is there whole or not at all: written under a locked temporary name beside it, renamed at the end."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

from penstock.errors import DiskFull, PenstockError, StoreError, TargetExists, TargetLocked

_FULL = {
    errno.ENOSPC: "no space left on the disk",
    errno.EDQUOT: "the user's disk quota is used up",
    errno.EFBIG: "the file grew past the largest size allowed here (ulimit -f)",
}


@contextlib.contextmanager
def whole_file(target: Path, *, overwrite: bool = False) -> Iterator[Path]:
    """The path to write to. It becomes `target` when the block ends well, and vanishes when it does not."""
    check_target(target, overwrite)
    partial = target.with_name(f".{target.name}.tmp")
    lock = _locked(partial, target)
    try:
        with explained(target):
            yield partial
            os.fsync(lock)
            check_target(target, overwrite)  # somebody may have made it while we wrote
            os.replace(partial, target)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise
    finally:
        os.close(lock)


def check_target(target: Path, overwrite: bool) -> None:
    """Refuse a target that is there and must not be replaced."""
    if not target.parent.is_dir():
        raise StoreError(f"cannot write {target}: there is no folder {target.parent}")
    if os.path.lexists(target):
        if not overwrite:
            raise TargetExists(f"{target} exists: choose another name or pass --overwrite (overwrite=True)")
        if not target.is_file():
            raise TargetExists(f"{target} is not a file: it is not overwritten; remove it by hand")


def _locked(partial: Path, target: Path) -> int:
    """The temporary file, empty and ours. What a killed run left under this name is used again."""
    try:
        lock = os.open(partial, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    except OSError as error:
        raise StoreError(f"cannot write {target}: {error.strerror}") from None
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        # A file system without locks: two runs at once are the user's own doing there.
        mine = error.errno not in (errno.EWOULDBLOCK, errno.EACCES)
    else:
        mine = _same(lock, partial)
    if not mine:
        os.close(lock)
        raise TargetLocked(f"{target} is being written by another run: wait for it or stop it")
    os.ftruncate(lock, 0)
    return lock


def _same(descriptor: int, path: Path) -> bool:
    """Between opening and locking, the one who had the file may have renamed it into place: then it is not ours."""
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False


@contextlib.contextmanager
def explained(target: Path) -> Iterator[None]:
    """Errors of the operating system as sentences."""
    try:
        yield
    except PenstockError:
        raise
    except OSError as error:
        if error.errno in _FULL:
            raise DiskFull(f"cannot write {target}: {_FULL[error.errno]}") from error
        raise StoreError(f"cannot write {target}: {error.strerror or error}") from error


__all__ = ["check_target", "explained", "whole_file"]
