"""Edge columns: files of their own, one column page for each page of arcs, so that a run reads only what it uses."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import numpy as np

from penstock.store.checksum import checksum

ALIGN = 4096
"""Column pages start where a direct read may start."""

COLUMN_RECORD = np.dtype(
    [("offset", "<u8"), ("bytes", "<u8"), ("checksum", "<u8"), ("minimum", "<u8"), ("maximum", "<u8")]
)

TYPES = ("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float", "double")
"""Names as Arrow writes them; beside them timestamp[...], date32[day], date64[ms], time32/64[...] and duration[...]."""


def type_dtype(name: str) -> np.dtype:
    """How a column of this type lies on disk."""
    if name == "bool":
        return np.dtype(np.uint8)
    if name in ("float", "double"):
        return np.dtype(np.float32 if name == "float" else np.float64)
    if name in TYPES:
        return np.dtype(name).newbyteorder("<")
    if name.startswith(("date32[", "time32[")):
        return np.dtype("<i4")
    if name.startswith(("timestamp[", "date64[", "time64[", "duration[")):
        return np.dtype("<i8")
    raise ValueError(f"{name} is no type of a column")


def column_file(name: str) -> str:
    """The name of a column's files: only letters, digits, `_`, `-` and `%`, and never that of the pages."""
    # Python leaves dots and tildes alone; a dot would let `a.index` of one column meet a file of another.
    safe = quote(name, safe="", errors="surrogatepass").replace(".", "%2E").replace("~", "%7E")
    if safe in ("", "pages"):
        safe = f"%{safe}"
    if len(safe) > 128:  # file systems take 255 bytes
        safe = f"{safe[:100]}%{checksum(safe.encode()):016x}"
    return safe


def padded(nbytes: int) -> int:
    return -(-nbytes // ALIGN) * ALIGN


def extremes(values: np.ndarray) -> tuple[int, int]:
    """The smallest and largest value, NaN left out, as the eight bytes the index holds."""
    if not len(values):
        return 0, 0
    wide: Any = {"f": np.float64, "u": np.uint64, "i": np.int64}[values.dtype.kind]
    low, high = (np.fmin.reduce(values), np.fmax.reduce(values))
    return int(np.array(low, wide).view(np.uint64)), int(np.array(high, wide).view(np.uint64))


def from_extreme(bits: int, dtype: np.dtype) -> Any:
    """A value of the index's `minimum` or `maximum`, back in its type."""
    wide: Any = {"f": np.float64, "u": np.uint64, "i": np.int64}[dtype.kind]
    return np.array(bits, np.uint64).view(wide)[()]
