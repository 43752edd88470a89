"""Errors that say what is wrong and what to do. The exit code is what the command line returns for each."""

from __future__ import annotations

from os import PathLike


class PenstockError(Exception):
    """Anything Penstock refuses to do, in one sentence for the user."""

    exit_code = 2


class UsageError(PenstockError, ValueError):
    """An argument that makes no sense."""


class InputError(PenstockError, ValueError):
    """Bad input data: where it stands, what is wrong, what to do."""

    def __init__(
        self, reason: str, *, path: str | PathLike[str] | None = None, line: int | None = None, hint: str | None = None
    ) -> None:
        self.reason, self.path, self.line, self.hint = reason, None if path is None else str(path), line, hint
        where = "" if path is None else f"{path}: " if line is None else f"{path}, line {line}: "
        super().__init__(where + reason + (f" ({hint})" if hint else ""))


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

        self.needed, self.limit, self.setting = needed, limit, setting
        super().__init__(
            f"{what} needs {format_size(needed)}, but {setting} is {format_size(limit)}: "
            f"set {setting} to at least {format_size(needed)}"
        )


class DiskFull(PenstockError, OSError):
    """No space left on disk, or the quota for spill files is used up."""

    exit_code = 3
