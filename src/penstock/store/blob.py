"""An array file: raw values, and beside it in `NAME.sum` one checksum for each MiB."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import IO, Any

import numpy as np

from penstock.errors import DamagedStore
from penstock.store.checksum import BLOCK, block_checksums, checksum

_RECENT = 4
"""MiBs kept of a file from which single values are read: a binary search comes back to them."""


class BlobWriter:
    """Writes an array piece by piece and sums it on the way."""

    def __init__(self, path: Path, create: Callable[[Path], IO[bytes]] | None = None) -> None:
        self._path, self._create = path, create or _create
        self._file = self._create(path)
        self._sums: list[np.ndarray] = []
        self._rest = b""
        self.bytes = 0

    def append(self, values: np.ndarray) -> None:
        data = np.ascontiguousarray(values).reshape(-1).view(np.uint8)
        write_all(self._file, data)
        done = self.bytes // BLOCK
        self.bytes += len(data)
        if self._rest:
            data = np.concatenate([np.frombuffer(self._rest, np.uint8), data])
        whole = len(data) // BLOCK * BLOCK
        self._sums.append(block_checksums(data[:whole], done))
        self._rest = data[whole:].tobytes()

    def close(self) -> dict[str, Any]:
        """What the manifest must hold of this file."""
        if self._rest:
            self._sums.append(block_checksums(np.frombuffer(self._rest, np.uint8), self.bytes // BLOCK))
        self._file.close()
        sums = np.concatenate([np.zeros(0, np.uint64), *self._sums]).astype("<u8")
        with self._create(sum_path(self._path)) as file:
            write_all(file, sums)
        return {"bytes": self.bytes, "sums": f"{checksum(sums.tobytes()):016x}"}

    def abort(self) -> None:
        """Close the file; what is in it is nobody's business any more."""
        self._file.close()


def _create(path: Path) -> IO[bytes]:
    path.parent.mkdir(parents=True, exist_ok=True)
    return path.open("wb", buffering=0)


def write_all(file: IO[bytes], data: np.ndarray) -> None:
    """Write every byte; a raw file may take fewer at a time."""
    view = memoryview(np.ascontiguousarray(data).reshape(-1).view(np.uint8))
    while view:
        view = view[file.write(view) :]


def sum_path(path: Path) -> Path:
    return path.with_name(path.name + ".sum")


def write_blob(
    path: Path, pieces: np.ndarray | Iterable[np.ndarray], create: Callable[[Path], IO[bytes]] | None = None
) -> dict[str, Any]:
    """Write a whole array, or one that comes in pieces."""
    writer = BlobWriter(path, create)
    try:
        for piece in (pieces,) if isinstance(pieces, np.ndarray) else pieces:
            for at in range(0, len(piece), 1 << 20):
                writer.append(piece[at : at + (1 << 20)])
        return writer.close()
    finally:
        writer.abort()


