"""Pairs as lines of text, `key<tab>value`: for programs that read and write them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from penstock.errors import InputError
from penstock.mapreduce.chunk import Chunk
from penstock.mapreduce.columns import Bytes, Column, Kind, is_nothing, kind_name, to_list

_ROWS = 8192


def to_lines(chunk: Chunk) -> Iterator[bytes]:
    """The pairs of a chunk, many lines at a time; of a value that is nothing not even the tab."""
    nothing = isinstance(chunk.values, np.ndarray) and is_nothing(chunk.values.dtype)
    for begin in range(0, len(chunk), _ROWS):
        some = chunk.slice(begin, min(begin + _ROWS, len(chunk)))
        keys = [_text(each) for each in to_list(some.keys)]
        rows = keys if nothing else [
            key + b"\t" + value for key, value in zip(keys, (_text(each) for each in to_list(some.values)), strict=True)
        ]  # fmt: skip
        joined = b"\n".join(rows) + b"\n"
        if joined.count(b"\n") != len(rows) or any(b"\t" in key for key in keys):
            raise InputError(
                "a key has a tab in it, or a key or a value a line end", hint="no line of text can hold it"
            )
        yield joined


def _text(value: Any) -> bytes:
    if isinstance(value, bytes):
        return value
    if isinstance(value, tuple):
        return b" ".join(_text(each) for each in value)
    return str(value).encode("utf-8", "surrogateescape")


def from_lines(data: bytes, key: Kind, value: Kind) -> tuple[Column, Column]:
    """Keys and values of lines, all of which have their end; a line without a tab is a key whose value is empty."""
    from penstock.mapreduce.kernels import text as kernels

    whole = np.frombuffer(bytearray(data), np.uint8)
    marks = np.uint8(9), np.uint8(10)
    lines, before, after = kernels.survey_pairs(whole, *marks)
    keys = Bytes(np.zeros(lines + 1, np.int64), np.empty(before, np.uint8), key == "string")
    values = Bytes(np.zeros(lines + 1, np.int64), np.empty(after, np.uint8), value == "string")
    kernels.split_pairs(whole, *marks, keys.offsets, keys.data, values.offsets, values.data)
    return _parsed(keys, key), _parsed(values, value)


def _parsed(column: Bytes, kind: Kind) -> Column:
    """Text as numbers, where these were asked for."""
    if isinstance(kind, str):
        return column
    if is_nothing(kind):
        return np.empty(len(column), kind)
    texts = [each.decode("utf-8", "replace") for each in Bytes(column.offsets, column.data)]
    try:
        if kind.kind in "iu":
            return np.array([int(each) for each in texts], kind)  # not through floats, which are not exact
        return np.array(texts).astype(kind)
    except (ValueError, OverflowError):
        for each in texts:
            try:
                np.array([int(each)], kind) if kind.kind in "iu" else np.array([each]).astype(kind)
            except (ValueError, OverflowError):
                raise InputError(f"{each[:40]!r} is no {kind_name(kind)}") from None
        raise


__all__ = ["from_lines", "to_lines"]
