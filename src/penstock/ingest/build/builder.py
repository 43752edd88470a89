"""Edges in, store out, inside the budget.

    read      chunks arrive with the user's ids and get codes (numbering)
    merge     duplicates meet by sorting, if they are to be merged; degrees are counted on the way
    order     vertices are numbered, by falling degree or by id
    arcs      each direction: edges become arcs, are sorted, and leave as pages
    vertices  degrees, the user's columns, the user's ids

What is proportional to edges streams through disk; what is proportional to vertices stays in memory.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.config import Settings, available_memory
from penstock.errors import DoesNotFit, InputError, UsageError
from penstock.ingest.build import arcs
from penstock.ingest.build.adjacency import ArcSorter
from penstock.ingest.build.log import EdgeLog, Piece
from penstock.ingest.build.merge import PIECE, EdgeMerger, merged_type
from penstock.ingest.build.numbering import ABSENT, MOST, VERTEX_BYTES, Codes, Numberer, bounds, roomy
from penstock.ingest.build.options import BuildOptions
from penstock.ingest.build.order import number_vertices, renumbered
from penstock.ingest.build.repeats import RepeatSample
from penstock.ingest.build.vertices import VertexFiles
from penstock.ingest.source import EdgeSource, VertexTable
from penstock.memory.device import use_threads
from penstock.memory.ledger import Ledger
from penstock.memory.spill import BOUNCE, Spill, check_space
from penstock.observe.progress import Progress, progress
from penstock.observe.stats import Stats
from penstock.store.columns import type_dtype
from penstock.store.draft import Draft
from penstock.store.encodings import choose_encoding
from penstock.store.manifest import FORMAT, VERSION
from penstock.store.writer import BATCH, StoreWriter
from penstock.version import VERSION as PENSTOCK

SMALLEST_BUDGET = 24 << 20


@dataclass
class BuildReport:
    """What was built, and what it took."""

    path: Path
    vertices: int = 0
    edges: int = 0
    edges_read: int = 0
    arcs: int = 0
    left_out: Sequence[str] = ()
    """Columns of the input that hold what no edge can carry."""
    stats: Stats = field(default_factory=Stats)


def build(
    source: EdgeSource,
    target: str | os.PathLike[str],
    options: BuildOptions,
    settings: Settings,
    vertices: VertexTable | None = None,
) -> BuildReport:
    """Build a store from a source of edges; a complete store appears at `target`, or nothing."""
    path = Path(target)
    # Shares of the limit are taken at once: not of more than there is.
    settings = replace(settings, memory_limit=min(settings.memory_limit, available_memory()))
    with Draft(path, overwrite=options.overwrite, stripes=options.stripes) as draft:
        spill_directory = settings.temp_directory or draft.path
        with Spill(spill_directory, quota=settings.max_temp_directory_size) as spill:
            report = BuildReport(path, left_out=source.left_out)
            builder = _Builder(source, draft, spill, options, settings, report, vertices)
            writer = builder.run()
            report.stats.add("spill_written", spill.written)
            report.stats.add("spill_peak", spill.peak)
        # Spill files lie in the draft: they are gone before it becomes the store.
        with report.stats.phase("commit"):
            writer.commit(builder.meta(writer))
        return report


class _Builder:
    def __init__(
        self,
        source: EdgeSource,
        draft: Draft,
        spill: Spill,
        options: BuildOptions,
        settings: Settings,
        report: BuildReport,
        vertices: VertexTable | None,
    ) -> None:
        self.source, self.draft, self.spill = source, draft, spill
        self.options, self.settings, self.report, self.table = options, settings, report, vertices
        self.ledger = Ledger(settings.memory_limit)
        self.threads = settings.threads
        self.symmetric = bool(source.undirected if options.undirected is None else options.undirected)
        choice = options.duplicates or ("merge" if self.symmetric else "keep")
        self.merging = choice != "keep"
        self.types = {name: str(kind) for name, kind in source.columns.items()}
        if self.merging:
            self.types = {name: merged_type(kind, options.rule(name)) for name, kind in self.types.items()}
        self.dtypes = {name: type_dtype(kind) for name, kind in self.types.items()}
        self._check_names()
        self.numberer: Numberer | None = None
        self.codes = Codes(0)
        self.out_degree = self.in_degree = self.seen = self.number = np.zeros(0, np.uint32)
        self.unmerged = False
        """Duplicates should be merged, and a sample has shown none so far."""

    def run(self) -> StoreWriter:
        """Everything but the commit."""
        limit = self.settings.memory_limit
        encoding = choose_encoding(self.options.encoding, 1)
        smallest = SMALLEST_BUDGET + 2 * StoreWriter.memory(self.options.page_size, encoding, self.types.values())
        if limit < smallest:
            raise DoesNotFit("building a store", needed=smallest, limit=limit)
        self._estimate()
        use_threads(self.threads)
        stats = self.report.stats
        with self.ledger.scope("build") as self.scope, ExitStack() as self.logs:
            self.scope.reserve(limit // 16 + 4 * BOUNCE, "small arrays and bounce buffers")
            self.reading = self.scope.reserve(limit // 8, "chunks read")
            with stats.phase("read"):
                pieces, count = self._read()
                watch = self.merging and not self.source.repeats
                sample = RepeatSample(self.symmetric, limit // 32) if watch else None
                log = None if self.merging and sample is None else self._count(pieces, sample)
            if log is None or (sample is not None and sample.found()):
                with stats.phase("merge"):
                    log = self._merge(pieces if log is None else log.pieces(), count, log)
            writer = self._ordered_arcs(log)
            if writer is None:
                # The sample saw none of a few duplicates. Now they are merged, and the rest is done again.
                with stats.phase("merge"):
                    log = self._merge(log.pieces(), log.count, log)
                writer = self._ordered_arcs(log)
            assert writer is not None
            log.delete()
            with stats.phase("vertices"):
                self._write_vertices(writer)
        return writer

    def _ordered_arcs(self, log: EdgeLog) -> StoreWriter | None:
        """Vertices numbered and arcs written; None: edges came twice where none should."""
        with self.report.stats.phase("order"):
            self._order()
        with self.report.stats.phase("arcs"):
            return self._write_arcs(log)

    # ---- before the work

    def _check_names(self) -> None:
        """A misspelt name must not cost an hour of reading, or be taken for no name at all."""
        choose_encoding(self.options.encoding, 1)  # refuses a name it does not know
        rules = () if isinstance(self.options.merge, str) else self.options.merge
        for name in rules:
            if name not in self.types:
                raise UsageError(
                    f"merge names column {name!r}, but the edges have {', '.join(self.types) or 'no columns'}"
                )

    def _estimate(self) -> None:
        """Say that the disk is too small before an hour is spent finding out."""
        edges = self.source.estimated_edges
        if edges is None:
            return
        record = 8 + sum(kind.itemsize for kind in self.dtypes.values())
        copies = 2 if self.symmetric or self.options.incoming else 1
        if edges * record * 2 > self.settings.memory_limit:
            arcs_per_pass = 2 if self.symmetric else 1
            self.spill.require(edges * record * (1 + arcs_per_pass), f"sorting about {edges:,} edges")
        check_space(self.draft.path, edges * (record - 4) * copies, f"a store of about {edges:,} edges")

    # ---- read

    def _read(self) -> tuple[Iterator[Piece], int | None]:
        """Codes instead of ids. Sources that know their ids' range need no copy of the edges before the merge."""
        limit = self.settings.memory_limit
        known = self.source.id_bounds
        self._refuse_too_many()
        if known is not None and self.table is None and self._indexable(*known):
            self.codes = Codes(known[1] + 1)
            self._vertex_arrays(self.source.estimated_edges)
            declared = self.source.vertices()
            if declared is not None and isinstance(declared.ids, range) and declared.ids == range(known[1] + 1):
                self.seen = np.zeros(0, np.uint8)
            return self._direct(), self.source.estimated_edges
        self.numberer = Numberer(
            self.spill,
            self.dtypes,
            memory=limit // 4,
            limit=limit // 2,
            strings=self.source.string_ids,
            name=self.source.name,
        )
        self.logs.callback(self.numberer.delete)
        self.held = self.scope.reserve(limit // 4, "edges read")
        for chunk in self._chunks():
            self.numberer.add(chunk)
        self._done_reading()
        edges = self.numberer.log.count
        declared = self._declared()
        self.codes = self.numberer.finish(None if declared is None else declared.ids, edges)
        self.scope.reserve(self.codes.nbytes, "ids")
        self._vertex_arrays(edges)
        return self.numberer.pieces(self.codes), edges

    def _refuse_too_many(self) -> None:
        """A source that declares its vertices beforehand is refused beforehand."""
        declared = self.source.vertices() if self.source.id_bounds is not None else None
        needed = 0 if declared is None else 2 * VERTEX_BYTES * len(declared.ids)
        if declared is not None and needed > self.settings.memory_limit:
            raise DoesNotFit(
                f"a graph of {len(declared.ids)} vertices", needed=needed, limit=self.settings.memory_limit
            )

    def _indexable(self, low: int, high: int) -> bool:
        fits = low >= 0 and high <= MOST and (high + 1) * VERTEX_BYTES <= self.settings.memory_limit // 2
        declared = self.source.vertices()
        return fits and high < roomy(self.source.estimated_edges or 0, 0 if declared is None else len(declared.ids))

    def _done_reading(self) -> None:
        """What the readers kept is given back before the next stage takes it."""
        pa.default_memory_pool().release_unused()
        self.reading.release()

    def _chunks(self) -> Iterator[Any]:
        source, memory = self.source, self.reading.nbytes
        with progress("reading", total=source.size, unit=source.unit, settings=self.settings) as bar:
            for chunk in source.chunks(threads=self.threads, memory=memory):
                self.report.edges_read += len(chunk)
                yield chunk
                bar.update(done=source.position)

    def _direct(self) -> Iterator[Piece]:
        high = self.codes.domain - 1
        for chunk in self._chunks():
            found = bounds(chunk)
            if found[0] < 0 or found[1] > high:
                raise InputError(
                    f"holds an id outside 0 to {high}, the range it announces: it is damaged or was changed meanwhile",
                    path=self.source.name,
                )
            yield np.asarray(chunk.source), np.asarray(chunk.target), dict(chunk.columns)
        self._done_reading()

    def _declared(self) -> VertexTable | None:
        """Vertices that exist without edges: those of the caller's table, else those of the format."""
        return self.table if self.table is not None else self.source.vertices()

    def _vertex_arrays(self, edges: int | None) -> None:
        domain = self.codes.domain
        needed = domain * VERTEX_BYTES
        if needed > self.settings.memory_limit // 2:
            raise DoesNotFit(f"a graph of {domain} vertices", needed=2 * needed, limit=self.settings.memory_limit)
        wide = np.uint64 if edges is not None and edges >= 1 << 31 else np.uint32
        self.out_degree = self.scope.zeros(domain, wide, "degrees")
        self.in_degree = self.out_degree if self.symmetric else self.scope.zeros(domain, wide, "degrees")
        if type(self.codes) is Codes:  # a dictionary holds only ids that exist
            self.seen = self.scope.zeros(domain, np.uint8, "vertices seen")

    # ---- merge or count

    def _merge(self, pieces: Iterator[Piece], count: int | None, before: EdgeLog | None) -> EdgeLog:
        """Make equal edges one, count degrees of what is left. The log they come from, if any, is given up."""
        self.out_degree[:] = 0
        self.in_degree[:] = 0
        self.unmerged = False
        memory = self._share(0.8)
        with self.ledger.scope("merge") as scope:
            scope.reserve(memory, "sorting edges")
            with EdgeMerger(
                self.spill,
                self.dtypes,
                {name: self.options.rule(name) for name in self.dtypes},
                domain=self.codes.domain,
                symmetric=self.symmetric,
                drop_loops=self.options.self_loops == "drop",
                memory=memory,
                threads=self.threads,
                expected=count,
            ) as merger:
                self._fill(merger, pieces)
                return self._merged(merger, before)

    def _merged(self, merger: EdgeMerger, before: EdgeLog | None) -> EdgeLog:
        if before is not None:
            before.delete()
        self._forget_chunks()
        log = self._new_log("merged", 0.6)
        with progress("merging", total=merger.count, unit="edges", settings=self.settings) as bar:
            for looked, (source, target, columns) in merger.edges():
                arcs.count_degrees(source, target, self.out_degree, self.in_degree, self.symmetric, self.threads)
                log.append(source, target, columns)
                bar.advance(looked)
        return log

    def _fill(self, merger: EdgeMerger, pieces: Iterator[Piece]) -> None:
        # A function of its own: the last piece is a view of the log, and must not outlive the loop.
        for source, target, columns in pieces:
            self._mark_loops(source, target)
            merger.add(source, target, columns)

    def _share(self, part: float) -> int:
        return max(1 << 20, int(self.ledger.free * part))

    def _mark_loops(self, source: np.ndarray, target: np.ndarray) -> None:
        if self.options.self_loops == "drop" and len(self.seen):
            arcs.mark_loops(source, target, self.seen)

    def _count(self, pieces: Iterator[Piece], sample: RepeatSample | None) -> EdgeLog:
        """Take the edges as they are; only loops may go."""
        self.unmerged = sample is not None
        drop = self.options.self_loops == "drop"
        keep_log = self.numberer is not None and not drop and type(self.codes) is Codes
        log = self.numberer.log if keep_log and self.numberer else self._new_log("counted", 0.4)
        for source, target, columns in _small(pieces):
            self._mark_loops(source, target)
            kept = source, target, columns
            if drop:
                stays = source != target
                kept = source[stays], target[stays], {name: values[stays] for name, values in columns.items()}
            arcs.count_degrees(*kept[:2], self.out_degree, self.in_degree, self.symmetric, self.threads)
            if sample is not None:
                sample.add(*kept[:2])
            if not keep_log:
                log.append(*kept)
        if not keep_log:
            self._forget_chunks()
        return log

    def _forget_chunks(self) -> None:
        """The edges have been copied on: the log with the user's ids is not needed any more."""
        if self.numberer is not None:
            self.numberer.delete()
            self.numberer = None
            self.held.release()

    def _new_log(self, name: str, part: float) -> EdgeLog:
        memory = self._share(part)
        reservation = self.scope.reserve(memory, "edges")
        log = EdgeLog(self.spill, self.dtypes, memory=memory, name=name, reservation=reservation)
        self.logs.callback(log.delete)
        return log

    # ---- order

    def _order(self) -> None:
        total = self.out_degree
        if not self.symmetric:
            total = self.scope.empty(self.codes.domain, np.uint64, "total degrees")
            np.add(self.out_degree, self.in_degree, out=total, casting="unsafe")
        declared = self._declared()
        if declared is not None and self.source.closed:
            self._refuse_undeclared(declared, total)
        if declared is not None and len(self.seen):
            codes = self.codes.of(declared.ids)
            self.seen[codes[codes != ABSENT]] = 1
        if not len(self.number):
            self.number = self.scope.empty(self.codes.domain, np.uint32, "numbers")
        self.vertices, self.active = number_vertices(
            total, self.seen, self.number, order=self.options.order, keep_isolated=self.options.keep_isolated
        )
        if not self.symmetric:
            self.scope.release(total)
        self.report.vertices = self.vertices

    def _refuse_undeclared(self, declared: VertexTable, degrees: np.ndarray) -> None:
        known = np.zeros(self.codes.domain, bool)
        codes = self.codes.of(declared.ids)
        known[codes[codes != ABSENT]] = True
        strangers = np.flatnonzero(~known & (degrees > 0))
        if len(strangers):
            user = pa.array(self.codes.users(strangers[:1].astype(np.uint32)))[0].as_py()
            raise InputError(
                f"an edge names vertex {user!r}, which the vertex file does not list", path=self.source.name
            )

    # ---- arcs

    def _write_arcs(self, log: EdgeLog) -> StoreWriter | None:
        self.report.edges = log.count
        encoding, batch = choose_encoding(self.options.encoding, max(self.vertices, 1)), BATCH
        room, kinds = self._share(0.25), self.types.values()
        while batch > self.options.page_size and StoreWriter.memory(batch, encoding, kinds) > room:
            batch //= 2
        batch = max(batch, self.options.page_size)
        writer = StoreWriter(self.draft, page_size=self.options.page_size, encoding=encoding, batch=batch)
        names = ["out"] if self.symmetric or not self.options.incoming else ["out", "in"]
        with progress("writing arcs", total=None, unit="arcs", settings=self.settings) as bar:
            for name in names:
                if not self._write_direction(writer, name, log, bar, len(names)):
                    return None
        return writer

    def _write_direction(self, writer: StoreWriter, name: str, log: EdgeLog, bar: Progress, directions: int) -> bool:
        """Sort the arcs and write them; False: there are equal ones where there should be none."""
        with self.ledger.scope(name) as scope:
            by_code = self.in_degree if name == "in" else self.out_degree
            degrees = scope.zeros(self.active, by_code.dtype, "degrees in order")
            renumbered(by_code, self.number, degrees)
            scope.reserve(StoreWriter.memory(writer.batch, writer.encoding, self.types.values()), "pages being filled")
            with writer.direction(name, degrees, self.types) as direction:
                scope.reserve(direction.records.nbytes, "page index")
                self.report.arcs = direction.arcs
                bar.update(total=direction.arcs * directions)
                memory = self._share(0.85)
                scope.reserve(memory, "sorting arcs")
                arc_sorter = ArcSorter(
                    self.spill,
                    self.dtypes,
                    self.number,
                    degrees,
                    backward=name == "in",
                    symmetric=self.symmetric,
                    memory=memory,
                    threads=self.threads,
                    name=f"arcs-{name}",
                )
                with arc_sorter.sorter:
                    arc_sorter.add(log.pieces())
                    if not arc_sorter.write(direction, bar, unique=self.unmerged):
                        return False
                direction.close()
        return True

    # ---- vertices

    def _write_vertices(self, writer: StoreWriter) -> None:
        degrees = {"out_degree": self.out_degree} | ({} if self.symmetric else {"in_degree": self.in_degree})
        with self.ledger.scope("vertices") as scope:
            table = VertexFiles(writer, self.codes, self.number, self.vertices, scope, self.source.name)
            table.write_degrees(degrees)
            table.write_ids()
            declared = self._declared()
            if declared is not None:
                table.write_columns(declared, self.options.vertex_fill)

    def meta(self, writer: StoreWriter) -> dict[str, Any]:
        """What the manifest says beyond what the writer knows."""
        requires = ["striped"] if len(writer.roots) > 1 else []
        requires += ["physical-ids"] if writer.encoding.physical else []
        requires += ["string-ids"] if self.codes.kind == "string" else []
        return {
            "format": {"name": FORMAT, "version": VERSION},
            "requires": requires,
            "uuid": str(uuid.uuid4()),
            "written_by": f"penstock {PENSTOCK}",
            "vertices": self.vertices,
            "active": self.active,
            "edges": self.report.edges,
            "directed": not self.symmetric,
            "order": self.options.order,
            "ids": {"kind": self.codes.kind, "order": "uint32"},
        }


def _small(pieces: Iterator[Piece]) -> Iterator[Piece]:
    """The same edges in pieces of which a copy or two may be made."""
    for source, target, columns in pieces:
        for at in range(0, len(source), PIECE):
            part = slice(at, at + PIECE)
            yield source[part], target[part], {name: values[part] for name, values in columns.items()}
