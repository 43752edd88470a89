"""Run Penstock in a process of its own, to kill it or to weigh it."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

COLD, WARM = 400_000_000, 250_000_000
"""What Python, NumPy, PyArrow and Numba may cost on top of a budget: while kernels are compiled, and ever after."""

_PEAK = """
with open("/proc/self/status") as file:
    print("VmHWM", next(int(line.split()[1]) << 10 for line in file if line.startswith("VmHWM")))
with open("/proc/self/io") as file:
    print("read_bytes", next(int(line.split()[1]) for line in file if line.startswith("read_bytes")))
"""


def start(code: str, **kwargs: Any) -> subprocess.Popen[str]:
    return subprocess.Popen([sys.executable, "-c", textwrap.dedent(code)], text=True, **kwargs)


def weigh(code: str, cache: Path) -> dict[str, int]:
    """Run code to its end; its peak resident size and what it read from disk.

    Compiled kernels lie in `cache`: in the common place tests that run beside this one overwrite each other's.
    """
    environment = os.environ | {"NUMBA_CACHE_DIR": str(cache)}
    child = start(textwrap.dedent(code) + _PEAK, stdout=subprocess.PIPE, env=environment)
    out, _ = child.communicate()
    assert child.returncode == 0
    return {name: int(value) for name, value in (line.split() for line in out.splitlines()[-2:])}
