"""Threads that wait for the next run."""

from __future__ import annotations

import queue
import threading
import weakref
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

Task = Callable[[], None]


def _serve(inbox: queue.SimpleQueue[Task | None]) -> None:
    while (task := inbox.get()) is not None:
        task()
        task = None  # a waiting thread must not keep the last run's frames alive


def _dismiss(inboxes: list[queue.SimpleQueue[Any]]) -> None:
    for inbox in inboxes:
        inbox.put(None)


class Crew:
    """Threads that outlive a run: starting them anew would cost more than a pass over a small graph."""

    def __init__(self, count: int, name: str) -> None:
        self._inboxes: list[queue.SimpleQueue[Any]] = [queue.SimpleQueue() for _ in range(count)]
        self._threads = [
            threading.Thread(target=_serve, args=(inbox,), name=f"{name}-{k}", daemon=True)
            for k, inbox in enumerate(self._inboxes)
        ]
        for thread in self._threads:
            thread.start()
        self._finalizer = weakref.finalize(self, _dismiss, self._inboxes)

    def start(self, tasks: Sequence[Task], started: queue.SimpleQueue[Task]) -> None:
        """Start all tasks or, when an interrupt comes first, none; the last one is put into `started` as well."""
        # One C loop: no signal handler runs inside it.
        deque(map(queue.SimpleQueue.put, [*self._inboxes, started], [*tasks, tasks[-1]]), maxlen=0)

    def close(self) -> None:
        self._finalizer()
        for thread in self._threads:
            thread.join()


__all__ = ["Crew", "Task"]
