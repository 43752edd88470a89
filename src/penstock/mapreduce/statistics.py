"""Figures: how many pairs there are and where, and what an entire run has used."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from penstock.errors import UsageError
from penstock.mapreduce.columns import kind_name
from penstock.observe.stats import peak_rss

if TYPE_CHECKING:
    from penstock.mapreduce.data import Data
    from penstock.mapreduce.session import MapReduce

BINS = 10


def spread(figures: list[float]) -> dict[str, Any]:
    """The least, the most, the mean, how far the most is above it in per cent, and a histogram of ten bins."""
    numbers = np.asarray(figures, np.float64)
    if not len(numbers):
        return {"min": 0, "max": 0, "mean": 0.0, "imbalance": 0.0, "histogram": [0] * BINS}
    from penstock.mapreduce.balance import imbalance

    counts, _ = np.histogram(numbers, BINS)
    return {
        "min": numbers.min().item(),
        "max": numbers.max().item(),
        "mean": numbers.mean().item(),
        "imbalance": imbalance(numbers),
        "histogram": counts.tolist(),
    }


def _checked(level: int) -> None:
    if level not in (1, 2):
        raise UsageError(f"level: {level!r} is neither 1 (totals) nor 2 (how they are spread, too)")


def describe(data: Data, level: int = 1) -> dict[str, Any]:
    """Of all ranks together. Level 2 adds how ranks differ and, of values by key, how many each key has."""
    from penstock.mapreduce.multivalue import KeyMultiValue

    _checked(level)
    kept, grouped = data.kept, isinstance(data, KeyMultiValue)
    mine = {
        "keys" if grouped else "pairs": len(data),
        **({"values": sum(each.values for each in kept)} if grouped else {}),
        "bytes": sum(each.nbytes for each in kept),
        "chunks": len(kept),
        "chunks_on_disk": sum(each.spilled for each in kept),
    }
    ranks: list[dict[str, int]] = data.mr.communicator.allgather(mine)
    found: dict[str, Any] = {name: sum(rank[name] for rank in ranks) for name in mine}
    found |= {"key": kind_name(data.key), "value": kind_name(data.value), "order": data.order}
    found["partitioned"] = None if data.partitioned is None else data.partitioned[0]
    if level == 2:
        found["ranks"] = {name: spread([rank[name] for rank in ranks]) for name in mine}
        if data.records is not None:
            found["parts"] = spread([float(count) for count in data.records])
        if isinstance(data, KeyMultiValue):
            found["values_per_key"] = _lengths(data)
    return found


def _lengths(kmv: Any) -> dict[str, Any]:
    """Of the keys of all ranks: how many have 1 value, 2 or 3, 4 to 7, ..."""
    counts = np.zeros(64, np.int64)
    open_group = longest = 0
    for chunk in kmv.groups():
        sizes = np.diff(chunk.offsets)
        if len(sizes) and chunk.continues:
            sizes[0] += open_group
        elif open_group:
            counts[open_group.bit_length() - 1] += 1
        open_group = 0
        if len(sizes):
            # The last key may go on in the next chunk.
            longest, open_group, sizes = max(longest, int(sizes.max())), int(sizes[-1]), sizes[:-1]
            _, exponents = np.frexp(sizes[sizes > 0].astype(np.float64))
            counts += np.bincount(exponents - 1, minlength=64)[:64]
    if open_group:
        counts[open_group.bit_length() - 1] += 1
    counts = kmv.mr.communicator.allreduce(counts)
    longest = kmv.mr.communicator.allreduce(longest, "max")
    return {"max": longest, "powers_of_two": np.trim_zeros(counts, "b").tolist()}


def cumulative(mr: MapReduce, level: int = 1) -> dict[str, Any]:
    """What the run has used so far, on all ranks: memory, spill, operations. Level 2 adds how ranks differ."""
    _checked(level)
    spill, phases = mr.spill.heartbeat(), mr.counters.phases
    mine = {
        "memory_peak": mr.budget.peak,
        "chunks_peak": mr.room.peak,
        "process_peak": peak_rss(),
        "spill_peak": spill["peak"],
        "spill_written": spill["written"] - mr.since["written"],
        "spill_read": spill["read"] - mr.since["read"],
        "chunks_spilled": mr.room.spilled_chunks,
        "bytes_sent": int(mr.counters.counters.get("bytes_sent", 0)),
    }
    ranks: list[dict[str, int]] = mr.communicator.allgather(mine)
    found: dict[str, Any] = {
        name: (max if name.endswith("_peak") else sum)(rank[name] for rank in ranks) for name in mine
    }
    found["memory_limit"] = mr.budget.limit
    found["operations"] = {
        name: {"calls": calls, "seconds": phases.get(name, 0.0), **_skips(mr, name)} for name, calls in mr.runs.items()
    }
    found["skipped"] = dict(mr.skips)
    if mr.placing.wanted:
        found["gpu"] = mr.placing.stats()
    if level == 2:
        found["ranks"] = {name: spread([rank[name] for rank in ranks]) for name in mine}
    return found


def _skips(mr: MapReduce, name: str) -> dict[str, int]:
    return {"skipped": mr.skips[name]} if name in mr.skips else {}


__all__ = ["cumulative", "describe", "spread"]
