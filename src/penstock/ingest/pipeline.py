"""Work done by several threads, handed over in order: what comes out does not depend on the number of threads."""

from __future__ import annotations

import queue
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import Any, TypeVar

T = TypeVar("T")
_DONE = object()


def in_flight(threads: int) -> int:
    """The most items that exist at once in `ordered`: made, waiting, and in the caller's hands."""
    return 1 if threads <= 1 else 2 * threads + 2


def ordered(tasks: Iterable[Callable[[], Iterable[T]]], threads: int) -> Iterator[T]:
    """The items of each task in turn, while later tasks are already at work, each at most one item ahead."""
    if threads <= 1:
        for task in tasks:
            yield from task()
        return
    stop = threading.Event()
    waiting: deque[queue.Queue[Any]] = deque()
    todo = iter(tasks)
    with ThreadPoolExecutor(threads, thread_name_prefix="penstock-ingest") as pool:
        try:
            while True:
                for task in islice(todo, threads + 1 - len(waiting)):
                    waiting.append(queue.Queue(maxsize=1))
                    pool.submit(_work, task, waiting[-1], stop)
                if not waiting:
                    return
                while (item := waiting[0].get()) is not _DONE:
                    if isinstance(item, BaseException):
                        raise item
                    yield item
                waiting.popleft()
        finally:
            stop.set()


def _work(task: Callable[[], Iterable[Any]], results: queue.Queue[Any], stop: threading.Event) -> None:
    if stop.is_set():
        return
    try:
        for item in task():
            if not _put(results, item, stop):
                return
        _put(results, _DONE, stop)
    except BaseException as error:
        _put(results, error, stop)


def _put(results: queue.Queue[Any], item: Any, stop: threading.Event) -> bool:
    while not stop.is_set():
        try:
            results.put(item, timeout=0.05)
            return True
        except queue.Full:
            continue
    return False


__all__ = ["in_flight", "ordered"]
