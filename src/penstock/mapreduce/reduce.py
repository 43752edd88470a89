"""Reduce and compress: what a user's function, or a reduction by name, makes of each key and its values.

Results are in the order of the keys. Functions get all values of a key at once; a key that has more of them than may
be in memory gets an object that a plain function can go through once, by values or by blocks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from penstock.errors import UsageError
from penstock.mapreduce import columns
from penstock.mapreduce.chunk import Groups
from penstock.mapreduce.columns import Bytes, Column, concat, kind_of, to_list
from penstock.mapreduce.functions import Function, resolve
from penstock.mapreduce.output import PARALLEL_FROM, add_columns, add_pairs, blamed, finished, output
from penstock.mapreduce.placing import Unsuited
from penstock.mapreduce.reductions import READ_OFF, empty_kind, reduce_segments, result_kind
from penstock.observe.progress import progress

if TYPE_CHECKING:
    from penstock.mapreduce.keyvalue import KeyValue
    from penstock.mapreduce.multivalue import KeyMultiValue
    from penstock.mapreduce.session import MapReduce

_CHUNK_NAMES = ("keys", "offsets", "values")
ASSIGN = ("auto", "thread", "warp", "block")


class LongValues:
    """The values of a key that has too many for the memory, once: by values, or by `blocks()`, columns of them."""

    def __init__(self, blocks: Iterator[Column]) -> None:
        self._blocks = blocks

    def blocks(self) -> Iterator[Column]:
        """Columns of values; each is valid until the next."""
        return self._blocks

    def __iter__(self) -> Iterator[Any]:
        for block in self._blocks:
            yield from to_list(block)


def reduce_groups(kmv: KeyMultiValue, f: Any, kind: str = "auto", *, assign: str = "auto") -> KeyValue:
    """All that `f` makes of every key and its values. On a GPU `assign` says who takes a key: a thread, a warp or a
    block, or whoever its number of values is worth."""
    if assign not in ASSIGN:
        raise UsageError(f"assign: {assign!r} is none of {', '.join(ASSIGN)}")
    mr = kmv.mr
    about = progress("reduce", total=len(kmv), unit="keys", settings=mr.settings)
    if isinstance(f, str):
        value = (result_kind if kmv.kept else empty_kind)(f, kmv.value)
        with mr.writer(kmv.key, value) as out, about as bar:
            try:
                _by_name(kmv, f, out, bar, assign)
            except Unsuited as reason:
                mr.placing.refuse("reduce", str(reason))
                _by_name(kmv, f, out, bar, None)
            return out.done()
    function = _resolved(f, kind, "reduce")
    with output(mr, function) as out, about as bar:
        work = reducer(mr, f, kind, out)
        if _on_gpu(kmv, function, work, out, bar, assign):
            return finished(out, function, kmv)
        for groups in whole_groups(kmv, stream=function.kind == "python"):
            if isinstance(groups, Groups):
                work(groups)
                bar.advance(len(groups))
            else:
                key, values = groups
                extra = (out.add,) if function.emits else ()
                _add_reduced(out, key, function.call(key, values, *extra), function)
                for _ in values.blocks():  # what the function did not care for
                    pass
                bar.advance()
        return finished(out, function, kmv)


def compress(kv: KeyValue, f: Any, kind: str = "auto") -> KeyValue:
    """Equal keys' values reduced, as far as the memory reaches: a key may still come several times.

    By name, keys that are numbers or bytes go through hash tables as large as the budget allows; anything else is
    grouped and reduced a chunk at a time.
    """
    from penstock.mapreduce.combining import Combining

    mr = kv.mr
    about = progress("compress", total=len(kv), unit="pairs", settings=mr.settings)
    with Combining(mr, f, kv.key, kv.value, kind=kind, expected=len(kv)) as out, about as bar:
        if not isinstance(f, str):
            _resolved(f, kind, "compress")
        for chunk in kv.chunks():
            out.add_chunk(chunk.keys, chunk.values)
            bar.advance(len(chunk))
        return out.done()


def _resolved(f: Any, kind: str, what: str) -> Function:
    return resolve(f, kind, what=what, chunk_names=_CHUNK_NAMES)


def reducer(mr: MapReduce, f: Any, kind: str, out: Any, what: str = "reduce") -> Callable[[Groups], None]:
    """What to do with groups whose keys have all their values."""
    if isinstance(f, str):
        return lambda groups: out.add_chunk(groups.keys, reduced(mr, f, groups))
    function = _resolved(f, kind, what)
    return {"chunk": _by_chunks, "compiled": _compiled, "python": _by_keys}[function.kind](mr, function, out)


# ---- reductions by name


def reduced(mr: MapReduce, name: str, groups: Groups) -> Column:
    """`name` of each key's values, on several threads where that pays."""
    count, total = len(groups), len(groups.values)
    shares = max(1, min(mr.team.threads, total // PARALLEL_FROM, count))
    if shares == 1:
        return reduce_segments(name, groups.values, groups.offsets)
    cuts = np.searchsorted(groups.offsets, total * np.arange(shares + 1) // shares)
    cuts[0], cuts[-1] = 0, count
    found: list[Any] = [None] * shares

    def one(share: int) -> None:
        if share < shares:
            offsets = groups.offsets[cuts[share] : cuts[share + 1] + 1]
            found[share] = reduce_segments(name, groups.values, offsets)

    mr.team.run(one)
    return concat(found)


def _offered(kmv: KeyMultiValue, kinds: tuple[Any, ...]) -> Any:
    nbytes = sum(one.nbytes for one in kmv.kept)
    return kmv.mr.placing.offer(
        "reduce", "reduce", rows=kmv.values_count, bytes_in=nbytes, bytes_out=16 * len(kmv), kinds=kinds
    )


def _on_gpu(kmv: KeyMultiValue, function: Function, work: Any, out: Any, bar: Any, assign: str) -> bool:
    """Whether it was done there."""
    mr = kmv.mr
    if function.kind != "compiled":
        named = {"chunk": "reductions of chunks", "python": "plain Python functions"}
        mr.placing.refuse("reduce", f"{named[function.kind]} run on the CPU")
        return False
    kinds = (kmv.key, kmv.value)
    there = _offered(kmv, kinds)
    if there is None:
        return False
    if function.pairwise and any(not isinstance(kind, str) and kind.kind not in "biuf" for kind in kinds):
        mr.placing.refuse("reduce", "of keys or values that are no numbers the CPU joins two at a time")
        return False
    from penstock.mapreduce.gpu.reduce import Fold, fold_chunks, reduce_compiled

    try:
        if function.pairwise and not any(one.continues for one in kmv.kept):
            kind = kmv.value
            assert not isinstance(kind, str)
            for groups, words in fold_chunks(there, kmv, Fold.of(function, kind), assign):
                out.add_chunk(groups.keys, words.astype(kind, copy=False))
                bar.advance(len(groups))
        else:
            if assign not in ("auto", "thread"):
                raise UsageError(
                    f"assign={assign!r} needs a reduction by name, or one of two values (`pairwise`) no key of which "
                    "fills several chunks: any other function goes through the values of a key in order"
                )
            for rows, made in reduce_compiled(there, kmv, function, whole_groups(kmv), work):
                for pairs in made:
                    add_columns(mr, out, pairs, function)
                bar.advance(rows)
    except Unsuited as reason:
        mr.placing.refuse("reduce", str(reason))
        return False
    return True


def _partials(kmv: KeyMultiValue, name: str, assign: str | None) -> Iterator[tuple[Groups, list[Column]]]:
    """Chunks, with what is known of each of their keys: from the GPU, or from here where `assign` is None."""
    if assign is not None:
        if name in READ_OFF:
            kmv.mr.placing.refuse("reduce", f"{name} is read off where the values lie")
        elif (there := _offered(kmv, (kmv.value,))) is not None:
            from penstock.mapreduce.gpu.reduce import reduce_named

            yield from reduce_named(there, kmv, name, assign)  # type: ignore[misc]
            return
    for groups in kmv.groups():
        yield groups, _partial(kmv.mr, name, groups)


def _by_name(kmv: KeyMultiValue, name: str, out: Any, bar: Any, assign: str | None) -> None:
    """The last key of a chunk waits if it goes on in the next: two partial results are reduced like two values."""
    kept = kmv.kept
    again = {"count": "sum", "mean": "sum"}.get(name, name)
    waiting: list[Column] = []
    for number, (groups, known) in enumerate(_partials(kmv, name, assign)):
        n, parts = len(groups), known
        if groups.continues and waiting:
            both = [concat([old, columns.slice(new, 0, 1)]) for old, new in zip(waiting, parts, strict=True)]
            first = [reduce_segments(again, each, np.array([0, 2], np.int64)) for each in both]
            parts = [concat([one, columns.slice(new, 1, n)]) for one, new in zip(first, parts, strict=True)]
        goes_on = _goes_on(kept, number)
        end = n - int(goes_on)
        waiting = [columns.take(each, np.array([n - 1])) for each in parts] if goes_on else []
        if name == "mean":
            parts = [parts[0] / parts[1]]  # type: ignore[operator]
        if end:
            out.add_chunk(columns.slice(groups.keys, 0, end), columns.slice(parts[0], 0, end))
        bar.advance(end)


def _partial(mr: MapReduce, name: str, groups: Groups) -> list[Column]:
    """What is known of each key after a chunk: of a mean, the sum and the count."""
    if name != "mean":
        return [reduced(mr, name, groups)]
    values = groups.values
    assert isinstance(values, np.ndarray)
    doubles = values if values.dtype.kind == "c" else values.astype(np.float64, copy=False)
    return [reduced(mr, "sum", Groups(groups.keys, groups.offsets, doubles)), np.diff(groups.offsets)]


# ---- functions


def _by_chunks(mr: MapReduce, function: Function, out: Any) -> Callable[[Groups], None]:
    def work(groups: Groups) -> None:
        shares = min(mr.team.threads, len(groups.values) // PARALLEL_FROM, len(groups)) if function.parallel else 1
        if shares < 2:
            add_columns(mr, out, function.call(groups.keys, groups.offsets, groups.values), function)
            return
        cuts = np.searchsorted(groups.offsets, len(groups.values) * np.arange(shares + 1) // shares)
        cuts[0], cuts[-1] = 0, len(groups)
        parts = [groups.slice(int(cuts[k]), int(cuts[k + 1])) for k in range(shares) if cuts[k] < cuts[k + 1]]
        found: list[Any] = [None] * len(parts)

        def one(worker: int) -> None:
            if worker < len(parts):
                part = parts[worker]
                found[worker] = function.call(part.keys, part.offsets, part.values)

        mr.team.run(one)
        for made in found:
            add_columns(mr, out, made, function)

    return work


def _compiled(mr: MapReduce, function: Function, out: Any) -> Callable[[Groups], None]:
    from penstock.mapreduce.kernels import emitting
    from penstock.mapreduce.twopass import TwoPass, plain

    adapter = None if function.emits else emitting.fold_emitter if function.pairwise else emitting.value_emitter
    passes = TwoPass(
        mr, function, emitting.counting_groups, emitting.writing_groups, adapter, single=not function.emits
    )

    def work(groups: Groups) -> None:
        keys, values = plain(groups.keys, function, "keys"), plain(groups.values, function, "values")
        passes.run((keys, groups.offsets, values), out)

    return work


def _by_keys(mr: MapReduce, function: Function, out: Any) -> Callable[[Groups], None]:
    call, extra = function.call, ((out.add,) if function.emits else ())

    def work(groups: Groups) -> None:
        at = groups.offsets.tolist()
        values = groups.values
        listed = isinstance(values, Bytes) or columns.is_nothing(kind_of(values))
        with blamed(function):
            for row, key in enumerate(to_list(groups.keys)):
                mine: Any = columns.slice(values, at[row], at[row + 1])
                _add_reduced(out, key, call(key, to_list(mine) if listed else mine, *extra), function)

    return work


def _add_reduced(out: Any, key: Any, made: Any, function: Function) -> None:
    """A number or a string is the value of the key itself."""
    if isinstance(made, (int, float, complex, str, bytes, np.generic)):
        out.add(key, made)
    elif made is not None:
        add_pairs(out, made, function)


def whole_groups(kmv: KeyMultiValue, *, stream: bool = False) -> Iterator[Any]:
    """Groups in which every key has all its values; with `stream`, (key, LongValues) for a key with too many."""
    mr, kept = kmv.mr, kmv.kept
    source = enumerate(kmv.groups())
    for number, chunk in source:
        groups: Groups | None = chunk
        while groups is not None:
            if not _goes_on(kept, number):
                yield groups
                break
            end = len(groups) - 1
            if end:
                yield groups.slice(0, end)
            rest = _Rest(kept, source, groups.slice(end, end + 1))
            size = rest.begin.nbytes
            following = number + 1
            while following < len(kept) and kept[following].continues:
                size += kept[following].nbytes
                following += 1
            if stream and size > mr.work_bytes // 4:
                yield to_list(rest.begin.keys)[0], LongValues(rest.blocks())
            else:
                # All parts, and then one column of them all.
                with mr.room.reserve(2 * size, "the values of one key"):
                    values = concat([columns.take(part, np.arange(len(part))) for part in rest.blocks()])
                    yield Groups(rest.begin.keys, np.array([0, len(values)], np.int64), values)
                    del values
            groups, number = rest.after, rest.number  # noqa: PLW2901  (the chunks were read on)


def _goes_on(kept: list[Any], number: int) -> bool:
    return number + 1 < len(kept) and bool(kept[number + 1].continues)


class _Rest:
    """The values of the last key of a chunk, and of all chunks that continue it. `after`: the keys after it."""

    def __init__(self, kept: list[Any], source: Iterator[tuple[int, Groups]], last: Groups) -> None:
        rows = np.arange(len(last.values))
        self.begin = Groups(columns.take(last.keys, rows[:1]), last.offsets, columns.take(last.values, rows))
        self.after: Groups | None = None
        self.number = 0
        self._kept, self._source = kept, source

    def blocks(self) -> Iterator[Column]:
        yield self.begin.values
        for number, groups in self._source:
            self.number = number
            yield columns.slice(groups.values, 0, int(groups.offsets[1]))
            if len(groups) > 1:
                self.after = groups.slice(1, len(groups))
                return
            if not _goes_on(self._kept, number):
                return


__all__ = ["LongValues", "compress", "reduce_groups", "reduced", "reducer", "whole_groups"]
