"""Where numbered items lie in striped files, and how to read a run of them with few requests."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from types import TracebackType

import numpy as np

from penstock.errors import DamagedStore
from penstock.memory.buffers import PAGE

_REFUSED = (errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP)
_WINDOW = 4096
"""Items planned at a time: enough for NumPy to pay, little memory however many pages the store has."""


class StripedFile:
    """One or more files read past the kernel's page cache, or around it where the file system refuses that."""

    def __init__(self, paths: Sequence[str | Path], *, direct: bool = True) -> None:
        self.paths = [Path(path) for path in paths]
        self._avoid_cache = direct
        self._buffered: list[int] = []
        self._retired: list[int] = []
        self._direct: list[int | None] = []
        try:
            for path in self.paths:
                self._buffered.append(os.open(path, os.O_RDONLY | os.O_CLOEXEC))
                self._direct.append(self._open_direct(path) if direct else None)
        except BaseException:
            self.close()
            raise

    def _open_direct(self, path: Path) -> int | None:
        if hasattr(fcntl, "F_NOCACHE"):  # macOS: the same descriptor, told not to cache
            fcntl.fcntl(self._buffered[-1], fcntl.F_NOCACHE, 1)
        if not hasattr(os, "O_DIRECT"):
            return None
        try:
            return os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_DIRECT)
        except OSError as error:
            if error.errno in _REFUSED:
                return None
            raise

    def __len__(self) -> int:
        return len(self.paths)

    @property
    def direct(self) -> bool:
        """Whether every stripe is read directly."""
        return bool(self._direct) and all(descriptor is not None for descriptor in self._direct)

    def descriptor(self, stripe: int) -> int:
        """For reads past the kernel's cache by somebody who reads no other way; -1, which reads nothing, without."""
        direct = self._direct[stripe]
        return -1 if direct is None else direct

    def read_into(self, stripe: int, offset: int, buffer: np.ndarray, needed: int | None = None) -> int:
        """Fill `buffer`; only `needed` bytes must exist (the rest may lie past the end of the file). Bytes read."""
        size = buffer.nbytes
        needed = size if needed is None else needed
        aligned = not (offset | size | buffer.ctypes.data) & (PAGE - 1)
        done = 0
        while done < needed:
            at = offset + done
            # A direct read that stops inside a block has met the end of the file; an ordinary read says for sure.
            direct = self._direct[stripe] if aligned and not done & (PAGE - 1) else None
            descriptor = self._buffered[stripe] if direct is None else direct
            try:
                got = os.preadv(descriptor, [buffer.data[done:]], at)
            except OSError as error:
                if direct is not None and error.errno in _REFUSED:
                    self._direct[stripe] = None  # the old descriptor is closed with the rest: others may be using it
                    self._retired.append(direct)
                    continue
                raise DamagedStore(
                    f"{self.paths[stripe]}: cannot be read at byte {at}: {os.strerror(error.errno or 0)}"
                ) from error
            if not got:
                end = os.fstat(descriptor).st_size
                raise DamagedStore(
                    f"{self.paths[stripe]}: is truncated: it ends at byte {end}, but {needed} bytes were expected "
                    f"from byte {offset}"
                )
            if direct is None and self._avoid_cache and hasattr(os, "posix_fadvise"):
                os.posix_fadvise(descriptor, at, got, os.POSIX_FADV_DONTNEED)
            done += got
        return done

    def read_across(self, stripe: int, offset: int, buffers: Sequence[np.ndarray], needed: Sequence[int]) -> int:
        """Fill several buffers from one stretch of the file, with one request where it is answered in full."""
        direct = self._direct[stripe]
        if len(buffers) > 1 and direct is not None:
            asked = sum(buffer.nbytes for buffer in buffers)
            # Whatever goes wrong here goes wrong again below, where it is dealt with.
            with contextlib.suppress(OSError):
                if os.preadv(direct, [buffer.data for buffer in buffers], offset) == asked:
                    return asked
        done = 0
        for buffer, enough in zip(buffers, needed, strict=True):
            done += self.read_into(stripe, offset, buffer, enough)
            offset += buffer.nbytes
        return done

    def close(self) -> None:
        descriptors = [*self._buffered, *(d for d in self._direct if d is not None), *self._retired]
        self._buffered, self._direct, self._retired = [], [], []
        for descriptor in set(descriptors):
            with contextlib.suppress(OSError):
                os.close(descriptor)

    def __enter__(self) -> StripedFile:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.close()


@dataclass(frozen=True)
class Extents:
    """Where each item's bytes of one kind (topology, one column) lie: `offset` and `nbytes` by item number.

    Item j is in stripe j % stripes unless `stripe` says otherwise. Offsets should be multiples of 4 KiB.
    """

    file: StripedFile
    offset: np.ndarray
    nbytes: np.ndarray
    stripe: np.ndarray | None = None

    @classmethod
    def pages(cls, file: StripedFile, count: int, page_size: int) -> Extents:
        """Fixed-size pages dealt out over the stripes in turn."""
        offset = np.arange(count, dtype=np.int64) // len(file) * page_size
        return cls(file, offset, np.broadcast_to(np.int64(page_size), count))

    def __len__(self) -> int:
        return len(self.offset)


Spans = tuple[tuple[int, int], ...]
"""Where the parts of one item lie in its frame: (first byte, end) of each."""


