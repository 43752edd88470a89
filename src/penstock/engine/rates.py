"""The rates of a machine: how fast it reads pages, gathers and visits arcs. Measured once and kept for the model."""

from __future__ import annotations

import contextlib
import json
import os
import platform
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, Self

import numpy as np

from penstock.observe.stats import machine

FORMAT = 1
SIZES = tuple(1 << k for k in (18, 20, 21, 22, 23, 24, 25, 27, 29))
"""Bytes of the vectors that the curve of gathering is measured on: from inside the cache to far outside."""


@dataclass(frozen=True)
class Rates:
    """Bytes per second and seconds per item, of all threads together."""

    measured: bool
    threads: int
    disk: float
    """Bytes per second of direct reads that nobody looks at."""
    touch: float
    """Bytes per second of pages that are read, checked and looked at once, through the page stream."""
    memory: float
    """Bytes per second of a sequential read of memory."""
    load: float
    """Bytes per second of pages from disk into one block in memory."""
    stream: float
    """Seconds that a byte read from disk adds to a pass whose workers are never idle: reading takes cores, too."""
    page: float
    """Seconds to hand one page that is in memory to a worker."""
    vertex: float
    """Seconds to begin, end and update a vertex, besides its arcs."""
    emit: float
    """Seconds to make the message of a vertex."""
    part: float
    """Seconds to make a range of state current: one window of a vector that lies in a file, per byte."""
    push: float
    """Seconds to push along an arc, besides fetching what lies at its other end."""
    sweep: float
    """Seconds per arc of a sweep, besides fetching what lies at its other end."""
    sweep_fetches: float
    """How many more fetches each vertex takes in a sweep: trees are climbed where they are joined."""
    skim: float
    """Seconds per vertex of a sweep in memory that samples arcs and skips what is settled, besides fetches."""
    skim_fetches: float
    """How many fetches a vertex of such a sweep takes."""
    row: float
    """Seconds per arc of a row program, besides the fetch."""
    pair: float
    """Seconds per step of intersecting two sorted rows."""
    start: float
    """Seconds until the first superstep of a new process: kernels from their cache."""
    sizes: tuple[int, ...] = SIZES
    gather4: tuple[float, ...] = field(default=())
    """Seconds per arc that fetches 4 bytes anywhere in a vector of so many bytes; the arcs' own bytes included."""
    gather8: tuple[float, ...] = field(default=())
    date: str = ""

    @classmethod
    def default(cls, threads: int) -> Self:
        """Cautious figures of an ordinary machine, for one that was never measured."""
        one = np.array([2.0, 2.5, 3.0, 4.0, 6.0, 12.0, 16.0, 20.0, 24.0]) * 1e-9
        curve = tuple(float(value) for value in one / threads)
        return cls(
            measured=False, threads=threads, disk=1.5e9, touch=1.2e9, memory=5e9 * min(threads, 4), load=0.8e9,
            stream=0.5e-9, page=30e-6 / threads, vertex=8e-9 / threads, emit=6e-9 / threads, part=1e-9,
            push=8e-9 / threads, sweep=4e-9 / threads, sweep_fetches=20.0, skim=20e-9 / threads, skim_fetches=15.0,
            row=40e-9 / threads, pair=4e-9 / threads,
            start=0.6, gather4=curve, gather8=curve,
        )  # fmt: skip

    def gather(self, width: int) -> GatherCurve:
        """The curve for messages of so many bytes."""
        return GatherCurve(self.sizes, self.gather4 if width <= 4 else self.gather8)

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Back from JSON; raises ValueError, KeyError or TypeError if it is not what `as_dict` gave."""
        return cls(**_fields(cls, values))


GPU_SIZES = tuple(1 << k for k in (20, 22, 24, 25, 26, 27, 28, 30, 32))


@dataclass(frozen=True)
class GpuRates:
    """Rates of one GPU, and of its connection to the host."""

    name: str
    total: int
    """Bytes of its memory."""
    copy: float
    """Bytes per second from pinned memory of the host."""
    memory: float
    """Bytes per second of its own memory, read or written, when a block is copied."""
    launch: float
    """Seconds of the host's time to start a kernel."""
    sizes: tuple[int, ...]
    gather: tuple[float, ...]
    """Seconds per arc that fetches a float32 anywhere in a vector of so many bytes; the arcs' own bytes included."""
    date: str = ""

    def curve(self) -> GatherCurve:
        return GatherCurve(self.sizes, self.gather)

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Back from JSON; raises ValueError, KeyError or TypeError if it is not what `as_dict` gave."""
        return cls(**_fields(cls, values))


def _fields(cls: type, values: Mapping[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {name: tuple(x) if isinstance(x, list) else x for name, x in values.items()}
    if set(found) != {each.name for each in fields(cls)}:
        raise ValueError("rates of another version")
    return found


class GatherCurve:
    """What fetching costs by how hot a thing is.

    The curve g(V) was measured on vectors of V bytes that are hit evenly. If a cache keeps the hottest bytes, what lies
    behind b hotter bytes costs h(b) with g(V) = 1/V * integral of h from 0 to V; so the integral of h is V * g(V).
    """

    def __init__(self, sizes: tuple[int, ...], seconds: tuple[float, ...]) -> None:
        curve = np.maximum.accumulate(np.asarray(seconds))  # noise must not make a far fetch cheaper than a near one
        self._bytes = np.concatenate([[0.0], np.asarray(sizes, np.float64)])
        self._integral = np.concatenate([[0.0], self._bytes[1:] * curve])
        self.nearest = float(curve[0])
        # Beyond the last point each fetch misses as those between the last two do.
        self._slope = (self._integral[-1] - self._integral[-2]) / (self._bytes[-1] - self._bytes[-2])

    def _up_to(self, depth: np.ndarray) -> np.ndarray:
        beyond = np.maximum(0.0, depth - self._bytes[-1])
        return np.interp(depth, self._bytes, self._integral) + beyond * self._slope

    def seconds(self, arcs: np.ndarray, nbytes: np.ndarray) -> float:
        """For classes of vertices: how many arcs fetch from each, and the bytes of the vector each takes."""
        order = np.argsort(-arcs / np.maximum(nbytes, 1e-9), kind="stable")
        arcs, nbytes = arcs[order].astype(np.float64), nbytes[order].astype(np.float64)
        ends = np.cumsum(nbytes)
        begins = ends - nbytes
        each = (self._up_to(ends) - self._up_to(begins)) / np.maximum(nbytes, 1e-9)
        return float((arcs * each).sum())


# ---- kept in the user's cache directory


def kept_in() -> Path:
    """The file that rates are kept in."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "penstock" / "rates.json"


