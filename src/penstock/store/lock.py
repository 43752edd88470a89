"""Who writes a target: a locked file beside it. The lock ends with its process, however that ends."""

from __future__ import annotations

import errno
import fcntl
import os
from pathlib import Path

from penstock.errors import StoreError, TargetLocked

_HELD = (errno.EWOULDBLOCK, errno.EACCES)


def lock_path(target: Path) -> Path:
    return target.parent / f".{target.name}.lock"


class Lock:
    """An exclusive lock on a target. It is a file of its own, for a draft is renamed when it is finished."""

    def __init__(self, target: Path) -> None:
        self.path = lock_path(target)
        while True:
            self._descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
            try:
                fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                owner = os.pread(self._descriptor, 32, 0).decode(errors="replace").strip() or "unknown"
                os.close(self._descriptor)
                if error.errno in _HELD:
                    raise TargetLocked(
                        f"{target} is being written by another run (process {owner}): wait for it or stop it"
                    ) from None
                raise StoreError(
                    f"{target.parent} is on a file system that cannot lock files ({error.strerror}): "
                    "build the store on another one and move it"
                ) from None
            # Its last holder removes the file: what was locked may no longer be what others will find.
            if _same_file(self._descriptor, self.path):
                break
            os.close(self._descriptor)
        os.ftruncate(self._descriptor, 0)
        os.pwrite(self._descriptor, str(os.getpid()).encode(), 0)

    def release(self) -> None:
        """Remove the file while it is still locked, then let go."""
        self.path.unlink(missing_ok=True)
        os.close(self._descriptor)


def is_locked(target: Path) -> bool:
    """Whether some process is writing the target."""
    try:
        descriptor = os.open(lock_path(target), os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError as error:
        return error.errno in _HELD
    finally:
        os.close(descriptor)
    return False


def _same_file(descriptor: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False
