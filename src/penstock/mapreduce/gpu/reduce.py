"""Reduce on a GPU: by name, by a function of two values, or by a compiled function of a key and its values.

What joins two values at a time may be given a thread, a warp or a block for each key. By itself each key gets what its
number of values is worth: one list of keys for each kind of launch, where keys differ. Any other function goes through
the values of a key in its own order, which one thread does.
"""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from penstock.mapreduce import columns
from penstock.mapreduce.chunk import Groups
from penstock.mapreduce.compiling import _copy, _usable
from penstock.mapreduce.functions import Function
from penstock.mapreduce.gpu import kernels
from penstock.mapreduce.gpu.accelerator import Accelerator
from penstock.mapreduce.gpu.compiled import CompiledWork, bytes_beside
from penstock.mapreduce.gpu.fit import checked, plain
from penstock.mapreduce.gpu.lanes import Lane, Lanes, most_bytes
from penstock.mapreduce.placing import Unsuited
from penstock.mapreduce.reductions import from_words, word_type
from penstock.memory import gpu
from penstock.memory.device import inlined
from penstock.memory.fingerprint import fingerprint

if TYPE_CHECKING:
    from penstock.mapreduce.multivalue import KeyMultiValue

SHORT, LONG = kernels.WARP, 8 * kernels.BLOCK
"""Values from which on a warp, and a block, is worth it."""
SERIAL = 1 << 14
"""Values of a key that one thread goes through in less time than the CPU through a chunk."""
_KEPT = 256
_made: dict[str, gpu.Launcher] = {}


# ---- two values at a time


def _sum(a, b):
    return a + b


def _least(a, b):
    # What is no number wins, as in NumPy.
    return b if b < a or b != b else a  # noqa: PLR0124


def _most(a, b):
    return b if b > a or b != b else a  # noqa: PLR0124


def _or(a, b):
    return a | b


_COMBINES = {"sum": _sum, "mean": _sum, "min": _least, "max": _most, "any": _most, "all": _least, "or": _or}


@dataclass(frozen=True)
class Fold:
    """What joins two values, and the type it does so in."""

    combine: Any
    word: np.dtype
    key: str
    truth: bool = False

    @staticmethod
    def named(name: str, value: np.dtype) -> Fold:
        word = np.dtype(np.float64) if name == "mean" else word_type(name, value)
        return Fold(inlined(_COMBINES[name]), word, name, name in ("any", "all"))

    @staticmethod
    def of(function: Function, value: np.dtype) -> Fold:
        """An associative and commutative function of two values."""
        word = value if function.value is None else function.value
        checked(word)
        return Fold(_usable(_copy(function)), np.dtype(word), fingerprint(function.call))

    def kernel(self, how: str, value: np.dtype) -> gpu.Launcher:
        """By `how`: thread, warp or block."""
        key = fingerprint("fold", how, self.key, str(self.word), str(value), self.truth, kernels.BLOCK)
        if key not in _made:
            if len(_made) >= _KEPT:
                _made.clear()
            template = getattr(kernels, f"fold_by_{how}")
            made = template(_loading(self.word.type, self.truth), self.combine, self.word.type)
            _made[key] = gpu.Launcher(gpu.template_kernel(made, key))
        return _made[key]


def _loading(word: Any, truth: bool) -> Any:
    if truth:

        def load(value):
            return word(1) if value != 0 else word(0)
    else:

        def load(value):
            return word(value)

    return inlined(load)


def assigned(offsets: np.ndarray, assign: str) -> dict[str, np.ndarray | None]:
    """Which keys are for threads, for warps and for blocks; None stands for all."""
    if assign != "auto":
        return {assign: None}
    lengths = np.diff(offsets)
    longest, shortest = (int(lengths.max()), int(lengths.min())) if len(lengths) else (0, 0)
    for how, least, most in (("thread", 0, SHORT), ("warp", SHORT + 1, LONG), ("block", LONG + 1, longest)):
        if least <= shortest and longest <= most:
            return {how: None}
    masks = {"thread": lengths <= SHORT, "warp": (lengths > SHORT) & (lengths <= LONG), "block": lengths > LONG}
    found = {how: np.flatnonzero(mask).astype(np.int32) for how, mask in masks.items()}
    return {how: rows for how, rows in found.items() if len(rows)}


