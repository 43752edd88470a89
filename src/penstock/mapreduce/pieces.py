"""Files in pieces that end where a record does."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.errors import InputError, PenstockError, UsageError

if TYPE_CHECKING:
    from penstock.mapreduce.session import MapReduce

SMALLEST = 1 << 16


def as_separator(separator: Any) -> bytes:
    """A separator as bytes."""
    found = separator.encode() if isinstance(separator, str) else separator
    if not isinstance(found, bytes) or not found:
        raise UsageError(f"{separator!r} is no separator: give a byte or a string of them, such as b'\\n'")
    return found


def _meets_itself(separator: bytes) -> bool:
    """Whether two of it can overlap, as in three line ends."""
    return any(separator.startswith(separator[k:]) for k in range(1, len(separator)))


def last_end(data: bytearray, length: int, separator: bytes, overlapping: bool) -> int:
    """Where the last record ends that ends in `data[:length]`; 0 if none does."""
    if not overlapping:
        found = data.rfind(separator, 0, length)
        return found + len(separator) if found >= 0 else 0
    at = 0
    while (found := data.find(separator, at, length)) >= 0:
        at = found + len(separator)
    return at


class Pieces:
    """The pieces of files, one after the other, each in memory of its own: about `size` bytes, or one longer record."""

    def __init__(self, mr: MapReduce, paths: list[Path], size: int, separator: bytes) -> None:
        self.mr, self.paths, self.size, self.separator = mr, paths, size, separator
        self._overlapping = _meets_itself(separator)

    def __iter__(self) -> Iterator[tuple[Path, bytearray]]:
        for path in self.paths:
            try:
                with path.open("rb", buffering=0) as file:
                    for piece in self._of(file, path):
                        yield path, piece
            except OSError as error:
                if isinstance(error, PenstockError):
                    raise
                raise InputError(f"cannot be read: {error.strerror or error}", path=path) from None

    def _of(self, file: Any, path: Path) -> Iterator[bytearray]:
        rest = b""
        while True:
            data = bytearray(max(self.size, 2 * len(rest)))
            data[: len(rest)] = rest
            length = len(rest)
            while True:
                with memoryview(data) as view:
                    got = file.readinto(view[length:])
                length += got
                if not got:
                    if length:
                        del data[length:]
                        yield data
                    return
                if length < len(data):
                    continue
                end = last_end(data, length, self.separator, self._overlapping)
                if end:
                    break
                # One record, longer than all that was read of it.
                with self.mr.room.reserve(3 * len(data), f"a record of {path}"):
                    data.extend(bytes(len(data)))
            rest = bytes(data[end:])
            del data[end:]
            yield data


__all__ = ["SMALLEST", "Pieces", "as_separator", "last_end"]
