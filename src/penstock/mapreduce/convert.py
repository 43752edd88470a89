"""Columns from what users have (lists, NumPy, Arrow, pandas, Polars), and back to Arrow."""

from __future__ import annotations

from typing import Any

import numpy as np

from penstock.errors import InputError, UsageError
from penstock.mapreduce.kinds import NOTHING, Column, Kind, as_kind, is_nothing, is_varying, kind_name, kind_of
from penstock.mapreduce.varying import Bytes


def as_column(data: Any, count: int | None = None, kind: Any = None) -> Column:
    """A column of what is given; of `kind` if that is not None. None itself makes `count` times nothing.

    An array that can be used as it is is not copied.
    """
    wanted = None if kind is None else as_kind(kind)
    if data is None:
        if count is None:
            raise UsageError("values of nothing need a count")
        return np.empty(count, NOTHING)
    column = _converted(data, wanted)
    if count is not None and len(column) != count:
        raise UsageError(f"a column of {len(column)} values does not go with one of {count}")
    return column if wanted is None else cast(column, wanted)


def _converted(data: Any, wanted: Kind | None) -> Column:
    if isinstance(data, Bytes):
        return data
    if isinstance(data, np.ndarray):
        return _from_array(data)
    if hasattr(data, "__arrow_c_stream__") or hasattr(data, "__arrow_c_array__"):
        return from_arrow(data)
    if hasattr(data, "__array__") and not isinstance(data, np.generic):
        return _from_array(np.asarray(data))
    if isinstance(data, (str, bytes, bytearray, memoryview)) or not hasattr(data, "__iter__"):
        raise UsageError(f"{data!r:.40} is no column: give a list or an array, one entry for each pair")
    return _from_list(data if isinstance(data, (list, tuple)) else list(data), wanted)


def _from_list(rows: list[Any] | tuple[Any, ...], wanted: Kind | None) -> Column:
    if not rows:
        return np.empty(0, np.int64) if wanted is None else _none_of(wanted)
    if any(isinstance(row, (str, bytes, bytearray)) for row in rows):
        return Bytes.of(rows)
    if wanted is not None and not is_varying(wanted) and not isinstance(wanted, str) and wanted.fields is not None:
        if is_nothing(wanted):
            return np.empty(len(rows), NOTHING)
        try:
            return np.array([tuple(row) if isinstance(row, (tuple, list)) else row for row in rows], wanted)
        except (TypeError, ValueError) as error:
            raise UsageError(f"a row does not fit a struct of {', '.join(wanted.names or ())}: {error}") from None
    if all(row is None for row in rows):
        return np.empty(len(rows), NOTHING)
    try:
        array = np.asarray(rows)
    except (ValueError, OverflowError):
        raise UsageError("the entries of a column differ in kind: give numbers, strings or bytes only") from None
    if array.dtype.kind == "f" and all(isinstance(row, (int, np.integer)) for row in rows):
        raise UsageError("no integer type of 64 bits holds all of these numbers: give them as strings or as floats")
    if array.dtype.kind == "O":
        raise UsageError("a column of Python objects holds neither numbers nor strings: convert them first")
    return _from_array(array)


def _none_of(kind: Kind) -> Column:
    return Bytes.empty(kind == "string") if isinstance(kind, str) else np.empty(0, kind)


def _from_array(array: np.ndarray) -> Column:
    if array.ndim != 1:
        raise UsageError(f"a column has one dimension, not {array.ndim}: rows of several numbers are structs")
    kind = array.dtype
    if kind.kind in "SUT":
        return Bytes.of(array.tolist(), text=kind.kind != "S")
    if kind.kind == "O":
        rows = array.tolist()
        if any(isinstance(row, (tuple, list, np.ndarray)) for row in rows):
            raise UsageError("a column of tuples needs a kind: give a struct dtype such as [('a', 'i8'), ('b', 'f8')]")
        return _from_list(rows, None) if rows else Bytes.empty(text=True)
    if kind.itemsize == 0:
        return np.empty(len(array), NOTHING)
    as_kind(kind)  # refuses objects inside structs
    array = np.ascontiguousarray(array, kind.newbyteorder("="))
    # A compiled loop has one form for arrays that may be written and another for those that may not: only one is kept.
    return array if array.flags.writeable else array.copy()


