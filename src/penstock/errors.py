"""Errors that say what is wrong and what to do. The exit code is what the command line returns for each."""

from __future__ import annotations

import math
from collections.abc import Iterable
from os import PathLike
from pathlib import Path
from typing import Any


def meant(word: object, among: Iterable[object]) -> str:
    """`, do you mean web.pen?` if one of these words is near; otherwise nothing."""
    from difflib import get_close_matches

    near = get_close_matches(str(word), map(str, among), 1)
    return f", do you mean {near[0]}?" if near else ""


def meant_path(path: str | PathLike[str]) -> str:
    """The same for a file that is not there and one beside it that is."""
    from difflib import get_close_matches
    from itertools import islice

    wanted = Path(path)
    try:
        names = [entry.name for entry in islice(wanted.parent.iterdir(), 10_000) if not entry.name.startswith(".")]
    except OSError:
        return ""
    near = get_close_matches(wanted.name, names, 1, cutoff=0.75)  # endings are alike by nature
    return f", do you mean {wanted.with_name(near[0])}?" if near else ""


class PenstockError(Exception):
    """Anything Penstock refuses to do, in one sentence for the user."""

    exit_code = 2


class UsageError(PenstockError, ValueError):
    """An argument that makes no sense."""


class ProgramError(UsageError):
    """A program whose functions cannot be compiled: which line of whose file, and why."""


class InputError(PenstockError, ValueError):
    """Bad input data: where it stands, what is wrong, what to do."""

    def __init__(
        self, reason: str, *, path: str | PathLike[str] | None = None, line: int | None = None, hint: str | None = None
    ) -> None:
        self.reason, self.path, self.line, self.hint = reason, None if path is None else str(path), line, hint
        where = ", ".join(([] if path is None else [str(path)]) + ([] if line is None else [f"line {line}"]))
        super().__init__((f"{where}: " if where else "") + reason + (f" ({hint})" if hint else ""))


class StoreError(PenstockError):
    """A store that cannot be opened or written."""


class TargetExists(StoreError):
    """The target is already there and overwriting was not asked for."""


class TargetLocked(StoreError):
    """Another run is writing the target."""


class DamagedStore(StoreError):
    """Bytes on disk are not the bytes that were written."""

    exit_code = 1


class VertexNotFound(PenstockError, KeyError):
    """The user's id names no vertex of this graph."""

    def __str__(self) -> str:  # KeyError would quote the sentence
        return str(self.args[0])


class DoesNotFit(PenstockError, MemoryError):
    """The work cannot be done inside the memory budget."""

    exit_code = 3

    def __init__(self, what: str, *, needed: int, limit: int, setting: str = "memory_limit") -> None:
        from penstock.config import format_size

        self.what, self.needed, self.limit, self.setting = what, needed, limit, setting
        # Rounded up: who sets what this sentence says must not be refused again.
        enough, given = format_size(needed, math.ceil), format_size(limit, math.floor)
        super().__init__(f"{what} needs {enough}, but {setting} is {given}: set {setting} to at least {enough}")

    def __reduce__(self) -> tuple[Any, ...]:  # keyword arguments do not survive a trip between processes by themselves
        return _does_not_fit, (self.what, self.needed, self.limit, self.setting)


def _does_not_fit(what: str, needed: int, limit: int, setting: str) -> DoesNotFit:
    return DoesNotFit(what, needed=needed, limit=limit, setting=setting)


class DeviceFull(PenstockError, MemoryError):
    """A GPU has less memory left than it had when the work was planned."""

    exit_code = 3


class DiskFull(PenstockError, OSError):
    """No space left on disk, or the quota for spill files is used up."""

    exit_code = 3
