"""The most frequent number, found without a table: the same one."""

from __future__ import annotations

import os
import subprocess
import sys

FOUND = """
import numpy as np
from penstock.engine.gpu import mode as there
from penstock.engine.mode import mode

rng = np.random.default_rng(3)
for n in (1, 2, 3, 15, 16, 17, 18, 40, 255, 600):
    for top in (1, 2, 5, n, 10 * n):
        for kind in (np.uint32, np.uint64):
            values = rng.integers(0, top + 1, n).astype(kind)
            again = values.copy()
            assert there.mode(again) == mode(values.copy()), values
            assert sorted(again.tolist()) == sorted(values.tolist())
"""


def test_mode() -> None:
    env = os.environ | {"NUMBA_ENABLE_CUDASIM": "1"}
    subprocess.run([sys.executable, "-c", FOUND], env=env, check=True)
