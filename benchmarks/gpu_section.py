"""A section of the GPU benchmark: steps that may fail one by one, figures that are kept as they come, and an end."""

from __future__ import annotations

import json
import os
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import common


@dataclass(frozen=True)
class Sizes:
    """How big everything is."""

    scale: int = 24
    small: int = 22
    """Of the graphs for several devices and of other shapes."""
    big: int = 26
    big_limit: int = 2 << 30
    page_size: str = "1MiB"
    edge_factor: int = 16
    duplicates: str = "merge"
    sources: int = 16
    verified: int = 16
    """Of those sources, how many trees are checked."""
    iterations: int = 32
    """As many as are started at once where all pages are on the device."""
    checked_iterations: int = 4
    delta: float | None = None
    """The width of a bucket of SSSP; None: as it chooses."""
    streams: tuple[int, ...] = (1, 2, 4, 8, 16, 32)
    cached: tuple[int, ...] = (0, 25, 50, 75, 100)
    devices: tuple[int, ...] = (1, 2, 4)
    traversals: int = 3
    """Sources of each experiment."""
    metered: float = 1.5
    """Seconds of work for the energy counter, which the driver renews ten times a second."""
    pinned: int = 256 << 20
    sort_limit: int = 1 << 30
    """Of device memory for sorting."""
    sort_times: int = 4
    """So much more data is sorted."""
    ring: int = 32 << 20
    pairs: int = 1 << 25
    """For the other operations of MapReduce."""
    pair_limit: str = "16GB"
    pair_gpu_limit: str = "8GB"
    disk_passes: int = 5
    disk_threads: tuple[int, ...] = (2, 4, 8, 16)
    repeats: int = 3
    """After a first time that compiles; 0: that is the only one."""
    tests: tuple[str, ...] = ("tests",)
    marker: str = "gpu"
    processes: int = 0
    """That run tests at the same time; 0: one for each core, at most 16."""

    @staticmethod
    def tiny() -> Sizes:
        """For the simulator, where a thread of a kernel is one of Python."""
        return Sizes(
            scale=4, small=4, big=4, big_limit=29_900, page_size="4KiB", edge_factor=80, duplicates="keep",
            sources=1, verified=1, iterations=1, checked_iterations=1, delta=1e6, streams=(2,), cached=(0, 100),
            devices=(2,), traversals=1, metered=0.0, pinned=1 << 16, sort_limit=17_000, sort_times=2, ring=1 << 12,
            pairs=200, pair_limit="8MB", pair_gpu_limit="1MB", disk_passes=1,
            disk_threads=(1, 2), repeats=0, tests=("tests/observe/test_energy.py",), marker="not gpu", processes=2,
        )  # fmt: skip

    def scaled(self, scale: int | None) -> Sizes:
        return self if scale is None else replace(self, scale=scale)


class Section:
    """What a section is given, and where its figures go."""

    def __init__(
        self,
        name: str,
        sizes: Sizes,
        folder: Path,
        part: Path,
        cap: float,
        *,
        tiny: bool = False,
        output: Path | None = None,
    ) -> None:
        self.name, self.sizes, self.folder, self.part, self.tiny = name, sizes, folder, part, tiny
        self.figures: dict[str, Any] = {}
        self.errors: list[dict[str, str]] = []
        self.cap, self._began, self.output = cap, time.perf_counter(), output

    @property
    def shallow(self) -> int | None:
        """How far a search goes that only warms up."""
        return 1 if self.tiny else None

    @property
    def left(self) -> float:
        """Seconds until the cap."""
        return self.cap - (time.perf_counter() - self._began)

    def step(self, name: str, function: Callable[..., Any], *args: Any, **options: Any) -> Any:
        """Keep what a function returns under this name; an error is kept, too, and the section goes on."""
        began = time.perf_counter()
        if self.left <= 0:
            self.fail(name, f"skipped: the section's cap of {self.cap:.0f} s was reached")
            return None
        try:
            found = function(*args, **options)
        except Exception as error:
            traceback.print_exc()
            self.fail(name, f"{type(error).__name__}: {error}")
            return None
        self.keep(name, found)
        print(f"  {self.name}: {name}, {time.perf_counter() - began:.1f} s", flush=True)
        return found

    def keep(self, name: str, found: Any) -> None:
        if found is not None:
            self.figures[name] = found
        self.save()

    def fail(self, name: str, why: str) -> None:
        print(f"  {self.name}: {name} FAILED, {why}", flush=True)
        self.errors.append({"step": name, "error": why})
        self.save()

    def beside(self, name: str) -> Path:
        """A file that is kept with the results."""
        folder = self.part.parent if self.output is None else self.output.parent
        folder.mkdir(parents=True, exist_ok=True)
        return folder / name

    def save(self) -> None:
        """A section that is stopped halfway leaves what it has."""
        record = {
            "seconds": time.perf_counter() - self._began, "errors": self.errors, "figures": self.figures,
        }  # fmt: skip
        beside = self.part.with_suffix(".new")
        beside.write_text(json.dumps(record, default=plain))
        os.replace(beside, self.part)


def table(title: str, header: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """A table, if a plain one where Rich is not installed."""
    try:
        common.table(title, header, rows)
    except ImportError:
        print(title)
        for row in (header, *rows):
            print("  " + " | ".join(str(cell) for cell in row))


def plain(value: Any) -> Any:
    """NumPy's numbers and arrays, for JSON."""
    return value.item() if getattr(value, "ndim", 0) == 0 else value.tolist()
