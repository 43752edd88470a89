"""A timeline that was written, read back."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from penstock.errors import InputError
from penstock.observe.events import Level, Slice


@dataclass
class Trace:
    """A recording like `Events`, with times from its beginning on."""

    slices: list[Slice] = field(default_factory=list)
    levels: list[Level] = field(default_factory=list)
    left_out: int = 0
    began: float = 0.0


def read_trace(path: str | Path) -> Trace:
    """What `write_trace` wrote."""
    try:
        held = json.loads(Path(path).read_text(encoding="utf-8"))
        return _trace(held["traceEvents"], held.get("otherData") or {})
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", path=path) from None
    except (ValueError, KeyError, TypeError, AttributeError):
        raise InputError("this is no trace: give the file that run --trace wrote", path=path) from None


def _trace(rows: list[dict[str, Any]], other: dict[str, Any]) -> Trace:
    # A lane whose slices overlap was written as several threads: "worker 0 (2)" is the second of "worker 0".
    lanes = {
        row["tid"]: re.sub(r" \(\d+\)$", "", row["args"]["name"])
        for row in rows
        if row["ph"] == "M" and row["name"] == "thread_name"
    }
    found = Trace(left_out=int(other.get("events_left_out", 0)))
    for row in rows:
        if row["ph"] == "X":
            begin = row["ts"] / 1e6
            args = dict(row.get("args") or {})
            found.slices.append(
                Slice(lanes.get(row["tid"], str(row["tid"])), row["name"], begin, begin + row["dur"] / 1e6, args)
            )
        elif row["ph"] == "C" and row["name"] != "bytes moved":  # which follows from the slices
            found.levels += (
                Level(f"{row['name']}/{name}", row["ts"] / 1e6, value) for name, value in row["args"].items()
            )
    found.slices.sort(key=lambda each: (each.begin, -each.end))
    return found


__all__ = ["Trace", "read_trace"]
