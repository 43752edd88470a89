"""Compiled functions over columns, in two passes: count what each block of rows emits, then write it in its place."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from penstock.errors import ProgramError, UsageError
from penstock.mapreduce import columns
from penstock.mapreduce.columns import NOTHING, Bytes, Column, Kind
from penstock.mapreduce.functions import Function
from penstock.mapreduce.output import PARALLEL_FROM, blamed

if TYPE_CHECKING:
    from penstock.mapreduce.session import MapReduce

_BLOCK = 1024


def plain(column: Column, function: Function, what: str) -> np.ndarray:
    """A column as a kernel takes it: numbers for times, zeros for nothing."""
    if isinstance(column, Bytes):
        raise UsageError(
            f"{function.name}: a compiled function takes {what} of fixed width, not {columns.kind_of(column)}: "
            "use kind='chunk' or kind='python'"
        )
    if columns.is_nothing(column.dtype):
        return np.broadcast_to(np.uint8(0), len(column))
    return column.view(np.int64) if column.dtype.kind in "mM" else column


class TwoPass:
    """One function, run over one chunk after the other. `single`: it emits one pair for each row."""

    def __init__(
        self,
        mr: MapReduce,
        function: Function,
        counting: Callable[..., Any],
        writing: Callable[..., Any],
        adapter: Callable[..., Any] | None = None,
        *,
        single: bool = False,
    ) -> None:
        from penstock.mapreduce.compiling import kernel_of

        self.mr, self.function, self.single = mr, function, single
        self._count = kernel_of(counting, function, adapter)
        self._write = kernel_of(writing, function, adapter)
        for kind in (function.key, function.value):
            if isinstance(kind, str):
                raise UsageError(f"{function.name}: a compiled function cannot emit {kind}")
        self.key, self.value = function.key, function.value

    def run(self, arrays: tuple[np.ndarray, ...], out: Any) -> None:
        """What comes of all rows, into `out`, in their order. `arrays`: keys, offsets of groups if any, values."""
        self._run(arrays, 0, len(arrays[0]), _BLOCK, out)

    def _run(self, arrays: tuple[np.ndarray, ...], begin: int, end: int, block: int, out: Any) -> None:
        if begin == end:
            return None
        first, last = begin // block, -(-end // block)
        counts = np.zeros(last, np.int64)
        if self.single and not (self.key is None or self.value is None):
            counts[first:] = np.minimum(np.arange(first + 1, last + 1) * block, end) - np.arange(first, last) * block
        elif self.single:
            self._survey(arrays, begin, begin + 1, block, counts)
            return self._run(arrays, begin, end, block, out)
        else:
            self._survey(arrays, begin, end, block, counts)
        ends = np.cumsum(counts)
        if not len(ends) or not ends[-1]:
            return None
        assert self.key is not None
        assert self.value is not None
        most = max(1, self.mr.chunk_bytes // max(1, columns.width(self.key) + columns.width(self.value)))
        at = first
        while at < last:
            before = int(ends[at - 1]) if at else 0
            to = int(np.searchsorted(ends, before + most, "right"))
            if to <= at and block > 1:
                # One block emits more than a chunk: row by row then.
                self._run(arrays, max(begin, at * block), min(end, (at + 1) * block), 1, out)
                at += 1
                continue
            to = max(to, at + 1)
            if int(ends[to - 1]) > before:
                self._emit(arrays, at, to, min(end, to * block), max(begin, at * block), block, ends, out)
            at = to
        return None

    def _shares(self, rows: int) -> int:
        return max(1, min(self.mr.team.threads, rows // PARALLEL_FROM))

    def _each(self, count: int, task: Callable[[int], Any]) -> None:
        if count == 1:
            task(0)
        else:
            self.mr.team.run(lambda worker: task(worker) if worker < count else None)

    def _survey(self, arrays: tuple[np.ndarray, ...], begin: int, end: int, block: int, counts: np.ndarray) -> None:
        shares = self._shares(end - begin)
        seen = np.zeros((shares, 2), np.int64)
        first, last = begin // block, -(-end // block)
        cuts = [max(begin, min(end, (first + (last - first) * k // shares) * block)) for k in range(shares + 1)]
        cuts[-1] = end

        def count(share: int) -> None:
            if cuts[share] < cuts[share + 1]:
                self._count(*arrays, cuts[share], cuts[share + 1], block, counts, seen[share])

        self._each(shares, count)
        keys, values = np.bitwise_or.reduce(seen, axis=0)
        if keys:
            self.key = self._settled("keys", int(keys), self.function.key, self.key, arrays)
            self.value = self._settled("values", int(values), self.function.value, self.value, arrays)

    def _settled(
        self, what: str, bits: int, declared: Kind | None, known: Kind | None, arrays: tuple[np.ndarray, ...]
    ) -> Kind:
        """The kind of column for what a pass has seen emitted."""
        from penstock.mapreduce.kernels.emitting import NONE, RECORD, TYPES

        name = self.function.name
        if declared is not None:
            return declared
        if bits == 1 << NONE:
            found: Kind = NOTHING
        elif bits == 1 << RECORD:
            structs = {array.dtype for array in arrays if array.dtype.fields}
            if len(structs) != 1:
                raise ProgramError(f"{name}: which struct its {what} are is not clear: declare it with @compiled(...)")
            found = structs.pop()
        elif bits >> NONE:
            raise ProgramError(f"{name}: emits numbers and other things as {what}; they must be of one kind")
        else:
            found = np.result_type(*(np.dtype(each) for k, each in enumerate(TYPES) if bits >> k & 1))
        if known is None or known == found:
            return found
        if not isinstance(known, str) and columns.width(known) and np.can_cast(found, known, "safe"):
            return known
        option = "key" if what == "keys" else "value"
        raise ProgramError(
            f"{name}: emits {columns.kind_name(found)} as {what}, and first emitted {columns.kind_name(known)}: "
            f"declare them with @compiled({option}=...)"
        )

    def _emit(
        self,
        arrays: tuple[np.ndarray, ...],
        at: int,
        to: int,
        end: int,
        begin: int,
        block: int,
        ends: np.ndarray,
        out: Any,
    ) -> None:
        """The pairs of blocks `at` to `to`, which are rows `begin` to `end`."""
        before, total = int(ends[at - 1]) if at else 0, int(ends[to - 1])
        keys = self._column(self.key, total - before)
        values = self._column(self.value, total - before)
        shares = self._shares(max(end - begin, total - before))
        wanted = before + (total - before) * np.arange(1, shares) // shares
        cuts = [at, *(int(k) for k in np.clip(np.searchsorted(ends[:to], wanted, "left") + 1, at, to)), to]

        def write(share: int) -> None:
            one, other = cuts[share], cuts[share + 1]
            if one >= other:
                return
            lo, hi = (int(ends[one - 1]) if one else 0) - before, int(ends[other - 1]) - before
            rows = max(begin, one * block), min(end, other * block)
            # Nothing has no array: the kernel gets one that it does not write to.
            made = self._write(*arrays, *rows, _part(keys, lo, hi), _part(values, lo, hi))
            if made != hi - lo:
                raise ProgramError(
                    f"{self.function.name}: emitted {made} pairs where it emitted {hi - lo} before: "
                    "it must do the same both times it is called"
                )

        self._each(shares, write)
        with blamed(self.function):
            out.add_chunk(keys, values)

    def _column(self, kind: Kind | None, count: int) -> np.ndarray:
        assert kind is not None
        assert not isinstance(kind, str)
        if columns.is_nothing(kind):
            return np.empty(count, NOTHING)
        return self.mr.room.empty(count, kind, "what a compiled function emits")


def _part(column: np.ndarray, begin: int, end: int) -> np.ndarray:
    return np.empty(end - begin, np.uint8) if columns.is_nothing(column.dtype) else column[begin:end]


__all__ = ["TwoPass", "plain"]
