"""Sorting pairs of the host on a GPU: in core where they fit there, else by samples, overlapped on three streams."""

from __future__ import annotations

import contextlib
from time import perf_counter

import numpy as np

from penstock.memory import gpu
from penstock.memory.ledger import Ledger
from penstock.memory.pinned import WORTH, pinning
from penstock.memory.staging import Ring
from penstock.memory.timeline import Timeline
from penstock.sorting.gpu import Slot, Workspace, capacity
from penstock.sorting.host import Host, SortFigures
from penstock.sorting.mover import Mover
from penstock.sorting.sampled import SampleSorter

STREAMS = 3
"""One copies in, one sorts, one copies out."""


def room_for(room: int, widths: list[int]) -> int:
    """How many pairs so many bytes of a device can sort at a time, out of core; 0: too few to begin."""
    return capacity(room, widths, STREAMS)


def sort_on_gpu(
    keys: np.ndarray,
    columns: list[np.ndarray],
    out_keys: np.ndarray,
    out_columns: list[np.ndarray],
    device: Ledger,
    *,
    pin: bool = True,
    rings: tuple[Ring, Ring] | None = None,
    streams: int = STREAMS,
) -> SortFigures:
    """Sort uint64 keys and columns of any width with them into the other arrays; these are overwritten.

    `device` is the budget of the GPU that is in use. With `pin` large arrays are pinned while it lasts, which takes
    longer than to sort them; memory that is not pinned and will not be again goes through `rings`, one each way.
    """
    figures = SortFigures(pairs=len(keys))
    began = perf_counter()
    with contextlib.ExitStack() as stack:
        mover = stack.enter_context(Mover(rings))
        if pin and rings is None:
            for array in (keys, *columns, out_keys, *out_columns):
                if array.nbytes >= WORTH:
                    stack.enter_context(pinning(array))
        figures.pinning = perf_counter() - began
        began = perf_counter()
        widths = [column.dtype.itemsize for column in columns if column.dtype.itemsize]
        source, target = Host.of(keys, columns), Host.of(out_keys, out_columns)
        timeline = Timeline()
        if len(keys) <= capacity(device.free, widths, 1):
            _in_core(source, target, device, widths, mover, timeline, figures)
        else:
            sorter = SampleSorter(source, target, device, widths, streams, mover, timeline, figures)
            try:
                sorter.sort()
            finally:
                sorter.close()
        figures.seconds = perf_counter() - began
    return figures


def _in_core(
    source: Host,
    target: Host,
    device: Ledger,
    widths: list[int],
    mover: Mover,
    timeline: Timeline,
    figures: SortFigures,
) -> None:
    """All at once. Payload is on its way while keys are sorted, and keys while payload is fetched."""
    count = len(source.keys)
    if not count:
        return
    slot = Slot(device, 0, count, widths)
    beside = gpu.Stream()
    workspace = None
    try:
        workspace = Workspace(device, count)
        with timeline.span(slot.stream, 0, "copy keys in", bytes=source.keys.nbytes):
            mover.send(slot.stream, slot.keys, source.keys)
        for there, here in zip(slot.sources, source.columns, strict=True):
            with timeline.span(beside, 1, "copy payload in", bytes=here.nbytes):
                mover.send(beside, there, here)
        with timeline.span(slot.stream, 0, "sort", pairs=count):
            workspace.sort(slot.stream, slot.keys)
        beside.wait(slot.stream.record())
        about = timeline.span(slot.stream, 0, "copy keys out", bytes=source.keys.nbytes)
        mover.receive(slot.stream, [(target.keys, slot.keys)], about)
        for (one, other, words), there, here in zip(slot.args, slot.targets, target.columns, strict=True):
            with timeline.span(beside, 1, "gather"):
                workspace.gather(beside, one, other, count, words)
            about = timeline.span(beside, 1, "copy payload out", bytes=here.nbytes)
            mover.receive(beside, [(here, there)], about)
        mover.settle()
        figures.copied = 2 * sum(array.nbytes for array, _ in source.parts)
    finally:
        mover.stop()
        slot.stream.synchronize()
        beside.synchronize()
        slot.close()
        if workspace is not None:
            workspace.close()
    timeline.settle()


__all__ = ["STREAMS", "SortFigures", "room_for", "sort_on_gpu"]
