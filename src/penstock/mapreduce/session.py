"""The session of key-value work: one budget, one place for spilled chunks, one team of threads, one communicator."""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
import time
import weakref
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from penstock.cluster.communicator import Alone, Communicator
from penstock.config import Size, parse_size, settings
from penstock.errors import UsageError
from penstock.mapreduce.account import Account
from penstock.mapreduce.chunk import Chunk
from penstock.mapreduce.columns import Bytes, Column, as_column
from penstock.mapreduce.placing import Placing
from penstock.mapreduce.room import Room
from penstock.mapreduce.writer import Writer
from penstock.memory import heap
from penstock.memory.spill import BOUNCE, Spill
from penstock.memory.team import Team
from penstock.observe.stats import Stats

if TYPE_CHECKING:
    from penstock.mapreduce.keyvalue import KeyValue
    from penstock.mapreduce.multivalue import KeyMultiValue

_LARGEST_CHUNK = 32 << 20
_SMALLEST_CHUNK = 1 << 12
SMALLEST_BUDGET = 1 << 20


def _close(placing: Placing, room: Room, spill: Spill, team: Team) -> None:
    placing.close()
    room.close()
    spill.close()
    team.close()


class MapReduce:
    """`with MapReduce(memory_limit="256MB") as mr:` and everything made of it stays inside that budget.

    What does not fit lies in temporary files, which are gone when the block ends, however it does. `chunk_size` is
    what is worked on at a time, `chunks` how many may be in memory at most; both are found from the budget if they are
    not given. With `device="gpu"` what has a fixed width is sorted, grouped, mapped and reduced on the GPU, inside
    `gpu_memory_limit`; "auto", the default, does so where there is a GPU and that is faster; "cpu" and "reference" mean
    the CPU. `force_out_of_core` keeps no chunk in memory, for tests; `may_spill=False` keeps none on disk. With
    `verbosity=1` every operation says on stderr what it did.
    """

    def __init__(
        self,
        *,
        memory_limit: Size | None = None,
        temp_directory: str | os.PathLike[str] | None = None,
        max_temp_directory_size: Size | None = None,
        threads: int | None = None,
        device: str | None = None,
        force_out_of_core: bool = False,
        chunk_size: Size | None = None,
        chunks: int | None = None,
        may_spill: bool = True,
        communicator: Communicator | None = None,
        verbosity: int = 0,
        **other: Any,
    ) -> None:
        self.settings = settings(
            memory_limit=memory_limit, temp_directory=temp_directory, max_temp_directory_size=max_temp_directory_size,
            threads=threads, device=device, **other,
        )  # fmt: skip
        limit = self.settings.memory_limit
        if limit < SMALLEST_BUDGET:
            raise UsageError(f"memory_limit: key-value work needs 1 MiB at least, not {limit} bytes")
        if force_out_of_core and not may_spill:
            raise UsageError("force_out_of_core puts every chunk on disk, which may_spill=False forbids")
        if chunks is not None and chunks < 1:
            raise UsageError(f"chunks: {chunks} is not a whole number of at least 1")
        self.device, self.threads, self.verbosity = self.settings.device, self.settings.threads, verbosity
        self.budget = Account(limit)
        overhead = min(4 * BOUNCE, limit // 8)
        self.budget.reserve(overhead, "buffers for reading and writing spilled chunks")
        share = (limit - overhead) // 2
        self.work_bytes = limit - overhead - share
        """What an operation may use besides the chunks that are kept."""
        wanted = min(limit // 32, _LARGEST_CHUNK) if chunk_size is None else parse_size(chunk_size)
        self.chunk_bytes = max(wanted, _SMALLEST_CHUNK) if chunk_size is None else wanted
        if self.chunk_bytes > self.work_bytes // 4:
            raise UsageError(f"chunk_size: {self.chunk_bytes} bytes are more than an eighth of memory_limit ({limit})")
        self.communicator: Communicator = Alone() if communicator is None else communicator
        folder = self.settings.temp_directory or Path(tempfile.gettempdir())
        self.spill = Spill(folder, quota=self.settings.max_temp_directory_size)
        self.room = Room(
            self.budget,
            self.spill,
            share=share,
            force_out_of_core=force_out_of_core,
            chunks=chunks,
            may_spill=may_spill,
        )
        self.placing = Placing(self.settings, self.room)
        """Which operations run on a GPU."""
        self.team = Team(self.threads)
        self.counters = Stats()
        self.runs: dict[str, int] = {}
        self.skips: dict[str, int] = {}
        self.since = {"written": 0, "read": 0}
        """Where the spill stood when the statistics were last reset."""
        self._finalizer = weakref.finalize(self, _close, self.placing, self.room, self.spill, self.team)

    @property
    def rank(self) -> int:
        """Which of the communicator's ranks this process is."""
        return self.communicator.rank

    @property
    def closed(self) -> bool:
        """Whether it can be used no more."""
        return not self._finalizer.alive

    def close(self) -> None:
        """Remove all spilled chunks and end the threads; what was made of this may be used no more."""
        self._finalizer()

    def __enter__(self) -> MapReduce:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.close()

    @contextlib.contextmanager
    def operation(self, name: str) -> Iterator[None]:
        """Everything inside is counted, and timed, under this name."""
        if self.closed:
            raise UsageError(f"{name}: the MapReduce it belongs to was closed")
        self.runs[name] = self.runs.get(name, 0) + 1
        began, written, read = time.perf_counter(), self.spill.written, self.spill.read
        with self.counters.phase(name):
            yield
        if self.spill.written > written:
            heap.trim()
        if self.verbosity:
            seconds = time.perf_counter() - began
            moved = f", spilled {self.spill.written - written:,} bytes" if self.spill.written > written else ""
            moved += f", read {self.spill.read - read:,} back" if self.spill.read > read else ""
            print(f"rank {self.rank}: {name} {seconds:.3f} s{moved}", file=sys.stderr)

    def skipped(self, name: str) -> None:
        """Note that an operation had nothing to move."""
        self.skips[name] = self.skips.get(name, 0) + 1

    def writer(self, key: Any = None, value: Any = None, *, chunk_bytes: int | None = None) -> Writer:
        """What a loop may emit pairs into, to make a KeyValue; kinds not given are those of what comes first."""
        return Writer(self, key, value, chunk_bytes)

    @contextlib.contextmanager
    def writers(self, count: int, key: Any, value: Any) -> Iterator[list[Writer]]:
        """Several at once, which share a quarter of the working memory."""
        each = max(256, min(self.chunk_bytes, self.work_bytes // (8 * max(1, count))))
        with contextlib.ExitStack() as stack:
            yield [stack.enter_context(self.writer(key, value, chunk_bytes=each)) for _ in range(count)]

    def keyvalue(self, keys: Any = None, values: Any = None, *, key: Any = None, value: Any = None) -> KeyValue:
        """Pairs from records: two lists, arrays or Arrow columns; or an iterator of (keys, values), batch by batch.

        `key` and `value` are kinds: a dtype, "string", "bytes" or "nothing"; they are found out if not given.
        """
        with self.operation("keyvalue"), self.writer(key, value) as writer:
            if keys is not None:
                batches = keys if hasattr(keys, "__next__") and values is None else iter([(keys, values)])
                for batch in batches:
                    if not isinstance(batch, (tuple, list)) or len(batch) != 2:
                        raise UsageError("an iterator of records gives (keys, values), a column of each at a time")
                    self._copy_in(writer, *batch)
            return writer.done()

    def _copy_in(self, writer: Writer, keys: Any, values: Any) -> None:
        """The user may go on to change his arrays: chunks have their own."""
        mine = as_column(keys, None, writer.key)
        chunk = Chunk(mine, as_column(values, len(mine), writer.value))
        for piece in chunk.pieces(self.chunk_bytes):
            writer.add_chunk(_own(piece.keys), _own(piece.values))

    def map_tasks(self, count: int, f: Any, **options: Any) -> KeyValue:
        """`f(number)` for every task from 0 to count - 1; those of a rank are dealt out evenly."""
        from penstock.mapreduce.mapping import map_tasks

        with self.operation("map_tasks"):
            return map_tasks(self, count, f, **options)

    def map_files(self, paths: Any, f: Any, **options: Any) -> KeyValue:
        """`f` for every file; folders stand for the files in them."""
        from penstock.mapreduce.files import map_files

        with self.operation("map_files"):
            return map_files(self, paths, f, **options)

    def map_pieces(self, paths: Any, f: Any, **options: Any) -> KeyValue:
        """`f` for every piece of the files, cut at a separator."""
        from penstock.mapreduce.files import map_pieces

        with self.operation("map_pieces"):
            return map_pieces(self, paths, f, **options)

    def map_program(self, command: Any, inputs: Any = None, **options: Any) -> KeyValue:
        """Pairs from what another program prints."""
        from penstock.mapreduce.program import map_program

        with self.operation("map_program"):
            return map_program(self, command, inputs, **options)

    def load(self, path: str | os.PathLike[str]) -> KeyValue | KeyMultiValue:
        """What `save` has written."""
        from penstock.mapreduce.saved import load

        with self.operation("load"):
            return load(self, path)

    def stats(self, level: int = 1, reset: bool = False) -> dict[str, Any]:
        """What was done so far: memory at its highest, bytes spilled and read back, operations and their seconds."""
        from penstock.mapreduce.statistics import cumulative

        found = cumulative(self, level)
        if reset:
            self.counters = Stats()
            self.runs, self.skips = {}, {}
            self.since = {"written": self.spill.written, "read": self.spill.read}
        return found


def _own(column: Column) -> Column:
    """A copy that nobody else can change."""
    if isinstance(column, Bytes):
        return Bytes(column.offsets.copy(), column.data.copy(), column.text)
    return column.copy()


__all__ = ["SMALLEST_BUDGET", "MapReduce"]
