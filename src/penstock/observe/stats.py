"""What a run did: seconds by phase, counters, peak memory, and on which machine."""

from __future__ import annotations

import contextlib
import functools
import os
import platform
import threading
import time
from collections import deque
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

from penstock.config import available_memory, available_threads
from penstock.observe.events import current, record
from penstock.observe.plain import plain
from penstock.version import VERSION

SUPERSTEPS = 10_000
"""How many are kept one by one: the first half and the last. A path of a billion vertices has a billion."""


def peak_rss() -> int:
    """The most memory this process has held so far, in bytes."""
    # ru_maxrss of a child includes its parent's size at the fork; VmHWM does not.
    with contextlib.suppress(OSError):
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    import resource

    size = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return size if platform.system() == "Darwin" else size * 1024


def machine() -> dict[str, Any]:
    """Where the figures of a run come from. Versions are read from metadata: nothing is imported."""
    return dict(_machine())


@functools.cache
def _machine() -> dict[str, Any]:
    return {
        "system": f"{platform.system()} {platform.release()}",
        "cpu": _cpu_name(),
        "cpus": os.cpu_count() or 1,
        "threads": available_threads(),
        "memory": available_memory(),
        "python": platform.python_version(),
        "numpy": _version("numpy"),
        "numba": _version("numba"),
    }


def _cpu_name() -> str:
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def _version(package: str) -> str | None:
    from importlib import metadata

    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


class Stats:
    """Collects the figures of one run. Threads may share it."""

    def __init__(self) -> None:
        self.phases: dict[str, float] = {}
        """Seconds by phase, in order of first use; a phase entered again adds up."""
        self.counters: dict[str, int | float] = {}
        """What was counted: bytes_read, arcs, iterations."""
        self.notes: dict[str, Any] = {}
        """What else is worth knowing: plan, residual, seed."""
        self._beside: dict[str, contextlib.AbstractContextManager[Any]] = {}
        self._first: list[dict[str, Any]] = []
        self._last: deque[dict[str, Any]] = deque(maxlen=SUPERSTEPS // 2)
        self._supersteps = 0
        self._began = time.perf_counter()
        self._date = datetime.now().astimezone()
        self._lock = threading.Lock()

    @contextlib.contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """`with stats.phase("sort"):` adds the seconds inside, also when they end in an error."""
        began = time.perf_counter()
        with self._lock:
            self.phases.setdefault(name, 0.0)
        try:
            with self._beside.get(name) or contextlib.nullcontext():
                yield
        finally:
            ended = time.perf_counter()
            with self._lock:
                self.phases[name] += ended - began
            record("phases", name, began, ended)

    @contextlib.contextmanager
    def beside(self, name: str, meter: contextlib.AbstractContextManager[Any]) -> Iterator[None]:
        """`with stats.beside("run", meter):` enters the meter with each phase of that name inside."""
        self._beside[name] = meter
        try:
            yield
        finally:
            del self._beside[name]

    def add(self, name: str, n: float = 1) -> None:
        """Count `n` more of something."""
        with self._lock:
            self.counters[name] = self.counters.get(name, 0) + plain(n)

    def note(self, **values: Any) -> None:
        """Keep values that are not counts; a later one replaces an earlier one."""
        with self._lock:
            self.notes |= values

    def iteration(self, **figures: Any) -> None:
        """Keep the figures of one more superstep, which ended now: seconds, direction, frontier, pages, bytes_read,
        change."""
        with self._lock:
            self._supersteps += 1
            kept = self._first if len(self._first) < SUPERSTEPS // 2 else self._last
            number = self._supersteps
            kept.append({"superstep": number, **{name: plain(value) for name, value in figures.items()}})
        if (events := current()) is not None:
            now = time.perf_counter()
            events.record("engine", f"superstep {number}", now - figures.get("seconds", 0.0), now, **figures)

    @property
    def supersteps(self) -> list[dict[str, Any]]:
        """The figures of each superstep, in order, with its number counted from 1."""
        with self._lock:
            return self._kept()

    def _kept(self) -> list[dict[str, Any]]:
        return [dict(each) for each in (*self._first, *self._last)]

    @property
    def seconds(self) -> float:
        """Since this object was made."""
        return time.perf_counter() - self._began

    def as_dict(self) -> dict[str, Any]:
        """Everything, ready for `json.dumps`."""
        with self._lock:
            supersteps = self._kept()
            left_out = self._supersteps - len(supersteps)
            return {
                "penstock": VERSION,
                "date": self._date.isoformat(timespec="seconds"),
                "seconds": self.seconds,
                "phases": dict(self.phases),
                "counters": dict(self.counters),
                "peak_memory": peak_rss(),
                "machine": machine(),
                **({"supersteps": supersteps} if supersteps else {}),
                **({"supersteps_left_out": left_out} if left_out else {}),
                **{name: plain(value) for name, value in self.notes.items()},
            }


__all__ = ["Stats", "machine", "peak_rss"]