class Blob:
    """An array file opened for reading. Every MiB that is read is checked."""

    def __init__(self, path: Path, dtype: np.dtype | type | str, entry: dict[str, Any]) -> None:
        self.path, self.dtype = path, np.dtype(dtype)
        try:
            self.bytes = path.stat().st_size
            sums = sum_path(path).read_bytes()
        except FileNotFoundError as error:
            raise DamagedStore(f"{error.filename} is missing") from None
        except OSError as error:
            raise DamagedStore(f"{error.filename} cannot be read: {error.strerror}") from None
        if self.bytes != entry["bytes"]:
            raise DamagedStore(f"{path} is truncated or grew: it has {self.bytes} bytes, {entry['bytes']} were written")
        if f"{checksum(sums):016x}" != entry["sums"]:
            raise DamagedStore(f"{sum_path(path)} is damaged: its checksum does not match meta.json")
        if len(sums) != 8 * -(-self.bytes // BLOCK) or self.bytes % self.dtype.itemsize:
            raise DamagedStore(
                f"{path} has {self.bytes} bytes, which is no whole number of {self.dtype} with checksums"
            )
        self._sums = np.frombuffer(sums, "<u8")
        self._recent: dict[int, np.ndarray] = {}
        self.size = self.bytes // self.dtype.itemsize

    def __len__(self) -> int:
        return self.size

    @property
    def blocks(self) -> int:
        """How many MiBs have a checksum."""
        return len(self._sums)

    def read(self, start: int = 0, stop: int | None = None, out: np.ndarray | None = None) -> np.ndarray:
        """Values `start:stop`, checked; into `out` if it is given."""
        stop = self.size if stop is None else min(stop, self.size)
        width = self.dtype.itemsize
        result = np.empty(max(stop - start, 0), self.dtype) if out is None else out[: max(stop - start, 0)]
        if not len(result):
            return result
        target = result.view(np.uint8)
        first, last = start * width, stop * width
        for block in range(first // BLOCK, -(-last // BLOCK)):
            begin, end = self.block_range(block)
            lo, hi = max(begin, first), min(end, last)
            if (lo, hi) == (begin, end):
                self.read_block(block, target[lo - first : hi - first])
            else:
                target[lo - first : hi - first] = self._kept(block)[lo - begin : hi - begin]
        return result

    def block_range(self, block: int) -> tuple[int, int]:
        """First byte and end of a block."""
        return block * BLOCK, min((block + 1) * BLOCK, self.bytes)

    def read_block(self, block: int, target: np.ndarray) -> None:
        """Fill `target`, which has its size, with a block, and check it."""
        begin, end = self.block_range(block)
        read_exactly(self.path, begin, target)
        if checksum(target, block) != int(self._sums[block]):
            raise DamagedStore(f"{self.path} is damaged in bytes {begin} to {end}: its checksum does not match")

    def _kept(self, block: int) -> np.ndarray:
        """A block of which a part is wanted: the next part may be wanted soon."""
        data = self._recent.pop(block, None)
        if data is None:
            begin, end = self.block_range(block)
            data = np.empty(end - begin, np.uint8)
            self.read_block(block, data)
            recent = list(self._recent)  # another thread may be here, too: what is gone already is not missed
            for oldest in recent[: max(0, len(recent) - _RECENT + 1)]:
                self._recent.pop(oldest, None)
        self._recent[block] = data
        return data

    def pieces(self, count: int = 1 << 17) -> Iterator[np.ndarray]:
        """The whole array, some values at a time."""
        count = max(count, BLOCK // self.dtype.itemsize)
        for start in range(0, self.size, count):
            yield self.read(start, start + count)

    def at(self, positions: np.ndarray) -> np.ndarray:
        """Values at scattered positions: each MiB they touch is read and checked once."""
        positions = np.asarray(positions, np.int64)
        result = np.empty(len(positions), self.dtype)
        per = BLOCK // self.dtype.itemsize
        blocks = positions // per
        for block in np.unique(blocks):
            here = blocks == block
            result[here] = self.read(int(block) * per, (int(block) + 1) * per)[positions[here] - block * per]
        return result


def read_exactly(path: Path, offset: int, target: np.ndarray) -> None:
    """Fill `target` from a file; say what is wrong with a file that does not let us."""
    try:
        with path.open("rb", buffering=0) as file:
            fill(file.fileno(), path, offset, target)
    except FileNotFoundError:
        raise DamagedStore(f"{path} is missing") from None
    except OSError as error:
        raise DamagedStore(f"{path} cannot be read at byte {offset}: {error.strerror}") from None


def fill(descriptor: int, path: Path, offset: int, target: np.ndarray) -> None:
    """Fill `target` from an open file; one call may bring less than was asked for."""
    done = 0
    while done < len(target):
        got = os.preadv(descriptor, [target.data[done:]], offset + done)
        if not got:
            raise DamagedStore(f"{path} is truncated: it ends at byte {offset + done}")
        done += got
