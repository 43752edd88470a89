"""Text files cut into blocks of whole lines, each handed to a worker thread; results come back in file order.

Plain files are cut by byte ranges: a block owns the lines that begin in its range, and its worker reads it. Compressed
files are decompressed by one thread of their own, ahead of the workers.
"""

from __future__ import annotations

import os
import queue
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np

from penstock.errors import InputError
from penstock.ingest.text.textfile import TextFile

T = TypeVar("T")
BLOCK = 2 << 20
"""Large enough to hide the cost of handing it over, small enough to stay in the cache between read and parse."""
LONGEST_LINE = 1 << 20
_SLACK = 1 << 13
"""Room in a buffer for the rest of the last line, so that it rarely has to grow."""
_POLL = 0.05


@dataclass
class Block:
    """Whole lines: data[begin:end], which ends with a newline, from `offset` in the file."""

    file: TextFile
    offset: int
    data: bytearray
    begin: int
    end: int
    position: int
    """Bytes of the file itself used up to the end of the block, for the progress bar."""

    @property
    def array(self) -> np.ndarray:
        return np.frombuffer(self.data, np.uint8)


@dataclass
class Parsed(Generic[T]):
    """What a worker made of a block."""

    file: TextFile
    offset: int
    position: int
    value: T


@dataclass
class _Range:
    file: TextFile
    descriptor: int
    begin: int
    end: int
    first: bool


def block_size(threads: int, memory: int, overhead: float = 5, wanted: int | None = None) -> int:
    """Bytes per block so that all blocks in flight and what is made of them stay within `memory`.

    overhead: bytes in flight per byte of block, in the worst case; 5 for two integers in four bytes of text.
    """
    return wanted or max(1 << 12, min(BLOCK, int(memory / (overhead * (threads + 3)))))


def parse_blocks(
    files: Sequence[tuple[TextFile, int]],
    work: Callable[[Block], T],
    *,
    threads: int,
    memory: int,
    overhead: float = 5,
    size: int | None = None,
) -> Iterator[Parsed[T]]:
    """`work` on every block of the files, each from its starting offset, in order."""
    size = block_size(threads, memory, overhead, size)
    buffers: queue.SimpleQueue[bytearray | None] = queue.SimpleQueue()
    for _ in range(threads + 2):
        buffers.put(bytearray(size + _SLACK))
    stop = threading.Event()

    def run(task: _Range | Block) -> Parsed[T] | None:
        if isinstance(task, Block):
            try:
                return Parsed(task.file, task.offset, task.position, work(task))
            finally:
                buffers.put(task.data)
        data = buffers.get()
        assert data is not None
        try:
            block, data = _read_range(task, data)
            return None if block is None else Parsed(block.file, block.offset, block.position, work(block))
        finally:
            buffers.put(data)

    pool = ThreadPoolExecutor(threads, thread_name_prefix="penstock-parse")
    pending: deque[Future[Parsed[T] | None]] = deque()
    descriptors: list[int] = []
    tasks = _tasks(files, size, buffers, stop, descriptors)
    try:
        for task in tasks:
            pending.append(pool.submit(run, task))
            if len(pending) > threads:
                result = pending.popleft().result()
                if result is not None:
                    yield result
        while pending:
            result = pending.popleft().result()
            if result is not None:
                yield result
    finally:
        stop.set()
        for future in pending:
            future.cancel()
        pool.shutdown(wait=True)
        tasks.close()
        for descriptor in descriptors:
            os.close(descriptor)


def _tasks(
    files: Sequence[tuple[TextFile, int]],
    size: int,
    buffers: queue.SimpleQueue[bytearray | None],
    stop: threading.Event,
    descriptors: list[int],
) -> Generator[_Range | Block, None, None]:
    for file, start in files:
        if file.codec is None:
            try:
                descriptor = os.open(file.path, os.O_RDONLY)
            except OSError as error:
                raise file.unreadable(error) from error
            descriptors.append(descriptor)
            for begin in range(start, file.size, size):
                yield _Range(file, descriptor, begin, min(begin + size, file.size), begin == start)
        else:
            yield from ahead(read_stream(file, start, size, buffers, stop), stop)


def _pread(task: _Range, data: bytearray, at: int, offset: int, count: int) -> int:
    view = memoryview(data)
    filled = 0
    while filled < count:
        try:
            got = os.preadv(task.descriptor, [view[at + filled : at + count]], offset + filled)
        except OSError as error:
            raise task.file.unreadable(error) from error
        if not got:
            raise InputError("became shorter while it was read", path=task.file.path)
        filled += got
    return filled