class _FoldWork:
    """A fold over groups; what it makes of each key, as words."""

    def __init__(self, fold: Fold, assign: str) -> None:
        self._fold, self._assign = fold, assign
        self.launches: dict[str, int] = {}
        self._begun = False

    def begin(self, lane: Lane, job: Groups) -> None:
        assert isinstance(job.values, np.ndarray)
        lane.notes = None
        if not len(job):
            return
        values = plain(job.values)
        parts = assigned(job.offsets, self._assign)
        none = np.zeros(1, np.int32)
        rows = [none if part is None else part for part in parts.values()]
        lane.notes = parts, lane.bring([np.ascontiguousarray(job.offsets), values, *rows])

    def go_on(self, lane: Lane, job: Groups) -> None:
        if lane.notes is None:
            return
        parts, (offsets, values, *lists) = lane.notes
        out = lane.make(len(job), self._fold.word)
        args = gpu.view(values), gpu.view(offsets)
        with lane.span("reduce", keys=len(job), values=len(values)):
            for (how, part), listed in zip(parts.items(), lists, strict=True):
                count = len(job) if part is None else len(part)
                size = {"thread": kernels.blocks(count), "warp": kernels.blocks(count * kernels.WARP), "block": count}
                self.launches[how] = self.launches.get(how, 0) + 1
                self._launch(
                    self._fold.kernel(how, values.dtype), lane, size[how], *args, gpu.view(listed), np.int64(count),
                    np.int64(part is not None), gpu.view(out),
                )  # fmt: skip
        with lane.span("copy out", bytes=len(job) * self._fold.word.itemsize):
            lane.notes = lane.fetch(out)

    def _launch(self, kernel: gpu.Launcher, lane: Lane, blocks: int, *args: Any) -> None:
        try:
            kernel(lane.stream, blocks, kernels.BLOCK, *args)
        except gpu.errors() as error:
            if self._begun:
                raise
            raise Unsuited(f"it does not compile for a GPU: {str(error).strip().splitlines()[0]}") from error

    def end(self, lane: Lane, job: Groups) -> np.ndarray:
        found: np.ndarray = np.empty(0, self._fold.word) if lane.notes is None else lane.notes.copy()
        lane.notes = None
        self._begun = True
        return found


def _lane_bytes(accelerator: Accelerator, kmv: KeyMultiValue, per_byte: float) -> int:
    largest = max([one.nbytes + one.values * _more(kmv) for one in kmv.kept], default=0)
    most = most_bytes(accelerator, largest, per_byte)
    if most < largest:
        raise Unsuited(f"three chunks of {largest:,} bytes do not fit into gpu_memory_limit, or into memory_limit")
    return max(most, 1)


def _more(kmv: KeyMultiValue) -> int:
    """Bytes that each value takes there besides those it has here: of nothing there is one."""
    return int(columns.is_nothing(kmv.value))


def fold_chunks(
    accelerator: Accelerator, kmv: KeyMultiValue, fold: Fold, assign: str
) -> Iterator[tuple[Groups, np.ndarray]]:
    """Each chunk of groups, with one word for each of its keys."""
    checked(kmv.value)
    # Keys stay; an offset and a word for each of them, and its number where they are listed.
    most = _lane_bytes(accelerator, kmv, 2.5)
    work = _FoldWork(fold, assign)
    with Lanes(accelerator, most + most // 2 + 4096, most + 4096) as lanes:
        yield from lanes.run(kmv.groups(), work)
    launches = accelerator.figures.setdefault("launches", {})
    for how, count in work.launches.items():
        launches[how] = launches.get(how, 0) + count


def reduce_named(
    accelerator: Accelerator, kmv: KeyMultiValue, name: str, assign: str
) -> Iterator[tuple[Groups, list[np.ndarray]]]:
    """Each chunk with what is known of its keys, as `penstock.mapreduce.reduce` joins them across chunks."""
    assert not isinstance(kmv.value, str)
    value = np.dtype(np.int64) if kmv.value.kind in "mM" else kmv.value
    for groups, words in fold_chunks(accelerator, kmv, Fold.named(name, value), assign):
        if name == "mean":
            yield groups, [words, np.diff(groups.offsets)]
        else:
            yield groups, [from_words(name, words, kmv.value)]


def reduce_compiled(
    accelerator: Accelerator,
    kmv: KeyMultiValue,
    function: Function,
    whole: Iterator[Groups],
    beside: Callable[[Groups], None],
) -> Iterator[tuple[int, Iterable[tuple[Any, Any]]]]:
    """A function of a key and its values, one thread for each key: for each chunk how many keys, and what was made.

    `beside` does on the CPU what is too large for a lane, a key whose values fill many chunks; and chunks in which one
    thread would go through a key for longer than the CPU through all. What it does is done: where the function then
    proves to be none for a GPU, it does the rest, too, and there is no `Unsuited`.
    """
    checked(kmv.key, kmv.value)
    width = max(1, columns.width(kmv.key) + 8)
    most = _lane_bytes(accelerator, kmv, 5)
    room_out = 2 * most + 2048
    work = CompiledWork(kmv.mr, function, grouped=True, room_out=room_out)
    with Lanes(accelerator, 2 * most, room_out, bytes_beside(most // width + 1)) as lanes:
        waiting: list[Groups] = []
        begun: deque[Groups] = deque()
        apart = False

        def small() -> Iterator[Groups]:
            for groups in whole:
                size = groups.nbytes + len(groups.values) * _more(kmv)
                if size > most or int(np.diff(groups.offsets).max(initial=0)) > SERIAL:
                    waiting.append(groups)
                    return
                if len(groups):
                    begun.append(groups)
                    yield groups

        while True:
            rest: Iterable[Groups] = ()
            try:
                for groups, made in lanes.run(small(), work):
                    begun.popleft()
                    yield len(groups), made
            except Unsuited as reason:
                if not apart:
                    raise
                kmv.mr.placing.refuse("reduce", str(reason))
                rest = whole
            for groups in itertools.chain(begun, waiting, rest):
                apart = True
                accelerator.figures["chunks_beside"] = accelerator.figures.get("chunks_beside", 0) + 1
                beside(groups)
                yield len(groups), []
            if rest or not waiting:
                return
            waiting.clear()


__all__ = ["Fold", "assigned", "fold_chunks", "reduce_compiled", "reduce_named"]
