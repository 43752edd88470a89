"""The energy of a run on a GPU, from the counter that the driver keeps for each device."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from types import TracebackType
from typing import Any, Self

from penstock.observe.gpus import nvml


class Energy:
    """`with Energy(0) as meter: ...`; then `meter.joules` and `meter.watts`, which are None where nothing counts.

    The counter is that of the whole device: of everybody who uses it, and of its idling.
    """

    def __init__(self, device: int = 0, uuid: str | None = None, bus: str | None = None) -> None:
        """`device` counts as the driver does; give the `uuid` or the place on the PCI `bus` where CUDA counts
        otherwise."""
        self.device, self.uuid, self.bus = device, uuid, bus
        self.joules: float | None = None
        self.seconds = 0.0
        self._library: Any = None
        self._handle: Any = None
        self._began: int | None = None
        self._since = 0.0

    def _read(self) -> int | None:
        """Millijoules since the driver was loaded."""
        with contextlib.suppress(Exception):  # NVML's errors: no such device, no counter on it, the driver gone
            return int(self._library.nvmlDeviceGetTotalEnergyConsumption(self._handle))
        return None

    def _open(self) -> None:
        self._library = nvml()
        if self._library is not None:
            with contextlib.suppress(Exception):
                self._handle = self._find(self._library)

    def _find(self, library: Any) -> Any:
        if self.bus is not None:
            return library.nvmlDeviceGetHandleByPciBusId(self.bus)
        if self.uuid is not None:
            return library.nvmlDeviceGetHandleByUUID(self.uuid)
        return library.nvmlDeviceGetHandleByIndex(self.device)

    def _close(self) -> None:
        if self._library is not None:
            with contextlib.suppress(Exception):
                self._library.nvmlShutdown()
            self._library = self._handle = None

    def __enter__(self) -> Self:
        self.joules, self._handle = None, None
        self._open()
        self._began = self._read() if self._handle is not None else None
        self._since = time.perf_counter()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        ended = self._read() if self._began is not None else None
        self.seconds = time.perf_counter() - self._since
        # A driver that was loaded anew counts from 0.
        if self._began is not None and ended is not None and ended >= self._began:
            self.joules = (ended - self._began) / 1000
        self._close()

    @property
    def watts(self) -> float | None:
        """On average."""
        return self.joules / self.seconds if self.joules is not None and self.seconds > 0 else None

    def figures(self, arcs: float, seconds: float | None = None) -> Figures | None:
        """What the energy comes to for so many arcs, in the seconds that were measured or in these."""
        return None if self.joules is None else figures(self.joules, arcs, self.seconds if seconds is None else seconds)


_OPEN: dict[tuple[int, str | None, str | None], tuple[Any, Any]] = {}
"""The library and the device in it, by what was asked for. To open it takes 20 ms, longer than many a run."""
_OPENING = threading.Lock()

LEAST = 0.2
"""Seconds that the counter can tell something about: the driver renews it about ten times a second."""


class Meter(Energy):
    """Stretches of one call: `with meter: ...` as often as there are some. It counts from the start of the first to the
    end of the last, with what lies between. The library stays open for the next meter.

    A reading takes 3 to 5 ms, longer than many a run: the first is taken in the background, and none at the end of what
    was shorter than `LEAST`, for which the counter would tell nothing.
    """

    def __init__(self, device: int = 0, uuid: str | None = None, bus: str | None = None) -> None:
        super().__init__(device, uuid, bus)
        self._first: threading.Thread | None = None
        self._read_at = self._ended = 0.0

    def _open(self) -> None:
        key = self.device, self.uuid, self.bus
        with _OPENING:
            if key not in _OPEN:
                super()._open()
                _OPEN[key] = self._library, self._handle
        self._library, self._handle = _OPEN[key]

    def _begin(self) -> None:
        self._open()
        self._began = self._read() if self._handle is not None else None

    def __enter__(self) -> Self:
        if self._first is None:
            self._since = self._read_at = time.perf_counter()
            self._first = threading.Thread(target=self._begin, name="penstock-energy")
            self._first.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended = time.perf_counter()
        self.seconds = self._ended - self._since
        if self._ended - self._read_at >= LEAST:
            self._take()

    def _take(self) -> None:
        """Read the counter again."""
        if self._first is not None:
            self._first.join()
        ended = self._read() if self._began is not None else None
        self._read_at = time.perf_counter()
        if self._began is not None and ended is not None and ended >= self._began:
            self.joules, self.seconds = (ended - self._began) / 1000, self._read_at - self._since

    def figures(self, arcs: float, seconds: float | None = None) -> Figures | None:
        # What came after the last reading was too short for one of its own, but belongs to the whole.
        if self._ended > self._read_at and self._ended - self._since >= LEAST:
            self._take()
        return super().figures(arcs, seconds)


class Meters:
    """One for each of several GPUs, as one: what they count is added up."""

    def __init__(self, meters: Iterable[Meter]) -> None:
        self._meters = tuple(meters)

    def __enter__(self) -> Self:
        for meter in self._meters:
            meter.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for meter in self._meters:
            meter.__exit__(kind, error, trace)

    def figures(self, arcs: float) -> Figures | None:
        """None where one of them counts nothing: what the others count would be too little."""
        found = [each.figures(arcs) for each in self._meters]
        joules = [each.joules for each in found if each is not None]
        if not joules or len(joules) < len(found):
            return None
        return figures(sum(joules), arcs, max(meter.seconds for meter in self._meters))


@dataclass(frozen=True)
class Figures:
    """The energy of a run, set against what it did."""

    joules: float
    watts: float
    arcs_per_joule: float
    """The same as arcs per second and watt."""
    energy_delay: float
    """Joules times seconds: less is better, and slower for less power is not."""

    def as_dict(self) -> dict[str, float]:
        return asdict(self)


def figures(joules: float, arcs: float, seconds: float) -> Figures:
    """From the energy of a run that visited so many arcs in so many seconds."""
    return Figures(
        joules=joules,
        watts=joules / seconds if seconds > 0 else 0.0,
        arcs_per_joule=arcs / joules if joules > 0 else 0.0,
        energy_delay=joules * seconds,
    )


__all__ = ["LEAST", "Energy", "Figures", "Meter", "Meters", "figures"]
