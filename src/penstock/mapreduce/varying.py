"""Values of any length in one column: bytes end to end, and where each begins (the layout of Arrow's large strings)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, overload

import numpy as np

from penstock.errors import UsageError


class Bytes:
    """A column of byte strings, or of text in UTF-8. `offsets[0]` is 0 and `offsets[-1]` is the length of `data`."""

    __slots__ = ("data", "offsets", "text")

    def __init__(self, offsets: np.ndarray, data: np.ndarray, text: bool = False) -> None:
        self.offsets, self.data, self.text = offsets, data, text

    @classmethod
    def of(cls, values: Any, text: bool | None = None) -> Bytes:
        """From strings (kept as text), from bytes, or from an Arrow array of either."""
        if isinstance(values, Bytes):
            return values if text is None else cls(values.offsets, values.data, text)
        if hasattr(values, "type") or hasattr(values, "__arrow_c_stream__"):
            from penstock.mapreduce.convert import from_arrow

            found = from_arrow(values)
            if not isinstance(found, Bytes):
                raise UsageError(f"a column of {found.dtype} holds neither strings nor bytes")
            return cls.of(found, text)
        rows = values if isinstance(values, (list, tuple)) else list(values)
        if text is None:
            text = bool(rows) and isinstance(rows[0], str)
        encoded = [_encoded(row) for row in rows]
        offsets = np.zeros(len(rows) + 1, np.int64)
        np.cumsum(np.fromiter(map(len, encoded), np.int64, len(encoded)), out=offsets[1:])
        return cls(offsets, np.frombuffer(bytearray(b"".join(encoded)), np.uint8), text)

    @classmethod
    def empty(cls, text: bool = False, count: int = 0) -> Bytes:
        """So many rows of no bytes."""
        return cls(np.zeros(count + 1, np.int64), np.zeros(0, np.uint8), text)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def nbytes(self) -> int:
        """Of the bytes and of the offsets."""
        return int(self.offsets.nbytes + self.data.nbytes)

    @property
    def lengths(self) -> np.ndarray:
        """Bytes of each row."""
        return np.diff(self.offsets)

    @overload
    def __getitem__(self, which: int | np.integer) -> bytes | str: ...
    @overload
    def __getitem__(self, which: slice | np.ndarray | Sequence[int]) -> Bytes: ...
    def __getitem__(self, which: Any) -> Any:
        if isinstance(which, (int, np.integer)):
            n = len(self)
            row = int(which) + (n if which < 0 else 0)
            if not 0 <= row < n:
                raise IndexError(f"row {which} of a column of {n}")
            found = self.data[self.offsets[row] : self.offsets[row + 1]].tobytes()
            return found.decode("utf-8", "surrogateescape") if self.text else found
        if isinstance(which, slice):
            begin, end, step = which.indices(len(self))
            return self.slice(begin, max(begin, end)) if step == 1 else self.take(np.arange(begin, end, step))
        which = np.asarray(which)
        return self.take(np.flatnonzero(which) if which.dtype == np.bool_ else which)

    def __iter__(self) -> Iterator[Any]:
        whole = self.data.tobytes()
        for begin, end in pairwise(self.offsets.tolist()):
            row = whole[begin:end]
            yield row.decode("utf-8", "surrogateescape") if self.text else row

    def __repr__(self) -> str:
        return f"Bytes({len(self)} {'strings' if self.text else 'byte strings'}, {self.data.nbytes} bytes)"

    def slice(self, begin: int, end: int) -> Bytes:
        """Rows `begin` to `end`; the bytes are not copied."""
        offsets = self.offsets[begin : end + 1]
        return Bytes(offsets - offsets[0], self.data[offsets[0] : offsets[-1]], self.text)

    def take(self, positions: np.ndarray) -> Bytes:
        """The rows at these positions, in their order."""
        from penstock.mapreduce.kernels.columns import copy_rows, row_lengths

        positions = np.asarray(positions)
        if positions.dtype != np.uint32:
            positions = np.ascontiguousarray(positions, np.int64).view(np.uint64)
        offsets = np.empty(len(positions) + 1, np.int64)
        row_lengths(self.offsets, positions, offsets)
        data = np.empty(offsets[-1], np.uint8)
        copy_rows(self.offsets, self.data, positions, offsets, data)
        return Bytes(offsets, data, self.text)

    def to_list(self) -> list[Any]:
        """Python's strings or bytes."""
        return list(self)

    def to_arrow(self) -> Any:
        """A large_string or large_binary array on the same memory."""
        from penstock.mapreduce.convert import to_arrow

        return to_arrow(self)


def _encoded(row: Any) -> bytes:
    try:
        if isinstance(row, str):
            # What is no UTF-8 came from Python as lone surrogates, and goes back to it as the same.
            return row.encode("utf-8", "surrogateescape")
        if isinstance(row, (bytes, bytearray, memoryview)):
            return bytes(row)
    except UnicodeEncodeError:
        raise UsageError(f"the string {row!r:.40} cannot be written as UTF-8") from None
    raise UsageError(f"a column of strings or bytes may hold nothing else, such as {row!r:.40}")


__all__ = ["Bytes"]
