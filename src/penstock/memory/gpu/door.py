"""numba-cuda and CuPy, or Numba's simulator in their place, and what differs between them."""

from __future__ import annotations

import contextlib
import importlib.util
import os
from typing import Any

import numpy as np

if not hasattr(np, "row_stack"):  # gone since NumPy 2.5; numba-cuda still names it
    vars(np)["row_stack"] = np.vstack

SIMULATED = os.environ.get("NUMBA_ENABLE_CUDASIM", "0") not in ("", "0")
DRIVER = "libcuda.so.1"
"""The library that kernels of the host call to copy; see `penstock.memory.deliver`."""

from numba import cuda  # noqa: E402

with contextlib.suppress(ImportError):  # the simulator has none
    # A batch of few pages is no mistake: nobody wants to hear of it at each kernel's first launch.
    from numba.cuda.core import config

    config.CUDA_LOW_OCCUPANCY_WARNINGS = 0

cupy: Any = None
if not SIMULATED and importlib.util.find_spec("cupy") is not None:
    cupy = importlib.import_module("cupy")


class _Inside:
    """What the simulator gives a running kernel as `cuda`: it looks only into the kernel's own module."""

    def __getattr__(self, name: str) -> Any:
        from numba.cuda.simulator.kernel import _get_kernel_context

        return getattr(_get_kernel_context(), name)


inside: Any = _Inside() if SIMULATED else cuda
"""`cuda` for functions that kernels of other modules call."""

WARP = 32


def _plain(array: Any, i: Any) -> Any:
    return array[i]


once: Any = _plain if SIMULATED else getattr(cuda, "ldcs", _plain)
"""`once(array, i)` in a kernel: an element that is read once. It does not push out of the caches what is read again;
for the arcs of PageRank that is worth three percent."""

__all__ = ["DRIVER", "SIMULATED", "WARP", "cuda", "cupy", "inside", "once"]
