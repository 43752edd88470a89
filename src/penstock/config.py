"""One frozen Settings object. Later ones win: defaults, PENSTOCK_* variables, `with config(...)`, a call's keywords."""

from __future__ import annotations

import contextlib
import operator
import os
import re
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

from penstock.errors import UsageError

Size = int | float | str
_PREFIXES = "KMGTP"
_UNITS = {"": 1, "B": 1}
_UNITS |= {p + end: 1000**k for k, p in enumerate(_PREFIXES, 1) for end in ("", "B")}
_UNITS |= {p + end: 1024**k for k, p in enumerate(_PREFIXES, 1) for end in ("I", "IB")}
_LARGEST = 1 << 60
"""Sums of a few sizes stay inside 64 bits."""


def parse_size(text: Size) -> int:
    """Bytes from `512MB` (powers of 1000), `2GiB` (powers of 1024) or a plain number."""
    wrong = f"{text!r} is not a size: write 512MB, 2GiB or a number of bytes"
    if isinstance(text, str):
        match = re.fullmatch(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([A-Za-z]*)\s*", text, re.ASCII)
        if not match or match[2].upper() not in _UNITS:
            raise UsageError(wrong)
        size = int(Decimal(match[1]) * _UNITS[match[2].upper()])
    elif isinstance(text, bool):
        raise UsageError(wrong)
    else:
        try:
            size = int(text)  # NumPy's integers and 4e9 are numbers, too
        except (TypeError, ValueError, OverflowError):
            raise UsageError(wrong) from None
    if size <= 0:
        raise UsageError(f"{text!r} is not a size: it must be positive")
    if size > _LARGEST:
        raise UsageError(f"{text!r} is not a size: no machine has more than {_LARGEST >> 50} PiB")
    return size


def format_size(size: float, rounded: Callable[[float], float] = round) -> str:
    """`1536000` -> `1.5 MB`: the same powers of 1000 that `parse_size` reads. `rounded` may be math.ceil or floor."""
    for k, unit in enumerate(("B", "kB", "MB", "GB", "TB")):
        scale = 1000**k
        decimals = 1 if k and size < 100 * scale else 0
        shown = rounded(size * 10**decimals / scale) / 10**decimals
        if shown < 1000 or unit == "TB":
            return f"{shown:.{decimals}f} {unit}"
    raise AssertionError


def available_memory() -> int:
    """The smaller of physical memory and what the control groups of this process allow."""
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    for path in _cgroup_limits(Path("/proc/self/cgroup"), Path("/sys/fs/cgroup")):
        # "max" where there is no limit
        with contextlib.suppress(OSError, ValueError):
            total = min(total, int(path.read_text()))
    return total


def _cgroup_limits(membership: Path, mount: Path) -> Iterator[Path]:
    """Files that may hold a limit: of the process's group and of every group around it. In a container the path
    may belong to the host's view, so the mount point itself is always among them."""
    try:
        lines = membership.read_text().splitlines()
    except OSError:
        return
    for line in lines:
        _, controllers, group = line.split(":", 2)
        if controllers == "":
            root, name = mount, "memory.max"
        elif "memory" in controllers.split(","):
            root, name = mount / "memory", "memory.limit_in_bytes"
        else:
            continue
        inside = Path(group.lstrip("/"))
        for folder in (inside, *inside.parents):
            yield root / folder / name


def available_threads() -> int:
    """Cores this process may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@dataclass(frozen=True)
class Settings:
    """What a run may use. Sizes in bytes."""

    memory_limit: int
    """Bound on the process's memory, above the start-up cost of Python and its libraries."""
    threads: int
    """Compute threads."""
    temp_directory: Path | None = None
    """Where spill files go; None: beside the target."""
    max_temp_directory_size: int | None = None
    """Quota for spill files; None: 90 % of the free space where they lie."""
    progress: bool | Callable[..., None] | None = None
    """True/False: a bar or none; None: a bar if stderr is a terminal; a function: called with each Progress event."""
    direct_io: bool = True
    """Read pages past the kernel's page cache where the file system allows it."""
    verify_checksums: bool = True
    """Compare each page with its checksum as it is read."""
    device: str = "auto"
    """Who computes: `auto`, `cpu`, `gpu` (or one of several, as `gpu:1`), or `reference`, which is slow and obvious."""
    tier: str = "auto"
    """Where the arcs lie during a run: in `memory`, on `disk`, or as the budget allows (`auto`)."""
    state_ranges: int | None = None
    """Split the vertices' state into so many ranges at least, as for a budget that does not hold it. For tests."""
    checkpoint: Path | None = None
    """The folder where an iterative run saves its state; a run that finds one there goes on from it."""
    checkpoint_every: str = "60s"
    """How often: `10` for supersteps, `30s` or `5m` for time."""
    gpu_memory_limit: int | None = None
    """Bound on the memory of a GPU, besides what CUDA itself takes; None: 90 % of what is free when a run starts."""
    gpu_streams: int = 2
    """Streams that copy pages to a GPU and compute on them at the same time."""
    gpu_devices: int = 1
    """Over how many GPUs a run is spread; where there are fewer, some share one."""
    gpu_strategy: str = "P"
    """How it is spread: `P`, each GPU holds all of the state and takes some of the pages; `S`, each holds a part of the
    state and takes all pages."""


def _count(value: Any) -> int:
    try:
        count = int(value) if isinstance(value, str) else operator.index(value)
    except (TypeError, ValueError):
        count = 0
    if count < 1 or isinstance(value, bool):
        raise UsageError(f"{value!r} is not a whole number of at least 1")
    return count


def _folder(value: Any) -> Path:
    try:
        return Path(value).expanduser()
    except (TypeError, RuntimeError):
        raise UsageError(f"{value!r} is not a folder") from None


def _flag(value: Any) -> bool:
    word = str(value).strip().lower()
    if word in ("1", "true", "yes", "on"):
        return True
    if word in ("0", "false", "no", "off"):
        return False
    raise UsageError(f"{value!r} is neither true nor false")


def _one_of(*choices: str) -> Callable[[Any], str]:
    def parse(value: Any) -> str:
        if value not in choices:
            raise UsageError(f"{value!r} is none of {', '.join(choices)}")
        return str(value)

    return parse


def _strategy(value: Any) -> str:
    if isinstance(value, str) and value.upper() in ("P", "S"):
        return value.upper()
    raise UsageError(f"{value!r} is none of P, S")


def _device(value: Any) -> str:
    if isinstance(value, str) and re.fullmatch(r"auto|cpu|reference|gpu(:(0|[1-9][0-9]{0,3}))?", value, re.ASCII):
        return value
    raise UsageError(f"{value!r} is none of auto, cpu, gpu, gpu:0, gpu:1, ..., reference")


_PARSERS: dict[str, Callable[[Any], Any]] = {
    "memory_limit": parse_size,
    "threads": _count,
    "temp_directory": _folder,
    "max_temp_directory_size": parse_size,
    "progress": lambda value: value if callable(value) else _flag(value),
    "direct_io": _flag,
    "verify_checksums": _flag,
    "device": _device,
    "tier": _one_of("auto", "memory", "disk"),
    "state_ranges": _count,
    "checkpoint": _folder,
    "checkpoint_every": str,
    "gpu_memory_limit": parse_size,
    "gpu_streams": _count,
    "gpu_devices": _count,
    "gpu_strategy": _strategy,
}
_overrides: ContextVar[dict[str, Any] | None] = ContextVar("penstock_settings", default=None)


def _parsed(values: dict[str, Any], where: str = "") -> dict[str, Any]:
    """The values that are not None, checked. `where` stands before the name of a setting that is wrong."""
    parsed = {}
    for name, value in values.items():
        if name not in _PARSERS:
            raise UsageError(f"there is no setting {name!r}; the settings are {', '.join(sorted(_PARSERS))}")
        if value is not None:
            try:
                parsed[name] = _PARSERS[name](value)
            except UsageError as error:
                raise UsageError(f"{where}{name.upper() if where else name}: {error}") from None
    return parsed


def settings(**overrides: Any) -> Settings:
    """The settings in force here. A keyword wins over everything else; None leaves the setting as it is."""
    texts = {name: os.environ.get(f"PENSTOCK_{name.upper()}") or None for name in _PARSERS}
    values = _parsed(texts, "PENSTOCK_") | (_overrides.get() or {}) | _parsed(overrides)
    values.setdefault("memory_limit", available_memory() * 8 // 10)
    values.setdefault("threads", available_threads())
    return Settings(**values)


@contextlib.contextmanager
def config(**overrides: Any) -> Iterator[Settings]:
    """`with config(memory_limit="4GB"):` sets defaults for every call inside."""
    token = _overrides.set((_overrides.get() or {}) | _parsed(overrides))
    try:
        yield settings()
    finally:
        _overrides.reset(token)


__all__ = [
    "Settings",
    "Size",
    "available_memory",
    "available_threads",
    "config",
    "format_size",
    "parse_size",
    "settings",
]
