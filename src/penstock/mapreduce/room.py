"""Where chunks live: in memory up to a share of the budget, the oldest on disk beyond it.

Chunks are written one after the other into files of some megabytes, so that small ones cost no file each; a file goes
when the last chunk in it is gone. What is read back is in the ledger as long as anybody refers to it.
"""

from __future__ import annotations

import itertools
import threading
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import numpy as np

from penstock.errors import DoesNotFit
from penstock.mapreduce.account import Account, root_of
from penstock.mapreduce.chunk import Chunk, Groups
from penstock.mapreduce.columns import Bytes, Column, arrays_of
from penstock.memory import heap
from penstock.memory.ledger import Reservation, Shape
from penstock.memory.spill import Spill, SpillFile

AnyChunk = Chunk | Groups
_FILE = 16 << 20
"""Bytes after which a spill file gets no more chunks."""
_AT_ONCE = 2 << 20
"""Bytes spilled together: a disk takes a few large writes faster than many small ones."""
_SLACK = 16
"""A column that is a view of more than 1/16 beyond its own size is copied: it would keep all of that in memory."""


class _File:
    """A spill file and how many chunks in it are still wanted."""

    def __init__(self, file: SpillFile) -> None:
        self.file, self.wanted = file, 0


class Kept:
    """A chunk in a room. It is given up by `release`, once for each holder, or when nobody refers to it any more."""

    def __init__(self, room: Room, chunk: AnyChunk, number: int) -> None:
        self.rows, self.nbytes = len(chunk), chunk.nbytes
        self.values = len(chunk.values)
        self.continues = isinstance(chunk, Groups) and chunk.continues
        self._room, self._number = room, number
        self._lock = threading.Lock()
        self._holders, self._pins = 1, 0
        self._chunk: AnyChunk | None = chunk
        self._file: _File | None = None
        self._at = 0
        self._layout: list[tuple[bool | None, list[tuple[np.dtype, int]]]] = []
        self._maker: Callable[..., AnyChunk] = Chunk

    def __len__(self) -> int:
        return self.rows

    @property
    def spilled(self) -> bool:
        """Whether it lies on disk."""
        return self._chunk is None

    @contextmanager
    def read(self) -> Iterator[Any]:
        """The chunk, which stays in memory inside the block."""
        with self._lock:
            self._pins += 1
            chunk = self._chunk
        try:
            yield self._load() if chunk is None else chunk
        finally:
            with self._lock:
                self._pins -= 1

    def get(self) -> Any:
        """The chunk, read from disk if it is there."""
        chunk = self._chunk
        return self._load() if chunk is None else chunk

    def share(self) -> Kept:
        """The same chunk for one more holder."""
        with self._lock:
            self._holders += 1
        return self

    def release(self) -> None:
        """One holder less; the last one gives its memory or its place on disk back."""
        with self._lock:
            self._holders -= 1
            if self._holders:
                return
            self._chunk = None
        self._give_up()

    def _give_up(self) -> None:
        file, self._file = self._file, None
        self._room._dead.append((self._number, file))

    def __del__(self) -> None:
        if self._holders > 0:
            self._give_up()

    def _load(self) -> AnyChunk:
        file, at = self._file, self._at
        if file is None:
            raise ValueError("the chunk was released")
        parts: list[Column] = []
        for text, arrays in self._layout:
            read = []
            for dtype, count in arrays:
                array = np.empty(count, dtype)
                if array.nbytes:
                    array = self._room.empty(count, dtype, "a chunk read back")
                    file.file.read_into(at, array.view(np.uint8))
                    at += array.nbytes
                read.append(array)
            parts.append(read[0] if text is None else Bytes(read[0], read[1], text))
        return self._maker(*parts)

    def _may_go(self) -> bool:
        """Whether it is in memory, wanted, and nobody reads it. Asked under its lock."""
        return self._chunk is not None and not self._pins and self._holders > 0

    def _went(self, file: _File, at: int) -> None:
        chunk = self._chunk
        assert chunk is not None
        self._file, self._at, self._maker = file, at, chunk.maker
        self._layout = [
            (column.text if isinstance(column, Bytes) else None, [(a.dtype, len(a)) for a in arrays_of(column)])
            for column in chunk.columns
        ]
        self._chunk = None


