"""Arrays of other libraries where NumPy can see them: shared through DLPack, or copied from a device."""

from __future__ import annotations

from typing import Any

import numpy as np

from penstock.errors import InputError

HOST = 1
"""DLPack's number for ordinary memory."""


def on_host(values: Any, where: str) -> Any:
    """What speaks DLPack as a NumPy array, without a copy if it lies in host memory; everything else as it is."""
    if isinstance(values, np.ndarray) or not hasattr(values, "__dlpack__"):
        return values
    try:
        if values.__dlpack_device__()[0] == HOST:
            return np.from_dlpack(values)
        # CuPy's and PyTorch's words; others are asked for a copy by the protocol itself.
        for word in ("get", "cpu"):
            if hasattr(values, word):
                copied = getattr(values, word)()
                return copied if isinstance(copied, np.ndarray) else np.from_dlpack(copied)
        return np.from_dlpack(values, device="cpu", copy=True)
    except (BufferError, TypeError, ValueError, RuntimeError) as error:
        if hasattr(values, "__array__"):
            return values
        reason = (str(error).splitlines() or [type(error).__name__])[0].rstrip(".")
        raise InputError(f"{type(values).__name__} cannot be read through DLPack: {reason}", path=where) from None


__all__ = ["on_host"]
