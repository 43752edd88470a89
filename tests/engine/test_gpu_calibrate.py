"""Measuring a GPU: every rate is found, on a simulated one."""

from __future__ import annotations

import os
import subprocess
import sys

MEASURED = """
from penstock.engine.gpu import calibrate
from penstock.engine.rates import GpuRates

calibrate._BYTES, calibrate._ARCS, calibrate._BLOCK, calibrate._BLOCKS = 1 << 16, 64, 8, 2
calibrate._ROUNDS, calibrate._LAUNCHES = 2, 2
calibrate.GPU_SIZES = (64, 256, 1 << 40)
found = calibrate.measure()
assert found.name == "simulated", found
assert found.sizes == (64, 256), found  # the largest does not fit
assert min(found.copy, found.memory, found.launch, found.total, *found.gather) > 0, found
assert len(found.gather) == 2 and found.date, found
assert GpuRates.from_dict(found.as_dict()) == found

import numpy as np
neighbours, vector, sums = np.array([1, 6, 3, 5], np.uint32), np.arange(4, dtype=np.float32), np.zeros(2, np.float32)
calibrate._gather[1, 2](neighbours, np.uint32(3), vector, sums)
assert sums.tolist() == [1 + 3, 2 + 1], sums
"""


def test_measure() -> None:
    env = os.environ | {"NUMBA_ENABLE_CUDASIM": "1"}
    subprocess.run([sys.executable, "-c", MEASURED], env=env, check=True)
