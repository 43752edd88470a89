"""Which tasks and segments a launch goes over: numbers on the device, made once for all pages, or sent for some."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from penstock.memory import gpu
from penstock.memory.tasks import Tasks

Order = tuple[Any, int, Any, int]
"""(task numbers, how many, segment numbers, how many)"""


class Orders:
    """`every` is all of it: the work of the first `kept` pages from the heaviest on, the rest by page."""

    def __init__(self, work: Tasks, kept: int, stages: list[np.ndarray]) -> None:
        self._starts, self._stages = (work.task_start, work.segment_start), stages
        weight = work.work[: work.task_start[kept]]
        # Only coarsely by weight: tasks of about equal work stay in the order of their pages.
        first = np.argsort(-np.floor(np.log2(np.maximum(weight, 1))), kind="stable")
        numbers = [np.append(first, np.arange(len(first), len(work.tasks))), np.arange(len(work.segments))]
        self._every = [upload(each.astype(np.uint32)) for each in numbers]
        self._some = [gpu.empty(max(len(each), 1), np.uint32) for each in numbers]
        views = [gpu.view(each) for each in self._every]
        self._whole = Listed(self._starts, self._every, views)
        self.every: Order = (views[0], len(numbers[0]), views[1], len(numbers[1]))

    def between(self, a: int, b: int) -> Order:
        """All of pages a to b, which are the kept ones or all beyond them."""
        return self._whole.between(a, b)

    def send(self, stream: gpu.Stream, pages: np.ndarray) -> Listed:
        """The work of these pages, each at most once. What was sent before must have left the stage, and its work must
        be over when the stream comes to this."""
        ends = []
        for start, stage, some in zip(self._starts, self._stages, self._some, strict=True):
            counts = start[pages + 1] - start[pages]
            end = np.append(0, np.cumsum(counts))
            stage[: end[-1]] = np.repeat(start[pages] - end[:-1], counts) + np.arange(end[-1])
            stream.copy(some[: end[-1]], stage[: end[-1]])
            ends.append(end)
        return Listed(ends, self._some, self._whole.views)


class Listed:
    """The work of pages one after the other."""

    def __init__(self, ends: Sequence[np.ndarray], numbers: list[Any], views: list[Any]) -> None:
        """`ends`: where that of each begins, and the last ends. `views` stand for no work."""
        self._ends, self._numbers, self.views = ends, numbers, views

    def between(self, a: int, b: int) -> Order:
        """That of those from place a to place b."""
        found: list[Any] = []
        for ends, numbers, view in zip(self._ends, self._numbers, self.views, strict=True):
            first, end = int(ends[a]), int(ends[b])
            found += [gpu.part(numbers, first, end) if end > first else view, end - first]
        return found[0], found[1], found[2], found[3]


def upload(array: np.ndarray) -> Any:
    """On the device, with room for one where there is none: kernels want an address."""
    found = gpu.empty((max(1, array.shape[0]), *array.shape[1:]), array.dtype)
    if len(array):
        gpu.fill(found, array)
    return found


__all__ = ["Listed", "Order", "Orders", "upload"]
