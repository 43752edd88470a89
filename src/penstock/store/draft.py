"""A store being written: everything goes under a locked temporary name and appears under its own name at once.

`.NAME.pen.tmp/` lies beside the target and is locked by its writer. A killed writer leaves it unlocked; the next
one removes it. Whoever opens the target sees a complete store or none.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import fcntl
import json
import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from penstock.errors import StoreError, TargetExists, TargetLocked

_AT_FDCWD, _RENAME_EXCHANGE = -100, 2


class Draft:
    """The locked temporary folder of one target. Leaving the context without `commit` removes it."""

    def __init__(self, target: Path, *, overwrite: bool = False, stripes: Sequence[Path] = ()) -> None:
        self.target = target.absolute()
        self.overwrite = overwrite
        self.path = self.target.parent / f".{self.target.name}.tmp"
        self._check_target()
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            self._lock = os.open(self.path / "lock", os.O_RDWR | os.O_CREAT, 0o644)
        except OSError as error:
            raise StoreError(f"cannot write in {self.target.parent}: {error.strerror}") from None
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            owner = os.pread(self._lock, 32, 0).decode(errors="replace").strip() or "unknown"
            os.close(self._lock)
            raise TargetLocked(
                f"{target} is being written by another run (process {owner}): wait for it or stop it"
            ) from None
        os.ftruncate(self._lock, 0)
        os.pwrite(self._lock, str(os.getpid()).encode(), 0)
        self._remove_leftovers()
        self.stripes = [Path(os.path.abspath(s)) / f"{self.target.name}.{os.urandom(4).hex()}" for s in stripes]
        # Written before the folders exist: a killed run's stripes can be found again.
        if self.stripes:
            (self.path / "stripes.json").write_text(json.dumps([str(s) for s in self.stripes]))
        for stripe in self.stripes:
            stripe.mkdir(parents=True)
        self._done = False

    def _check_target(self) -> None:
        if self.target.suffix != ".pen":
            raise StoreError(f"{self.target} is no name for a store: end it with .pen")
        if not os.path.lexists(self.target):
            return
        if not self.overwrite:
            raise TargetExists(f"{self.target} exists: choose another name or pass --overwrite (overwrite=True)")
        if not self.target.is_dir() or (any(self.target.iterdir()) and not (self.target / "meta.json").exists()):
            raise TargetExists(f"{self.target} is not a store: it is not overwritten; remove it by hand")

    def _remove_leftovers(self) -> None:
        """What a killed run left here, its stripes elsewhere included."""
        listed = self.path / "stripes.json"
        if listed.exists():
            with contextlib.suppress(ValueError):
                for stripe in json.loads(listed.read_text()):
                    shutil.rmtree(stripe, ignore_errors=True)
        for entry in self.path.iterdir():
            if entry.name != "lock":
                _remove(entry)

    def commit(self) -> None:
        """Make it durable, then make it visible: one rename."""
        _remove(self.path / "stripes.json")
        for root in (self.path, *self.stripes):
            for folder, _, files in os.walk(root):
                for name in files:
                    _fsync(Path(folder) / name)
                _fsync(Path(folder))
        self._check_target()
        old_stripes = stripe_folders(self.target) if self.overwrite else []
        _remove(self.path / "lock")
        try:
            if os.path.lexists(self.target):
                _exchange(self.path, self.target)
                _fsync(self.target.parent)
                shutil.rmtree(self.path, ignore_errors=True)
                for stripe in old_stripes:
                    shutil.rmtree(stripe, ignore_errors=True)
            else:
                os.rename(self.path, self.target)
                _fsync(self.target.parent)
        except OSError as error:
            raise StoreError(f"cannot put {self.target} in place: {error.strerror}") from None
        self._done = True

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self._done:
            for stripe in self.stripes:
                shutil.rmtree(stripe, ignore_errors=True)
            shutil.rmtree(self.path, ignore_errors=True)
        os.close(self._lock)


def stripe_folders(store: Path) -> list[Path]:
    """The folders outside a store that hold its stripes."""
    try:
        stripes = json.loads((store / "meta.json").read_bytes())["stripes"]
        return [Path(os.path.normpath(store / s)) for s in stripes if s != "."]
    except (OSError, ValueError, KeyError, TypeError):
        return []


def remove_store(store: Path) -> None:
    """Delete a store and its stripes."""
    for folder in (*stripe_folders(store), store):
        shutil.rmtree(folder, ignore_errors=True)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _fsync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _exchange(a: Path, b: Path) -> None:
    """Swap two folders in one step where the kernel can; else in two, with a moment in which there is no store."""
    renameat2 = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if renameat2 is not None:
        if renameat2(_AT_FDCWD, os.fsencode(a), _AT_FDCWD, os.fsencode(b), _RENAME_EXCHANGE) == 0:
            return
        code = ctypes.get_errno()
        if code not in (errno.EINVAL, errno.ENOSYS, errno.ENOTSUP):
            raise OSError(code, os.strerror(code), str(b))
    aside = b.with_name(f".{b.name}.old")
    shutil.rmtree(aside, ignore_errors=True)
    os.rename(b, aside)
    os.rename(a, b)
    os.rename(aside, a)
