"""Checksums of pages on the device: XXH3-64, as `penstock.store.checksum` writes them.

Pages that come from disk are checked where they land. If a core of the host reads them on their way, the disk, which
has to take the lines back from that core's cache before it can fill the buffer again, loses a quarter of its rate.

The hash goes over blocks of 1 KiB, one after the other. What a block adds is a sum over its words, which threads share;
only the step from one block to the next, a multiplication in each of eight lanes, is done in order.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from penstock.memory import gpu
from penstock.memory.device import inlined
from penstock.memory.fingerprint import fingerprint
from penstock.memory.gpu import cuda
from penstock.memory.orders import upload
from penstock.memory.pool import Pool
from penstock.memory.share import part_of
from penstock.store.checksum import checksum
from penstock.store.columns import ALIGN

BLOCK = 8 if gpu.SIMULATED else 256
BY_KERNEL = not gpu.SIMULATED
LANES = 8
GROUPS = BLOCK // LANES
"""Blocks of a page that are summed at the same time, by eight threads each."""
_BLOCK_BYTES, _BLOCK_WORDS, _STRIPES = 1024, 128, 16
_WHOLE = np.uint32(0xFFFFFFFF)
"""No page is damaged."""

# Of the reference implementation: its secret, its start, its primes.
_SECRET = bytes.fromhex(
    "b8fe6c3923a44bbe7c01812cf721ad1cded46de9839097db7240a4a4b7b3671fcb79e64eccc0e578825ad07dccff7221b8084674f743248e"
    "e03590e6813a264c3c2852bb91c300cb88d0658b1b532ea371644897a20df94e3819ef46a9deacd8a8fa763fe39c343ff9dcbbc7c70b4f1d"
    "8a51e04bcdb45931c89f7ec9d9787364eac5ac8334d3ebc3c581a0fffa1363eb170ddd51b7f0da49d316552629d4689e2b16be587d47a1fc"
    "8ff8b8d17ad031ce45cb3a8f95160428afd7fbcabb4b407e"
)
_PRIME32 = (0x9E3779B1, 0x85EBCA77, 0xC2B2AE3D)
_PRIME64 = (
    0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5,
)  # fmt: skip
_START = (_PRIME32[2], *_PRIME64[:4], _PRIME32[1], _PRIME64[4], _PRIME32[0])
_CONSTANTS = np.concatenate([np.frombuffer(_SECRET, np.uint64), np.array(_START, np.uint64)])
_START_AT = len(_SECRET) // 8

_ONE, _EIGHT = np.uint64(1), np.uint64(8)
_LOW = np.uint64(0xFFFFFFFF)
_HALF = np.uint64(32)
_STEP, _SIZE = np.uint64(_PRIME32[0]), np.uint64(_PRIME64[0])
_AVALANCHE = np.uint64(0x165667919E3779F9)


@inlined
def _key(secret, seed, k):
    """Word k of the secret that belongs to a seed."""
    return secret[k] - seed if k & 1 else secret[k] + seed


@inlined
def _key_at(secret, seed, byte):
    """Eight bytes of it from any byte on that is no multiple of eight."""
    k, shift = byte // 8, np.uint64(8 * (byte % 8))
    return (_key(secret, seed, k) >> shift) | (_key(secret, seed, k + 1) << (np.uint64(64) - shift))


@inlined
def _word(words, begin, k, nbytes):
    """Word k of so many bytes, zeros after them."""
    at = k * _EIGHT
    if at >= nbytes:
        return np.uint64(0)
    found = words[begin + k]
    if nbytes - at >= _EIGHT:
        return found
    return found & ((_ONE << (_EIGHT * (nbytes - at))) - _ONE)


@inlined
def _folded(a, b):
    """The upper and the lower half of a product of 128 bits, one upon the other."""
    low, high = a & _LOW, a >> _HALF
    other, upper = b & _LOW, b >> _HALF
    bottom, left, right = low * other, high * other, low * upper
    middle = (bottom >> _HALF) + (left & _LOW) + right
    return ((left >> _HALF) + (middle >> _HALF) + high * upper) ^ ((middle << _HALF) | (bottom & _LOW))


@inlined
def _finished(secret, seed, lanes, nbytes):
    found = nbytes * _SIZE
    for k in range(0, LANES, 2):
        a = lanes[k] ^ _key_at(secret, seed, 11 + 8 * k)
        found += _folded(a, lanes[k + 1] ^ _key_at(secret, seed, 19 + 8 * k))
    found = (found ^ (found >> np.uint64(37))) * _AVALANCHE
    return found ^ (found >> _HALF)


def check(first, base, words, stride, table, frame_of, secret, damaged, part, parts):
    """A block for each page from `first` on: one that is not as it was written becomes zeros, which are safe to go
    over, and is named in `damaged`."""
    thread, page = cuda.threadIdx.x, first + cuda.blockIdx.x
    begin = np.uint64(frame_of[page] - base) * stride
    seed, nbytes, length = table[page, 1], table[page, 2], table[page, 3]
    lane, group = thread % LANES, thread // LANES
    values = cuda.shared.array(BLOCK, np.uint64)
    added = cuda.shared.array(BLOCK, np.uint64)
    total = secret[_START_AT + lane]
    blocks = np.int64(length) // _BLOCK_BYTES
    for start in range(0, blocks, GROUPS):
        block = start + group
        product, value = np.uint64(0), np.uint64(0)
        if block < blocks:
            for n in range(_STRIPES):
                found = _word(words, begin, np.uint64(block * _BLOCK_WORDS + n * LANES + lane), nbytes)
                last = block == blocks - 1 and n == _STRIPES - 1
                mixed = found ^ (_key_at(secret, seed, 121 + 8 * lane) if last else _key(secret, seed, n + lane))
                product += (mixed & _LOW) * (mixed >> _HALF)
                value += found
        values[thread] = value
        cuda.syncthreads()
        added[thread] = product + values[thread ^ 1]
        cuda.syncthreads()
        if group == 0:
            for k in range(GROUPS):
                if start + k < blocks:
                    total += added[k * LANES + lane]
                if start + k < blocks - 1:
                    total = (total ^ (total >> np.uint64(47)) ^ _key(secret, seed, 16 + lane)) * _STEP
    if group == 0:
        values[thread] = total
    cuda.syncthreads()
    if blocks > 0 and _finished(secret, seed, values, length) != table[page, 0]:
        for k in range(thread, (np.int64(nbytes) + 7) // 8, BLOCK):
            words[begin + np.uint64(k)] = 0
        if thread == 0:
            cuda.atomic.min(damaged, 0, np.uint32(page * parts + part))


class Sums:
    """What the pages of a pool should be: a row (checksum, seed, bytes, bytes with padding) for each page, and for each
    page of a column."""

    def __init__(self, pool: Pool, frame_of: Any) -> None:
        direction, self._frame_of = pool.direction, frame_of
        self.names: tuple[str | None, ...] = (None, *pool.names)
        first, _, step = part_of(direction)
        seeds = first + np.arange(len(direction)) * step
        sizes = np.full(len(direction), direction.store.page_size)
        rows: list[tuple[np.ndarray, ...]] = [(direction.records["checksum"], seeds, sizes, sizes)]
        for name in pool.names:
            records = direction.column_records[name]
            nbytes = records["bytes"].astype(np.int64)
            rows.append((records["checksum"], seeds, nbytes, -(-nbytes // ALIGN) * ALIGN))
        self._tables = [gpu.view(upload(np.stack([each.astype(np.uint64) for each in row], axis=1))) for row in rows]
        self._words = [gpu.view(array.view(np.uint64)) for array in pool.arrays]
        self._strides = [np.uint64(nbytes // 8) for nbytes in pool.layout.frame_bytes]
        self._secret = gpu.view(upload(_CONSTANTS))
        self._damaged = upload(np.full(1, _WHOLE))
        self._told = gpu.view(self._damaged)
        self._check = _launcher()

    @staticmethod
    def needed(pages: int, columns: int) -> list[int]:
        """Bytes of each array on the device."""
        return [*[32 * max(1, pages)] * (1 + columns), _CONSTANTS.nbytes, 4]

    def check(self, stream: gpu.Stream, first: int, count: int, base: int) -> None:
        """Begin to check pages that lie in frames, counted from `base` on."""
        if not BY_KERNEL:
            self._check_slowly(first, count, base)
            return
        parts = len(self.names)
        for part, (words, stride, table) in enumerate(zip(self._words, self._strides, self._tables, strict=True)):
            self._check(
                stream, count, BLOCK, first, np.uint32(base), words, stride, table, self._frame_of, self._secret,
                self._told, part, parts,
            )  # fmt: skip

    def _check_slowly(self, first: int, count: int, base: int) -> None:
        """As the store does it, which in a simulation is a thousand times faster."""
        parts = len(self.names)
        for part, (words, stride, table) in enumerate(zip(self._words, self._strides, self._tables, strict=True)):
            for page in range(first, first + count):
                written, seed, nbytes, length = (int(each) for each in table[page])
                begin = (int(self._frame_of[page]) - base) * int(stride)
                frame = words[begin : begin + -(-nbytes // 8)].view(np.uint8)
                if checksum(np.pad(frame[:nbytes], (0, length - nbytes)), seed) != written:
                    frame[:] = 0
                    self._damaged[0] = min(self._damaged[0], np.uint32(page * parts + part))

    def damaged(self) -> tuple[int, str | None] | None:
        """Wait for all that was begun; the first page that is damaged, and its column. Asked again, it is whole."""
        found = gpu.download(self._damaged)[0]
        if found == _WHOLE:
            return None
        gpu.fill(self._damaged, np.full(1, _WHOLE))
        return int(found) // len(self.names), self.names[int(found) % len(self.names)]


@functools.cache
def _launcher() -> gpu.Launcher:
    return gpu.Launcher(gpu.template_kernel(check, fingerprint("sums", check)))


__all__ = ["BLOCK", "Sums", "check"]
