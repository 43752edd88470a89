"""What a GPU can be given, and why it cannot be given the rest."""

from __future__ import annotations

import numpy as np

from penstock.mapreduce.columns import NOTHING, Kind, is_nothing, kind_name
from penstock.mapreduce.placing import Unsuited


def checked(*kinds: Kind) -> None:
    """Kernels take numbers, times and nothing."""
    for kind in kinds:
        if isinstance(kind, str):
            raise Unsuited(f"columns of {kind} have no fixed width")
        if not is_nothing(kind) and (kind.kind not in "biufmM" or kind.itemsize > 8 or kind == np.float16):
            raise Unsuited(f"values of {kind_name(kind)} are worked on by the CPU")


def held(kind: Kind) -> np.dtype:
    """The type of a column on the device: numbers for times, a byte where there is nothing."""
    assert not isinstance(kind, str)
    if kind == NOTHING or is_nothing(kind):
        return np.dtype(np.uint8)
    return np.dtype(np.int64) if kind.kind in "mM" else kind


def plain(column: np.ndarray) -> np.ndarray:
    """A column as it is copied to the device."""
    if is_nothing(column.dtype):
        return np.zeros(len(column), np.uint8)
    return np.ascontiguousarray(column.view(np.int64) if column.dtype.kind in "mM" else column)


__all__ = ["checked", "held", "plain"]
