"""What a column may hold: numbers, small structs, strings, bytes, or nothing."""

from __future__ import annotations

from typing import Any

import numpy as np

from penstock.errors import UsageError
from penstock.mapreduce.varying import Bytes

Column = np.ndarray | Bytes
Kind = np.dtype | str
"""A dtype, or "string" or "bytes". A kind compares equal to its name: `kind == "int64"`, `kind == "string"`."""
NOTHING = np.dtype([])

_NAMES: dict[Any, Any] = {
    "string": "string", "str": "string", str: "string", "bytes": "bytes", "binary": "bytes", bytes: "bytes",
    "nothing": NOTHING, None: NOTHING, int: np.dtype(np.int64), float: np.dtype(np.float64), bool: np.dtype(np.bool_),
}  # fmt: skip


def as_kind(kind: Any) -> Kind:
    """A kind from what users write: `"int64"`, `np.uint32`, `int`, `str`, `"bytes"`, None for nothing, a dtype."""
    try:
        if kind in _NAMES:
            return _NAMES[kind]
    except TypeError:  # a list of fields is no key of a dictionary
        pass
    try:
        dtype = np.dtype(kind)
    except TypeError:
        raise UsageError(f"{kind!r} is no kind of column: use a NumPy dtype, 'string', 'bytes' or None") from None
    if dtype.kind in "SU":
        return "bytes" if dtype.kind == "S" else "string"
    if dtype.hasobject or dtype.subdtype is not None:
        raise UsageError(f"a column cannot hold {dtype}: use a NumPy scalar, a struct, 'string' or 'bytes'")
    return dtype.newbyteorder("=")


def kind_of(column: Column) -> Kind:
    """The dtype, or "string" or "bytes"."""
    if isinstance(column, Bytes):
        return "string" if column.text else "bytes"
    return column.dtype


def is_varying(kind: Kind) -> bool:
    """Whether values of this kind have lengths of their own."""
    return isinstance(kind, str)


def is_nothing(kind: Kind) -> bool:
    """Whether there are no values at all."""
    return not isinstance(kind, str) and kind.itemsize == 0


def kind_name(kind: Kind) -> str:
    """For messages."""
    return kind if isinstance(kind, str) else "nothing" if kind.itemsize == 0 else str(kind)


def width(kind: Kind) -> int:
    """Bytes of memory for one value: of its offset only where they vary."""
    return 8 if isinstance(kind, str) else kind.itemsize


def is_exact(kind: Kind) -> bool:
    """Whether two values of this kind are the same exactly when their codes are."""
    return not isinstance(kind, str) and (kind.itemsize == 0 or (kind.kind in "biufmM" and kind.itemsize <= 8))


__all__ = [
    "NOTHING", "Column", "Kind", "as_kind", "is_exact", "is_nothing", "is_varying", "kind_name", "kind_of", "width",
]  # fmt: skip
