"""Pieces of text as columns: their words, their lines. For functions that `map_pieces` calls."""

from __future__ import annotations

from typing import Any

import numpy as np

from penstock.errors import UsageError
from penstock.mapreduce.columns import Bytes

WHITESPACE = b" \t\n\r\v\f"


def _data(piece: Any) -> np.ndarray:
    data = piece if isinstance(piece, np.ndarray) else np.frombuffer(piece, np.uint8)
    # A compiled loop has another form for what may not be written to; this asks for one only.
    return data if data.flags.writeable else data.copy()


def words(piece: Any, separators: bytes = WHITESPACE, *, lower: bool = False, text: bool = True) -> Bytes:
    """The words of a piece: what lies between runs of any of the bytes in `separators`. `lower`: A to Z become a to z.
    `text=False` makes bytes of them."""
    from penstock.mapreduce.kernels import text as kernels

    data = _data(piece)
    cuts, made = np.zeros(256, np.uint8), np.arange(256, dtype=np.uint8)
    cuts[np.frombuffer(separators, np.uint8)] = 1
    if lower:
        made[65:91] += 32
    count, size = kernels.count_words(data, cuts)
    offsets, out = np.zeros(count + 1, np.int64), np.empty(size, np.uint8)
    kernels.split_words(data, cuts, made, offsets, out)
    return Bytes(offsets, out, text)


def lines(piece: Any, separator: bytes = b"\n", *, text: bool = True) -> Bytes:
    """The records of a piece that end with a separator of one byte, without it."""
    from penstock.mapreduce.kernels import text as kernels

    if len(separator) != 1:
        raise UsageError(f"lines are cut at one byte, not at {separator!r}")
    data = _data(piece)
    byte = np.uint8(separator[0])
    ended = kernels.count_byte(data, byte)
    rows = ended + int(len(data) > 0 and data[-1] != byte)
    offsets, out = np.zeros(rows + 1, np.int64), np.empty(len(data) - ended, np.uint8)
    kernels.split_lines(data, byte, offsets, out)
    return Bytes(offsets, out, text)


__all__ = ["WHITESPACE", "lines", "words"]
