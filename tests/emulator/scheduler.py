"""Operations in streams, run in any order that CUDA would allow, and as late as it would: who relies on another order,
or on something being over that nobody waited for, gets wrong results here, not now and then on a GPU.

`Order.EAGER`: everything at once. `Order.LAZY`: only what somebody waits for, and of that what came last first.
`Order.RANDOM`: now and then something that could run, in one test more often than in another.
"""

from __future__ import annotations

import enum
import threading
import time
import weakref
from collections.abc import Callable

import numpy as np

from emulator.devices import DEVICES, current


class Order(enum.Enum):
    EAGER = "eager"
    LAZY = "lazy"
    RANDOM = "random"


class Queue:
    """A stream as the driver knows it. The one of a device whose handle is 0 waits for all others of that device, and
    they for it."""

    def __init__(self, handle: int, device: int) -> None:
        self.handle, self.device = handle, device
        self.last: Operation | None = None
        self.waits: list[Operation] = []


class Operation:
    """Something that is to be done after others."""

    __slots__ = ("done", "needs", "run", "time")

    def __init__(self, run: Callable[[], None] | None, needs: list[Operation]) -> None:
        self.run, self.needs = run, [each for each in needs if not each.done]
        self.done, self.time = False, 0.0

    @property
    def ready(self) -> bool:
        return all(each.done for each in self.needs)


class Scheduler:
    """All streams of all devices."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.order, self.rng, self._haste = Order.EAGER, np.random.default_rng(0), 0.0
        self._nulls = [Queue(0, device) for device in range(DEVICES)]
        self._queues: weakref.WeakValueDictionary[int, Queue] = weakref.WeakValueDictionary()
        self._handles = 0
        self._pending: dict[Operation, Queue] = {}
        self._freed: list[tuple[int, Callable[[], None]]] = []

    def choose(self, order: Order, seed: int) -> None:
        with self.lock:
            self.finish_all()
            self.order, self.rng = order, np.random.default_rng(seed)
            self._haste = self.rng.uniform(0.2, 0.7)

    def queue(self) -> Queue:
        with self.lock:
            self._handles += 4096
            made = self._queues[self._handles] = Queue(self._handles, current())
            return made

    def find(self, handle: int) -> Queue:
        """The queue that the driver knows by this handle: 0 is that of the device which the thread uses."""
        return self._queues[handle] if handle else self._nulls[current()]

    def put(self, queue: Queue, run: Callable[[], None] | None) -> Operation:
        """Do something after all that was put into this stream before."""
        with self.lock:
            self._free()
            null = self._nulls[queue.device]
            beside = [each for each in self._queues.values() if each.device == queue.device] if queue is null else []
            needs = [each.last for each in (queue, null, *beside) if each.last is not None]
            operation = queue.last = Operation(run, needs + queue.waits)
            queue.waits = []
            self._pending[operation] = queue
            if self.order is Order.EAGER:
                self.finish(operation)
            elif self.order is Order.RANDOM:
                while self._pending and self.rng.random() < self._haste:
                    self.go_on()
            return operation

    def position(self, queue: Queue) -> Operation:
        """Where a stream is now."""
        return self.put(queue, None)

    def go_on(self) -> None:
        """Do one thing that nothing is in the way of."""
        with self.lock:
            able = [each for each in self._pending if each.ready]
            if able:
                self._run(able[self.rng.integers(len(able))])

    def finish(self, operation: Operation) -> None:
        """Do it, and before it what it comes after."""
        with self.lock:
            stack = [operation]
            while stack:
                needed = [each for each in stack[-1].needs if not each.done]
                if needed:
                    stack.extend(needed)
                    continue
                ready = stack.pop()
                if not ready.done:
                    self._run(ready)

    def finish_all(self, device: int | None = None) -> None:
        """Do all that was put into streams of a device, or of all."""
        with self.lock:
            for each, queue in reversed(list(self._pending.items())):
                if device in (None, queue.device):
                    self.finish(each)
            self._free()

    def _run(self, operation: Operation) -> None:
        self._pending.pop(operation, None)
        run, operation.run, operation.needs = operation.run, None, []
        try:
            if run is not None:
                run()
        finally:
            operation.done, operation.time = True, time.perf_counter()

    def free(self, device: int, give_back: Callable[[], None]) -> None:
        """Memory that nobody has any more: CUDA waits for all streams of its device before it takes it. Called while
        garbage is collected, at any place, so it is done when somebody calls next."""
        self._freed.append((device, give_back))

    def _free(self) -> None:
        freed, self._freed = self._freed, []
        for device in {device for device, _ in freed}:
            self.finish_all(device)
        for _, give_back in freed:
            give_back()


SCHEDULER = Scheduler()

__all__ = ["SCHEDULER", "Operation", "Order", "Queue"]
