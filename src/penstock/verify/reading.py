"""Result files back into a table; ids in the type of the graph's, even where the file has no types."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa

from penstock.errors import InputError, UsageError, meant_path
from penstock.graph import Graph

REFERENCES = ("vertex", "parent", "component", "label", "cluster")
"""Columns that hold ids."""


def read_result(path: Path, graph: Graph | None = None) -> pa.Table:
    """Read .parquet, .csv, .tsv, .json (one object per line) or .arrow, by the ending. Without a graph ids are what
    they look like."""
    reader = _READERS.get(path.suffix.lower())
    if reader is None:
        raise UsageError(f"{path} does not end in one of {', '.join(_READERS)}")
    if not path.is_file():
        raise InputError(f"there is no such file{meant_path(path)}", path=path)
    known = [] if graph is None else [(name, graph.store.ids.arrow_type) for name in REFERENCES]
    try:
        return reader(path, pa.schema(known))
    except (pa.ArrowException, OSError) as error:
        raise InputError(f"this is no readable result: {str(error).splitlines()[0]}", path=path) from None


def _parquet(path: Path, ids: pa.Schema) -> pa.Table:
    import pyarrow.parquet as pq

    return pq.read_table(path)


def _arrow(path: Path, ids: pa.Schema) -> pa.Table:
    with pa.memory_map(str(path)) as source:
        return pa.ipc.open_file(source).read_all()


def _json(path: Path, ids: pa.Schema) -> pa.Table:
    from pyarrow import json

    options = json.ParseOptions(explicit_schema=pa.schema([field for field in ids if field.name in _names(path)]))
    return json.read_json(path, parse_options=options)


def _names(path: Path) -> list[str]:
    """The keys of the first object."""
    import json

    with path.open(encoding="utf-8") as file:
        first = file.readline()
    try:
        return list(json.loads(first)) if first else []
    except (ValueError, TypeError):
        raise InputError("the first line is no JSON object", path=path, line=1) from None


def _delimited(delimiter: str) -> Callable[[Path, pa.Schema], pa.Table]:
    def read(path: Path, ids: pa.Schema) -> pa.Table:
        from pyarrow import csv

        # A string id may be empty, or the word null: only an empty field without quotes is none.
        convert = csv.ConvertOptions(
            column_types=ids, null_values=[""], strings_can_be_null=True, quoted_strings_can_be_null=False
        )
        parse = csv.ParseOptions(delimiter=delimiter)
        return csv.read_csv(path, parse_options=parse, convert_options=convert)

    return read


def is_result(path: Path) -> bool:
    """Whether it is a file of values, not of edges: the first column is called vertex."""
    if path.suffix.lower() not in _READERS or not path.is_file():
        return False
    try:
        if path.suffix.lower() == ".parquet":
            import pyarrow.parquet as pq

            return pq.read_schema(path).names[:1] == ["vertex"]
        if path.suffix.lower() == ".arrow":
            with pa.memory_map(str(path)) as source:
                return pa.ipc.open_file(source).schema.names[:1] == ["vertex"]
        if path.suffix.lower() == ".json":
            return _names(path)[:1] == ["vertex"]
        with path.open(encoding="utf-8") as file:
            return file.readline().lstrip('"').startswith("vertex")
    except (pa.ArrowException, OSError, ValueError):
        return False


_READERS: dict[str, Callable[[Path, pa.Schema], pa.Table]] = {
    ".parquet": _parquet,
    ".csv": _delimited(","),
    ".tsv": _delimited("\t"),
    ".json": _json,
    ".arrow": _arrow,
}

__all__ = ["is_result", "read_result"]
