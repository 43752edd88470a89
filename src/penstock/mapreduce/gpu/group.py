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
from penstock.sorting.mover import Mover


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
    found = np.empty(count, np.uint64), np.empty(count + 1, np.int64), np.empty_like(values)
    with accelerator.reaching(keys, values, *found) as rings, Mover(rings) as mover:
        groups = _group(accelerator, mover, keys, values, found)
    return found[0][:groups], found[1][: groups + 1], found[2]


def _group(
    accelerator: Accelerator,
    mover: Mover,
    keys: np.ndarray,
    values: np.ndarray,
    found: tuple[np.ndarray, np.ndarray, np.ndarray],
) -> int:
    """How many groups there are; they are in `found`."""
    count, device, timeline = len(keys), accelerator.ledger, Timeline()
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
            mover.send(stream, slot.keys, keys)
            mover.send(stream, slot.sources[0], as_words(values))
        with timeline.span(stream, 0, "sort", pairs=count):
            workspace.sort(stream, slot.keys)
            source, target, words = slot.args[0]
            workspace.gather(stream, source, target, count, words)
        with timeline.span(stream, 0, "group", pairs=count):
            launch = kernels.blocks(count), kernels.BLOCK
            _kernel(kernels.heads)(stream, *launch, slot.key_arg, np.int64(count), args[0])
            gpu.running_sum(numbers)  # on the stream that waits for all others, and they for it
            _kernel(kernels.compact)(stream, *launch, slot.key_arg, np.int64(count), *args)
        groups = int(gpu.download(numbers[-1:])[0])
        copies = [
            (found[0][:groups], unique[:groups]),
            (found[1][:groups], offsets[:groups]),
            (as_words(found[2]), slot.targets[0]),
        ]
        about = timeline.span(stream, 0, "copy out", bytes=16 * groups + values.nbytes)
        mover.receive(stream, copies, about)
        mover.settle()
        stream.synchronize()
        timeline.settle()
        found[1][groups] = count
        accelerator.count(keys.nbytes + values.nbytes, 16 * groups + values.nbytes)
        return groups
    finally:
        mover.stop()
        gpu.synchronize()
        for one in held:
            one.close()
        if summing is not None:
            summing.release()


__all__ = ["group_pairs"]
