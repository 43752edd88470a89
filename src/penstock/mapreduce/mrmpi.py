"""MapReduce-MPI's object, in its own words: it holds pairs or groups, and every operation changes what it holds.

Operations return how many pairs, keys or tasks all ranks have together. Callbacks get `out`, whose `add(key, value)`
makes a pair. Settings may be set until the first operation. For programs and people that know MR-MPI; what is new is
better written with KeyValue and KeyMultiValue, on which all of this stands.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from penstock.errors import UsageError
from penstock.mapreduce.keyvalue import KeyValue
from penstock.mapreduce.multivalue import KeyMultiValue
from penstock.mapreduce.session import MapReduce
from penstock.mapreduce.writer import Writer

_OLD = 64
SETTINGS: dict[str, Any] = {
    "memsize": _OLD, "maxpage": 0, "outofcore": 0, "verbosity": 0, "timer": 0, "fpath": None,
    "mapstyle": 0, "all2all": 1, "minpage": 0, "freepage": 1, "zeropage": 0, "keyalign": 4, "valuealign": 4,
}  # fmt: skip
"""The settings and their defaults. Those of the second line are understood and change nothing here."""


class Out:
    """What callbacks add pairs to."""

    def __init__(self, add: Callable[[Any, Any], None]) -> None:
        self.add = add

    def add_multi(self, keys: Any, values: Any) -> None:
        """Many at a time."""
        for key, value in zip(keys, values, strict=True):
            self.add(key, value)


class MRMPI:
    """`MRMPI(memory_limit="1GB")`, or with the session or the communicator of another. Settings are attributes."""

    def __init__(self, session: MapReduce | MRMPI | None = None, **options: Any) -> None:
        self._session = session.session if isinstance(session, MRMPI) else session
        self._owned = self._session is None
        self._options = {name: value for name, value in options.items() if name not in SETTINGS}
        self._settings = SETTINGS | {name: value for name, value in options.items() if name in SETTINGS}
        self._data: KeyValue | KeyMultiValue | None = None
        self._open: Writer | None = None
        self.mapfilecount = 0
        """How many files the last map of files had."""

    def __getattr__(self, name: str) -> Any:
        if name in SETTINGS:
            return self._settings[name]
        raise AttributeError(f"MR-MPI has no {name!r}")

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in SETTINGS:
            super().__setattr__(name, value)
            return
        if self._session is not None and name not in ("verbosity", "timer"):
            raise UsageError(f"{name} is set before the first operation: later it would change nothing")
        self._settings[name] = value

    @property
    def session(self) -> MapReduce:
        """What the work is done in; made of the settings when it is first needed."""
        if self._session is None:
            have = self._settings
            size = have["memsize"]
            self._session = MapReduce(
                chunk_size=None if size == _OLD else -size if size < 0 else size << 20,
                chunks=have["maxpage"] or None,
                force_out_of_core=have["outofcore"] == 1,
                may_spill=have["outofcore"] >= 0,
                temp_directory=have["fpath"],
                **self._options,
            )
        self._session.verbosity = max(self._settings["verbosity"], self._settings["timer"])
        return self._session

    # ---- what it holds

    @property
    def kv(self) -> KeyValue:
        """The pairs it holds."""
        if self._data is None:
            self._data = self.session.keyvalue()
        if not isinstance(self._data, KeyValue):
            raise UsageError("this needs pairs, and there are keys with values: reduce them first")
        return self._data

    @property
    def kmv(self) -> KeyMultiValue:
        """The keys with their values that it holds."""
        if not isinstance(self._data, KeyMultiValue):
            raise UsageError("this needs keys with values: collate or convert the pairs first")
        return self._data

    def _hold(self, made: KeyValue | KeyMultiValue) -> int:
        old, self._data = self._data, made
        if old is not None and old is not made:
            old.close()
        return made.total

    def _mapped(self, made: KeyValue, addflag: int) -> int:
        if not addflag or self._data is None:
            return self._hold(made)
        with made:
            return self._hold(self.kv.add(made))

    def _pairs_of(self, other: MRMPI) -> KeyValue:
        """Another's pairs in this MapReduce: shared if it is the same one, else copied."""
        if other.session is self.session:
            return other.kv.copy()
        theirs = other.kv
        return self.session.keyvalue(
            ((chunk.keys, chunk.values) for chunk in theirs.chunks()), key=theirs.key, value=theirs.value
        )

    def copy(self) -> MRMPI:
        """A new one that holds the same."""
        made = MRMPI(self.session, **self._settings)
        made._data = None if self._data is None else self._data.copy()
        return made

    def destroy(self) -> None:
        """Give up all data; with it the session, unless it is another's."""
        if self._data is not None:
            self._data.close()
        self._data = None
        if self._session is not None and self._owned:
            self._session.close()

    def __enter__(self) -> MRMPI:
        return self

    def __exit__(self, *error: object) -> None:
        self.destroy()

    # ---- map

    def map(self, nmap: int, f: Callable[..., Any], addflag: int = 0) -> int:
        """`f(itask, out)` for every task."""
        return self._mapped(self.session.map_tasks(nmap, _told(f, 1), kind="python"), addflag)

    map_task = map

    def map_file(
        self,
        files: Any,
        f: Callable[..., Any],
        *,
        selfflag: bool = False,
        recurse: bool = False,
        readfile: bool = False,
        addflag: int = 0,
    ) -> int:
        """`f(path, out)` for every file; with `selfflag` each rank has a list of its own."""
        from penstock.mapreduce.files import list_files

        self.mapfilecount = len(list_files(files, recurse, readfile))
        made = self.session.map_files(
            files, _told(f, 1), kind="python", recurse=recurse, listing=readfile, own=selfflag
        )
        return self._mapped(made, addflag)

    def map_file_str(
        self, nmap: int, files: Any, separator: str | bytes, f: Callable[..., Any], *, recurse: bool = False,
        readfile: bool = False, addflag: int = 0,
    ) -> int:  # fmt: skip
        """`f(text, out)` for about `nmap` pieces, bytes that end with a separator. No longest record has to be told."""
        made = self.session.map_pieces(
            files, _told(f, 1), kind="python", separator=separator, pieces=nmap,
            recurse=recurse, listing=readfile,
        )  # fmt: skip
        return self._mapped(made, addflag)

    map_file_char = map_file_str

    def map_mr(self, other: MRMPI, f: Callable[..., Any], addflag: int = 0) -> int:
        """`f(key, value, out)` for every pair of another, or of its own."""
        with self._pairs_of(other) as pairs:
            return self._mapped(pairs.map(_told(f, 2), "python"), addflag)

    def open(self, addflag: int = 0) -> None:
        """From now on callbacks of others may `add(key, value)` here."""
        if not addflag and self._data is not None:
            self._data.close()
            self._data = None
        self._open = self.session.writer()

    def close(self) -> int:
        """The end of that."""
        if self._open is None:
            raise UsageError("close: it is not open")
        with self._open as writer:
            self._open = None
            return self._mapped(writer.done(), 1)

    def add(self, *what: Any) -> int:
        """`add(other)`: its pairs, too. `add(key, value)`: one pair, while this is open."""
        if len(what) == 1 and isinstance(what[0], MRMPI):
            with self._pairs_of(what[0]) as pairs:
                return self._hold(self.kv.add(pairs))
        if len(what) != 2 or self._open is None:
            raise UsageError("add takes another MRMPI, or, between open and close, a key and a value")
        self._open.add(*what)
        return 1

    # ---- operations

    def aggregate(self, splitter: Any = "hash") -> int:
        """The pairs of each key to one rank: by hash as MR-MPI does, or as KeyValue.aggregate says."""
        return self._hold(self.kv.aggregate(splitter or "hash"))

    def convert(self) -> int:
        return self._hold(self.kv.convert())

    def collate(self, splitter: Any = "hash") -> int:
        return self._hold(self.kv.collate(splitter or "hash"))

    def reduce(self, f: Callable[..., Any] | str) -> int:
        """`f(key, values, out)`, or a reduction by name. Values that memory cannot hold have `blocks()`."""
        call = f if isinstance(f, str) else _told(f, 2)
        return self._hold(self.kmv.reduce(call, "auto" if isinstance(f, str) else "python"))

    def compress(self, f: Callable[..., Any] | str) -> int:
        call = f if isinstance(f, str) else _told(f, 2)
        return self._hold(self.kv.compress(call, "auto" if isinstance(f, str) else "python"))

    def clone(self) -> int:
        return self._hold(self.kv.clone())

    def collapse(self, key: Any) -> int:
        return self._hold(self.kv.collapse(key))

    def scrunch(self, nprocs: int, key: Any) -> int:
        return self._hold(self.kv.scrunch(nprocs, key))

    def gather(self, nprocs: int) -> int:
        return self._hold(self.kv.gather(nprocs))

    def broadcast(self, root: int = 0) -> int:
        return self._hold(self.kv.broadcast(root))

    def scan(self, f: Callable[..., Any]) -> int:
        """`f(key, value)` or `f(key, values)`, and nothing changes."""
        data = self.kv if self._data is None else self._data
        data.scan(f)
        return data.total

    scan_kv = scan_kmv = scan

    def sort_keys(self, order: int | Callable[[Any, Any], int] = 1) -> int:
        """Each rank's pairs: by a comparison, or, as a flag below 0 says, the other way round. Types are known."""
        return self._hold(self.kv.sort_keys(*_order(order)))

    def sort_values(self, order: int | Callable[[Any, Any], int] = 1) -> int:
        return self._hold(self.kv.sort_values(*_order(order)))

    def sort_multivalues(self, order: int | Callable[[Any, Any], int] = 1) -> int:
        return self._hold(self.kmv.sort_multivalues(*_order(order)))

    # ---- figures

    def kv_stats(self, level: int = 1) -> dict[str, Any]:
        return self.kv.stats(level)

    def kmv_stats(self, level: int = 1) -> dict[str, Any]:
        return self.kmv.stats(level)

    def cummulative_stats(self, level: int = 1, reset: bool = False) -> dict[str, Any]:
        """Spelt as MR-MPI has it."""
        return self.session.stats(level, reset)

    def print(self, file: Any = None, nstride: int = 1, kflag: int = 1, vflag: int = 1) -> int:
        """Every so many-th entry, its key and its value unless a flag is 0."""
        data = self.kv if self._data is None else self._data
        return data.print(
            sys.stdout if file is None else file, stride=nstride, key=bool(kflag) or False, value=bool(vflag) or False
        )

    def num_procs(self) -> int:
        return self.session.communicator.size

    def my_proc(self) -> int:
        return self.session.communicator.rank


def _told(f: Callable[..., Any], arguments: int) -> Callable[..., None]:
    """A callback as MR-MPI has it: it adds pairs to `out`, and what it returns means nothing."""

    def one(task: Any, emit: Any) -> None:
        f(task, Out(emit))

    def two(key: Any, value: Any, emit: Any) -> None:
        f(key, value, Out(emit))

    return one if arguments == 1 else two


def _order(order: int | Callable[[Any, Any], int]) -> tuple[bool, Any]:
    """(descending, comparison)."""
    if callable(order):
        return False, order
    if not 1 <= abs(order) <= 6:
        raise UsageError(f"flag: {order} is none of 1 to 6, or -1 to -6 for the other way round")
    return order < 0, None


__all__ = ["MRMPI", "Out"]
