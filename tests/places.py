"""Where a program can run, as settings: in memory, from disk, its state in ranges, in as little memory as will do; and
on a GPU resident, streamed in as little of its memory as will do, and in ranges."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from penstock.errors import DoesNotFit

PLACES: dict[str, dict[str, Any]] = {
    "memory": {"device": "cpu", "tier": "memory"},
    "disk": {"device": "cpu", "tier": "disk"},
    "ranges": {"device": "cpu", "tier": "disk", "state_ranges": 3},
    "smallest": {"device": "cpu", "tier": "disk", "memory_limit": "smallest"},
    "reference": {"device": "reference"},
}
GPU_PLACES: dict[str, dict[str, Any]] = {
    "gpu": {"device": "gpu"},
    "gpu-streamed": {"device": "gpu", "gpu_memory_limit": "smallest"},
    "gpu-ranges": {"device": "gpu", "state_ranges": 3},
}


def everywhere(run: Callable[..., Any], *names: str) -> dict[str, Any]:
    """`run(**settings)` in these places, or in all that need no GPU."""
    return {name: at(name, run) for name in names or PLACES}


def at(name: str, run: Callable[..., Any]) -> Any:
    """`run(**settings)` in one place. For the smallest budget, it is asked what it needs, and given just that."""
    chosen = {"threads": 2, **(PLACES | GPU_PLACES)[name]}
    asked = [setting for setting, value in chosen.items() if value == "smallest"]
    if not asked:
        return run(**chosen)
    (setting,), limit = asked, 1
    for _ in range(8):  # an algorithm of several programs needs more for a later one
        try:
            return run(**{**chosen, setting: limit})
        except DoesNotFit as error:
            if error.setting != setting:
                raise AssertionError(f"{error}: but only {setting} is small") from error
            if error.needed <= limit:
                raise AssertionError(f"{error}: but that is what it was given") from error
            limit = error.needed
    raise AssertionError(f"{limit} bytes, and still too little")
