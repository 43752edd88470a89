"""Kernels around a user's compiled function, and around reductions: one thread, one warp or one block for each key.

A compiled function emits as on the CPU: `out` is (cursor, kinds seen) in the first pass, (keys, values, cursor) in the
second, and each thread has a cursor of its own. In the simulator `emit` is plain Python, which appends to it instead.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from penstock.mapreduce.kernels.emitting import NONE, TYPES
from penstock.memory import gpu
from penstock.memory.device import inlined
from penstock.memory.gpu import SIMULATED, cuda

BLOCK = 8 if SIMULATED else 256
WARP = 8 if SIMULATED else gpu.WARP
"""The simulator has no warps: there each is a block of its own."""


# ---- what `emit` is given


class _Counting:
    def __init__(self, cursor: Any, kinds: Any) -> None:
        self._cursor, self._kinds = cursor, kinds

    def append(self, pair: tuple[Any, Any]) -> None:
        self._cursor[0] += 1
        for k, value in enumerate(pair):
            self._kinds[k] |= 1 << (NONE if value is None else TYPES.index(str(np.asarray(value).dtype)))


class _Writing:
    def __init__(self, keys: Any, values: Any, cursor: Any) -> None:
        self._columns, self._cursor = (keys, values), cursor

    def append(self, pair: tuple[Any, Any]) -> None:
        at = self._cursor[0]
        self._cursor[0] += 1
        for column, value in zip(self._columns, pair, strict=True):
            if value is not None and at < len(column):
                column[at] = value


def _pair(cursor, kinds):
    return cursor, kinds


def _triple(keys, values, cursor):
    return keys, values, cursor


counting_out: Any = _Counting if SIMULATED else inlined(_pair)
writing_out: Any = _Writing if SIMULATED else inlined(_triple)


# ---- two passes over pairs, and over keys with their values


def count_pairs(f: Any) -> Any:
    def count(keys, values, rows, counts, seen):
        """How many pairs come of each row, and of which kinds they are."""
        i = cuda.grid(1)
        cursor = cuda.local.array(1, np.int64)
        kinds = cuda.local.array(2, np.int64)
        if i < rows:
            cursor[0] = 0
            kinds[0] = 0
            kinds[1] = 0
            f(keys[i], values[i], counting_out(cursor, kinds))
            counts[i] = cursor[0]
            # Nearly all find what others have noted.
            if kinds[0] & ~seen[0]:
                cuda.atomic.or_(seen, 0, kinds[0])
            if kinds[1] & ~seen[1]:
                cuda.atomic.or_(seen, 1, kinds[1])

    return count


def write_pairs(f: Any) -> Any:
    def write(keys, values, begin, end, ends, before, out_keys, out_values, wrong):
        """The pairs of these rows, each row's where the counts of those before it end."""
        i = cuda.grid(1) + begin
        cursor = cuda.local.array(1, np.int64)
        if i < end:
            first = np.int64(0)
            if i > 0:
                first = ends[i - 1]
            cursor[0] = first - before
            f(keys[i], values[i], writing_out(out_keys, out_values, cursor))
            if cursor[0] != ends[i] - before:
                wrong[0] = 1

    return write


def write_single(f: Any) -> Any:
    def write(keys, values, rows, out_keys, out_values):
        """One pair for each row: nothing has to be counted."""
        i = cuda.grid(1)
        cursor = cuda.local.array(1, np.int64)
        if i < rows:
            cursor[0] = i
            f(keys[i], values[i], writing_out(out_keys, out_values, cursor))

    return write


def count_groups(f: Any) -> Any:
    def count(keys, offsets, values, rows, counts, seen):
        i = cuda.grid(1)
        cursor = cuda.local.array(1, np.int64)
        kinds = cuda.local.array(2, np.int64)
        if i < rows:
            cursor[0] = 0
            kinds[0] = 0
            kinds[1] = 0
            f(keys[i], values[offsets[i] : offsets[i + 1]], counting_out(cursor, kinds))
            counts[i] = cursor[0]
            if kinds[0] & ~seen[0]:
                cuda.atomic.or_(seen, 0, kinds[0])
            if kinds[1] & ~seen[1]:
                cuda.atomic.or_(seen, 1, kinds[1])

    return count


