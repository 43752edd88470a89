"""Grouping on a GPU, in core: sort, flag the first pair of each key, sum the flags up, and compact.

Sorted keys do not come back: each comes once, with where its values begin.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from penstock.mapreduce.gpu import kernels
from penstock.mapreduce.gpu.accelerator import Accelerator
from penstock.memory import gpu
from penstock.memory.fingerprint import fingerprint
from penstock.memory.timeline import Timeline
from penstock.sorting.gpu import Held, Slot, Workspace, as_words


@functools.cache
def _kernel(function: Any) -> gpu.Launcher:
    return gpu.Launcher(gpu.template_kernel(function, fingerprint("grouping", function, kernels.BLOCK)))


def _needed(count: int, width: int) -> int:
    """The numbers of groups, twice while they are summed up; unique keys and offsets."""
    return Slot.nbytes(count, [width]) + Workspace.nbytes(count) + 32 * count + (1 << 14)


def group_pairs(
    accelerator: Accelerator, keys: np.ndarray, values: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
    """(unique keys, offsets, values by key) of uint64 keys; None where that needs more than the device has free."""
    count, device = len(keys), accelerator.ledger
    if not count or _needed(count, values.dtype.itemsize) > device.free:
        return None
    given = as_words(values)
    rings, timeline = accelerator.rings(), Timeline()
    held: list[Any] = []
    summing = None
    try:
        slot = Slot(device, 0, count, [values.dtype.itemsize])
        held.append(slot)
        workspace = Workspace(device, count)
        held.append(workspace)
        more = Held(device, 24 * count + (1 << 12), "groups on the GPU")
        held.append(more)
        summing = device.reserve(8 * count, "groups on the GPU")
        numbers, unique, offsets = (more.take(count, kind) for kind in (np.int64, np.uint64, np.int64))
        args = [gpu.view(each) for each in (numbers, unique, offsets)]
        stream = slot.stream
        with timeline.span(stream, 0, "copy in", bytes=keys.nbytes + values.nbytes):
            rings[0].send(stream, slot.keys, keys)
            rings[0].send(stream, slot.sources[0], given)
        with timeline.span(stream, 0, "sort", pairs=count):
            workspace.sort(stream, slot.keys)
            source, target, words = slot.args[0]
            workspace.gather(stream, source, target, count, words)
        with timeline.span(stream, 0, "group", pairs=count):
            _kernel(kernels.heads)(stream, kernels.blocks(count), kernels.BLOCK, slot.key_arg, np.int64(count), args[0])
            gpu.running_sum(numbers)  # on the stream that waits for all others, and they for it
            _kernel(kernels.compact)(stream, kernels.blocks(count), kernels.BLOCK, slot.key_arg, np.int64(count), *args)
        last = np.empty(1, np.int64)
        rings[1].receive(stream, last, numbers[-1:])
        groups = int(last[0])
        found = np.empty(groups, np.uint64), np.empty(groups + 1, np.int64), np.empty_like(values)
        with timeline.span(stream, 0, "copy out", bytes=16 * groups + values.nbytes):
            rings[1].receive(stream, found[0], unique[:groups])
            rings[1].receive(stream, found[1][:groups], offsets[:groups])
            rings[1].receive(stream, as_words(found[2]), slot.targets[0])
        found[1][groups] = count
        stream.synchronize()
        timeline.settle()
        accelerator.count(keys.nbytes + values.nbytes, sum(array.nbytes for array in found))
        return found
    finally:
        gpu.synchronize()
        for one in held:
            one.close()
        if summing is not None:
            summing.release()


__all__ = ["group_pairs"]
