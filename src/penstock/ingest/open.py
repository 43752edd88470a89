"""What did the user hand us? The source that reads it, and the table of vertices beside it."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from penstock.errors import InputError, UsageError
from penstock.ingest.build.options import BuildOptions
from penstock.ingest.source import EdgeSource, VertexTable, storage_dtype

TABLE_FORMATS = ("parquet", "arrow")
TABLE_ENDINGS = (".parquet", ".pq", ".parq", ".arrow", ".feather", ".ipc")
ID_NAMES = ("id", "vertex", "node", "name")


def split_options(options: Mapping[str, Any]) -> tuple[BuildOptions, dict[str, Any], Any]:
    """(how to build, how to read, the vertex table) out of one bag of keywords."""
    known = {field.name for field in fields(BuildOptions)}
    build = BuildOptions.of({name: value for name, value in options.items() if name in known})
    rest = {name: value for name, value in options.items() if name not in known and value is not None}
    vertices = rest.pop("vertices", None)
    return build, rest, vertices


def open_source(source: Any, /, *, format: str | None = None, **options: Any) -> EdgeSource:
    """The edges of a path, a list of paths, a table, arrays, or a graph object."""
    if isinstance(source, EdgeSource):
        if options or format:
            raise UsageError("an edge source takes no options: they were given when it was made")
        return source
    if isinstance(source, (str, os.PathLike)) or _are_paths(source):
        return _open_paths(source, format, options)
    if format is not None:
        raise UsageError("format= is for files")
    from penstock.ingest.tables.objects import open_object

    found = open_object(source, **options)
    if found is None:
        raise InputError(
            f"{type(source).__name__} is nothing edges can be read from",
            hint="give a path, a table (pandas, polars, DuckDB, Arrow), arrays, a list of pairs, a sparse matrix, a "
            "NetworkX or an igraph graph",
        )
    return found


def _are_paths(source: Any) -> bool:
    return isinstance(source, (list, tuple)) and bool(source) and all(isinstance(p, (str, os.PathLike)) for p in source)


def _open_paths(
    source: str | os.PathLike[str] | Sequence[str | os.PathLike[str]], format: str | None, options: dict[str, Any]
) -> EdgeSource:
    paths = [Path(source)] if isinstance(source, (str, os.PathLike)) else [Path(p) for p in source]
    for path in paths:
        if path.suffix == ".pen" and (path / "meta.json").is_file():
            raise UsageError(f"{path} is a store already: export its edges to a file to build another one from them")
    if format in TABLE_FORMATS or (format is None and _is_table(paths[0])):
        from penstock.ingest.tables.arrow import open_table

        return open_table(paths if len(paths) > 1 else paths[0], **options)
    from penstock.ingest.text.formats import FORMATS, open_text

    if format is not None and format not in FORMATS:
        raise UsageError(f"there is no format {format!r}; the formats are {', '.join((*TABLE_FORMATS, *FORMATS))}")
    return open_text([str(p) for p in paths] if len(paths) > 1 else str(paths[0]), format, **options)


def _is_table(path: Path) -> bool:
    if path.is_dir():
        return any(child.suffix.lower() in TABLE_ENDINGS for child in path.rglob("*"))
    if path.suffix.lower() in TABLE_ENDINGS:
        return True
    try:
        with path.open("rb") as file:
            return file.read(6)[:4] == b"PAR1"
    except OSError:
        return False


def open_vertices(table: Any, *, string_ids: bool = True) -> VertexTable | None:
    """Vertices and their columns from a Parquet, Arrow or CSV file or any Arrow table: the ids, then what is known.
    `string_ids`: whether those of the edges are strings."""
    if table is None or isinstance(table, VertexTable):
        return table
    name = str(table) if isinstance(table, (str, os.PathLike)) else type(table).__name__
    read = _read_table(table, name)
    if not read.num_columns:
        raise InputError("a vertex table needs a column of ids", path=name)
    id_name = next((c for c in ID_NAMES if c in read.column_names), read.column_names[0])
    ids = read.column(id_name).combine_chunks()
    if pa.types.is_dictionary(ids.type):
        ids = ids.dictionary_decode()
    if ids.null_count:
        raise InputError(f"column {id_name} has an empty id", path=name)
    if not (pa.types.is_integer(ids.type) or pa.types.is_string(ids.type) or pa.types.is_large_string(ids.type)):
        raise InputError(f"column {id_name} is {ids.type}: ids are integers or strings", path=name)
    if not string_ids and not pa.types.is_integer(ids.type):
        raise InputError(
            f"the ids in column {id_name} are strings, but those of the edges are integers",
            path=name,
            hint="read the edges with ids='string', or give the vertices their numbers",
        )
    counts = pc.value_counts(ids)
    if len(counts) < len(ids):
        twice = next(entry["values"] for entry in counts if entry["counts"].as_py() > 1)
        raise InputError(f"lists vertex {twice.as_py()!r} more than once", path=name)
    columns, types = {}, {}
    for column in read.column_names:
        if column == id_name:
            continue
        values = read.column(column).combine_chunks()
        dtype = storage_dtype(values.type)
        if dtype is None:
            raise InputError(f"column {column} is {values.type}, which has no fixed width", path=name)
        if values.null_count:
            raise InputError(f"column {column} has empty values", path=name)
        types[column] = values.type
        if pa.types.is_boolean(values.type):
            values = values.cast(pa.uint8())
        columns[column] = values.to_numpy(zero_copy_only=False).view(dtype)
    return VertexTable(ids.to_numpy() if pa.types.is_integer(ids.type) else ids, columns, types)


def _read_table(table: Any, name: str) -> pa.Table:
    if not isinstance(table, (str, os.PathLike)):
        if hasattr(table, "__arrow_c_stream__"):
            return pa.table(table)
        if isinstance(table, Mapping):
            return pa.table(dict(table))
        return pa.table({"id": pa.array(table)})
    path = Path(table)
    try:
        if path.suffix.lower() in (".csv", ".tsv", ".txt"):
            from pyarrow import csv

            return csv.read_csv(path, parse_options=csv.ParseOptions(delimiter="," if path.suffix == ".csv" else "\t"))
        if path.suffix.lower() in (".arrow", ".feather", ".ipc"):
            from pyarrow import feather

            return feather.read_table(path)
        import pyarrow.parquet as pq

        return pq.read_table(path)
    except FileNotFoundError:
        raise InputError("does not exist", path=name) from None
    except (pa.ArrowException, OSError) as error:
        raise InputError(f"cannot be read as a table: {error}", path=name) from error
