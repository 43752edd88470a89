"""Where a program can run, as settings: in memory, from disk, its state in ranges, in as little memory as will do."""

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


def everywhere(run: Callable[..., Any], *names: str) -> dict[str, Any]:
    """`run(**settings)` in these places, or in all."""
    return {name: at(name, run) for name in names or PLACES}


def at(name: str, run: Callable[..., Any]) -> Any:
    """`run(**settings)` in one place. For the smallest budget, it is asked what it needs, and given just that."""
    chosen = {"threads": 2, **PLACES[name]}
    if chosen.get("memory_limit") != "smallest":
        return run(**chosen)
    limit = 1
    for _ in range(8):  # an algorithm of several programs needs more for a later one
        try:
            return run(**{**chosen, "memory_limit": limit})
        except DoesNotFit as error:
            if error.needed <= limit:
                raise AssertionError(f"{error}: but that is what it was given") from error
            limit = error.needed
    raise AssertionError(f"{limit} bytes, and still too little")
