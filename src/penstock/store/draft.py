"""A store being written: everything goes under a temporary name and appears under its own name at once.

`.NAME.pen.tmp/` lies beside the target, and its writer holds `.NAME.pen.lock`. A killed writer leaves both, unlocked;
the next one removes them. Whoever opens the target sees a complete store or none.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import json
import os
import re
import shutil
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import IO, Self

from penstock.errors import StoreError, TargetExists
from penstock.store.lock import Lock
from penstock.store.manifest import FORMAT, read_manifest

_AT_FDCWD, _SWAP = -100, 2
_STRIPE = re.compile(r".+\.pen\.[0-9a-f]{8}")


class Draft:
    """The temporary folder of one target, locked. Leaving the context without `commit` removes it."""

    def __init__(self, target: Path, *, overwrite: bool = False, stripes: Sequence[Path] = ()) -> None:
        # A link stays: the store it leads to is replaced.
        self.target = Path(os.path.realpath(target)) if target.is_symlink() else target.absolute()
        self.overwrite = overwrite
        self.path = self.target.parent / f".{self.target.name}.tmp"
        self._aside = self.target.parent / f".{self.target.name}.old"
        self.stripes: list[Path] = []
        self._files: list[IO[bytes]] = []
        self._made: os.stat_result | None = None
        self._check_target()
        try:
            self._parents = [folder for folder in self.target.parents if not folder.exists()]
            self.target.parent.mkdir(parents=True, exist_ok=True)
            self._lock = Lock(self.target)
        except OSError as error:
            raise StoreError(f"cannot write in {self.target.parent}: {error.strerror}") from None
        try:
            self._recover()
            self._check_target()
            self._begin(stripes)
        except OSError as error:
            self._discard()
            raise StoreError(f"cannot write {error.filename or self.path}: {error.strerror}") from None
        except BaseException:
            self._discard()
            raise

    def _check_target(self) -> None:
        if self.target.suffix != ".pen":
            raise StoreError(f"{self.target} is no name for a store: end it with .pen")
        if not os.path.lexists(self.target):
            return
        if not self.overwrite:
            raise TargetExists(f"{self.target} exists: choose another name or pass --overwrite (overwrite=True)")
        if not _is_store(self.target):
            raise TargetExists(f"{self.target} is not a store: it is not overwritten; remove it by hand")

    def _recover(self) -> None:
        """Put in order what a killed run left: its draft goes, a store it had moved aside comes back."""
        if os.path.lexists(self._aside):
            if os.path.lexists(self.target):
                remove_store(self._aside)
            else:
                os.rename(self._aside, self.target)
        if os.path.lexists(self.path):
            # Before its manifest is there, a draft lists its stripes in a file of its own; after, in the manifest.
            with contextlib.suppress(OSError, ValueError, TypeError):
                for stripe in json.loads((self.path / "stripes.json").read_text()):
                    _remove_stripe(Path(stripe))
            if self.path.is_symlink() or not self.path.is_dir():
                self.path.unlink()
            else:
                remove_store(self.path)
                if self.path.exists():
                    shutil.rmtree(self.path)  # says why it cannot be removed

    def _begin(self, stripes: Sequence[Path]) -> None:
        self.path.mkdir()
        self._made = self.path.stat()
        self.stripes = [Path(os.path.abspath(s)) / f"{self.target.name}.{os.urandom(4).hex()}" for s in stripes]
        # Written before the folders exist: a killed run's stripes can be found again.
        if self.stripes:
            (self.path / "stripes.json").write_text(json.dumps([str(s) for s in self.stripes]))
        for stripe in self.stripes:
            stripe.mkdir(parents=True)

    def create(self, path: Path, *, direct: bool = False) -> IO[bytes]:
        """A new file of the store, open for writing. What is still open when the draft ends is closed with it.

        `direct` writes pass by the kernel's page cache where the file system allows it: the caller aligns them.
        """
        path.parent.mkdir(parents=True, exist_ok=True)

        def opener(name: str, flags: int) -> int:
            with_direct = flags | (getattr(os, "O_DIRECT", 0) if direct else 0) | os.O_CLOEXEC
            try:
                return os.open(name, with_direct, 0o666)
            except OSError as error:
                if not direct or error.errno not in (errno.EINVAL, errno.ENOTSUP):
                    raise
                Path(name).unlink(missing_ok=True)
                return os.open(name, flags | os.O_CLOEXEC, 0o666)

        file = open(path, "xb", buffering=0, opener=opener)  # noqa: SIM115 - closed with the draft
        self._files.append(file)
        return file

    def commit(self, manifest: bytes) -> None:
        """Make everything durable, write the manifest last, then make the store visible: one rename."""
        self._close_files()
        for root in (self.path, *self.stripes):
            for folder, _, files in os.walk(root):
                for name in files:
                    _fsync(Path(folder) / name)
                _fsync(Path(folder))
        for stripe in self.stripes:
            _fsync(stripe.parent)
        fresh = self.path / "meta.json.new"
        fresh.write_bytes(manifest)
        _fsync(fresh)
        os.rename(fresh, self.path / "meta.json")
        # Only now: the manifest lists the stripes as well.
        (self.path / "stripes.json").unlink(missing_ok=True)
        _fsync(self.path)
        self._check_target()
        try:
            if os.path.lexists(self.target):
                _exchange(self.path, self.target, self._aside)
                _fsync(self.target.parent)
                remove_store(self.path)
            else:
                os.rename(self.path, self.target)
                _fsync(self.target.parent)
        except OSError as error:
            raise StoreError(f"cannot put {self.target} in place: {error.strerror}") from None

    @property
    def committed(self) -> bool:
        """Whether the draft is the store by now: the disk knows, for an interrupt may come right after the rename."""
        try:
            return self._made is not None and os.path.samestat(self._made, self.target.stat())
        except OSError:
            return False

    def _close_files(self) -> None:
        with contextlib.ExitStack() as files:  # one that fails to close does not keep the others open
            while self._files:
                files.callback(self._files.pop().close)

    def _discard(self) -> None:
        try:
            if self.committed:
                # Cut off after the rename: what lies in the draft's place is the store that was replaced.
                for replaced in (self.path, self._aside):
                    remove_store(replaced)
            else:
                if os.path.lexists(self._aside) and not os.path.lexists(self.target):
                    os.rename(self._aside, self.target)
                for stripe in self.stripes:
                    _remove_stripe(stripe)
                if self._made is not None:
                    shutil.rmtree(self.path, ignore_errors=True)
        finally:
            self._lock.release()
        if not self.committed:
            with contextlib.suppress(OSError):  # folders made for the target go with it, unless others use them
                for folder in self._parents:
                    folder.rmdir()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            with contextlib.suppress(OSError):  # a full disk was reported already
                self._close_files()
        finally:
            self._discard()


def stripe_folders(store: Path) -> list[Path]:
    """The folders outside a store that hold its stripes; none where the manifest is not the one that was written."""
    try:
        stripes = read_manifest(store)["stripes"]
    except StoreError:
        return []
    return [Path(os.path.normpath(store / s)) for s in stripes if s != "."]


def remove_store(store: Path) -> None:
    """Delete a store and its stripes."""
    stripes = stripe_folders(store)
    # The manifest goes last: a removal that is cut off can be taken up again.
    with contextlib.suppress(OSError):
        for entry in list(store.iterdir()):
            if entry.name != "meta.json":
                _remove(entry)
    for folder in stripes:
        _remove_stripe(folder)
    shutil.rmtree(store, ignore_errors=True)


def _is_store(path: Path) -> bool:
    """A store, even a damaged one, or an empty folder: what may be overwritten."""
    try:
        return path.is_dir() and (
            not any(path.iterdir()) or f'"{FORMAT}"'.encode() in (path / "meta.json").read_bytes()
        )
    except OSError:
        return False


def _remove_stripe(folder: Path) -> None:
    # A manifest is data from a disk: nothing is deleted that does not carry the name drafts give to stripes.
    if _STRIPE.fullmatch(folder.name):
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


def _exchange(a: Path, b: Path, aside: Path) -> None:
    """Swap two folders in one step where the system can; else in three, with a moment in which there is no store."""
    if _swap(a, b):
        return
    os.rename(b, aside)
    os.rename(a, b)
    os.rename(aside, a)


def _swap(a: Path, b: Path) -> bool:
    library = ctypes.CDLL(None, use_errno=True)
    if hasattr(library, "renameat2"):
        failed = library.renameat2(_AT_FDCWD, os.fsencode(a), _AT_FDCWD, os.fsencode(b), _SWAP)
    elif hasattr(library, "renamex_np"):  # macOS
        failed = library.renamex_np(os.fsencode(a), os.fsencode(b), _SWAP)
    else:
        return False
    code = ctypes.get_errno()
    if failed and code not in (errno.EINVAL, errno.ENOSYS, errno.ENOTSUP):
        raise OSError(code, os.strerror(code), str(b))
    return not failed