def key_of(folder: Path, threads: int) -> str:
    """Rates belong to a machine, a number of threads and the file system of a folder."""
    place = folder.resolve()
    while not place.exists():
        place = place.parent
    return f"{platform.node()} | {machine()['cpu']} | {threads} threads | device {place.stat().st_dev}"


def load(folder: Path, threads: int) -> Rates | None:
    """What was measured for this folder's file system, or None."""
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
        found = _read(kept_in())
        return Rates.from_dict(found[key_of(folder, threads)])
    return None


def limits(folder: Path, threads: int) -> dict[str, Any] | None:
    """How fast the pipes of this machine are, in bytes per second, for a run to be compared with; None where nobody
    has measured it."""
    host, device = load(folder, threads), load_gpu()
    if host is None and device is None:
        return None
    found: dict[str, Any] = {}
    if host is not None:
        found |= {name: getattr(host, name) for name in ("disk", "touch", "load", "memory", "date")}
    if device is not None:
        found["gpu"] = {name: getattr(device, name) for name in ("name", "copy", "memory", "date")}
    return found


def save(rates: Rates, folder: Path) -> Path:
    """Keep rates beside those of other machines and folders."""
    return _keep(key_of(folder, rates.threads), rates.as_dict())


def load_gpu(name: str | None = None) -> GpuRates | None:
    """What was measured on a GPU of this machine, on that of this name if one is given, or None."""
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
        for key, values in _read(kept_in()).items():
            if key.startswith(_gpu_key("")) and name in (None, values["name"]):
                return GpuRates.from_dict(values)
    return None


def save_gpu(rates: GpuRates) -> Path:
    """Keep rates of a GPU beside the others."""
    return _keep(_gpu_key(rates.name), rates.as_dict())


def _gpu_key(name: str) -> str:
    return f"{platform.node()} | gpu {name}"


def _keep(key: str, values: dict[str, Any]) -> Path:
    path = kept_in()
    path.parent.mkdir(parents=True, exist_ok=True)
    kept: dict[str, Any] = {}
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
        kept = _read(path)
    kept[key] = values
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    partial.write_text(json.dumps({"format": FORMAT, "rates": kept}, indent=1) + "\n")
    partial.replace(path)
    return path


def _read(path: Path) -> dict[str, Any]:
    held = json.loads(path.read_text())
    if held["format"] != FORMAT:
        raise ValueError("rates of another format")
    return dict(held["rates"])


__all__ = [
    "GPU_SIZES",
    "SIZES",
    "GatherCurve",
    "GpuRates",
    "Rates",
    "kept_in",
    "key_of",
    "limits",
    "load",
    "load_gpu",
    "save",
    "save_gpu",
]
