"""Temporary files of one run: in a private folder, under a quota, gone when the run is over, however it ends."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import math
import os
import resource
import shutil
import tempfile
import threading
import weakref
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np

from penstock.config import format_size
from penstock.errors import DamagedStore, DiskFull
from penstock.memory.buffers import PAGE, align, allocate

PREFIX = "penstock-spill-"
_LOCK = "lock"
_PIECE = 1 << 30
BOUNCE = 2 << 20
"""Large enough for a disk to be fast, and one huge page."""
_KEPT_OPEN = 1024
"""Files that keep their descriptor, at most: a sorter has hundreds, and a process often no more than 1024."""
_NO_LOCKS = (errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS)


def check_space(directory: Path, nbytes: int, what: str) -> None:
    """Raise DiskFull when the file system of `directory` has less than `nbytes` free."""
    free = shutil.disk_usage(directory).free
    if nbytes > free:
        raise DiskFull(
            f"{what} needs {format_size(nbytes)} of disk, but {directory} has {format_size(free)} free: "
            "free some space or choose a larger disk"
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
    """One temporary file: appended to, read back by offset, from any thread.

    Written and read past the kernel's page cache where the file system allows it: spill is read once, and the pages
    it would fill are better left to others. What does not start or end on a block goes through a bounce buffer; the
    last, unfinished block stays in memory. A file that may not keep its descriptor (`keep`) is opened for each use.
    """

    def __init__(self, spill: Spill, path: Path, *, keep: bool = True) -> None:
        self._spill, self.path = spill, path
        self._flags = os.O_RDWR | os.O_CLOEXEC | getattr(os, "O_DIRECT", 0)
        self.direct = hasattr(os, "O_DIRECT")
        create = os.O_CREAT | os.O_EXCL
        try:
            self._descriptor = os.open(path, self._flags | create, 0o600)
        except OSError as error:
            if error.errno not in (errno.EINVAL, errno.ENOTSUP):
                raise
            path.unlink(missing_ok=True)
            self._flags, self.direct = os.O_RDWR | os.O_CLOEXEC, False
            self._descriptor = os.open(path, self._flags | create, 0o600)
        self._keep = keep
        if not keep:
            self.close()
        self._lock = threading.Lock()
        self._tail = np.empty(0, np.uint8)
        self.size = 0

    @contextlib.contextmanager
    def _opened(self) -> Iterator[int]:
        """A descriptor for one use."""
        if self._keep:
            yield self._descriptor
            return
        descriptor = os.open(self.path, self._flags)
        try:
            yield descriptor
        finally:
            os.close(descriptor)

    def append(self, *buffers: Any) -> int:
        """Write the buffers one after the other; the offset of the first byte."""
        views = [np.frombuffer(memoryview(buffer).cast("B"), np.uint8) for buffer in buffers if len(buffer)]
        nbytes = sum(len(view) for view in views)
        with self._lock:
            self._spill._charge(nbytes)
            start, self.size = self.size, self.size + nbytes
            with _explained(self._spill.directory), self._opened() as descriptor:
                self._write(descriptor, views, start)
        return start

    def _write(self, descriptor: int, views: list[np.ndarray], start: int) -> None:
        """Whole blocks to disk, what is left to the tail."""
        at = start - len(self._tail)
        bounce = self._spill._bounce()
        filled = len(self._tail)
        bounce[:filled] = self._tail
        for whole in views:
            view = whole
            while len(view):
                if not filled and len(view) >= len(bounce) and not view.ctypes.data % PAGE:
                    done = len(view) // PAGE * PAGE  # aligned already: no copy
                    _put(descriptor, view[:done], at)
                    at += done
                else:
                    done = min(len(view), len(bounce) - filled)
                    bounce[filled : filled + done] = view[:done]
                    filled += done
                    if filled == len(bounce):
                        _put(descriptor, bounce, at)
                        at += filled
                        filled = 0
                view = view[done:]
        blocks = filled // PAGE * PAGE
        _put(descriptor, bounce[:blocks], at)
        self._tail = bounce[blocks:filled].copy()

    def read_into(self, offset: int, buffer: Any) -> None:
        """Fill `buffer` from `offset`."""
        view = memoryview(buffer)
        if not view.nbytes:
            return
        target = np.frombuffer(view.cast("B"), np.uint8)
        with self._lock:
            tail, flushed = self._tail, self.size - len(self._tail)
        end = offset + len(target)
        if end > self.size:
            raise self._short(self.size)
        if end > flushed:
            begin = max(offset, flushed)
            target[begin - offset :] = tail[begin - flushed : end - flushed]
        if flushed > offset:
            with self._opened() as descriptor:
                self._read(descriptor, offset, target[: flushed - offset])
        self._spill._count_read(len(target))

    def _read(self, descriptor: int, offset: int, target: np.ndarray) -> None:
        """By two threads where it is much: one alone cannot keep a disk busy and copy out of the bounce buffer."""
        if len(target) >= 4 * BOUNCE:
            half = align(len(target) // 2)
            other = self._spill._reader.submit(self._read_part, descriptor, offset + half, target[half:])
            try:
                self._read_part(descriptor, offset, target[:half])
            finally:
                other.result()  # its descriptor is closed when we return
        else:
            self._read_part(descriptor, offset, target)

    def _read_part(self, descriptor: int, offset: int, target: np.ndarray) -> None:
        bounce = self._spill._bounce()
        while len(target):
            skip = offset % PAGE
            if not skip and len(target) >= len(bounce) and not target.ctypes.data % PAGE:
                want = min(len(target), _PIECE) // PAGE * PAGE
                self._get(descriptor, target[:want], offset)
            else:
                want = min(len(target), len(bounce) - skip)
                self._get(descriptor, bounce[: align(skip + want)], offset - skip)
                target[:want] = bounce[skip : skip + want]
            offset, target = offset + want, target[want:]

    def _get(self, descriptor: int, data: np.ndarray, at: int) -> None:
        done = 0
        while done < len(data):
            got = os.preadv(descriptor, [data[done:]], at + done)
            if not got:
                raise self._short(at + done)
            done += got

    def _short(self, at: int) -> DamagedStore:
        return DamagedStore(f"{self.path}: the temporary file ends at byte {at}; something else cut it short")

    def settle(self) -> None:
        """Bring the unfinished block to disk as well, for someone who reads the file by its path."""
        with self._lock, self.path.open("r+b") as file:
            file.seek(self.size - len(self._tail))
            file.write(self._tail)

    def close(self) -> None:
        """Close the descriptor; the bytes stay on disk and in the quota until `delete` or the end of the spill."""
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)

    def delete(self) -> None:
        """Remove the file and give its bytes back to the quota."""
        self.close()
        self._spill._forget(self)


def _put(descriptor: int, data: np.ndarray, at: int) -> None:
    done = 0
    while done < len(data):
        done += os.pwritev(descriptor, [data[done : done + _PIECE]], at + done)


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
        self._local = threading.local()
        self._reader = ThreadPoolExecutor(1, "penstock-spill-read")
        self._files: set[SpillFile] = set()
        # The rest is for the store's own files, for sources, and for whatever else the process does.
        self._kept_open = min(_KEPT_OPEN, resource.getrlimit(resource.RLIMIT_NOFILE)[0] // 4)
        self.used = self.peak = self.written = self.read = 0
        # Also runs when the object is dropped and at interpreter exit.
        self._finalizer = weakref.finalize(self, _clean, self.folder, descriptor, os.getpid())

    def _bounce(self) -> np.ndarray:
        """This thread's bounce buffer."""
        buffer: np.ndarray | None = getattr(self._local, "bounce", None)
        if buffer is None:
            buffer = self._local.bounce = allocate(BOUNCE)
        return buffer

    def create(self, name: str) -> SpillFile:
        """A new, empty file."""
        with _explained(self.directory):
            file = SpillFile(self, self.folder / name, keep=len(self._files) < self._kept_open)
        with self._lock:
            self._files.add(file)
        return file

    def require(self, nbytes: int, what: str) -> None:
        """Raise DiskFull now when `nbytes` more will not fit into the quota or on the disk."""
        if self.used + nbytes > self.quota:
            taken = f", of which {format_size(self.used)} are used" if self.used else ""
            raise DiskFull(
                f"{what} needs {format_size(nbytes)} of temporary files in {self.directory}, but "
                f"{self._allowance()}{taken}: {self._advice(self.used + nbytes)}"
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
        self._reader.shutdown()
        for file in files:
            file.close()
        self._finalizer()

    def _allowance(self) -> str:
        source = "is" if self._own_quota else "is not set, so the quota is 90 % of the free space:"
        return f"max_temp_directory_size {source} {format_size(self.quota)}"

    def _advice(self, needed: int) -> str:
        if self._own_quota:
            return f"set max_temp_directory_size to at least {format_size(needed, math.ceil)}"
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


__all__ = ["BOUNCE", "PREFIX", "Spill", "SpillFile", "check_space"]
