"""One Arrow batch to one chunk of edges: types settled, nulls and NaN found, rows named in complaints."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from penstock.errors import InputError
from penstock.ingest.source import STORAGE, EdgeChunk, Ids, storage_dtype
from penstock.ingest.tables.schema import Layout, is_string, require

_EXACT = float(1 << 53)


def to_chunk(batch: pa.RecordBatch, roles: Layout, where: str, first_row: int) -> EdgeChunk:
    """The edges of a batch whose first row is row `first_row` of `where`, counted from 1."""
    for column in roles.names:
        require(column, batch.schema.names, where)
    place = _Place(where, first_row)
    ends = [_ids(_plain(batch.column(column)), column, roles, place) for column in (roles.source, roles.target)]
    columns = {
        column: _values(_plain(batch.column(column)), column, kind, roles, place)
        for column, kind in roles.columns.items()
    }
    return EdgeChunk(ends[0], ends[1], columns)


class _Place:
    def __init__(self, where: str, first_row: int) -> None:
        self.where, self.first_row = where, first_row

    def error(self, index: Any, reason: str, hint: str | None = None) -> InputError:
        return InputError(f"row {self.first_row + int(index)}: {reason}", path=self.where, hint=hint)


def _plain(array: pa.Array) -> pa.Array:
    """Without dictionary, run-end or extension wrapping."""
    while True:
        if isinstance(array, pa.DictionaryArray):
            array = array.dictionary_decode()
        elif isinstance(array, pa.RunEndEncodedArray):
            array = pc.run_end_decode(array)
        elif isinstance(array, pa.ExtensionArray):
            array = array.storage
        else:
            return array


def as_numpy(array: pa.Array, dtype: np.dtype | None = None) -> np.ndarray:
    """The values of a fixed-width array without nulls, not copied.

    Not `array.to_numpy()`: that imports pandas where it is installed, 0.4 s and 40 MB that no budget knows of.
    """
    dtype = STORAGE[str(array.type)] if dtype is None else dtype
    data = array.buffers()[1]
    if data is None or not len(array):
        return np.empty(0, dtype)
    return np.frombuffer(data, dtype, len(array), array.offset * dtype.itemsize)


def _first_null(array: pa.Array) -> int:
    return int(pc.index(pc.is_null(array), True).as_py())


def _ids(array: pa.Array, column: str, roles: Layout, place: _Place) -> Ids:
    if array.null_count:
        raise place.error(_first_null(array), f"column {column!r} is null, and an edge needs both its ends")
    kind = array.type
    if roles.id_dtype is None:
        if not is_string(kind):
            raise InputError(f"column {column!r} is {kind} here and string elsewhere", path=place.where)
        return array.cast(pa.large_string()) if pt.is_string_view(kind) else array
    if pt.is_null(kind):  # no rows, or the check above would have spoken
        return np.empty(0, roles.id_dtype)
    if pt.is_decimal(kind) and kind.scale <= 0:
        array = _whole_decimal(array, column, roles, place)
    elif pt.is_floating(kind):
        array = _whole_float(array, column, place)
    elif not pt.is_integer(kind):
        raise InputError(f"column {column!r} is {kind} here and a number elsewhere", path=place.where)
    values = as_numpy(array) if isinstance(array, pa.Array) else array
    if values.dtype == roles.id_dtype:
        return values
    if roles.id_dtype.kind == "u" and values.dtype.kind == "i" and len(values) and values.min() < 0:
        at = int(np.argmax(values < 0))
        raise place.error(
            at, f"column {column!r} holds {values[at]}, but the ids are unsigned", "cast both ends to int64"
        )
    if roles.id_dtype.itemsize < values.dtype.itemsize or (roles.id_dtype.kind, values.dtype.kind) == ("i", "u"):
        limits = np.iinfo(roles.id_dtype)
        if len(values) and int(values.max()) > limits.max:
            at = int(np.argmax(values > limits.max))
            raise place.error(at, f"column {column!r} holds {values[at]}, too large for {roles.id_dtype} ids")
    return values.astype(roles.id_dtype)


def _whole_decimal(array: pa.Array, column: str, roles: Layout, place: _Place) -> pa.Array:
    try:
        return array.cast(pa.from_numpy_dtype(roles.id_dtype))
    except pa.ArrowInvalid:
        raise InputError(
            f"column {column!r} holds ids that do not fit in 64 bits: {array.type}", path=place.where
        ) from None


def _whole_float(array: pa.Array, column: str, place: _Place) -> np.ndarray:
    values = as_numpy(array.cast(pa.float64()))
    wrong = ~((np.abs(values) <= _EXACT) & (values == np.rint(values)))
    if wrong.any():
        at = int(np.argmax(wrong))
        if np.isnan(values[at]):
            raise place.error(at, f"column {column!r} is NaN, and an edge needs both its ends")
        if np.isfinite(values[at]) and abs(values[at]) > _EXACT:
            raise place.error(
                at,
                f"column {column!r} holds {values[at]}, beyond 2**53 where floats skip integers",
                "store ids as int64",
            )
        raise place.error(at, f"column {column!r} holds {values[at]}, ids must be integers or strings")
    return values.astype(np.int64)


def _values(array: pa.Array, column: str, kind: pa.DataType, roles: Layout, place: _Place) -> np.ndarray:
    fill = roles.fill.get(column)
    if array.type != kind:
        try:
            array = array.cast(kind)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            raise InputError(f"column {column!r} is {array.type} here and {kind} elsewhere", path=place.where) from None
    if array.null_count:
        if fill is None:
            raise place.error(_first_null(array), f"column {column!r} is null", f"pass fill={{{column!r}: value}}")
        array = pc.fill_null(array, fill)
    dtype = storage_dtype(kind)
    assert dtype is not None  # `layout` refuses columns of other types
    if pt.is_boolean(kind):
        return as_numpy(array.cast(pa.uint8()))
    values = as_numpy(array, dtype)
    if pt.is_floating(kind) and not roles.allow_nan:
        missing = np.isnan(values)
        if missing.any():
            if fill is None:
                raise place.error(
                    int(np.argmax(missing)),
                    f"column {column!r} is NaN",
                    f"pass fill={{{column!r}: value}} or allow_nan=True",
                )
            values = np.where(missing, dtype.type(fill.as_py()), values)
    return values


__all__ = ["as_numpy", "to_chunk"]
