"""One frozen Settings object: defaults, then PENSTOCK_* variables, then `with config(...)`, then a call's own keywords."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from penstock.errors import UsageError

Size = int | str
_UNITS = {"": 1, "B": 1}
_UNITS |= {f"{p}B": 1000**k for k, p in enumerate("KMGTP", 1)} | {p: 1000**k for k, p in enumerate("KMGTP", 1)}
_UNITS |= {f"{p}IB": 1024**k for k, p in enumerate("KMGTP", 1)}


def parse_size(text: Size) -> int:
    """Bytes from `512MB` (powers of 1000), `2GiB` (powers of 1024) or a plain number."""
    if isinstance(text, int):
        size = text
    else:
        match = re.fullmatch(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([A-Za-z]*)\s*", text)
        if not match or match[2].upper() not in _UNITS:
            raise UsageError(f"{text!r} is not a size: write 512MB, 2GiB or a number of bytes")
        size = int(float(match[1]) * _UNITS[match[2].upper()])
    if size <= 0:
        raise UsageError(f"{text!r} is not a size: it must be positive")
    return size


def format_size(size: float) -> str:
    """`1536000` -> `1.5 MB`: the same powers of 1000 that `parse_size` reads."""
    for unit in ("B", "kB", "MB", "GB", "TB"):
        if size < 1000 or unit == "TB":
            return f"{size:.0f} {unit}" if unit == "B" or size >= 100 else f"{size:.1f} {unit}"
        size /= 1000
    raise AssertionError


def available_memory() -> int:
    """The smaller of physical memory and the cgroup's limit."""
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    for path in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        with contextlib.suppress(OSError, ValueError):
            total = min(total, int(Path(path).read_text()))
    return total


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


_PARSERS: dict[str, Callable[[Any], Any]] = {
    "memory_limit": parse_size,
    "threads": int,
    "temp_directory": lambda value: None if value is None else Path(value).expanduser(),
    "max_temp_directory_size": lambda value: None if value is None else parse_size(value),
    "progress": lambda value: _flag(value) if isinstance(value, str) else value,
    "direct_io": lambda value: _flag(value),
    "verify_checksums": lambda value: _flag(value),
}
_overrides: ContextVar[dict[str, Any] | None] = ContextVar("penstock_settings", default=None)


def _flag(value: Any) -> bool:
    if isinstance(value, str):
        word = value.strip().lower()
        if word in ("1", "true", "yes", "on"):
            return True
        if word in ("0", "false", "no", "off"):
            return False
        raise UsageError(f"{value!r} is neither true nor false")
    return bool(value)


def _parsed(values: dict[str, Any]) -> dict[str, Any]:
    known = {f.name for f in fields(Settings)}
    for name in values:
        if name not in known:
            raise UsageError(f"there is no setting {name!r}; the settings are {', '.join(sorted(known))}")
    parsed = {name: _PARSERS[name](value) for name, value in values.items()}
    if parsed.get("threads", 1) < 1:
        raise UsageError("threads must be at least 1")
    return parsed


def settings(**overrides: Any) -> Settings:
    """The settings in force here; keywords that are not None win over everything else."""
    values: dict[str, Any] = {}
    for field in fields(Settings):
        text = os.environ.get(f"PENSTOCK_{field.name.upper()}")
        if text:
            values[field.name] = text
    values |= _overrides.get() or {}
    values |= {name: value for name, value in overrides.items() if value is not None}
    parsed = _parsed(values)
    parsed.setdefault("memory_limit", available_memory() * 8 // 10)
    parsed.setdefault("threads", available_threads())
    return Settings(**parsed)


@contextlib.contextmanager
def config(**overrides: Any) -> Iterator[Settings]:
    """`with config(memory_limit="4GB"):` sets defaults for every call inside."""
    _parsed(overrides)
    token = _overrides.set({**(_overrides.get() or {}), **overrides})
    try:
        yield settings()
    finally:
        _overrides.reset(token)


__all__ = ["Settings", "Size", "available_memory", "available_threads", "config", "format_size", "parse_size", "settings"]