class Room:
    """Keeps chunks in at most `share` bytes of memory, and in at most `chunks` of them if that is given."""

    def __init__(
        self,
        ledger: Account,
        spill: Spill,
        *,
        share: int,
        force_out_of_core: bool = False,
        chunks: int | None = None,
        may_spill: bool = True,
    ) -> None:
        self.ledger, self.spill, self.share = ledger, spill, share
        self.force_out_of_core, self.most_chunks, self.may_spill = force_out_of_core, chunks, may_spill
        self.spilled_chunks = self.peak = 0
        self._at_once = min(_AT_ONCE, share // 8) if chunks is None else 0
        self._lock = threading.RLock()
        self._numbers, self._names = itertools.count(), itertools.count()
        self._resident: dict[int, weakref.ref[Kept]] = {}
        self._bytes: dict[int, int] = {}
        self._used = 0
        self._file: _File | None = None
        # Handles die wherever the collector runs: what they held waits here for the next caller.
        self._dead: deque[tuple[int, _File | None]] = deque()
        self._reader: ThreadPoolExecutor | None = None

    @property
    def used(self) -> int:
        """Bytes of chunks in memory."""
        self._bury()
        return self._used

    @property
    def resident(self) -> int:
        """How many chunks are in memory."""
        self._bury()
        return len(self._resident)

    def put(self, chunk: AnyChunk) -> Kept:
        """Keep a chunk, in memory if there is room. Its columns must not be changed from now on."""
        self._bury()
        kept = Kept(self, chunk, next(self._numbers))
        if self.force_out_of_core or not self._admit(kept, chunk):
            if not self.may_spill:
                raise DoesNotFit("key-value data", needed=2 * (self._used + chunk.nbytes), limit=self.ledger.limit)
            self._write([kept])
        return kept

    def _admit(self, kept: Kept, chunk: AnyChunk) -> bool:
        if chunk.nbytes > self.share:
            return False
        if not self._make_way(lambda: self._fits(chunk.nbytes)):
            return False
        try:
            compact = chunk.maker(*(self._compact(column) for column in chunk.columns))
            for column in compact.columns:
                for array in arrays_of(column):
                    self._counted(array)
        except DoesNotFit:
            return False
        kept._chunk = compact
        with self._lock:
            self._resident[kept._number] = weakref.ref(kept)
            self._bytes[kept._number] = kept.nbytes
            self._used += kept.nbytes
            self.peak = max(self.peak, self._used)
        return True

    def _fits(self, nbytes: int) -> bool:
        enough = self.most_chunks is None or len(self._resident) < self.most_chunks
        return enough and self._used + nbytes <= self.share

    def _counted(self, array: np.ndarray) -> None:
        if array.nbytes and not self.ledger.counts(array):
            size = root_of(array).nbytes
            self._make_way(lambda: self.ledger.free >= size)
            self.ledger.adopt(array, "chunks")

    def _compact(self, column: Column) -> Column:
        """A column without more memory behind it than it shows."""
        if isinstance(column, Bytes):
            return Bytes(self._whole(column.offsets), self._whole(column.data), column.text)
        return self._whole(column)

    def _whole(self, array: np.ndarray) -> np.ndarray:
        root = root_of(array)
        if root.nbytes <= array.nbytes + array.nbytes // _SLACK + 64 and array.flags.c_contiguous:
            return array
        copy = self.empty(len(array), array.dtype, "chunks")
        copy[:] = array
        return copy

    def empty(self, shape: Shape, dtype: Any, what: str) -> np.ndarray:
        """An array in the ledger until its last view is gone; chunks are spilled to make way for it."""
        while True:
            try:
                return self.ledger.empty(shape, dtype, what)
            except DoesNotFit:
                if not self._spill_some():
                    raise

    def reserve(self, nbytes: int, what: str) -> Reservation:
        """Bytes of the ledger; chunks are spilled to make way for them."""
        while True:
            try:
                return self.ledger.reserve(nbytes, what)
            except DoesNotFit:
                if not self._spill_some():
                    raise

    def _make_way(self, enough: Callable[[], bool]) -> bool:
        while not enough():
            if not self._spill_some():
                return enough()
        return True

    def _spill_some(self) -> bool:
        """Bring the oldest chunks that nobody reads to disk, small ones several at a time; whether there were any."""
        self._bury()
        if not self.may_spill:
            return False
        with self._lock:
            waiting = list(self._resident.values())
        victims: list[Kept] = []
        size = 0
        try:
            for ref in waiting:
                kept = ref()
                if kept is None or not kept._lock.acquire(blocking=False):
                    continue
                victims.append(kept)
                if not kept._may_go():
                    victims.pop()._lock.release()
                    continue
                size += kept.nbytes
                if size >= self._at_once:
                    break
            if victims:
                self._write(victims)
        finally:
            for kept in victims:
                kept._lock.release()
        for kept in victims:
            self._leave(kept._number)
        return bool(victims)

    def _leave(self, number: int) -> None:
        with self._lock:
            if self._resident.pop(number, None) is not None:
                self._used -= self._bytes.pop(number)

    def _write(self, going: list[Kept]) -> None:
        """Chunks one after the other to the file that is being filled."""
        arrays: list[np.ndarray] = []
        starts, nbytes = [], 0
        for kept in going:
            starts.append(nbytes)
            assert kept._chunk is not None
            arrays += [a for column in kept._chunk.columns for a in arrays_of(column) if a.nbytes]
            nbytes += kept.nbytes
        with self._lock:
            if self._file is None:
                heap.settle()
                self._file = _File(self.spill.create(f"chunks-{next(self._names)}"))
            file = self._file
            file.wanted += len(going)
            self.spilled_chunks += len(going)
        try:
            at = file.file.append(*(np.ascontiguousarray(array).view(np.uint8) for array in arrays))
        except BaseException:
            for _ in going:
                self._unwant(file)
            raise
        for kept, start in zip(going, starts, strict=True):
            kept._went(file, at + start)
        with self._lock:
            if self._file is file and file.file.size >= _FILE:
                self._file = None

    def _unwant(self, file: _File) -> None:
        with self._lock:
            file.wanted -= 1
            if file.wanted:
                return
            if self._file is file:
                self._file = None
        file.file.delete()

    def _bury(self) -> None:
        while self._dead:
            try:
                number, file = self._dead.popleft()
            except IndexError:  # another thread was faster
                return
            self._leave(number)
            if file is not None:
                self._unwant(file)

    def stream(self, kept: Iterable[Kept], ahead: bool = True) -> Iterator[Any]:
        """The chunks one after the other, each for as long as the next is not asked for; what lies on disk is read
        one ahead, by another thread, if the ledger has room for it."""
        following = iter(kept)
        waiting: Future[Any] | None = None
        this = next(following, None)
        while this is not None:
            if waiting is None:
                with this.read() as chunk:
                    that = next(following, None)
                    waiting = self._fetch(that) if ahead else None
                    yield chunk
            else:
                found = waiting.result()
                that = next(following, None)
                if found is None:
                    found = this.get()
                waiting = self._fetch(that) if ahead else None
                yield found
            chunk = found = None
            this = that

    def _fetch(self, kept: Kept | None) -> Future[Any] | None:
        if kept is None or not kept.spilled or self.ledger.free < 2 * kept.nbytes:
            return None
        if self._reader is None:
            self._reader = ThreadPoolExecutor(1, "penstock-chunks")
        return self._reader.submit(_tried, kept)

    def close(self) -> None:
        """Forget everything; handles may be used no more. The spill is its owner's to close."""
        if self._reader is not None:
            self._reader.shutdown()
        with self._lock:
            for ref in self._resident.values():
                kept = ref()
                if kept is not None:
                    kept._chunk = None
            self._resident.clear()
            self._bytes.clear()
            self._used = 0
            self._file = None
            self._dead.clear()


def _tried(kept: Kept) -> Any:
    """What was to be read ahead; nothing where the memory has gone to somebody else meanwhile."""
    try:
        return kept.get()
    except DoesNotFit:
        return None


__all__ = ["AnyChunk", "Kept", "Room"]
