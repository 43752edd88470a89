"""Temporary files of one run: in a private folder, under a quota, gone when the run is over, however it ends."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import shutil
import tempfile
import threading
import weakref
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any

from penstock.config import format_size
from penstock.errors import DamagedStore, DiskFull

PREFIX = "penstock-spill-"
_LOCK = "lock"
_VECTOR = min(1024, os.sysconf("SC_IOV_MAX"))
_PIECE = 1 << 30
_NO_LOCKS = (errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS)


def check_space(directory: Path, nbytes: int, what: str) -> None:
    """Raise DiskFull when the file system of `directory` has less than `nbytes` free."""
    free = shutil.disk_usage(directory).free
    if nbytes > free:
        raise DiskFull(
            f"{what} needs {format_size(nbytes)} of disk, but {directory} has {format_size(free)} free: "
            "free some space or set temp_directory to a larger disk"
        )


@contextlib.contextmanager
def _explained(directory: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            reason = "no space left on the disk" if error.errno == errno.ENOSPC else "the user's disk quota is used up"
            raise DiskFull(
                f"{directory}: {reason} while writing temporary files: "
                "free some space or set temp_directory to a larger disk"
            ) from error
        if error.errno == errno.EFBIG:
            raise DiskFull(
                f"{directory}: a temporary file grew past the largest size allowed here (ulimit -f): "
                "raise that limit or set temp_directory to another disk"
            ) from error
        raise


class SpillFile:
    """One temporary file: appended to, read back by offset, from any thread."""

    def __init__(self, spill: Spill, path: Path) -> None:
        self._spill, self.path = spill, path
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        self._lock = threading.Lock()
        self.size = 0

    def append(self, *buffers: Any) -> int:
        """Write the buffers one after the other; the offset of the first byte."""
        views = [memoryview(buffer).cast("B") for buffer in buffers if memoryview(buffer).nbytes]
        nbytes = sum(view.nbytes for view in views)
        with self._lock:
            self._spill._charge(nbytes)
            start, self.size = self.size, self.size + nbytes
        at = start
        with _explained(self._spill.directory):
            while views:
                batch, total = [], 0
                for view in views[:_VECTOR]:
                    batch.append(view[: _PIECE - total])
                    total += batch[-1].nbytes
                    if total == _PIECE:
                        break
                done = os.pwritev(self._descriptor, batch, at)
                at += done
                while views and done >= views[0].nbytes:
                    done -= views.pop(0).nbytes
                if done:
                    views[0] = views[0][done:]
        return start

    def read_into(self, offset: int, buffer: Any, *, drop: bool = False) -> None:
        """Fill `buffer` from `offset`; `drop` tells the kernel that these bytes are not needed again."""
        whole = memoryview(buffer)
        if not whole.nbytes:
            return
        view, at = whole.cast("B"), offset
        while view.nbytes:
            done = os.preadv(self._descriptor, [view[:_PIECE]], at)
            if not done:
                raise DamagedStore(f"{self.path}: the temporary file ends at byte {at}; something else cut it short")
            view, at = view[done:], at + done
        if drop and hasattr(os, "posix_fadvise"):
            os.posix_fadvise(self._descriptor, offset, whole.nbytes, os.POSIX_FADV_DONTNEED)
        self._spill._count_read(whole.nbytes)

    def sequential(self) -> None:
        """The file will be read from front to back: let the kernel read further ahead."""
        if hasattr(os, "posix_fadvise"):
            os.posix_fadvise(self._descriptor, 0, 0, os.POSIX_FADV_SEQUENTIAL)

    def close(self) -> None:
        """Close the descriptor; the bytes stay on disk and in the quota until `delete` or the end of the spill."""
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)

    def delete(self) -> None:
        """Remove the file and give its bytes back to the quota."""
        self.close()
        self._spill._forget(self)


def _remove(folder: Path) -> None:
    # The lock goes last: a removal that is cut short still looks stale to the next run.
    with contextlib.suppress(OSError):
        for entry in os.scandir(folder):
            if entry.name != _LOCK:
                with contextlib.suppress(OSError):
                    os.unlink(entry.path)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(folder / _LOCK)
        os.rmdir(folder)


def _remove_unlocked(folder: Path) -> None:
    """A folder without a lock: its run is just making one, or died before it did, or was removed by half."""
    with contextlib.suppress(OSError):
        littered = any(entry.name != _LOCK for entry in os.scandir(folder))
        # A living run locks before it makes any other file: files first and then still no lock means a dead one.
        if littered and not (folder / _LOCK).exists():
            _remove(folder)
        else:
            os.rmdir(folder)  # refused once there is a lock; a run that loses an empty folder makes another


def _sweep(directory: Path) -> None:
    """Remove the folders of runs that died: nobody holds their lock."""
    for folder in directory.glob(f"{PREFIX}*"):
        try:
            descriptor = os.open(folder / _LOCK, os.O_RDWR | os.O_CLOEXEC)
        except FileNotFoundError:
            _remove_unlocked(folder)
            continue
        except OSError:
            continue
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            _remove(folder)
        except OSError:
            pass
        finally:
            os.close(descriptor)


def _settle(directory: Path) -> tuple[Path, int]:
    """A new folder with its lock held. A sweep may take it away between the two steps: then try again."""
    while True:
        folder = Path(tempfile.mkdtemp(prefix=PREFIX, dir=directory))
        try:
            descriptor = os.open(folder / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except FileNotFoundError:
            continue
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.stat(folder / _LOCK).st_ino == os.fstat(descriptor).st_ino:
                return folder, descriptor
        except (BlockingIOError, FileNotFoundError):
            pass
        except OSError as error:
            if error.errno in _NO_LOCKS:
                return folder, descriptor
            os.close(descriptor)
            raise
        os.close(descriptor)


def _clean(folder: Path, descriptor: int, owner: int) -> None:
    if os.getpid() == owner:  # a forked child must not remove its parent's files
        _remove(folder)
    os.close(descriptor)


class Spill:
    """A private folder of temporary files below `directory`; `quota` None: 90 % of the space free there now."""

    def __init__(self, directory: Path, *, quota: int | None = None) -> None:
        self.directory = Path(directory)
        self.directory.mkdir(parents=True, exist_ok=True)
        _sweep(self.directory)
        self._own_quota = quota is not None
        self.quota = quota if quota is not None else shutil.disk_usage(self.directory).free * 9 // 10
        with _explained(self.directory):
            self.folder, descriptor = _settle(self.directory)
        self._lock = threading.Lock()
        self._files: set[SpillFile] = set()
        self.used = self.peak = self.written = self.read = 0
        # Also runs when the object is dropped and at interpreter exit.
        self._finalizer = weakref.finalize(self, _clean, self.folder, descriptor, os.getpid())

    def create(self, name: str) -> SpillFile:
        """A new, empty file."""
        with _explained(self.directory):
            file = SpillFile(self, self.folder / name)
        with self._lock:
            self._files.add(file)
        return file

    def require(self, nbytes: int, what: str) -> None:
        """Raise DiskFull now when `nbytes` more will not fit into the quota or on the disk."""
        if self.used + nbytes > self.quota:
            raise DiskFull(
                f"{what} needs {format_size(nbytes)} of temporary files in {self.directory}, but {self._allowance()} "
                f"and {format_size(self.used)} of it are used: {self._advice(self.used + nbytes)}"
            )
        check_space(self.directory, nbytes, what)

    def heartbeat(self) -> dict[str, int]:
        """Bytes on disk now and at most, the quota, and the traffic so far."""
        return {
            "used": self.used,
            "peak": self.peak,
            "limit": self.quota,
            "written": self.written,
            "read": self.read,
        }

    def close(self) -> None:
        """Remove the folder and all its files."""
        with self._lock:
            files, self._files, self.used = self._files, set(), 0
        for file in files:
            file.close()
        self._finalizer()

    def _allowance(self) -> str:
        source = "is" if self._own_quota else "is not set, so the quota is 90 % of the free space:"
        return f"max_temp_directory_size {source} {format_size(self.quota)}"

    def _advice(self, needed: int) -> str:
        if self._own_quota:
            return f"set max_temp_directory_size to at least {format_size(needed)}"
        return "free some space, set temp_directory to a larger disk or set max_temp_directory_size"

    def _charge(self, nbytes: int) -> None:
        with self._lock:
            if self.used + nbytes > self.quota:
                raise DiskFull(
                    f"{self.directory}: temporary files need {format_size(self.used + nbytes)}, but "
                    f"{self._allowance()}: {self._advice(self.used + nbytes)}"
                )
            self.used += nbytes
            self.peak = max(self.peak, self.used)
            self.written += nbytes

    def _count_read(self, nbytes: int) -> None:
        with self._lock:
            self.read += nbytes

    def _forget(self, file: SpillFile) -> None:
        with self._lock:
            if file not in self._files:
                return
            self._files.remove(file)
            self.used -= file.size
        with contextlib.suppress(FileNotFoundError):
            os.unlink(file.path)

    def __enter__(self) -> Spill:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.close()


__all__ = ["PREFIX", "Spill", "SpillFile", "check_space"]
