"""Frames of device memory, and the ways a page gets into one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from penstock.memory import gpu
from penstock.memory.buffers import align
from penstock.memory.deliver import COPY
from penstock.memory.extents import Batch
from penstock.memory.ledger import Ledger
from penstock.memory.pinned import Pinned
from penstock.store.columns import padded
from penstock.store.encodings import decode, needs_scratch
from penstock.store.reader import Direction

Parts = tuple[np.ndarray, ...]


@dataclass(frozen=True)
class Layout:
    """What a frame holds: a plain page with 4-byte ids, and the values of its arcs in each column."""

    page_words: int
    dtypes: tuple[np.dtype, ...]
    strides: tuple[int, ...]

    @classmethod
    def of(cls, direction: Direction, columns: Sequence[str]) -> Layout:
        dtypes = tuple(direction.column_dtype(name) for name in columns)
        most = int(direction.records["arcs"].max()) if len(direction) else 1
        # Each frame begins at a whole word, whatever the type: checksums go over words.
        return cls(direction.store.page_size // 4, dtypes, (align(max(most, 1), 8),) * len(dtypes))

    @property
    def nbytes(self) -> int:
        """Of one frame."""
        return sum(self.frame_bytes)

    @property
    def frame_bytes(self) -> list[int]:
        """Bytes of each array in one frame."""
        return [count * dtype.itemsize for count, dtype in self.arrays(1)]

    @property
    def sizes(self) -> tuple[int, ...]:
        """Elements of each array in one frame."""
        return (self.page_words, *self.strides)

    def arrays(self, frames: int) -> list[tuple[int, np.dtype]]:
        """(count, dtype) of the words and of each column."""
        dtypes = (np.dtype(np.uint32), *self.dtypes)
        return [(frames * size, dtype) for size, dtype in zip(self.sizes, dtypes, strict=True)]


class Pool:
    """The frames of one direction: `arrays` are its words and columns on the device."""

    def __init__(self, direction: Direction, columns: Sequence[str]) -> None:
        self.direction, self.names, self.layout = direction, tuple(columns), Layout.of(direction, columns)
        self.plain = not len(direction) or not needs_scratch(int(direction.records["encoding"][0]))
        self.arrays: list[Any] = []

    def allocate(self, frames: int) -> None:
        self.arrays = [gpu.empty(max(count, 1), dtype) for count, dtype in self.layout.arrays(frames)]

    def reading_bytes(self, workers: int) -> int:
        """The least host memory that reading takes: a feed, and pages to unpack into."""
        frame = sum(padded(count * dtype.itemsize) for count, dtype in self.layout.arrays(1))
        scratch = 0 if self.plain else self.direction.scratch_bytes
        return (workers + 2) * frame + workers * (scratch + self.unpacking_bytes)

    @property
    def unpacking_bytes(self) -> int:
        """Of one buffer that a page is unpacked into."""
        return 0 if self.plain else padded(4 * self.layout.page_words)

    def buffers(self, workers: int, host: Ledger, held: ExitStack) -> list[np.ndarray]:
        """Where pages of other encodings are unpacked, one for each worker; `held` gives them back."""
        if self.plain:
            return [np.zeros(0, np.uint32)] * workers
        made = Pinned(host, [(self.layout.page_words, np.uint32)] * workers, "unpacked pages")
        held.callback(made.close)
        return made.arrays

    def values(self, page: int, parts: Parts, buffer: np.ndarray) -> list[np.ndarray]:
        """A page as it lies on disk: its words, in `buffer` if they must be unpacked, and the values of its columns."""
        words = parts[0].view(np.uint32)
        if not self.plain:
            block = decode(parts[0], self.direction.records[page], self.direction.home, buffer)
            buffer[len(buffer) - len(block.offsets) :] = block.offsets
            words = buffer
        pairs = zip(self.names, parts[1:], strict=True)
        return [words, *(self.direction.column_values(name, page, data) for name, data in pairs)]

    def copy(self, stream: gpu.Stream, frame: int, values: Sequence[np.ndarray]) -> int:
        """Begin to copy a page's values into a frame; bytes copied."""
        for target, each, size in zip(self.arrays, values, self.layout.sizes, strict=True):
            stream.copy(target[frame * size : frame * size + len(each)], each)
        return sum(each.nbytes for each in values)

    def copy_run(self, stream: gpu.Stream, frame: int, source: Sequence[np.ndarray], place: int, count: int) -> int:
        """Begin to copy what `keep` put together into frames that lie together; bytes copied."""
        copied = 0
        for target, values, size in zip(self.arrays, source, self.layout.sizes, strict=True):
            part = values[place * size : (place + count) * size]
            stream.copy(target[frame * size : (frame + count) * size], part)
            copied += part.nbytes
        return copied

    def routes(self, pages: np.ndarray, frames: np.ndarray, pieces: Sequence[Batch]) -> tuple[np.ndarray, np.ndarray]:
        """The copies that bring what was read of plain pages to their frames, one for what lies together there and
        here; and where those of each piece end."""
        piece = np.repeat(np.arange(len(pieces)), [len(each.items) for each in pieces])
        kinds = []
        for k, (array, size) in enumerate(zip(self.arrays, self.layout.frame_bytes, strict=True)):
            rows = np.empty(len(pages), COPY)
            rows["start"] = [spans[k][0] for each in pieces for spans in each.spans]
            rows["to"] = gpu.address(array) + frames * size
            rows["nbytes"] = size
            if k:
                rows["nbytes"] = self.direction.column_records[self.names[k - 1]]["bytes"][pages]
            kinds.append(rows)
        rows, kind = np.concatenate(kinds), np.repeat(np.arange(len(kinds)), len(pages))
        piece = np.tile(piece, len(kinds))
        order = np.argsort(piece, kind="stable")
        order = order[rows["nbytes"][order] > 0]
        rows, kind, piece = rows[order], kind[order], piece[order]
        fresh = np.ones(len(rows), bool)
        # What lies together by chance, of two arrays, is two copies: the driver refuses one over both.
        fresh[1:] = (kind[1:] != kind[:-1]) | (piece[1:] != piece[:-1])
        for name in ("start", "to"):
            fresh[1:] |= rows[name][1:] != rows[name][:-1] + rows["nbytes"][:-1]
        heads = np.flatnonzero(fresh)
        found = rows[heads]
        if len(heads):
            found["nbytes"] = np.add.reduceat(rows["nbytes"], heads)
        return found, np.searchsorted(piece[heads], np.arange(len(pieces)), side="right")

    def copy_read(
        self, stream: gpu.Stream, pages: np.ndarray, frames: np.ndarray, piece: Batch, memory: np.ndarray,
        buffer: np.ndarray,
    ) -> int:  # fmt: skip
        """Copy what was read of pages of any encoding, one by one; bytes copied."""
        copied = 0
        for page, frame, spans in zip(pages.tolist(), frames.tolist(), piece.spans, strict=True):
            values = self.values(page, tuple(memory[a:b] for a, b in spans), buffer)
            copied += self.copy(stream, frame, values)
            if not self.plain:
                stream.synchronize()  # the buffer is that of the next page
        stream.synchronize()
        return copied

    def keep(self, target: Sequence[np.ndarray], place: int, page: int, parts: Parts) -> None:
        """Put a page where the host keeps it, laid out as on the device."""
        size = self.layout.page_words
        words = target[0][place * size : (place + 1) * size]
        found, *columns = self.values(page, parts, words)
        if found is not words:
            words[:] = found
        for mine, values, size in zip(target[1:], columns, self.layout.strides, strict=True):
            mine[place * size : place * size + len(values)] = values


def runs(*numbers: np.ndarray) -> Iterator[tuple[int, int]]:
    """Where all of these go on one by one: (first, end) of each stretch."""
    breaks = np.zeros(len(numbers[0]), bool)
    for each in numbers:
        breaks[1:] |= each[1:] != each[:-1] + 1
    return ((a, b) for a, b in pairwise([0, *np.flatnonzero(breaks).tolist(), len(breaks)]) if a < b)


__all__ = ["Layout", "Pool", "runs"]