def _grown(data: bytearray, used: int, room: int) -> bytearray:
    """Buffers may be viewed by an array, so a larger one is a new one."""
    bigger = bytearray(used + room + 1)
    bigger[:used] = memoryview(data)[:used]
    return bigger


def _too_long(file: TextFile, offset: int) -> InputError:
    number = file.line_number(offset)
    reason = f"this line is longer than {LONGEST_LINE} bytes: is this a text file of edges?"
    return InputError(reason, path=file.path, line=number)


def _read_range(task: _Range, data: bytearray) -> tuple[Block | None, bytearray]:
    """The lines that begin in the range; None if none does. The buffer may have had to grow for a long line."""
    lead = 0 if task.first else 1  # the byte before tells whether a line begins with the range
    size = task.end - task.begin + lead
    if len(data) <= size:
        data = _grown(data, 0, size)
    _pread(task, data, 0, task.begin - lead, size)
    begin = 0
    if lead:
        begin = data.find(b"\n", 0, size) + 1
        if begin in (0, size):
            return None, data
    end, position = size, task.end
    while data[end - 1] != 10:
        more = min(1 << 12, task.file.size - position)
        if more == 0:
            data[end] = 10
            end += 1
            break
        if len(data) <= end + more:
            data = _grown(data, end, 2 * more)
        _pread(task, data, end, position, more)
        position += more
        newline = data.find(b"\n", end, end + more)
        end = end + more if newline < 0 else newline + 1
        if newline < 0 and end - (data.rfind(b"\n", 0, end) + 1) > LONGEST_LINE:
            raise _too_long(task.file, task.begin - lead + data.rfind(b"\n", 0, end) + 1)
    return Block(task.file, task.begin - lead + begin, data, begin, end, task.end), data


def read_stream(
    file: TextFile,
    start: int,
    size: int,
    buffers: queue.SimpleQueue[bytearray | None],
    stop: threading.Event,
    cuts: bytes = b"\n",
) -> Iterator[Block]:
    """Blocks that end with one of `cuts`, from the beginning; who takes one gives its buffer back to `buffers`."""
    with file.open() as stream:
        skipped = 0
        while skipped < start:
            skipped += len(stream.read(min(1 << 16, start - skipped)))
        offset, tail = start, b""
        while True:
            data = _take(buffers, stop)
            if data is None:
                return
            if len(data) < len(tail) + size + 1:
                data = bytearray(len(tail) + size + 1)
            data[: len(tail)] = tail
            used = len(tail) + stream.readinto(memoryview(data)[len(tail) : len(tail) + size])
            if used < len(tail) + size:
                if used and data[used - 1] != 10:
                    data[used] = 10
                    used += 1
                if used:
                    yield Block(file, offset, data, 0, used, file.size)
                else:
                    buffers.put(data)
                return
            end = max(data.rfind(cut, 0, used) for cut in cuts) + 1
            if used - end > max(LONGEST_LINE, size):
                raise _too_long(file, offset + end)
            tail = bytes(memoryview(data)[end:used])
            if end:
                yield Block(file, offset, data, 0, end, stream.position)
                offset += end
            else:
                buffers.put(data)


def _take(buffers: queue.SimpleQueue[bytearray | None], stop: threading.Event) -> bytearray | None:
    while not stop.is_set():
        try:
            return buffers.get(timeout=_POLL)
        except queue.Empty:
            continue
    return None


def ahead(items: Iterator[T], stop: threading.Event) -> Generator[T, None, None]:
    """The same items, made by a thread of its own; the supply of buffers keeps it from running far ahead."""
    ready: queue.SimpleQueue[tuple[bool, T | BaseException | None]] = queue.SimpleQueue()

    def produce() -> None:
        try:
            for item in items:
                ready.put((True, item))
                if stop.is_set():
                    return
            ready.put((False, None))
        except BaseException as error:  # handed over to the caller's thread
            ready.put((False, error))

    thread = threading.Thread(target=produce, name="penstock-decompress", daemon=True)
    thread.start()
    try:
        while True:
            more, item = ready.get()
            if not more:
                break
            yield item  # type: ignore[misc]
    except BaseException:
        stop.set()
        raise
    finally:
        thread.join()
    if isinstance(item, BaseException):
        raise item


__all__ = ["BLOCK", "LONGEST_LINE", "Block", "Parsed", "ahead", "block_size", "parse_blocks", "read_stream"]
