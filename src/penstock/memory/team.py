"""Threads that run a kernel together, each taking chunks until none is left."""

from __future__ import annotations

import queue
import threading
import weakref
from collections.abc import Callable
from time import perf_counter
from typing import Any

from penstock.observe.events import Events, current

Task = Callable[[int], Any]


def _serve(number: int, inbox: queue.SimpleQueue[Any]) -> None:
    while (given := inbox.get()) is not None:
        task, outbox = given
        try:
            outbox.put((task(number), None))
        except BaseException as error:
            outbox.put((None, error))
        given = task = outbox = None  # a waiting thread must not keep the last run's arrays alive


def _timed(task: Task, events: Events) -> Task:
    """The same task, recorded; what nobody records is called as it is."""

    def timed(worker: int) -> Any:
        begin = perf_counter()
        found = task(worker)
        events.record(f"worker {worker}", "chunks", begin, perf_counter())
        return found

    return timed


def _dismiss(inboxes: list[queue.SimpleQueue[Any]]) -> None:
    for inbox in inboxes:
        inbox.put(None)


class Team:
    """The calling thread and `threads - 1` others, which are started when first needed: a small run needs none of them.
    Kernels hold no GIL, so they run side by side."""

    def __init__(self, threads: int) -> None:
        self.threads = threads
        self._inboxes: list[queue.SimpleQueue[Any]] = [queue.SimpleQueue() for _ in range(threads - 1)]
        self._threads = [
            threading.Thread(target=_serve, args=(k, inbox), name=f"penstock-team-{k}", daemon=True)
            for k, inbox in enumerate(self._inboxes, 1)
        ]
        self._started = False
        self._finalizer = weakref.finalize(self, _dismiss, self._inboxes)

    def _start(self) -> None:
        """Those that were not started yet; an interrupt may have come between."""
        for thread in self._threads:
            if thread.ident is None:
                thread.start()
        self._started = True

    def close(self) -> None:
        """End the threads. The team may be used no more."""
        self._finalizer()
        for thread in self._threads:
            if thread.ident is not None:
                thread.join()

    def run(self, task: Task, *, alone: bool = False) -> list[Any]:
        """`task(worker)` on every thread, or on this one only; what they returned. The first error is raised here."""
        events = current()
        if events is not None:
            task = _timed(task, events)
        if alone or not self._inboxes:
            return [task(0)]
        if not self._started:
            self._start()
        # One for each run: what an interrupted run left behind must not answer for the next.
        outbox: queue.SimpleQueue[Any] = queue.SimpleQueue()
        for inbox in self._inboxes:
            inbox.put((task, outbox))
        found, error = [], None
        try:
            found.append(task(0))
        except BaseException as mine:
            error = mine
        for _ in self._inboxes:
            value, theirs = outbox.get()
            error = error or theirs
            found.append(value)
        if error is not None:
            raise error
        return found
