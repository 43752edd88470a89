"""Kernels around a user's compiled function: the first pass counts what it emits, the second writes it."""

from __future__ import annotations

from typing import Any

import numpy as np

from penstock.mapreduce.functions import emit
from penstock.memory.device import CompileError, overload, types

TYPES = (
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float32", "float64", "complex64",
    "complex128",
)  # fmt: skip
"""What may be emitted. A counting pass tells which of them it saw as a set of bits, in this order."""
NONE, RECORD = len(TYPES), len(TYPES) + 1


def _bit(kind: Any) -> int:
    kind = types.unliteral(kind)
    if isinstance(kind, types.NoneType):
        return 1 << NONE
    if isinstance(kind, types.Record):
        return 1 << RECORD
    if str(kind) in TYPES:
        return 1 << TYPES.index(str(kind))
    raise CompileError(f"emit takes numbers, structs and None, not {kind}")


@overload(emit, strict=False)
def _emit(out: Any, key: Any, value: Any) -> Any:
    """`out` is (cursor, kinds seen) in the first pass, and (keys, values, cursor) in the second."""
    if not isinstance(out, types.BaseTuple) or len(out) not in (2, 3):
        raise CompileError("the first argument of emit must be the last argument of your function")
    key_bit, value_bit = np.int64(_bit(key)), np.int64(_bit(value))
    if len(out) == 2:

        def count(out, key, value):
            out[0][0] += 1
            out[1][0] |= key_bit
            out[1][1] |= value_bit

        return count
    has_key, has_value = key_bit != 1 << NONE, value_bit != 1 << NONE
    if has_key and has_value:

        def write(out, key, value):
            at = out[2][0]
            out[2][0] = at + 1
            # A function that emits more the second time must not write elsewhere.
            if at < out[0].size:
                out[0][at] = key
                out[1][at] = value

        return write
    if has_key:

        def write_key(out, key, value):
            at = out[2][0]
            out[2][0] = at + 1
            if at < out[0].size:
                out[0][at] = key

        return write_key

    def write_value(out, key, value):
        at = out[2][0]
        out[2][0] = at + 1
        if has_value and at < out[1].size:
            out[1][at] = value

    return write_value


def counting_pairs(f: Any) -> Any:
    def count(keys, values, begin, end, block, counts, seen):
        """How many pairs come of each block of rows."""
        cursor = np.zeros(1, np.int64)
        out = (cursor, seen)
        for b in range(begin // block, (end + block - 1) // block):
            cursor[0] = 0
            for i in range(np.uint64(max(begin, b * block)), np.uint64(min(end, (b + 1) * block))):
                f(keys[i], values[i], out)
            counts[b] = cursor[0]

    return count


def writing_pairs(f: Any) -> Any:
    def write(keys, values, begin, end, out_keys, out_values):
        """The pairs that come of these rows; returns how many they are."""
        cursor = np.zeros(1, np.int64)
        out = (out_keys, out_values, cursor)
        for i in range(np.uint64(begin), np.uint64(end)):
            f(keys[i], values[i], out)
        return cursor[0]

    return write


def counting_groups(f: Any) -> Any:
    def count(keys, offsets, values, begin, end, block, counts, seen):
        cursor = np.zeros(1, np.int64)
        out = (cursor, seen)
        for b in range(begin // block, (end + block - 1) // block):
            cursor[0] = 0
            for i in range(np.uint64(max(begin, b * block)), np.uint64(min(end, (b + 1) * block))):
                f(keys[i], values[offsets[i] : offsets[i + np.uint64(1)]], out)
            counts[b] = cursor[0]

    return count


def writing_groups(f: Any) -> Any:
    def write(keys, offsets, values, begin, end, out_keys, out_values):
        cursor = np.zeros(1, np.int64)
        out = (out_keys, out_values, cursor)
        for i in range(np.uint64(begin), np.uint64(end)):
            f(keys[i], values[offsets[i] : offsets[i + np.uint64(1)]], out)
        return cursor[0]

    return write


def choosing_pairs(f: Any) -> Any:
    def choose(keys, values, begin, end, chosen):
        """Which rows a filter keeps."""
        for i in range(np.uint64(begin), np.uint64(end)):
            chosen[i] = bool(f(keys[i], values[i]))

    return choose


def pair_emitter(f: Any) -> Any:
    """A function that returns one pair, as one that emits."""

    def emitted(key, value, out):
        pair = f(key, value)
        emit(out, pair[0], pair[1])

    return emitted


def value_emitter(f: Any) -> Any:
    """A function that returns one value for a key, as one that emits."""

    def emitted(key, values, out):
        emit(out, key, f(key, values))

    return emitted


def fold_emitter(f: Any) -> Any:
    """A function that joins two values, as one of a key and its values."""

    def emitted(key, values, out):
        total = values[0]
        for k in range(1, len(values)):
            total = values.dtype.type(f(total, values[k]))
        emit(out, key, total)

    return emitted


def task_emitter(f: Any) -> Any:
    """A function of a task's number, as one of pairs."""

    def emitted(key, value, out):
        f(key, out)

    return emitted


def piece_emitter(f: Any) -> Any:
    """A function of a piece of a file, as one of a key and its values."""

    def emitted(key, values, out):
        f(values, out)

    return emitted
