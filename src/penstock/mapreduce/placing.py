"""Where an operation runs: on the GPU where that was asked for or is worth it, else on the CPU, with the reason.

The rule is that of the papers: the slowest of copying in, computing and copying out, which go on at the same time, must
take less than the CPU does. It needs enough data, and values of fixed width.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from penstock.config import Settings
from penstock.errors import DeviceFull, DoesNotFit, UsageError
from penstock.mapreduce.columns import Kind, is_varying, kind_name
from penstock.mapreduce.room import Room
from penstock.observe import gpus
from penstock.sorting.radix import sort_pairs

if TYPE_CHECKING:
    from penstock.mapreduce.gpu.accelerator import Accelerator

BUS = {"sort": 1.7e9, "group": 1.7e9, "map": 8e9, "reduce": 8e9}
"""Bytes per second each way, to and from chunks, which are not pinned; what is sorted goes back to memory that nobody
has touched yet. This and the rates are those of an H200 beside 16 cores, as `benchmarks/gpu.py` finds them."""
START = 0.01
"""Seconds until a first chunk is through."""
CPU_RATES = {"sort": 9e6, "group": 5e6, "map": 10e6, "reduce": 70e6}
"""Rows per second of one thread."""
GPU_RATES = {"sort": 8e9, "group": 4e9, "map": 5e9, "reduce": 10e9}


Sorted = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]
PairSort = Callable[[np.ndarray, np.ndarray, np.ndarray, np.ndarray], Sorted]


class Unsuited(Exception):
    """An operation is for the CPU, for the reason given; nothing was done yet."""


class Placing:
    """Of one session. `why_not` says of each operation that ran on the CPU why it did, where a GPU is wanted: where it
    was asked for, or where there seems to be one."""

    def __init__(self, settings: Settings, room: Room) -> None:
        self._settings, self._room = settings, room
        self.asked = settings.device.startswith("gpu")
        self.wanted = self.asked or (settings.device == "auto" and gpus.likely())
        self.why_not: dict[str, str] = {}
        self._accelerator: Accelerator | None = None
        if self.asked and (reason := self._missing()):
            raise UsageError(f"device {settings.device}: {reason}")

    def _missing(self) -> str | None:
        if reason := gpus.missing():
            return reason
        from penstock.memory import gpu

        return gpu.unusable(int(self._settings.device.partition(":")[2] or 0))

    def refuse(self, operation: str, why: str) -> None:
        """Note why an operation stays on the CPU."""
        if self.wanted:
            self.why_not[operation] = why

    def offer(
        self, operation: str, work: str, *, rows: int, bytes_in: int, bytes_out: int, kinds: tuple[Kind, ...] = ()
    ) -> Accelerator | None:
        """The GPU, if it is to do this `work` (sort, group, map or reduce) on so many rows; else why not is noted."""
        if not self.wanted:
            return None
        reason = self._unfit(kinds) or (None if self.asked else self._slower(work, rows, bytes_in, bytes_out))
        if reason is None and self._accelerator is None and not self.asked:
            reason = self._missing()
            self.wanted = reason is None
        if reason is not None:
            self.why_not[operation] = reason
            return None
        self.why_not.pop(operation, None)
        return self._opened()

    def sorter(self, operation: str, work: str = "sort") -> PairSort:
        """What sorts uint64 keys with a value each, stably, as `penstock.sorting.radix.sort_pairs` does: on the GPU
        where it is offered, else on all threads."""
        threads = self._settings.threads

        def sort(keys: np.ndarray, values: np.ndarray, scratch: np.ndarray, spare: np.ndarray) -> Sorted:
            nbytes = keys.nbytes + values.nbytes
            there = self.offer(operation, work, rows=len(keys), bytes_in=nbytes, bytes_out=nbytes)
            if there is not None:
                try:
                    return there.sort_pairs(keys, values, scratch, spare)
                except (DoesNotFit, DeviceFull) as error:  # before anything was moved
                    self.refuse(operation, str(error))
            return sort_pairs(keys, values, scratch, spare, threads)

        return sort

    def _unfit(self, kinds: tuple[Kind, ...]) -> str | None:
        for kind in kinds:
            if is_varying(kind):
                return f"columns of {kind_name(kind)} have no fixed width"
        return None

    def _slower(self, work: str, rows: int, bytes_in: int, bytes_out: int) -> str | None:
        cpu = rows / (CPU_RATES[work] * self._settings.threads)
        there = START + max(bytes_in / BUS[work], rows / GPU_RATES[work], bytes_out / BUS[work])
        if there < cpu:
            return None
        return f"{rows:,} rows take the CPU about {cpu * 1e3:.3g} ms, a GPU {there * 1e3:.3g} ms"

    def _opened(self) -> Accelerator:
        if self._accelerator is None:
            from penstock.mapreduce.gpu.accelerator import Accelerator

            self._accelerator = Accelerator(self._settings, self._room)
        else:
            self._accelerator.use()
        return self._accelerator

    def stats(self) -> dict[str, Any]:
        """What the GPU did, and why it did not do the rest."""
        if self._accelerator is None:
            return {"why_not_gpu": dict(self.why_not)}
        return {**self._accelerator.figures, "memory_peak": self._accelerator.ledger.peak,
                "memory_limit": self._accelerator.ledger.limit, "why_not_gpu": dict(self.why_not)}  # fmt: skip

    def close(self) -> None:
        if self._accelerator is not None:
            self._accelerator.close()


__all__ = ["PairSort", "Placing", "Unsuited"]
