"""An array file: raw values, and beside it in `NAME.sum` one checksum for each MiB."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from penstock.errors import DamagedStore
from penstock.store.checksum import BLOCK, block_checksums, checksum


class BlobWriter:
    """Writes an array piece by piece and sums it on the way."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._path, self._file = path, path.open("wb", buffering=0)
        self._sums: list[np.ndarray] = []
        self._rest = b""
        self.bytes = 0

    def append(self, values: np.ndarray) -> None:
        data = np.ascontiguousarray(values).reshape(-1).view(np.uint8)
        view = memoryview(data)
        while view:
            view = view[self._file.write(view) :]
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
        sum_path(self._path).write_bytes(sums.tobytes())
        return {"bytes": self.bytes, "sums": f"{checksum(sums.tobytes()):016x}"}


def sum_path(path: Path) -> Path:
    return path.with_name(path.name + ".sum")


def write_blob(path: Path, pieces: np.ndarray | Iterable[np.ndarray]) -> dict[str, Any]:
    """Write a whole array, or one that comes in pieces."""
    writer = BlobWriter(path)
    for piece in (pieces,) if isinstance(pieces, np.ndarray) else pieces:
        for at in range(0, len(piece), 1 << 20):
            writer.append(piece[at : at + (1 << 20)])
    return writer.close()


class Blob:
    """An array file opened for reading. Every MiB that is read is checked."""

    def __init__(self, path: Path, dtype: np.dtype | type | str, entry: dict[str, Any]) -> None:
        self.path, self.dtype = path, np.dtype(dtype)
        try:
            size = path.stat().st_size
            sums = sum_path(path).read_bytes()
        except FileNotFoundError as error:
            raise DamagedStore(f"{error.filename} is missing") from None
        if size != entry["bytes"]:
            raise DamagedStore(f"{path} is truncated or grew: it has {size} bytes, {entry['bytes']} were written")
        if f"{checksum(sums):016x}" != entry["sums"]:
            raise DamagedStore(f"{sum_path(path)} is damaged: its checksum does not match meta.json")
        self._sums = np.frombuffer(sums, "<u8")
        self.size = size // self.dtype.itemsize

    def __len__(self) -> int:
        return self.size

    def read(self, start: int = 0, stop: int | None = None, out: np.ndarray | None = None) -> np.ndarray:
        """Values `start:stop`, checked; into `out` if it is given."""
        stop = self.size if stop is None else min(stop, self.size)
        width = self.dtype.itemsize
        result = np.empty(max(stop - start, 0), self.dtype) if out is None else out[: stop - start]
        if not len(result):
            return result
        target = result.view(np.uint8)
        first, last = start * width, stop * width
        with self.path.open("rb", buffering=0) as file:
            for block in range(first // BLOCK, -(-last // BLOCK)):
                begin, end = block * BLOCK, min((block + 1) * BLOCK, self.size * width)
                file.seek(begin)
                data = file.read(end - begin)
                if len(data) != end - begin or checksum(data, block) != int(self._sums[block]):
                    raise DamagedStore(f"{self.path} is damaged in bytes {begin} to {end}: its checksum does not match")
                lo, hi = max(begin, first), min(end, last)
                target[lo - first : hi - first] = np.frombuffer(data, np.uint8)[lo - begin : hi - begin]
        return result

    def pieces(self, count: int = 1 << 17) -> Iterable[np.ndarray]:
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