def cast(column: Column, kind: Kind) -> Column:
    """The same values as another kind, or an error where one of them would change."""
    have = kind_of(column)
    if have == kind:
        return column
    if isinstance(column, Bytes) and isinstance(kind, str):
        return Bytes(column.offsets, column.data, kind == "string")
    if not len(column):
        return _none_of(kind)
    if isinstance(column, np.ndarray) and not isinstance(kind, str):
        if is_nothing(kind):
            raise UsageError(f"values of {kind_name(have)} do not go where nothing was declared")
        if column.dtype.fields is None and kind.fields is None and not is_nothing(have):
            with np.errstate(all="ignore"):
                found = column.astype(kind)
                same = found.astype(column.dtype) == column
                if column.dtype.kind == "f":
                    # Fewer digits are what whoever asks for fewer wants; another number is not.
                    same |= np.isnan(column) | ((kind.kind == "f") & (np.isinf(found) == np.isinf(column)))
            if column.dtype.kind in "iu" and kind.kind in "iu":
                same &= (found < 0) == (column < 0)
            if same.all():
                return found
            row = int(np.flatnonzero(~same)[0])
            raise UsageError(f"row {row}: {column[row]} is no {kind_name(kind)}")
        if column.dtype.itemsize == kind.itemsize and column.dtype.names == kind.names and kind.names:
            return column.astype(kind)
    raise UsageError(f"a column of {kind_name(have)} is no column of {kind_name(kind)}")


def from_arrow(values: Any) -> Column:
    """A column from an Arrow array, or from anything that gives Arrow arrays. Copied: Arrow's memory is Arrow's."""
    import pyarrow as pa

    if not isinstance(values, (pa.Array, pa.ChunkedArray)):
        values = pa.array(values) if not hasattr(values, "__arrow_c_stream__") else pa.chunked_array(values)
    if isinstance(values, pa.ChunkedArray):
        values = values.combine_chunks()
        if isinstance(values, pa.ChunkedArray):
            values = values.chunk(0) if values.num_chunks else pa.array([], values.type)
    kind = values.type
    if pa.types.is_dictionary(kind):
        return from_arrow(values.dictionary_decode())
    if pa.types.is_null(kind):
        return np.empty(len(values), NOTHING)
    if values.null_count:
        raise InputError(f"a column of {kind} has {values.null_count} nulls", hint="fill or drop them first")
    text = pa.types.is_string(kind) or pa.types.is_large_string(kind) or kind == pa.string_view()
    if text or pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or kind == pa.binary_view():
        values = values.cast(pa.large_string() if text else pa.large_binary())
        _, where, data = values.buffers()
        if not len(values):
            return Bytes.empty(text)
        offsets = np.frombuffer(where, np.int64)[values.offset : values.offset + len(values) + 1]
        whole = np.zeros(0, np.uint8) if data is None else np.frombuffer(data, np.uint8)
        return Bytes(offsets - offsets[0], whole[offsets[0] : offsets[-1]].copy(), text)
    if pa.types.is_date32(kind):
        values = values.cast(pa.date64()).view(pa.timestamp("ms"))
    try:
        return _from_array(values.to_numpy(zero_copy_only=False).copy())
    except (pa.ArrowException, NotImplementedError, UsageError):
        raise InputError(f"a column of {kind} cannot be used", hint="cast it to numbers, strings or bytes") from None


def to_arrow(column: Column) -> Any:
    """The same memory as an Arrow array. Structs become struct arrays, other fixed widths fixed-size binaries."""
    import pyarrow as pa

    from penstock.store.arrow import plain_array

    if isinstance(column, Bytes):
        kind = pa.large_string() if column.text else pa.large_binary()
        buffers = [None, pa.py_buffer(column.offsets), pa.py_buffer(column.data)]
        found = pa.Array.from_buffers(kind, len(column), buffers)
        if column.text:
            try:
                found.validate(full=True)
            except pa.ArrowInvalid:
                raise InputError("a string is not UTF-8", hint="give these values as bytes") from None
        return found
    kind = column.dtype
    if kind.itemsize == 0:
        return pa.nulls(len(column))
    if kind.names:
        fields = [to_arrow(_flat(np.ascontiguousarray(column[name]))) for name in kind.names]
        return pa.StructArray.from_arrays(fields, kind.names)
    if kind.kind in "cV" or kind.itemsize > 8:
        return pa.Array.from_buffers(pa.binary(kind.itemsize), len(column), [None, pa.py_buffer(column.view(np.uint8))])
    if kind.kind in "mM" and np.datetime_data(kind)[0] in ("Y", "M", "W", "D", "h", "m", "generic"):
        column = column.astype("M8[s]" if kind.kind == "M" else "m8[s]")
    return plain_array(column)


def _flat(field: np.ndarray) -> np.ndarray:
    """A field of several numbers as opaque bytes."""
    if field.ndim == 1:
        return field
    return field.reshape(len(field), -1).view(f"V{field.dtype.itemsize * field[0].size}").reshape(-1)


__all__ = ["as_column", "cast", "from_arrow", "to_arrow"]
