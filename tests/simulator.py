"""Numba's CUDA simulator, made faster and right for many threads. Import this before any kernel is made."""

from __future__ import annotations

import sys
import threading
from typing import Any

import numpy as np
from numba.cuda.simulator.kernelapi import FakeCUDAShared
from numba.np.numpy_support import as_dtype

_lock = threading.Lock()


def _shared(self: Any, shape: Any, dtype: Any) -> np.ndarray:
    """One array for all threads of a block that come by the same line. The simulator's own looks first and makes it
    then: two threads that come at the same time may get two arrays."""
    caller = sys._getframe(1)
    key = caller.f_code, caller.f_lineno
    with _lock:
        if key not in self._allocations:
            self._allocations[key] = np.empty(shape, dtype if isinstance(dtype, type) else as_dtype(dtype))
        return self._allocations[key]


FakeCUDAShared.array = _shared
# It asks its threads again and again whether they wait: they must get their turn.
sys.setswitchinterval(1e-5)
