"""Splitters: to which part a key goes. By its range (the default), by its hash, as a function says, or by weight.

A splitter is asked for by name or is the user's function; it is made for the data at hand, together by all ranks.
"""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from bisect import bisect_right
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from penstock.cluster.communicator import Communicator
from penstock.errors import UsageError
from penstock.mapreduce.columns import Bytes, Column, codes, concat, hash64, take
from penstock.mapreduce.room import Kept

CANDIDATES = 4096
"""Keys that are looked at to find ranges, of all ranks together: the papers take more than 1000."""
_BUCKETS = 1 << 16
"""Keys whose hashes agree modulo this share a weight: memory stays bounded however many keys there are."""


class Splitter(ABC):
    """Cuts keys into `count` parts."""

    name: str
    count: int

    @property
    def identity(self) -> Any:
        """Splitters of the same identity send every key to the same part."""
        return (self.name, self.count)

    @abstractmethod
    def parts(self, keys: Column) -> np.ndarray:
        """The part of each key, 0 to count - 1; the same for equal keys."""


class HashSplitter(Splitter):
    """The hash of a key modulo the number of parts."""

    name = "hash"

    def __init__(self, count: int) -> None:
        self.count = count

    def parts(self, keys: Column) -> np.ndarray:
        return (hash64(keys) % np.uint64(self.count)).astype(np.int64)


class RangeSplitter(Splitter):
    """Part p has the keys from splitter p - 1 up to splitter p. Structs are cut by their first field."""

    name = "range"

    def __init__(self, splitters: Column, count: int) -> None:
        self.splitters, self.count = splitters, count

    @property
    def identity(self) -> Any:
        held = self.splitters.to_list() if isinstance(self.splitters, Bytes) else self.splitters.tolist()
        return (self.name, self.count, tuple(held))

    def parts(self, keys: Column) -> np.ndarray:
        if isinstance(self.splitters, Bytes) and isinstance(keys, Bytes):
            from penstock.mapreduce.kernels.balance import route_rows

            part = np.empty(len(keys), np.int64)
            route_rows(keys.offsets, keys.data, self.splitters.offsets, self.splitters.data, part)
            return part
        return np.searchsorted(self.splitters, codes(keys), "right")  # type: ignore[call-overload]


class CustomSplitter(Splitter):
    """The user's function of a column of keys, modulo the number of parts. It may ask for that number, too."""

    name = "custom"

    def __init__(self, function: Callable[..., Any], count: int) -> None:
        self.function, self.count = function, count
        try:
            self._both = len(inspect.signature(function).parameters) >= 2
        except (TypeError, ValueError):
            self._both = False

    @property
    def identity(self) -> Any:
        return (self.name, self.count, self.function)

    def parts(self, keys: Column) -> np.ndarray:
        found = np.asarray(self.function(keys, self.count) if self._both else self.function(keys))
        if found.shape != (len(keys),) or found.dtype.kind not in "iub":
            raise UsageError(
                f"the splitter {getattr(self.function, '__name__', self.function)!r} must return one integer for each "
                f"of {len(keys)} keys, not {found.dtype} of shape {found.shape}"
            )
        return (found % self.count).astype(np.int64)


class LptSplitter(Splitter):
    """Keys dealt out by how many pairs they have, the largest first, each to the part that has least."""

    name = "lpt"

    def __init__(self, weights: np.ndarray, count: int) -> None:
        from penstock.mapreduce.balance import lpt

        self.count, self.dealt = count, lpt(weights, count)
        # An empty bucket's keys have no pairs now; wherever it goes, it goes there on every rank.
        self._identity = hash(self.dealt.part.tobytes())

    @property
    def identity(self) -> Any:
        return (self.name, self.count, self._identity)

    def parts(self, keys: Column) -> np.ndarray:
        return self.dealt.part[hash64(keys) % np.uint64(len(self.dealt.part))]


def _sample(chunks: Iterable[Kept], wanted: int) -> list[Column]:
    """About so many keys, evenly spread over the chunks."""
    held = list(chunks)
    pairs = sum(kept.rows for kept in held)
    found = []
    for kept in held:
        if kept.rows:
            with kept.read() as chunk:
                some = max(1, min(kept.rows, wanted * kept.rows // max(pairs, 1)))
                found.append(take(chunk.keys, np.arange(some) * kept.rows // some))
    return found


def range_splitter(chunks: Iterable[Kept], count: int, kind: Any, communicator: Communicator) -> RangeSplitter:
    """Ranges that hold about the same number of pairs, from a sample of the keys of all ranks."""
    wanted = max(CANDIDATES, 64 * count) // communicator.size
    mine = _sample(chunks, wanted)
    # One key may be long: a cut needs no more of it than this.
    if isinstance(kind, str):
        rows = [bytes(row[:256]) for column in mine for row in Bytes.of(column, text=False)]
        found = sorted(row for part in communicator.allgather(rows) for row in part)
        return RangeSplitter(Bytes.of(_quantiles(found, count), text=False), count)
    own = codes(concat(mine, kind))
    gathered = np.sort(np.concatenate(communicator.allgather(own)))
    return RangeSplitter(np.array(_quantiles(gathered, count), np.uint64), count)


def _quantiles(candidates: Any, count: int) -> list[Any]:
    """count - 1 of the sorted candidates, as even as may be. A key that fills more than a part gets one of its own:
    the next cut is right above it, and not at the same key once more, which would leave a part empty."""
    found: list[Any] = []
    last = 0
    for part in range(1, count) if len(candidates) else ():
        at = max(part * len(candidates) // count, bisect_right(candidates, candidates[last]))
        last = min(at, len(candidates) - 1)
        found.append(candidates[last])
    return found


def lpt_splitter(chunks: Iterable[Kept], count: int, communicator: Communicator) -> LptSplitter:
    """Counts the pairs of all keys once, on all ranks."""
    weights = np.zeros(_BUCKETS, np.int64)
    for kept in chunks:
        with kept.read() as chunk:
            weights += np.bincount((hash64(chunk.keys) % np.uint64(_BUCKETS)).astype(np.int64), minlength=_BUCKETS)
    return LptSplitter(communicator.allreduce(weights), count)


def make_splitter(wanted: Any, chunks: list[Kept], count: int, kind: Any, communicator: Communicator) -> Splitter:
    """The splitter that a name or a function stands for, made for these chunks."""
    if count < 1:
        raise UsageError(f"pairs cannot be split into {count} parts: give at least 1")
    if isinstance(wanted, Splitter):
        if wanted.count != count:
            raise UsageError(f"the splitter cuts into {wanted.count} parts where {count} are wanted")
        return wanted
    if wanted == "hash":
        return HashSplitter(count)
    if wanted in ("range", None):
        return range_splitter(chunks, count, kind, communicator)
    if wanted == "lpt":
        return lpt_splitter(chunks, count, communicator)
    if callable(wanted):
        return CustomSplitter(wanted, count)
    raise UsageError(f"{wanted!r} is no splitter: use 'range', 'hash', 'lpt' or a function of a column of keys")


__all__ = [
    "CANDIDATES", "CustomSplitter", "HashSplitter", "LptSplitter", "RangeSplitter", "Splitter", "make_splitter",
    "range_splitter",
]  # fmt: skip
