"""XXH3-64: twenty times faster than the disk, where CRC-32 would be slower than it."""

from __future__ import annotations

from typing import Any

import numpy as np
import xxhash

BLOCK = 1 << 20
"""Array files are summed block by block, so that a reader can check the part it reads."""


def checksum(data: Any, seed: int = 0) -> int:
    """XXH3-64 of the bytes. Pages are seeded with their number: a page in the wrong place is damaged too."""
    return int(xxhash.xxh3_64_intdigest(data, seed))


def block_checksums(data: np.ndarray, first_block: int = 0) -> np.ndarray:
    """One checksum for each MiB of a byte array, seeded with the number of the block."""
    starts = range(0, len(data), BLOCK)
    return np.fromiter(
        (checksum(data[at : at + BLOCK], first_block + k) for k, at in enumerate(starts)), np.uint64, len(starts)
    )
