"""A file of records, sorted into another: pairs of a uint64 key and 8 bytes of payload, one after the other.

In core where twice the file fits in memory, else through the external sorter. Both files are read and written past
the kernel's page cache.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from penstock.errors import InputError
from penstock.memory.buffers import PAGE, align, allocate
from penstock.memory.extents import StripedFile
from penstock.memory.spill import Spill, check_space
from penstock.sorting.external import ExternalSorter
from penstock.sorting.radix import sort_pairs
from penstock.store.whole import whole_file

RECORD = 16
_BOUNCE = 4 << 20


@dataclass(frozen=True)
class Sorted:
    """What was done."""

    records: int
    in_core: bool
    spilled: int
    """Bytes written to temporary files."""


class _Appender:
    """Writes a file from its start, whole blocks at a time, past the page cache where the file system allows it."""

    def __init__(self, path: Path, bounce: int) -> None:
        self._descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        self._direct: int | None = None
        with contextlib.suppress(OSError, AttributeError):
            self._direct = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_DIRECT)
        self._bounce = allocate(bounce)
        self._filled = self._at = 0

    def _put(self, data: np.ndarray) -> None:
        descriptor = self._descriptor if self._direct is None or len(data) % PAGE else self._direct
        done = 0
        while done < len(data):
            done += os.pwritev(descriptor, [data[done:]], self._at + done)
        self._at += done

    def append(self, data: np.ndarray) -> None:
        """Bytes; those that begin on a block, in memory and in the file, are written from where they are."""
        while len(data):
            if not self._filled and len(data) >= len(self._bounce) and not data.ctypes.data % PAGE:
                done = len(data) // PAGE * PAGE
                self._put(data[:done])
            else:
                done = min(len(data), len(self._bounce) - self._filled)
                self._bounce[self._filled : self._filled + done] = data[:done]
                self._filled += done
                if self._filled == len(self._bounce):
                    self._put(self._bounce)
                    self._filled = 0
            data = data[done:]

    def close(self) -> None:
        """What is left, to the disk."""
        try:
            self._put(self._bounce[: self._filled // PAGE * PAGE])
            self._put(self._bounce[self._filled // PAGE * PAGE : self._filled])
            os.fsync(self._descriptor)
        finally:
            self.abandon()

    def abandon(self) -> None:
        os.close(self._descriptor)
        if self._direct is not None:
            os.close(self._direct)


@contextlib.contextmanager
def _appender(path: Path, bounce: int) -> Iterator[_Appender]:
    made = _Appender(path, bounce)
    try:
        yield made
    except BaseException:
        made.abandon()
        raise
    made.close()


def sort_file(
    source: str | Path,
    target: str | Path,
    *,
    memory: int,
    threads: int,
    temp_directory: str | Path | None = None,
    quota: int | None = None,
    overwrite: bool = False,
) -> Sorted:
    """Sort the records of `source` by key, stably, into `target`, with buffers of `memory` bytes.

    Temporary files go below `temp_directory`, by default next to the target. The target is there when it is complete.
    """
    source, target = Path(source), Path(target)
    try:
        size = source.stat().st_size
    except FileNotFoundError:
        raise InputError(f"{source}: there is no such file") from None
    if size % RECORD:
        raise InputError(f"{source}: {size} bytes are no whole number of {RECORD}-byte records; is the file cut short?")
    check_space(target.parent, size, f"sorting {source}")
    bounce = align(min(_BOUNCE, memory // 8))
    with whole_file(target, overwrite=overwrite) as partial:
        file = StripedFile([source])
        try:
            with _appender(partial, bounce) as out:
                if 2 * size + bounce <= memory or not size:
                    _in_core(file, size, out, threads)
                    return Sorted(size // RECORD, True, 0)
                folder = Path(temp_directory) if temp_directory is not None else target.parent
                with Spill(folder, quota=quota) as spill:
                    spill.require(size, f"sorting {source}")
                    _out_of_core(file, size, out, spill, memory - bounce, threads)
                    return Sorted(size // RECORD, False, spill.written)
        finally:
            file.close()


def _read(file: StripedFile, offset: int, rows: np.ndarray) -> None:
    """Fill rows from the file. Whole blocks go past the page cache, so what follows the last of them goes alone."""
    data = rows.reshape(-1).view(np.uint8)
    whole = len(data) // PAGE * PAGE
    file.read_into(0, offset, data[:whole])
    file.read_into(0, offset + whole, data[whole:])


def _in_core(file: StripedFile, size: int, out: _Appender, threads: int) -> None:
    rows, scratch = (allocate(size).view(np.uint64).reshape(-1, 2) for _ in range(2))
    _read(file, 0, rows)
    found, *_ = sort_pairs(rows[:, 0], rows[:, 1], scratch[:, 0], scratch[:, 1], threads)
    result = rows if found.ctypes.data == rows.ctypes.data else scratch
    out.append(result.reshape(-1).view(np.uint8))


def _out_of_core(file: StripedFile, size: int, out: _Appender, spill: Spill, memory: int, threads: int) -> None:
    count = size // RECORD
    with ExternalSorter(
        spill, memory=memory, threads=threads, payload={"value": np.dtype(np.uint64)}, expected=count, interleaved=True
    ) as sorter:
        at = 0
        while at < count:
            rows = sorter.block()[: count - at]
            _read(file, at * RECORD, rows)
            sorter.advance(len(rows))
            at += len(rows)
        for keys, _ in sorter.sorted():
            out.append(sorter.rows(keys).reshape(-1).view(np.uint8))


__all__ = ["RECORD", "Sorted", "sort_file"]
