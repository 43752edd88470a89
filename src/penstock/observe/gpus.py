"""What can be known of GPUs without CUDA, whose libraries take a second to import."""

from __future__ import annotations

import contextlib
import ctypes
import glob
import importlib
import importlib.util
import os
import sys
from typing import Any

PACKAGES = ("cupy", "numba_cuda")
NODES = "/dev/nvidia[0-9]*"
"""What the driver makes for each GPU; in a container, for each that it may use."""


def uninstalled() -> str | None:
    """Which package is missing, in one sentence that says what to install; None where all are there."""
    for package in PACKAGES:
        if importlib.util.find_spec(package) is None:
            name = package.replace("_", "-")
            return (
                f'{name} is not installed: run pip install ".[gpu-cu13]" in a checkout of Penstock, '
                f'or ".[gpu-cu12]" where the driver is older than 580'
            )
    return None


def seen() -> bool:
    """Whether there is an NVIDIA GPU with its driver: by a look at names, so nothing need be installed or loaded."""
    return bool(glob.glob(NODES))


def simulated() -> bool:
    """Whether Numba's simulator stands in for a GPU."""
    return os.environ.get("NUMBA_ENABLE_CUDASIM", "0") not in ("", "0")


def missing() -> str | None:
    """Why no GPU can be used, in one sentence; None where it is worth looking for one."""
    if simulated():
        return None
    if reason := uninstalled():
        return reason
    if sys.platform == "linux":
        try:
            ctypes.CDLL("libcuda.so.1")
        except OSError:
            return "no CUDA device was found: is its driver installed?"
    return None


def likely() -> bool:
    """Whether to look for a GPU where nobody asked for one; a simulated one is for who asks."""
    return not simulated() and missing() is None


def nvml() -> Any:
    """NVIDIA's management library, ready for use, or None."""
    with contextlib.suppress(Exception):  # not installed, no driver, or one that refuses: all mean the same
        library = importlib.import_module("pynvml")
        library.nvmlInit()
        return library
    return None


def driver() -> str | None:
    """The version of the driver, if it can be asked."""
    library = nvml()
    if library is None:
        return None
    try:
        version = library.nvmlSystemGetDriverVersion()
        return version.decode() if isinstance(version, bytes) else str(version)
    except Exception:
        return None
    finally:
        library.nvmlShutdown()


__all__ = ["NODES", "PACKAGES", "driver", "likely", "missing", "nvml", "seen", "simulated", "uninstalled"]
