"""Map from files: one task for each of them, or one for each piece of them, cut at a separator."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from penstock.errors import InputError, UsageError
from penstock.mapreduce.functions import Function, resolve
from penstock.mapreduce.mapping import run_tasks
from penstock.mapreduce.output import add_columns, add_pairs, blamed, finished, output
from penstock.mapreduce.pieces import SMALLEST, Pieces, as_separator
from penstock.observe.progress import progress

if TYPE_CHECKING:
    from penstock.mapreduce.keyvalue import KeyValue
    from penstock.mapreduce.session import MapReduce

Paths = str | os.PathLike[str] | Iterable[str | os.PathLike[str]]


def list_files(paths: Paths, recurse: bool = False, listing: bool = False) -> list[Path]:
    """The files that are meant, in the order given. A folder stands for its files, by name; with `recurse` for those in
    the folders inside it, too. With `listing` each path is a file with the names of others, one in a line, which are
    looked for from its folder on."""
    given = [paths] if isinstance(paths, (str, os.PathLike)) else list(paths)
    found = [Path(each).expanduser() for each in given]
    if listing:
        found = [name for each in found for name in _listed(each)]
    files: list[Path] = []
    for each in found:
        if each.is_dir():
            files += sorted(name for name in (each.rglob("*") if recurse else each.iterdir()) if name.is_file())
        elif each.exists():
            files.append(each)
        else:
            raise InputError("there is no such file or folder", path=each)
    return files


def _listed(path: Path) -> Iterator[Path]:
    try:
        lines = path.read_text().splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"cannot be read as a list of files: {error}", path=path) from None
    for number, line in enumerate(lines, 1):
        if line.strip():
            name = path.parent / Path(line.strip()).expanduser()
            if not name.exists():
                raise InputError(f"there is no such file or folder: {line.strip()}", path=path, line=number)
            yield name


def _task(f: Any, kind: str, what: str) -> Function:
    """A function of one thing: only a declaration, or `kind`, makes it one of chunks."""
    return resolve(f, kind, what=what, arguments=1, chunk_names=("a chunk function must be declared",))


def _mine(mr: MapReduce, files: list[Path], own: bool) -> list[Path]:
    return files if own else files[mr.communicator.rank :: mr.communicator.size]


def map_files(
    mr: MapReduce, paths: Paths, f: Any, recurse: bool = False, listing: bool = False, *, kind: str = "auto",
    combine: Any = None, own: bool = False,
) -> KeyValue:  # fmt: skip
    """All that `f(path)` makes, for every file. Ranks take every size-th of them; with `own` each has its own list."""
    files = _mine(mr, list_files(paths, recurse, listing), own)
    function = _task(f, kind, "map_files")
    if function.kind == "compiled":
        raise UsageError(f"{function.name}: a function of files cannot be compiled: use kind='python' or kind='chunk'")
    about = progress("map files", total=len(files), unit="files", settings=mr.settings)
    with output(mr, function, combine) as out, about as bar:
        if function.kind == "chunk":
            run_tasks(mr, function, files, out, bar)
        else:
            extra = (out.add,) if function.emits else ()
            for path in files:
                with blamed(function):
                    add_pairs(out, function.call(path, *extra), function)
                bar.advance()
        return finished(out, function)


def map_pieces(
    mr: MapReduce, paths: Paths, f: Any, pieces: int | None = None, separator: Any = b"\n", *, recurse: bool = False,
    listing: bool = False, kind: str = "auto", combine: Any = None, own: bool = False,
) -> KeyValue:  # fmt: skip
    """All that `f(piece)` makes, for every piece of the files: bytes that end with a separator, except at a file's end.

    Records are never cut, and one longer than a piece has a piece of its own. A chunk function gets the piece as an
    array of uint8, a compiled one is `f(piece, out)`. `pieces`: about how many there should be; the budget may make
    them more. `combine`: reduce the values of equal keys on the way, as far as memory reaches. Ranks take every size-th
    file; with `own` each has its own list.
    """
    files = _mine(mr, list_files(paths, recurse, listing), own)
    cut = as_separator(separator)
    function = _task(f, kind, "map_pieces")
    if pieces is not None and pieces < 1:
        raise UsageError(f"pieces: {pieces} is not a whole number of at least 1")
    total = sum(path.stat().st_size for path in files)
    shares = mr.team.threads if function.kind == "chunk" and function.parallel else 1
    size = max(min(SMALLEST, mr.chunk_bytes), mr.chunk_bytes // shares)
    if pieces is not None:
        size = max(1, min(size, -(-total // pieces)))
    about = progress("map pieces", total=total, unit="bytes", settings=mr.settings)
    with output(mr, function, combine, expected=total) as out, about as bar:
        work = _worker(mr, function, out)
        with mr.room.reserve(2 * shares * (size + len(cut)), "pieces of files"):
            for some in _ahead(iter(Pieces(mr, files, size, cut)), shares):
                work([piece for _, piece in some])
                bar.advance(sum(len(piece) for _, piece in some))
        return finished(out, function)


def _ahead(source: Iterator[Any], count: int) -> Iterator[list[Any]]:
    """So many at a time, while another thread gets the next."""
    with ThreadPoolExecutor(1, "penstock-pieces") as reader:
        waiting = reader.submit(lambda: list(islice(source, count)))
        while some := waiting.result():
            waiting = reader.submit(lambda: list(islice(source, count)))
            yield some
            some = []


def _worker(mr: MapReduce, function: Function, out: Any) -> Callable[[list[bytearray]], None]:
    if function.kind == "python":
        extra = (out.add,) if function.emits else ()

        def plainly(some: list[bytearray]) -> None:
            for piece in some:
                with blamed(function):
                    add_pairs(out, function.call(bytes(piece), *extra), function)

        return plainly
    if function.kind == "chunk":

        def by_chunks(some: list[bytearray]) -> None:
            found: list[Any] = [None] * len(some)

            def one(worker: int) -> None:
                if worker < len(some):
                    found[worker] = function.call(np.frombuffer(some[worker], np.uint8))

            mr.team.run(one, alone=len(some) == 1)
            for made in found:
                add_columns(mr, out, made, function)

        return by_chunks
    from penstock.mapreduce.kernels import emitting
    from penstock.mapreduce.twopass import TwoPass

    if not function.emits:
        raise UsageError(f"{function.name}: a compiled function of pieces is f(piece, out), which calls emit")
    passes = TwoPass(mr, function, emitting.counting_groups, emitting.writing_groups, emitting.piece_emitter)

    def compiled(some: list[bytearray]) -> None:
        for piece in some:
            data = np.frombuffer(piece, np.uint8)
            passes.run((np.zeros(1, np.int64), np.array([0, len(data)], np.int64), data), out)

    return compiled


__all__ = ["list_files", "map_files", "map_pieces"]