@dataclass(slots=True)
class Batch:
    """Items that are read into one frame together."""

    items: list[int]
    spans: list[Spans]
    reads: list[tuple[StripedFile, int, int, int, int, int]] = field(default_factory=list)
    """(file, stripe, file offset, frame offset, bytes needed, bytes asked for)"""

    def fill(self, frame: np.ndarray) -> int:
        """Read all parts of all items; bytes read."""
        done = 0
        for file, stripe, offset, start, needed, asked in self.reads:
            done += file.read_into(stripe, offset, frame[start : start + asked], needed)
        return done

    def continues(self, other: Batch) -> bool:
        """Whether this batch is one stretch of a file that begins where `other`, one stretch too, ends."""
        if len(self.reads) != 1 or len(other.reads) != 1:
            return False
        file, stripe, offset, _, _, _ = self.reads[0]
        before, same, start, _, _, asked = other.reads[0]
        return file is before and stripe == same and offset == start + asked


def fill(found: Sequence[Batch], frames: Sequence[np.ndarray]) -> int:
    """Read batches that continue each other, each into its frame; bytes read."""
    if len(found) == 1:
        return found[0].fill(frames[0])
    file, stripe, offset, _, _, _ = found[0].reads[0]
    pieces = [(frame[read[3] : read[3] + read[5]], read[4]) for frame, read in zip(frames, _only(found), strict=True)]
    return file.read_across(stripe, offset, [piece for piece, _ in pieces], [needed for _, needed in pieces])


def _only(found: Sequence[Batch]) -> list[tuple[StripedFile, int, int, int, int, int]]:
    return [batch.reads[0] for batch in found]


def frame_bytes(parts: Sequence[Extents]) -> int:
    """The frame that holds the largest item: each part starts on a 4 KiB boundary."""
    if not len(parts[0]):
        return PAGE
    total = np.zeros(len(parts[0]), np.int64)
    for part in parts:
        total += _aligned(part.nbytes)
    return max(PAGE, int(total.max()))


def _aligned(nbytes: np.ndarray) -> np.ndarray:
    return (np.asarray(nbytes).astype(np.int64) + (PAGE - 1)) & -PAGE


def batches(parts: Sequence[Extents], items: np.ndarray, limit: int) -> Iterator[Batch]:
    """Cut `items`, in their order, into batches of at most `limit` bytes, or of one item where that is larger."""
    for start in range(0, len(items), _WINDOW):
        yield from _window(parts, items[start : start + _WINDOW], limit)


def _window(parts: Sequence[Extents], items: np.ndarray, limit: int) -> Iterator[Batch]:
    count, kinds = len(items), len(parts)
    nbytes = np.stack([np.asarray(part.nbytes[items], np.int64) for part in parts])
    offset = np.stack([np.asarray(part.offset[items], np.int64) for part in parts])
    stripe = np.stack(
        [
            np.asarray(items % len(part.file) if part.stripe is None else part.stripe[items], dtype=np.int64)
            for part in parts
        ]
    )
    size = _aligned(nbytes)
    ends = np.cumsum(size.sum(axis=0)).tolist()
    cuts = [0]
    while cuts[-1] < count:
        first = cuts[-1]
        cuts.append(max(first + 1, bisect_right(ends, (ends[first - 1] if first else 0) + limit, lo=first)))

    # In a frame, entries lie by kind, then by stripe: what is adjacent on disk is adjacent in memory, one read.
    batch = np.repeat(np.arange(len(cuts) - 1), np.diff(cuts))
    kind = np.repeat(np.arange(kinds), count)
    batch = np.tile(batch, kinds)
    nbytes, offset, stripe, size = nbytes.ravel(), offset.ravel(), stripe.ravel(), size.ravel()
    order = np.lexsort((stripe, kind, batch))
    s_batch, s_kind, s_stripe, s_offset, s_size = batch[order], kind[order], stripe[order], offset[order], size[order]
    place = np.cumsum(s_size) - s_size
    head = np.searchsorted(s_batch, np.arange(len(cuts)))  # first entry of each batch, in sorted order
    place -= place[head[s_batch]]
    begin = np.empty(kinds * count, np.int64)
    begin[order] = place
    # Empty parts are not read: one at the end of a run would ask for the padding before it, past the file's end.
    some = s_size > 0
    entry = np.stack([s_batch, s_kind, s_stripe, s_offset, place, s_offset + nbytes[order], s_offset + s_size])[:, some]
    fresh = np.ones(entry.shape[1], bool)
    fresh[1:] = (entry[:3, 1:] != entry[:3, :-1]).any(axis=0) | (entry[3, 1:] != entry[6, :-1])
    runs = np.flatnonzero(fresh)
    last = np.append(runs[1:], len(fresh)) - 1
    reads: list[list[tuple[StripedFile, int, int, int, int, int]]] = [[] for _ in cuts[1:]]
    table = np.vstack([entry[:5, runs], entry[5:, last]]).T.tolist() if len(runs) else []
    for b, k, s, start, into, end, padded in table:
        reads[b].append((parts[k].file, s, start, into, end - start, padded - start))

    begins, finish = begin.reshape(kinds, count), (begin + nbytes).reshape(kinds, count)
    spans = list(
        zip(*(list(zip(b, e, strict=True)) for b, e in zip(begins.tolist(), finish.tolist(), strict=True)), strict=True)
    )
    numbers = items.tolist()
    for k, (a, b) in enumerate(pairwise(cuts)):
        yield Batch(numbers[a:b], spans[a:b], reads[k])


__all__ = ["Batch", "Extents", "Spans", "StripedFile", "batches", "fill", "frame_bytes"]
