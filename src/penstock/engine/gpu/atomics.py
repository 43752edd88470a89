"""What functions of a sweep do to shared state in kernels of a GPU. Importing this is what lets them: a program's
functions name `penstock.engine.atomics`, which kernels replace by these."""

from __future__ import annotations

from penstock.engine import atomics
from penstock.memory import gpu
from penstock.memory.device import atomic_swap, relaxed_load, swap_narrow
from penstock.memory.gpu import cuda


def _load(array, i):
    return relaxed_load(array, i)


def _add(array, i, value):
    return cuda.atomic.add(array, i, value)


def _min(array, i, value):
    # Most values change nothing: a read is cheaper than a write that others wait for.
    old = relaxed_load(array, i)
    if old <= value:
        return old
    return cuda.atomic.min(array, i, value)


def _max(array, i, value):
    old = relaxed_load(array, i)
    if old >= value:
        return old
    return cuda.atomic.max(array, i, value)


def _swap(array, i, old, new):
    return atomic_swap(array, i, old, new)


def _swap_narrow(array, i, old, new):
    return swap_narrow(array, i, old, new)


gpu.compiled_as(atomics.load, dict.fromkeys((1, 2, 4, 8), _load))
gpu.compiled_as(atomics.atomic_add, dict.fromkeys((4, 8), _add))
gpu.compiled_as(atomics.atomic_min, dict.fromkeys((4, 8), _min))
gpu.compiled_as(atomics.atomic_max, dict.fromkeys((4, 8), _max))
gpu.compiled_as(atomics.compare_and_swap, {1: _swap_narrow, 2: _swap_narrow, 4: _swap, 8: _swap})
