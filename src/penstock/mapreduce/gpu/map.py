"""Map on a GPU: compiled functions of pairs, and functions of columns, which are given arrays of CuPy's."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from penstock.errors import ProgramError
from penstock.mapreduce import columns
from penstock.mapreduce.chunk import Chunk
from penstock.mapreduce.functions import Function
from penstock.mapreduce.gpu.accelerator import Accelerator
from penstock.mapreduce.gpu.compiled import CompiledWork, bytes_beside
from penstock.mapreduce.gpu.fit import checked, plain
from penstock.mapreduce.gpu.lanes import LANES, Lane, Lanes, most_bytes
from penstock.mapreduce.placing import Unsuited
from penstock.memory import gpu
from penstock.memory.staging import copy_bytes

if TYPE_CHECKING:
    from penstock.mapreduce.keyvalue import KeyValue
    from penstock.mapreduce.session import MapReduce

_SMALLEST = 1 << 10
_SCRATCH = 6
"""Times the bytes of a chunk that a function of columns may have in arrays of its own."""


def map_on_gpu(
    accelerator: Accelerator, kv: KeyValue, function: Function
) -> Iterator[tuple[int, Iterable[tuple[Any, Any]]]]:
    """For each piece of the pairs how many they are, and the columns made of them. `Unsuited`, if at all, comes before
    anything was made."""
    checked(kv.key, kv.value)
    width = max(1, columns.width(kv.key) + columns.width(kv.value))
    largest = max([one.nbytes for one in kv.kept], default=0) or width
    compiled = function.kind == "compiled"
    if not compiled and any(not isinstance(kind, str) and kind.kind not in "biuf" for kind in (kv.key, kv.value)):
        raise Unsuited("functions of columns of times, or of nothing, run on the CPU")
    # A chunk, as much again for what is made of it, and for each row its counts.
    per_byte = 3 + 16 / width if compiled else 2 + _SCRATCH
    most = most_bytes(accelerator, largest, per_byte)
    if most < min(_SMALLEST, largest):
        raise Unsuited(f"three chunks of {min(_SMALLEST, largest)} bytes do not fit into gpu_memory_limit")
    rows = -(-most // width)
    room_out = 2 * most + 2048
    work: Any
    if compiled:
        work = CompiledWork(kv.mr, function, grouped=False, room_out=room_out)
        beside = bytes_beside(rows)
    else:
        work = _Columns(kv.mr, function, accelerator, _SCRATCH * most * LANES, room_out)
        beside = 0
    with contextlib.ExitStack() as stack:
        lanes = stack.enter_context(Lanes(accelerator, most + rows, room_out, beside))
        if not compiled:
            stack.enter_context(work)
        pieces = (piece for chunk in kv.chunks() for piece in chunk.pieces(most) if len(piece))
        for piece, made in lanes.run(pieces, work):
            yield len(piece), made


class _Columns:
    """A function of columns. Arrays it makes are CuPy's, in a pool of their own that has a limit."""

    def __init__(
        self, mr: MapReduce, function: Function, accelerator: Accelerator, scratch: int, room_out: int
    ) -> None:
        self._mr, self._function, self._room_out = mr, function, room_out
        self._accelerator, self._scratch = accelerator, max(scratch, 1 << 20)
        self._begun = False

    def __enter__(self) -> _Columns:
        free = self._accelerator.ledger.free
        if not gpu.SIMULATED and self._scratch > free:
            self._scratch = free
        self._held = self._accelerator.ledger.reserve(0 if gpu.SIMULATED else self._scratch, "arrays of a function")
        self._pool = gpu.limited_pool(self._scratch)
        return self

    def __exit__(self, *error: object) -> None:
        gpu.synchronize()
        self._pool.free_all_blocks()
        self._held.release()

    def begin(self, lane: Lane, job: Chunk) -> None:
        there = lane.bring([plain(column) for column in _arrays(job)])
        try:
            with lane.span("function", rows=len(job)), gpu.pooled(self._pool, lane.stream):
                made = self._function.call(*there)
                lane.notes = None if made is None else self._checked(made)
        except ProgramError:
            raise
        except Exception as error:
            # It may be one that takes NumPy's arrays only. The CPU says what is wrong with it if something is.
            if self._begun:
                raise
            name = getattr(self._function.call, "__name__", "the function")
            raise Unsuited(f"{name} does not take arrays of CuPy's: {type(error).__name__}: {error}") from error
        self._begun = True

    def _checked(self, made: Any) -> list[Any]:
        if not isinstance(made, tuple) or len(made) != 2:
            name = self._function.name
            raise ProgramError(f"{name}: a chunk function returns (keys, values), not {type(made).__name__}")
        return [each if each is None else gpu.contiguous(each) for each in made]

    def go_on(self, lane: Lane, job: Chunk) -> None:
        if lane.notes is None:
            return
        there = [each for each in lane.notes if gpu.is_there(each)]
        size = sum(each.nbytes + 512 for each in there)
        if size > self._room_out:
            lane.stream.synchronize()
            lane.notes = [gpu.download(each) if gpu.is_there(each) else each for each in lane.notes], []
            return
        with lane.span("copy out", bytes=size):
            # The arrays stay until they are copied.
            lane.notes = [lane.fetch(each) if gpu.is_there(each) else each for each in lane.notes], there

    def end(self, lane: Lane, job: Chunk) -> list[tuple[Any, Any]]:
        if lane.notes is None:
            return []
        (keys, values), _ = lane.notes
        lane.notes = None
        return [(self._own(keys), self._own(values))]

    def _own(self, column: Any) -> Any:
        if not isinstance(column, np.ndarray) or column.dtype.itemsize == 0:
            return column
        copy = self._mr.room.empty(len(column), column.dtype, "what a chunk function returned")
        copy_bytes(copy, column)
        return copy


def _arrays(chunk: Chunk) -> list[np.ndarray]:
    found = []
    for column in chunk.columns:
        assert isinstance(column, np.ndarray)
        found.append(column)
    return found


__all__ = ["map_on_gpu"]
