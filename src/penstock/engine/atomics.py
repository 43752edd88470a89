"""What functions of a sweep may do to state that other threads change at the same time. In kernels these are single
instructions of the machine (`penstock.engine.gpu.atomics` has those of a GPU); in plain Python one thread at a time
does what they say: a simulated GPU has a thread of Python for each of its own."""

from __future__ import annotations

import threading

from penstock.memory import device

_ALONE = threading.Lock()


def _load(array, i):
    return device.atomic_load(array, i)


def _add(array, i, value):
    return device.atomic_add(array, i, value)


def _min(array, i, value):
    # Most values change nothing: a read is cheaper than a write that others wait for.
    old = device.atomic_load(array, i)
    if old <= value:
        return old
    return device.atomic_min(array, i, value)


def _max(array, i, value):
    old = device.atomic_load(array, i)
    if old >= value:
        return old
    return device.atomic_max(array, i, value)


def _swap(array, i, old, new):
    return device.atomic_swap(array, i, old, new)


@device.compiled_as(_load)
def load(array, i):
    """`array[i]` as another thread last wrote it."""
    return array[i]


@device.compiled_as(_add)
def atomic_add(array, i, value):
    """Add to `array[i]`; returns what was there."""
    with _ALONE:
        old = array[i]
        array[i] = old + value
    return old


@device.compiled_as(_min)
def atomic_min(array, i, value):
    """Lower `array[i]` to the value, if it is less; returns what was there."""
    with _ALONE:
        old = array[i]
        array[i] = min(old, value)
    return old


@device.compiled_as(_max)
def atomic_max(array, i, value):
    """Raise `array[i]` to the value, if it is more; returns what was there."""
    with _ALONE:
        old = array[i]
        array[i] = max(old, value)
    return old


@device.compiled_as(_swap)
def compare_and_swap(array, i, old, new):
    """Make `array[i]` new if it is still old; whether it was."""
    with _ALONE:
        if array[i] != old:
            return False
        array[i] = new
        return True


__all__ = ["atomic_add", "atomic_max", "atomic_min", "compare_and_swap", "load"]
