"""Atomics: the same numbers in Python, in kernels and on a simulated GPU; nothing is lost between threads."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from typing import Any

import numpy as np
import pytest

from penstock.engine import atomics
from penstock.memory.device import kernel, swap_narrow

KINDS = ["int32", "uint32", "int64", "uint64", "float32", "float64"]
THREADS, TIMES = 4, 50


class Slow:
    """An array that lets other threads go on after each read."""

    def __init__(self, array: np.ndarray) -> None:
        self.array = array

    def __getitem__(self, i: int) -> Any:
        value = self.array[i]
        time.sleep(0)
        return value

    def __setitem__(self, i: int, value: Any) -> None:
        self.array[i] = value


def together(work: Any) -> None:
    threads = [threading.Thread(target=work, args=(k,)) for k in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_is_lost_in_python(kind: str) -> None:
    held = np.zeros(4, kind)
    held[1] = 100_000
    state = Slow(held)
    one = np.dtype(kind).type(1)

    def work(k: int) -> None:
        for i in range(TIMES):
            atomics.atomic_add(state, 0, one)
            atomics.atomic_min(state, 1, 1000 + (i * 37 + k) % TIMES)
            atomics.atomic_max(state, 2, (i * 37 + k) % TIMES)
            while True:
                old = atomics.load(state, 3)
                if atomics.compare_and_swap(state, 3, old, old + one):
                    break

    together(work)
    assert held.tolist() == [THREADS * TIMES, 1000, TIMES - 1, THREADS * TIMES]


@kernel()
def _each(state, value, old, new, found):
    found[0] = atomics.load(state, 0)
    found[1] = atomics.atomic_add(state, 0, value)
    found[2] = atomics.atomic_min(state, 1, value)
    found[3] = atomics.atomic_max(state, 2, value)
    return atomics.compare_and_swap(state, 3, old, new), atomics.compare_and_swap(state, 3, old, new)


@pytest.mark.parametrize("kind", KINDS)
def test_kernels_do_what_python_does(kind: str) -> None:
    make = np.dtype(kind).type
    for low, high in ((1, 9), (9, 1)):
        states, results = [], []
        for run in (_each, _each.py_func):
            state, found = np.array([5, low, high, 7], kind), np.zeros(4, kind)
            swapped = run(state, make(4), make(7), make(8), found)
            states.append(state.tolist())
            results.append((found.tolist(), tuple(map(bool, swapped))))
        assert states[0] == states[1] == [9, min(low, 4), max(high, 4), 8]
        assert results[0] == results[1] == ([5, 5, low, high], (True, False))


@kernel()
def _narrow(state, i, old, new):
    return swap_narrow(state, i, old, new)


@pytest.mark.parametrize("kind", ["bool", "uint8", "int8", "uint16", "int16"])
def test_narrow_numbers_are_swapped_alone(kind: str) -> None:
    # Made for GPUs, of instructions that CPUs have, too.
    make = np.dtype(kind).type
    values = [1, 0, 1, 0, 0, 1, 1, 0] if kind == "bool" else [1, 2, -3, 4, 5, -6, 7, 8]
    start = np.array(values).astype(kind)
    new = make(0) if kind == "bool" else make(99)
    for i in range(8):
        state, expected = start.copy(), start.copy()
        assert not _narrow(state, i, make(start[i] == 0) if kind == "bool" else make(50), new)
        assert state.tolist() == expected.tolist()
        other = make(start[i] == 0) if kind == "bool" else new
        assert _narrow(state, i, start[i], other)
        expected[i] = other
        assert state.tolist() == expected.tolist()


SIMULATED = """
import numpy as np
from penstock.engine import atomics
from penstock.engine.gpu import atomics as _, mode as _
from penstock.memory import gpu
from penstock.memory.gpu import cuda
assert gpu.SIMULATED

@cuda.jit
def kernel(state):
    k = cuda.grid(1)
    atomics.atomic_add(state, 0, 1)
    atomics.atomic_max(state, 1, k)
    while True:
        old = atomics.load(state, 2)
        if atomics.compare_and_swap(state, 2, old, old + 2):
            break

state = gpu.zeros(3, np.int64)
kernel[4, 16](state)
assert gpu.download(state).tolist() == [64, 63, 128], state
"""


def test_on_a_simulated_gpu() -> None:
    env = os.environ | {"NUMBA_ENABLE_CUDASIM": "1"}
    subprocess.run([sys.executable, "-c", SIMULATED], env=env, check=True)
