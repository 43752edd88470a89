"""Kernels compile for a GPU that is not there, if numba-cuda is."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.skipif(importlib.util.find_spec("numba_cuda") is None, reason="numba-cuda is not installed")
def test_kernels_of_algorithms_compile(tmp_path: Path) -> None:
    file = Path(__file__).with_name("compiled_algorithms.py")
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-p", "no:xdist"]
    command += ["--basetemp", str(tmp_path / "compiled"), str(file)]
    environment = os.environ | {"XDG_CACHE_HOME": str(tmp_path / "cache"), "CUDA_VISIBLE_DEVICES": ""}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, cwd=file.parents[2], check=False)
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
