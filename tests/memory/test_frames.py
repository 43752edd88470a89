"""Pages on a GPU, in the simulator: Numba must be told of it before it is imported, so in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.parametrize(
    ("what", "marked"),
    [("frames", "not slow"), ("disk", "not slow"), pytest.param("frames", "slow", marks=pytest.mark.slow)],
)
def test_pages_on_a_simulated_gpu(what: str, marked: str) -> None:
    file = Path(__file__).with_name(f"simulated_{what}.py")
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-p", "no:xdist", str(file), "-m"]
    command.append(marked)
    environment = os.environ | {"NUMBA_ENABLE_CUDASIM": "1"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, cwd=file.parents[2], check=False)
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
