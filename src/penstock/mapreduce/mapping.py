"""Map, filter and scan: a user's function over all pairs, and over the numbers of tasks.

The pairs that come out are in the order of those that went in. Plain Python functions, and functions of chunks that are
not declared `parallel`, are called by one thread.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from penstock.errors import ProgramError, UsageError
from penstock.mapreduce.chunk import Chunk
from penstock.mapreduce.columns import to_list
from penstock.mapreduce.functions import Function, resolve
from penstock.mapreduce.output import PARALLEL_FROM, ROWS, add_columns, add_pairs, blamed, finished, output
from penstock.mapreduce.placing import Unsuited
from penstock.observe.progress import progress

if TYPE_CHECKING:
    from penstock.mapreduce.keyvalue import KeyValue
    from penstock.mapreduce.session import MapReduce


def map_pairs(kv: KeyValue, f: Any, kind: str = "auto", *, combine: Any = None) -> KeyValue:
    """All that `f` makes of the pairs. `combine`: reduce the values of equal keys on the way, as far as memory reaches;
    see `reduce.compress`."""
    function = resolve(f, kind, what="map")
    mr = kv.mr
    with (
        output(mr, function, combine, expected=4 * len(kv)) as out,  # about: tables of a small input are small
        progress("map", total=len(kv), unit="pairs", settings=mr.settings) as bar,
    ):
        if _on_gpu(kv, function, out, bar):
            return finished(out, function, kv)
        work = {"chunk": _by_chunks, "compiled": _compiled, "python": _by_pairs}[function.kind](mr, function, out)
        for chunk in kv.chunks():
            work(chunk)
            bar.advance(len(chunk))
        return finished(out, function, kv)


def _on_gpu(kv: KeyValue, function: Function, out: Any, bar: Any) -> bool:
    """Whether it was done there."""
    placing, nbytes = kv.mr.placing, sum(one.nbytes for one in kv.kept)
    if function.kind == "python":
        placing.refuse("map", "plain Python functions run on the CPU")
        return False
    if function.kind == "chunk" and not placing.asked:
        # Whose arrays it is given must not depend on how many pairs there are.
        placing.refuse("map", "functions of columns are given CuPy's arrays only where device='gpu' asks for it")
        return False
    kinds = (kv.key, kv.value)
    there = placing.offer("map", "map", rows=len(kv), bytes_in=nbytes, bytes_out=nbytes, kinds=kinds)
    if there is None:
        return False
    from penstock.mapreduce.gpu.map import map_on_gpu

    try:
        for rows, made in map_on_gpu(there, kv, function):
            for pairs in made:
                add_columns(kv.mr, out, pairs, function)
            bar.advance(rows)
    except Unsuited as reason:
        placing.refuse("map", str(reason))
        return False
    return True


def _by_chunks(mr: MapReduce, function: Function, out: Any) -> Callable[[Chunk], None]:
    def work(chunk: Chunk) -> None:
        for made in _in_parts(mr, function, chunk, lambda part: function.call(part.keys, part.values)):
            add_columns(mr, out, made, function)

    return work


def _in_parts(mr: MapReduce, function: Function, chunk: Chunk, call: Callable[[Chunk], Any]) -> list[Any]:
    """What a function of chunks returns, by parts on several threads if it may be called so."""
    shares = min(mr.team.threads, len(chunk) // PARALLEL_FROM) if function.parallel else 1
    if shares < 2:
        return [call(chunk)]
    parts = [chunk.slice(len(chunk) * k // shares, len(chunk) * (k + 1) // shares) for k in range(shares)]
    found: list[Any] = [None] * shares

    def one(worker: int) -> None:
        if worker < shares:
            found[worker] = call(parts[worker])

    mr.team.run(one)
    return found


def _compiled(mr: MapReduce, function: Function, out: Any) -> Callable[[Chunk], None]:
    from penstock.mapreduce.kernels import emitting
    from penstock.mapreduce.twopass import TwoPass, plain

    adapter = None if function.emits else emitting.pair_emitter
    passes = TwoPass(mr, function, emitting.counting_pairs, emitting.writing_pairs, adapter, single=not function.emits)

    def work(chunk: Chunk) -> None:
        passes.run((plain(chunk.keys, function, "keys"), plain(chunk.values, function, "values")), out)

    return work


def _by_pairs(mr: MapReduce, function: Function, out: Any) -> Callable[[Chunk], None]:
    call, extra = function.call, ((out.add,) if function.emits else ())

    def work(chunk: Chunk) -> None:
        for begin in range(0, len(chunk), ROWS):
            some = chunk.slice(begin, min(begin + ROWS, len(chunk)))
            with blamed(function):
                for key, value in zip(to_list(some.keys), to_list(some.values), strict=True):
                    made = call(key, value, *extra)
                    if made is not None:
                        add_pairs(out, made, function)

    return work


def filter_pairs(kv: KeyValue, f: Any, kind: str = "auto") -> KeyValue:
    """The pairs for which `f(key, value)` is true; of a chunk function, `f(keys, values)`, where its mask is."""
    function = resolve(f, kind, what="filter", emits=False)
    mr = kv.mr
    choose = {"chunk": _mask, "compiled": _compiled_mask, "python": _python_mask}[function.kind](mr, function)
    about = progress("filter", total=len(kv), unit="pairs", settings=mr.settings)
    with mr.writer(kv.key, kv.value) as out, about as bar:
        for chunk in kv.chunks():
            mask = choose(chunk)
            rows = np.flatnonzero(mask)
            if len(rows) == len(chunk):
                out.add_chunk(chunk.keys, chunk.values)
            elif len(rows):
                with mr.room.reserve(chunk.nbytes, "what a filter lets through"):
                    kept = chunk.take(rows)
                    out.add_chunk(kept.keys, kept.values)
            bar.advance(len(chunk))
        return out.done()


def _mask(mr: MapReduce, function: Function) -> Callable[[Chunk], np.ndarray]:
    def checked(part: Chunk) -> np.ndarray:
        mask = np.asarray(function.call(part.keys, part.values))
        if mask.dtype != np.bool_ or mask.shape != (len(part),):
            raise ProgramError(
                f"{function.name}: a filter of chunks returns {len(part)} booleans, "
                f"not {mask.dtype} of shape {mask.shape}"
            )
        return mask

    return lambda chunk: np.concatenate(_in_parts(mr, function, chunk, checked))


def _compiled_mask(mr: MapReduce, function: Function) -> Callable[[Chunk], np.ndarray]:
    from penstock.mapreduce.compiling import kernel_of
    from penstock.mapreduce.kernels.emitting import choosing_pairs
    from penstock.mapreduce.twopass import plain

    kernel = kernel_of(choosing_pairs, function)

    def choose(chunk: Chunk) -> np.ndarray:
        keys, values = plain(chunk.keys, function, "keys"), plain(chunk.values, function, "values")
        chosen = np.empty(len(chunk), np.bool_)
        shares = max(1, min(mr.team.threads, len(chunk) // PARALLEL_FROM))

        def one(share: int) -> None:
            if share < shares:
                kernel(keys, values, len(chunk) * share // shares, len(chunk) * (share + 1) // shares, chosen)

        mr.team.run(one, alone=shares == 1)
        return chosen

    return choose


def _python_mask(mr: MapReduce, function: Function) -> Callable[[Chunk], np.ndarray]:
    def choose(chunk: Chunk) -> np.ndarray:
        chosen = np.empty(len(chunk), np.bool_)
        for begin in range(0, len(chunk), ROWS):
            some = chunk.slice(begin, min(begin + ROWS, len(chunk)))
            pairs = zip(to_list(some.keys), to_list(some.values), strict=True)
            chosen[begin : begin + len(some)] = [bool(function.call(key, value)) for key, value in pairs]
        return chosen

    return choose


def scan_pairs(kv: KeyValue, f: Any, kind: str = "auto") -> int:
    """`f(key, value)` for each pair, or `f(keys, values)` for each chunk, and nothing made of it; how many pairs."""
    function = resolve(f, kind, what="scan", emits=False)
    with progress("scan", total=len(kv), unit="pairs", settings=kv.mr.settings) as bar:
        for chunk in kv.chunks():
            if function.kind == "chunk":
                function.call(chunk.keys, chunk.values)
            else:
                for begin in range(0, len(chunk), ROWS):
                    some = chunk.slice(begin, min(begin + ROWS, len(chunk)))
                    for key, value in zip(to_list(some.keys), to_list(some.values), strict=True):
                        function.call(key, value)
            bar.advance(len(chunk))
    return len(kv)


def map_tasks(mr: MapReduce, count: int, f: Any, kind: str = "auto", *, combine: Any = None) -> KeyValue:
    """All that `f(number)` makes for the numbers from 0 to `count` - 1, those of this rank: every size-th of them.

    A chunk function returns columns for each number; a compiled one is `f(number, out)`.
    """
    if count < 0:
        raise UsageError(f"{count} tasks cannot be run")
    # One parameter tells nothing: only a declaration, or `kind`, makes a task one of chunks.
    function = resolve(f, kind, what="map_tasks", arguments=1, chunk_names=("a chunk function must be declared",))
    numbers = range(mr.communicator.rank, count, mr.communicator.size)
    about = progress("map tasks", total=len(numbers), unit="tasks", settings=mr.settings)
    with output(mr, function, combine) as out, about as bar:
        if function.kind == "compiled":
            _compiled_tasks(mr, function, numbers, out, bar)
        elif function.kind == "chunk":
            run_tasks(mr, function, numbers, out, bar)
        else:
            extra = (out.add,) if function.emits else ()
            for number in numbers:
                with blamed(function):
                    add_pairs(out, function.call(number, *extra), function)
                bar.advance()
        return finished(out, function)


def run_tasks(mr: MapReduce, function: Function, tasks: Any, out: Any, bar: Any) -> None:
    """A chunk function for each task, a round of threads at a time if it may be called so; results in their order."""
    shares = mr.team.threads if function.parallel else 1
    for begin in range(0, len(tasks), shares):
        some = tasks[begin : begin + shares]
        found: list[Any] = [None] * len(some)

        def one(worker: int, some: Any = some, found: list[Any] = found) -> None:
            if worker < len(some):
                found[worker] = function.call(some[worker])

        mr.team.run(one, alone=len(some) == 1)
        for made in found:
            add_columns(mr, out, made, function)
        bar.advance(len(some))


def _compiled_tasks(mr: MapReduce, function: Function, numbers: range, out: Any, bar: Any) -> None:
    from penstock.mapreduce.kernels import emitting
    from penstock.mapreduce.twopass import TwoPass

    if not function.emits:
        raise UsageError(f"{function.name}: a compiled task is f(number, out), which calls emit(out, key, value)")
    passes = TwoPass(mr, function, emitting.counting_pairs, emitting.writing_pairs, emitting.task_emitter)
    most = max(1, mr.chunk_bytes // 16)
    for begin in range(0, len(numbers), most):
        some = numbers[begin : begin + most]
        tasks = np.arange(some.start, some.stop, some.step, dtype=np.int64)
        passes.run((tasks, tasks), out)
        bar.advance(len(some))


__all__ = ["filter_pairs", "map_pairs", "map_tasks", "run_tasks", "scan_pairs"]
