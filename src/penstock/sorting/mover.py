"""Copies between the host and streams of a GPU: at once from pinned memory, through rings from any other.

What comes back through a ring is copied by a thread of its own, so that both directions go on at the same time.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Any

import numpy as np

from penstock.memory import gpu
from penstock.memory.staging import Ring

Copy = tuple[np.ndarray, Any]
"""To the host, from the device."""


class Mover:
    """`rings`: one to the device, one from it; without them memory is copied from and to where it lies."""

    def __init__(self, rings: tuple[Ring, Ring] | None) -> None:
        self._rings, self._device = rings, gpu.current()
        self._thread = None if rings is None else ThreadPoolExecutor(1, "penstock-sort")
        self._begun: list[tuple[gpu.Stream, Future[None]]] = []

    def send(self, stream: gpu.Stream, target: Any, source: np.ndarray) -> None:
        """Begin to copy to the device."""
        if self._rings is None:
            stream.copy(target, source)
        else:
            self._rings[0].send(stream, target, source)

    def receive(self, stream: gpu.Stream, copies: Sequence[Copy], span: AbstractContextManager[Any]) -> None:
        """Begin to copy to the host, as one slice of a timeline. `settle` before more is put into the stream."""
        if self._thread is None:
            with span:
                for target, source in copies:
                    stream.fetch(target, source)
        else:
            self._begun.append((stream, self._thread.submit(self._receive, stream, copies, span)))

    def _receive(self, stream: gpu.Stream, copies: Sequence[Copy], span: AbstractContextManager[Any]) -> None:
        assert self._rings is not None
        gpu.use(self._device)
        with span:
            for target, source in copies:
                self._rings[1].receive(stream, target, source)

    def settle(self, stream: gpu.Stream | None = None) -> None:
        """Wait for what comes back through a ring: on this stream, or on all."""
        for one in [each for each in self._begun if stream is None or each[0] is stream]:
            self._begun.remove(one)
            one[1].result()

    def stop(self) -> None:
        """Wait for it whatever became of it: the memory is about to go."""
        for _, begun in self._begun:
            begun.cancel()
            begun.exception() if not begun.cancelled() else None
        self._begun.clear()

    def __enter__(self) -> Mover:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.stop()
        if self._thread is not None:
            self._thread.shutdown()


__all__ = ["Mover"]
