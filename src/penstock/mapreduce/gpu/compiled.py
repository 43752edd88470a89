"""Compiled functions on a GPU, in two passes: count what each row emits, sum up, and emit to where that says.

A row is a pair, or a key with its values, which one thread goes through. A function that makes one pair of each row
needs no first pass.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from penstock.errors import ProgramError
from penstock.mapreduce import columns
from penstock.mapreduce.columns import NOTHING, Kind
from penstock.mapreduce.compiling import _copy, _usable
from penstock.mapreduce.functions import Function
from penstock.mapreduce.gpu import kernels
from penstock.mapreduce.gpu.fit import checked, held, plain
from penstock.mapreduce.gpu.lanes import Lane, aligned
from penstock.mapreduce.kernels import emitting
from penstock.mapreduce.placing import Unsuited
from penstock.mapreduce.twopass import TwoPass
from penstock.memory import gpu
from penstock.memory.device import inlined
from penstock.memory.fingerprint import fingerprint
from penstock.memory.staging import copy_bytes

if TYPE_CHECKING:
    from penstock.mapreduce.session import MapReduce

Made = tuple[np.ndarray, np.ndarray]
_KEPT = 256
_MARGIN = 2048
"""Bytes that arrays of a lane may lie apart."""
_made: dict[str, gpu.Launcher] = {}


def kernel_of(
    template: Callable[..., Any], function: Function, adapter: Callable[..., Any] | None = None
) -> gpu.Launcher:
    """As `penstock.mapreduce.compiling.kernel_of`, for a GPU."""
    about = None if adapter is None else adapter.__qualname__
    key = fingerprint("gpu", template.__qualname__, function.call, about, kernels.BLOCK)
    if key not in _made:
        called = _usable(_copy(function))
        if adapter is not None:
            called = inlined(adapter(called))
        if len(_made) >= _KEPT:
            _made.clear()
        _made[key] = gpu.Launcher(gpu.template_kernel(template(called), key))
    return _made[key]


class CompiledWork:
    """One function over rows. `grouped`: they are keys with their values. A job has `columns`, its arrays."""

    def __init__(self, mr: MapReduce, function: Function, *, grouped: bool, room_out: int) -> None:
        self._mr, self._function, self._room_out = mr, function, room_out
        adapter = None
        if not function.emits:
            adapter = emitting.value_emitter if grouped else emitting.pair_emitter
        if function.pairwise:
            adapter = emitting.fold_emitter
        counting, writing = (
            (emitting.counting_groups, emitting.writing_groups)
            if grouped
            else (emitting.counting_pairs, emitting.writing_pairs)
        )
        self._single = not function.emits
        # It knows of which kinds columns are, and does on the CPU what fits nowhere else.
        self._passes = TwoPass(mr, function, counting, writing, adapter, single=self._single)
        names = ("count_groups", "write_groups", "write_groups_single")
        names = names if grouped else ("count_pairs", "write_pairs", "write_single")
        self._count, self._write, self._write_single = (
            kernel_of(getattr(kernels, name), function, adapter) for name in names
        )
        self._begun = False

    @property
    def _kinds(self) -> tuple[Kind, Kind] | None:
        key, value = self._passes.key, self._passes.value
        return None if key is None or value is None else (key, value)

    def begin(self, lane: Lane, job: Any) -> None:
        given = [plain(column) for column in job.columns]
        there = lane.bring(given)
        rows = len(given[0])
        args = [gpu.view(each) for each in there]
        lane.notes = notes = _Notes(rows, given, args)
        if self._single and self._kinds is not None:
            self._begin_single(lane, notes)
            return
        counted = min(rows, 1) if self._single else rows
        notes.counts, notes.ends = (lane.empty(max(1, rows), np.int64) for _ in range(2))
        notes.flags = lane.bring([np.zeros(3, np.int64)])[0]
        if counted:
            with lane.span("count", rows=counted):
                self._launch(
                    self._count, lane, counted, *args, np.int64(counted), gpu.view(notes.counts), gpu.view(notes.flags)
                )
                gpu.scan(notes.counts[:counted], notes.ends[:counted], lane.stream)
            notes.total = lane.fetch(notes.ends[counted - 1 : counted])
            notes.seen = lane.fetch(notes.flags)

    def _launch(self, kernel: gpu.Launcher, lane: Lane, threads: int, *args: Any) -> None:
        try:
            kernel(lane.stream, kernels.blocks(threads), kernels.BLOCK, *args)
        except gpu.errors() as error:
            if self._begun:
                raise
            name = getattr(self._function.call, "__name__", "the function")
            reason = str(error).strip().splitlines()
            raise Unsuited(f"{name} does not compile for a GPU: {reason[0] if reason else ''}") from error

    def _begin_single(self, lane: Lane, notes: _Notes) -> None:
        notes.made = self._columns(lane, notes.rows)
        if notes.rows:
            with lane.span("kernel", rows=notes.rows):
                out = [gpu.view(each) for each in notes.made]
                self._launch(self._write_single, lane, notes.rows, *notes.args, np.int64(notes.rows), *out)

    def _columns(self, lane: Lane, count: int) -> list[Any]:
        assert self._kinds is not None
        return [lane.make(1 if kind == NOTHING else count, held(kind)) for kind in self._kinds]

    def _width(self) -> int:
        assert self._kinds is not None
        return sum(columns.width(kind) for kind in self._kinds)

    def go_on(self, lane: Lane, job: Any) -> None:
        notes: _Notes = lane.notes
        if notes.made is None and notes.rows:
            lane.stream.synchronize()
            self._settle(notes)
            total = int(notes.total[0])
            if self._single:
                self._begin_single(lane, notes)
            elif total and total * self._width() + _MARGIN > self._room_out:
                notes.rounds = True
                return
            elif total:
                notes.made = self._columns(lane, total)
                with lane.span("kernel", rows=notes.rows):
                    self._emit(lane, notes, 0, notes.rows, 0)
        if notes.made is not None:
            self._fetch(lane, notes)

    def _settle(self, notes: _Notes) -> None:
        """As `TwoPass` does after its first pass."""
        passes = self._passes
        if int(notes.seen[0]):
            passes.key = passes._settled("keys", int(notes.seen[0]), self._function.key, passes.key, tuple(notes.given))
            passes.value = passes._settled(
                "values", int(notes.seen[1]), self._function.value, passes.value, tuple(notes.given)
            )
        if self._kinds is not None:
            checked(*self._kinds)

    def _emit(self, lane: Lane, notes: _Notes, begin: int, end: int, before: int) -> None:
        out = [gpu.view(each) for each in notes.made or ()]
        self._launch(
            self._write, lane, end - begin, *notes.args, np.int64(begin), np.int64(end), gpu.view(notes.ends),
            np.int64(before), *out, gpu.view(notes.flags[2:]),
        )  # fmt: skip

    def _fetch(self, lane: Lane, notes: _Notes) -> None:
        assert self._kinds is not None
        assert notes.made is not None
        with lane.span("copy out", bytes=sum(each.nbytes for each in notes.made)):
            notes.found = [
                None if kind == NOTHING else lane.fetch(each)
                for kind, each in zip(self._kinds, notes.made, strict=True)
            ]
            if notes.flags is not None and not self._single:
                notes.wrong = lane.fetch(notes.flags[2:])

    def _rounds(self, lane: Lane, notes: _Notes) -> Iterator[Made]:
        """More than a lane holds is made: some rows at a time, each when what came before it was taken over. A row that
        makes more than a lane holds is the CPU's."""
        ends = gpu.download(notes.ends[: notes.rows])
        most = max(1, (self._room_out - _MARGIN) // max(1, self._width()))
        notes.made = self._columns(lane, most)
        begin = 0
        while begin < notes.rows:
            before = int(ends[begin - 1]) if begin else 0
            end = int(np.searchsorted(ends, before + most, "right"))
            if end == begin:
                end = begin + 1
                apart = _Apart()
                self._passes._run(tuple(notes.given), begin, end, 1, apart)
                yield from apart.made
            else:
                self._emit(lane, notes, begin, end, before)
                count = int(ends[end - 1]) - before
                lane.stream.synchronize()
                if count:
                    yield self._taken([gpu.download(each[:count]) for each in notes.made], count)
            begin = end
        notes.wrong = gpu.download(notes.flags[2:])
        self._check(notes)

    def _taken(self, found: list[Any], count: int) -> Made:
        """In memory of the session's own."""
        assert self._kinds is not None
        made = []
        for kind, array in zip(self._kinds, found, strict=True):
            column = self._passes._column(kind, count)
            if kind != NOTHING:
                copy_bytes(column, array[:count])
            made.append(column)
        return made[0], made[1]

    def end(self, lane: Lane, job: Any) -> Iterable[Made]:
        """Valid until the lane is used again."""
        notes: _Notes = lane.notes
        lane.notes = None
        self._begun = True
        if notes.rounds:
            return self._rounds(lane, notes)
        self._check(notes)
        count = notes.rows if self._single else int(notes.total[0])
        return [self._taken(notes.found, count)] if notes.found and count else []

    def _check(self, notes: _Notes) -> None:
        if notes.wrong is not None and int(notes.wrong[0]):
            raise ProgramError(
                f"{self._function.name}: emitted another number of pairs than before: it must do the same both times "
                "it is called"
            )


class _Apart:
    """Takes what the CPU makes."""

    def __init__(self) -> None:
        self.made: list[Made] = []

    def add_chunk(self, keys: np.ndarray, values: np.ndarray) -> None:
        self.made.append((keys, values))


class _Notes:
    """What is known of the chunk on a lane."""

    def __init__(self, rows: int, given: list[np.ndarray], args: list[Any]) -> None:
        self.rows, self.given, self.args = rows, given, args
        self.counts: Any = None
        self.ends: Any = None
        self.flags: Any = None
        self.total: Any = np.zeros(1, np.int64)
        self.seen: Any = np.zeros(2, np.int64)
        self.wrong: Any = None
        self.made: list[Any] | None = None
        self.found: list[Any] = []
        self.rounds = False
        """Whether more is made than a lane holds."""


def bytes_beside(rows: int) -> int:
    """What a lane has besides a chunk of so many rows: counts, their sums, flags."""
    return 2 * aligned(8 * rows) + 4 * 512


__all__ = ["CompiledWork", "bytes_beside", "kernel_of"]
