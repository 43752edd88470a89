"""The engine on a GPU, in the simulator: Numba must be told of it before it is imported, so in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path


def test_algorithms_on_a_simulated_gpu(tmp_path: Path) -> None:
    simulate("simulated_algorithms.py", tmp_path)


def test_programs_on_a_simulated_gpu(tmp_path: Path) -> None:
    simulate("simulated_programs.py", tmp_path)


def test_what_a_simulated_gpu_refuses(tmp_path: Path) -> None:
    simulate("simulated_refusals.py", tmp_path)


def test_what_follows_a_failure_on_a_simulated_gpu(tmp_path: Path) -> None:
    simulate("simulated_recovery.py", tmp_path)


def test_mapreduce_on_a_simulated_gpu(tmp_path: Path) -> None:
    simulate("simulated_mapreduce.py", tmp_path)


def simulate(name: str, tmp_path: Path) -> None:
    file = Path(__file__).with_name(name)
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-p", "no:xdist"]
    # Kernels count with unsigned numbers that pass through zero, which NumPy warns of.
    command += ["-W", "ignore::RuntimeWarning", "--basetemp", str(tmp_path / "simulated"), str(file)]
    environment = os.environ | {"NUMBA_ENABLE_CUDASIM": "1", "XDG_CACHE_HOME": str(tmp_path / "cache")}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, cwd=file.parents[2], check=False)
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
