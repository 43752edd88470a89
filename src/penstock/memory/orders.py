"""Which tasks and segments a launch goes over: numbers on the device, made once for all pages, or sent for some."""

from __future__ import annotations

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
        self._views = [gpu.view(each) for each in self._every]
        self._cursor = [0, 0]
        self.every: Order = (self._views[0], len(numbers[0]), self._views[1], len(numbers[1]))

    def between(self, a: int, b: int) -> Order:
        """All of pages a to b, which are the kept ones or all beyond them."""
        found: list[Any] = []
        for start, every, view in zip(self._starts, self._every, self._views, strict=True):
            first, end = int(start[a]), int(start[b])
            found += [gpu.view(every[first:end]) if end > first else view, end - first]
        return found[0], found[1], found[2], found[3]

    def clear(self) -> None:
        """Begin a visit; what the last one sent must have left the stage."""
        self._cursor = [0, 0]

    def send(self, stream: gpu.Stream, pages: np.ndarray) -> Order:
        """All of these pages. There is room for each page once in a visit."""
        found: list[Any] = []
        for k, (start, stage) in enumerate(zip(self._starts, self._stages, strict=True)):
            numbers = _spread(start, pages)
            a, b = self._cursor[k], self._cursor[k] + len(numbers)
            self._cursor[k] = b
            stage[a:b] = numbers
            stream.copy(self._some[k][a:b], stage[a:b])
            found += [gpu.view(self._some[k][a:b]) if b > a else self._views[k], b - a]
        return found[0], found[1], found[2], found[3]


def _spread(start: np.ndarray, pages: np.ndarray) -> np.ndarray:
    """All numbers from `start[p]` to `start[p + 1]` for each page p."""
    counts = start[pages + 1] - start[pages]
    ends = np.cumsum(counts)
    return np.repeat(start[pages] - (ends - counts), counts) + np.arange(ends[-1] if len(ends) else 0)


def upload(array: np.ndarray) -> Any:
    """On the device, with room for one where there is none: kernels want an address."""
    found = gpu.empty((max(1, array.shape[0]), *array.shape[1:]), array.dtype)
    if len(array):
        gpu.fill(found, array)
    return found


__all__ = ["Order", "Orders", "upload"]
