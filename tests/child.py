"""Run Penstock in a process of its own, to kill it or to weigh it."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

COLD, WARM = 280_000_000, 130_000_000
"""What Python and its libraries may cost on top of a budget, while kernels are compiled and ever after.

Their code is left out: the kernel maps it from files, shares it between processes, and maps it in larger pieces (200
instead of 120 MB) as long as the files have just been installed.
"""

_PEAK = """
with open("/proc/self/status") as file:
    status = dict(line.split(":") for line in file)
print("private_peak", int(status["VmHWM"].split()[0]) - int(status["RssFile"].split()[0]) << 10)
with open("/proc/self/io") as file:
    print("read_bytes", next(int(line.split()[1]) for line in file if line.startswith("read_bytes")))
"""


def start(code: str, **kwargs: Any) -> subprocess.Popen[str]:
    return subprocess.Popen([sys.executable, "-c", textwrap.dedent(code)], text=True, **kwargs)


def weigh(code: str, cache: Path) -> dict[str, int]:
    """Run code to its end; its peak resident size without mapped files, and what it read from disk.

    Compiled kernels lie in `cache`: in the common place tests that run beside this one overwrite each other's.
    """
    environment = os.environ | {"NUMBA_CACHE_DIR": str(cache)}
    child = start(textwrap.dedent(code) + _PEAK, stdout=subprocess.PIPE, env=environment)
    out, _ = child.communicate()
    assert child.returncode == 0
    return {name: int(value) for name, value in (line.split() for line in out.splitlines()[-2:])}
