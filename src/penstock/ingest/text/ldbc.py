"""LDBC Graphalytics: a `.v` file of vertices, an `.e` file of edges and a `.properties` file that describes both."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa

from penstock.errors import InputError, UsageError
from penstock.ingest.source import EdgeChunk, VertexTable
from penstock.ingest.text.layout import Column, Layout, column_type
from penstock.ingest.text.lines import LineSource
from penstock.ingest.text.sniff import infer, sample
from penstock.ingest.text.textfile import SUFFIXES, TextFile, strip_compression

_TYPES = {
    "real": "float64",
    "double": "float64",
    "float": "float32",
    "integer": "int64",
    "int": "int64",
    "long": "int64",
}

_BOUNDS = "LDBC's ids, which are unsigned"


class LdbcSource(LineSource):
    """A Graphalytics graph, by its `.properties`, `.e` or `.v` file."""

    closed = True

    def __init__(
        self,
        path: str | Path,
        *,
        columns: Sequence[str] | None = None,
        allow_empty: bool = True,
        block_size: int | None = None,
    ) -> None:
        path = Path(path)
        if strip_compression(path).suffix == ".properties":
            about = read_properties(path)
            for key in ("edge-file", "vertex-file"):
                if not (path.parent / about[key]).exists():
                    raise InputError(f"names {about[key]} as its {key}, but there is no such file", path=path)
        else:
            stem = strip_compression(path).with_suffix("")
            about = {"vertex-file": str(_beside(stem, ".v", path)), "edge-file": str(_beside(stem, ".e", path))}
        edges, vertices = (TextFile(path.parent / about[key]) for key in ("edge-file", "vertex-file"))
        names = _listed(about, "edge-properties.names")
        kinds = [_TYPES.get(kind, kind) for kind in _listed(about, "edge-properties.types")]
        if len(names) != len(kinds):
            reason = f"edge-properties.names has {len(names)} entries, edge-properties.types {len(kinds)}"
            raise InputError(reason, path=path)
        lines = sample(edges, Layout(2))
        carried = {
            name: Column(2 + k, _property_type(name, kind, path))
            for k, (name, kind) in enumerate(zip(names, kinds, strict=True))
        }
        if not names and lines:
            carried = _found(lines[0].fields, [line.fields for line in lines])
        super().__init__(
            [(edges, edges.start)],
            Layout(2 + len(carried), columns=carried, lowest=0, bounds=_BOUNDS),
            declared=_count(about, "meta.edges", path),
            columns=columns,
            allow_empty=allow_empty,
            block_size=block_size,
        )
        if "directed" in about:
            if about["directed"].lower() not in ("true", "false"):
                raise InputError(f"directed = {about['directed']} is neither true nor false", path=path)
            self.undirected = about["directed"].lower() == "false"
        if self.estimated_edges is None and lines:
            self.estimated_edges = edges.size // max(1, len(lines[0].text) + 1)
        self._vertices = _VertexSource(vertices, _count(about, "meta.vertices", path), block_size)
        self._table: VertexTable | None = None

    def chunks(self, *, threads: int, memory: int) -> Iterator[EdgeChunk]:
        yield from super().chunks(threads=threads, memory=memory)
        self._table = self._vertices.table(threads=threads, memory=memory)

    def vertices(self) -> VertexTable | None:
        return self._table


class _VertexSource(LineSource):
    """A `.v` file: an id and, perhaps, values per line."""

    def __init__(self, file: TextFile, declared: int | None, block_size: int | None) -> None:
        lines = sample(file, Layout(1))
        fields = len(lines[0].fields) if lines else 1
        columns = {}
        for k in range(1, fields):
            kind = infer([line.fields[k] for line in lines if k < len(line.fields)])
            if kind is not None:
                columns["value" if fields == 2 else f"value{k}"] = Column(k, kind)
        layout = Layout(fields, target=None, columns=columns, lowest=0, bounds=_BOUNDS)
        super().__init__(
            [(file, file.start)], layout, declared=declared, noun="vertices", allow_empty=True, block_size=block_size
        )

    def table(self, *, threads: int, memory: int) -> VertexTable:
        parts = list(self.chunks(threads=threads, memory=memory))
        ids = _joined([np.asarray(part.source) for part in parts])
        columns = {name: _joined([part.columns[name] for part in parts]) for name in self.columns}
        return VertexTable(ids, columns, dict(self.columns))


def read_properties(path: Path) -> dict[str, str]:
    """`graph.NAME.KEY = VALUE` lines as KEY to VALUE; what belongs to a benchmark run is left out."""
    found: dict[str, str] = {}
    for number, _, line in TextFile(path).lines():
        text = line.decode("utf-8", "replace").strip()
        if not text or text[0] in "#!":
            continue
        key, mark, value = (part.strip() for part in text.partition("="))
        if not mark:
            raise InputError(f"'{text[:40]}' is no `key = value`", path=path, line=number)
        match = re.fullmatch(r"graph\.(.+?)\.(vertex-file|edge-file|directed|meta\..+|edge-properties\..+)", key)
        if match:
            found[match[2]] = value
    for key in ("vertex-file", "edge-file"):
        if key not in found:
            raise InputError(f"names no {key}: a line `graph.NAME.{key} = FILE` is missing", path=path)
    return found


def _beside(stem: Path, suffix: str, path: Path) -> Path:
    for ending in ("", *SUFFIXES):
        file = stem.with_name(stem.name + suffix + ending)
        if file.exists():
            return file.absolute()
    raise InputError(f"has no {stem.name}{suffix} beside it", path=path, hint="or read it with format='text'")


def _property_type(name: str, kind: str, path: Path) -> pa.DataType:
    try:
        return column_type(name, kind)
    except UsageError:
        reason = f"edge-properties.types: {kind!r} is no type an edge column can have; real and int are"
        raise InputError(reason, path=path) from None


def _found(first: Sequence[bytes], rows: Sequence[Sequence[bytes]]) -> dict[str, Column]:
    columns = {}
    for k in range(2, len(first)):
        kind = infer([row[k] for row in rows if k < len(row)]) or pa.float64()
        columns["weight" if len(first) == 3 else f"c{k}"] = Column(k, kind)
    return columns


def _listed(about: Mapping[str, str], key: str) -> list[str]:
    return [item.strip() for item in about.get(key, "").split(",") if item.strip()]


def _count(about: Mapping[str, str], key: str, path: Path) -> int | None:
    if key not in about:
        return None
    if not about[key].isdigit():
        raise InputError(f"{key} = {about[key]} is not a number", path=path)
    return int(about[key])


def _joined(parts: list[np.ndarray]) -> np.ndarray:
    if not parts:
        return np.empty(0, np.int64)
    kind = np.uint64 if any(part.dtype == np.uint64 for part in parts) else parts[0].dtype
    return np.concatenate([part.astype(kind, copy=False) for part in parts])


__all__ = ["LdbcSource", "read_properties"]
