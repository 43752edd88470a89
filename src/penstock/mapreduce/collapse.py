"""Keys with values without looking for equal keys: each pair for itself (clone), or all under one key (collapse)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from penstock.mapreduce.chunk import Chunk, Groups
from penstock.mapreduce.columns import Bytes, Column, Kind, as_column, concat, is_nothing, kind_of
from penstock.mapreduce.multivalue import KeyMultiValue
from penstock.mapreduce.room import Kept

if TYPE_CHECKING:
    from penstock.mapreduce.keyvalue import KeyValue


def clone(kv: KeyValue) -> KeyMultiValue:
    """Every pair as a key with one value."""
    room = kv.mr.room
    kept = [
        room.put(Groups(chunk.keys, np.arange(len(chunk) + 1, dtype=np.int64), chunk.values)) for chunk in kv.chunks()
    ]
    return KeyMultiValue(kv.mr, kept, kv.key, kv.value, partitioned=kv.partitioned, order=kv.order)


def collapsed_kind(key: Kind, value: Kind) -> Kind:
    """What holds keys and values side by side: their kind if it is one, a struct of two fixed ones, else bytes."""
    if is_nothing(value) or key == value:
        return key
    if is_nothing(key):
        return value
    if isinstance(key, str) or isinstance(value, str):
        return "bytes"
    return np.dtype([("key", key), ("value", value)])


def collapse(kv: KeyValue, key: Any) -> KeyMultiValue:
    """One key for all pairs of this rank; its values are k1, v1, k2, v2, ... Two fixed kinds that differ make values
    of (key, value); where only one of them varies in length, the numbers are given as their bytes."""
    one = as_column([key])
    kind = collapsed_kind(kv.key, kv.value)
    kept: list[Kept] = []
    for chunk in kv.chunks():
        values = _side_by_side(chunk, kind)
        ends = np.array([0, len(values)], np.int64)
        kept.append(kv.mr.room.put(Groups(one, ends, values, continues=bool(kept))))
    return KeyMultiValue(kv.mr, kept, kind_of(one), kind)


def _side_by_side(chunk: Chunk, kind: Kind) -> Column:
    keys, values = chunk.keys, chunk.values
    if is_nothing(kind_of(values)):
        return keys
    if is_nothing(kind_of(keys)):
        return values
    if not isinstance(kind, str) and kind_of(keys) != kind_of(values):
        both = np.empty(len(chunk), kind)
        both["key"], both["value"] = keys, values
        return both
    if isinstance(keys, np.ndarray) and isinstance(values, np.ndarray):
        turns = np.empty(2 * len(chunk), kind)
        turns[0::2], turns[1::2] = keys, values
        return turns
    order = np.arange(2 * len(chunk)).reshape(2, -1).T.reshape(-1)
    whole = concat([_raw(keys, kind == "string"), _raw(values, kind == "string")])
    assert isinstance(whole, Bytes)
    return whole.take(order)


def _raw(column: Column, text: bool) -> Bytes:
    """The bytes of each value."""
    if isinstance(column, Bytes):
        return Bytes(column.offsets, column.data, text)
    size = column.dtype.itemsize
    return Bytes(np.arange(0, size * (len(column) + 1), size, dtype=np.int64), column.view(np.uint8), text)


__all__ = ["clone", "collapse", "collapsed_kind"]
