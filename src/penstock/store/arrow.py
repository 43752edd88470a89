"""Values as they lie in a store, seen by Arrow: without copying, and without `pa.array`, which imports pandas."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from penstock.store.columns import type_dtype


def arrow_type(kind: str) -> pa.DataType:
    """The Arrow type of a column, from its name in the manifest."""
    if "[" in kind:
        base, unit = kind.rstrip("]").split("[")
        unit, _, zone = unit.partition(", tz=")
        if base == "timestamp":
            return pa.timestamp(unit, zone or None)
        if base == "duration":
            return pa.duration(unit)
        return {"date32": pa.date32, "date64": pa.date64}.get(base, lambda: getattr(pa, base)(unit))()
    return pa.bool_() if kind == "bool" else pa.type_for_alias(kind)


def plain_array(values: np.ndarray, valid: np.ndarray | None = None) -> pa.Array:
    """Numbers or truth values; null where `valid` is false."""
    data = np.ascontiguousarray(values)
    kind, count = pa.from_numpy_dtype(data.dtype), len(data)
    return pa.Array.from_buffers(kind, count, [None if valid is None else _bits(valid), _buffer(data)])


def typed_array(values: np.ndarray, kind: str) -> pa.Array:
    """Storage values as an array of the column's own type."""
    wanted = arrow_type(kind)
    data = values.astype(bool) if pa.types.is_boolean(wanted) else np.ascontiguousarray(values, type_dtype(kind))
    return pa.Array.from_buffers(wanted, len(data), [None, _buffer(data)])


def _buffer(data: np.ndarray) -> pa.Buffer:
    return _bits(data) if data.dtype == np.bool_ else pa.py_buffer(data)


def _bits(flags: np.ndarray) -> pa.Buffer:
    return pa.py_buffer(np.packbits(flags, bitorder="little"))


__all__ = ["arrow_type", "plain_array", "typed_array"]
