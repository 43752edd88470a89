"""A graph into a file, in the format of its name: a complete file, or none."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from penstock.config import settings
from penstock.errors import UsageError
from penstock.export.job import Job
from penstock.export.sink import CODECS, codec_of, plain_name
from penstock.graph import Graph
from penstock.store.whole import check_target, whole_file

FORMATS: dict[str, tuple[str, ...]] = {
    "text": (".txt", ".edges", ".edgelist", ".snap"),
    "csv": (".csv",),
    "tsv": (".tsv", ".tab"),
    "el": (".el",),
    "wel": (".wel",),
    "parquet": (".parquet", ".pq"),
    "arrow": (".arrow", ".feather", ".ipc"),
    "matrix-market": (".mtx", ".mm"),
    "metis": (".graph", ".metis"),
    "dimacs": (".gr", ".dimacs"),
    "ldbc": (".properties",),
}
"""The formats and the endings that mean them."""
TABLES = ("parquet", "arrow", "csv", "tsv", "text")
"""Formats that can hold the table of vertices."""
_BINARY = ("parquet", "arrow")
_NUMBERED = ("matrix-market", "metis", "dimacs")
_WEIGHTED = ("wel", *_NUMBERED)


def export_graph(
    graph: Graph,
    target: str | os.PathLike[str],
    *,
    columns: Sequence[str] | None = None,
    format: str | None = None,
    overwrite: bool = False,
    compression: str | None = None,
    renumber: bool = False,
    weight: str | int | None = None,
    **overrides: Any,
) -> Path:
    """Write the edges; undirected ones once, but in METIS and DIMACS files, where they stand twice.

    `columns`: those to write, by default all. `format`: one of FORMATS, by default what the ending says; text may end
    in .gz, .zst or .bz2 beside. `compression`: the codec inside Parquet and Arrow files. `renumber`: for formats that
    number vertices 1 to n, do so in order of their ids. `weight`: the column that is the weight, or a whole number
    that every edge weighs. Settings such as `memory_limit` may follow.
    """
    path = Path(target)
    name = _format(path, format, tuple(FORMATS))
    if isinstance(weight, str):
        if columns is not None:
            raise UsageError("columns= and weight= both name columns: give one of them")
        columns = [weight]
    if weight is not None and name not in _WEIGHTED:
        raise UsageError(f"format {name!r} has no weight: name what to write with columns= (--columns)")
    if isinstance(weight, int) and columns is None:
        columns = []
    if renumber and name not in _NUMBERED:
        raise UsageError(f"format {name!r} keeps the ids as they are: renumber= has no meaning here")
    chosen = graph.edge_schema(columns).names[2:]
    constant = weight if isinstance(weight, int) else None
    codec = _codec(path, name, compression)
    job = Job(graph, path, name, chosen, codec, settings(**overrides), renumber, constant)
    _refuse_names(job, ["source", "target", *chosen])
    if name == "ldbc":
        for ending in (".v", ".e"):  # before the first byte is written
            check_target(path.with_suffix("").with_name(path.stem + ending), overwrite)
    with whole_file(path, overwrite=overwrite) as partial:
        _write(job, partial, overwrite)
    return path


def export_vertices(
    graph: Graph,
    target: str | os.PathLike[str],
    *,
    columns: Sequence[str] | None = None,
    format: str | None = None,
    overwrite: bool = False,
    compression: str | None = None,
    **overrides: Any,
) -> Path:
    """Write the vertices in order of their ids: `id` and the user's vertex columns, or the `columns` that are named,
    among which may be out_degree and in_degree. Parquet, Arrow, CSV, TSV, or text without a header."""
    path = Path(target)
    name = _format(path, format, TABLES)
    if columns is None:
        columns = [column for column in graph.vertex_columns if column not in ("out_degree", "in_degree")]
    schema = graph.vertex_schema(columns)
    codec = _codec(path, name, compression)
    job = Job(graph, path, name, schema.names[1:], codec, settings(**overrides))
    _refuse_names(job, schema.names)
    with whole_file(path, overwrite=overwrite) as partial:
        batches = job.shown(graph.vertex_batches(columns), len, graph.vertices, "vertices")
        _write_table(job, partial, schema, batches)
    return path


def _format(path: Path, format: str | None, known: tuple[str, ...]) -> str:
    if format is not None:
        if format not in known:
            raise UsageError(f"there is no format {format!r} here; the formats are {', '.join(known)}")
        return format
    suffix = plain_name(path).suffix.lower()
    for name in known:
        if suffix in FORMATS[name]:
            return name
    endings = ", ".join(ending for name in known for ending in FORMATS[name])
    raise UsageError(f"{path} does not end in one of {endings}: choose one, or name the format with format=")


def _codec(path: Path, name: str, compression: str | None) -> str | None:
    """Binary formats are told; text says it in its name, by which it is read again."""
    said = codec_of(path)
    if said is not None and name in (*_BINARY, "ldbc"):
        raise UsageError(f"{path}: {name} files are not compressed as a whole: leave {path.suffix} out")
    if name in _BINARY:
        return compression
    if compression is not None and compression != (said or "none"):
        endings = ", ".join(CODECS)
        raise UsageError(f"{path}: text is compressed as its name says: end it in one of {endings}, or in none of them")
    return said


def _refuse_names(job: Job, names: Sequence[str]) -> None:
    if len(set(names)) < len(names) and job.format in TABLES:
        twice = next(name for name in names if names.count(name) > 1)
        raise UsageError(f"{job.target} would have two columns called {twice!r}: leave one out with columns=")


def _write(job: Job, partial: Path, overwrite: bool) -> None:
    # Imported here: the writers bring kernels with them, and Parquet brings its library.
    if job.format in TABLES:
        _write_table(job, partial, job.graph.edge_schema(job.columns), job.batches())
    elif job.format in ("el", "wel"):
        from penstock.export.text import write_gap

        write_gap(job, partial)
    elif job.format == "matrix-market":
        from penstock.export.matrix_market import write_matrix_market

        write_matrix_market(job, partial)
    elif job.format == "metis":
        from penstock.export.metis import write_metis

        write_metis(job, partial)
    elif job.format == "dimacs":
        from penstock.export.dimacs import write_dimacs

        write_dimacs(job, partial)
    else:
        from penstock.export.ldbc import write_ldbc

        write_ldbc(job, partial, overwrite=overwrite)


def _write_table(job: Job, partial: Path, schema: Any, batches: Any) -> None:
    if job.format in _BINARY:
        from penstock.export.tables import write_arrow, write_parquet

        (write_parquet if job.format == "parquet" else write_arrow)(job, partial, schema, batches)
    else:
        from penstock.export.text import write_rows

        write_rows(job, partial, schema, batches)


__all__ = ["FORMATS", "export_graph", "export_vertices"]