def write_groups(f: Any) -> Any:
    def write(keys, offsets, values, begin, end, ends, before, out_keys, out_values, wrong):
        i = cuda.grid(1) + begin
        cursor = cuda.local.array(1, np.int64)
        if i < end:
            first = np.int64(0)
            if i > 0:
                first = ends[i - 1]
            cursor[0] = first - before
            f(keys[i], values[offsets[i] : offsets[i + 1]], writing_out(out_keys, out_values, cursor))
            if cursor[0] != ends[i] - before:
                wrong[0] = 1

    return write


def write_groups_single(f: Any) -> Any:
    def write(keys, offsets, values, rows, out_keys, out_values):
        i = cuda.grid(1)
        cursor = cuda.local.array(1, np.int64)
        if i < rows:
            cursor[0] = i
            f(keys[i], values[offsets[i] : offsets[i + 1]], writing_out(out_keys, out_values, cursor))

    return write


# ---- reductions of two values at a time


def fold_by_thread(load: Any, combine: Any, word: Any) -> Any:
    def fold(values, offsets, rows, count, listed, out):
        """`rows`: which keys, where `listed`; else the first `count`."""
        k = cuda.grid(1)
        if k < count:
            i = np.int64(rows[k]) if listed else np.int64(k)
            at, end = offsets[i], offsets[i + 1]
            total = word(0)
            if at < end:
                total = load(values[at])
                at += 1
                while at < end:
                    total = combine(total, load(values[at]))
                    at += 1
            out[i] = total

    return fold


def fold_by_warp(load: Any, combine: Any, word: Any) -> Any:
    def fold(values, offsets, rows, count, listed, out):
        """Lanes take every 32nd value; what they have is joined by halves."""
        shared = cuda.shared.array(BLOCK, word)
        place = cuda.threadIdx.x
        lane = place % WARP
        k = (cuda.blockIdx.x * cuda.blockDim.x + place) // WARP
        i, width = np.int64(0), np.int64(0)
        if k < count:
            i = np.int64(rows[k]) if listed else np.int64(k)
            at, end = offsets[i] + lane, offsets[i + 1]
            width = min(end - offsets[i], np.int64(WARP))
            if at < end:
                total = load(values[at])
                at += WARP
                while at < end:
                    total = combine(total, load(values[at]))
                    at += WARP
                shared[place] = total
        step = WARP // 2
        while step > 0:
            if SIMULATED:
                cuda.syncthreads()
            else:
                cuda.syncwarp()
            if lane < step and lane + step < width:
                shared[place] = combine(shared[place], shared[place + step])
            step //= 2
        if k < count and lane == 0:
            out[i] = shared[place] if width > 0 else word(0)

    return fold


def fold_by_block(load: Any, combine: Any, word: Any) -> Any:
    def fold(values, offsets, rows, count, listed, out):
        """A block for each key."""
        shared = cuda.shared.array(BLOCK, word)
        place = cuda.threadIdx.x
        k = cuda.blockIdx.x
        i = np.int64(rows[k]) if listed else np.int64(k)
        at, end = offsets[i] + place, offsets[i + 1]
        width = min(end - offsets[i], np.int64(BLOCK))
        if at < end:
            total = load(values[at])
            at += BLOCK
            while at < end:
                total = combine(total, load(values[at]))
                at += BLOCK
            shared[place] = total
        step = BLOCK // 2
        while step > 0:
            cuda.syncthreads()
            if place < step and place + step < width:
                shared[place] = combine(shared[place], shared[place + step])
            step //= 2
        if place == 0:
            out[i] = shared[0] if width > 0 else word(0)

    return fold


# ---- groups of sorted keys


def heads(keys, count, flags):
    """1 where a key differs from the one before it."""
    i = cuda.grid(1)
    if i < count:
        flags[i] = 1 if i == 0 or keys[i] != keys[i - 1] else 0


def compact(keys, count, numbers, unique, offsets):
    """Each key once, and where its values begin; `numbers` are flags, summed up."""
    i = cuda.grid(1)
    if i < count and (i == 0 or numbers[i] != numbers[i - 1]):
        unique[numbers[i] - 1] = keys[i]
        offsets[numbers[i] - 1] = i


def blocks(threads: int) -> int:
    return max(1, -(-threads // BLOCK))


__all__ = [
    "BLOCK", "WARP", "blocks", "compact", "count_groups", "count_pairs", "fold_by_block", "fold_by_thread",
    "fold_by_warp", "heads", "write_groups", "write_groups_single", "write_pairs", "write_single",
]  # fmt: skip
