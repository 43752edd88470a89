"""What a store keeps of each vertex: degrees, the user's id, the user's columns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.errors import InputError, UsageError
from penstock.ingest.build.numbering import ABSENT, Codes
from penstock.ingest.build.order import invert
from penstock.ingest.source import VertexTable, storage_dtype
from penstock.memory.ledger import Scope
from penstock.store.writer import StoreWriter

PIECE = 1 << 18


class VertexFiles:
    """Writes one value per vertex, piece by piece. `number[code]` is a vertex's place in the store."""

    def __init__(
        self, writer: StoreWriter, codes: Codes, number: np.ndarray, vertices: int, scope: Scope, name: str
    ) -> None:
        self.writer, self.codes, self.number, self.vertices = writer, codes, number, vertices
        self.scope, self.name = scope, name
        self.code = scope.empty(vertices, np.uint32, "codes in order")
        invert(number, self.code)

    def _pieces(self) -> Iterator[np.ndarray]:
        """The codes of vertices 0, 1, 2, ..."""
        for at in range(0, self.vertices, PIECE):
            yield self.code[at : at + PIECE]

    def write_degrees(self, degrees: Mapping[str, np.ndarray]) -> None:
        """Degrees come by code. A symmetric graph has only one kind: it stands for both."""
        for name, values in degrees.items():
            kind = "uint64" if values.dtype == np.uint64 else "uint32"
            self.writer.vertex_column(name, kind, (values[codes] for codes in self._pieces()))
        self.writer.vertex.setdefault("in_degree", self.writer.vertex["out_degree"])

    def write_ids(self) -> None:
        """The user's ids by number, and the numbers sorted by id."""
        if self.codes.kind == "string":
            lengths: list[np.ndarray] = []
            self.writer.blob("ids/text", self._text(lengths))
            self.writer.blob("ids/offsets", _offsets(lengths))
        else:
            self.writer.blob("ids/values", (np.asarray(self.codes.users(codes)) for codes in self._pieces()))
        # Codes ascend with ids: the numbers in order of their codes sort the ids.
        numbers = (self.number[at : at + PIECE] for at in range(0, self.codes.domain, PIECE))
        self.writer.blob("ids/order", (piece[piece != ABSENT] for piece in numbers))

    def _text(self, lengths: list[np.ndarray]) -> Iterator[np.ndarray]:
        for codes in self._pieces():
            ids: Any = self.codes.users(codes)
            _, offsets, data = ids.buffers()
            ends = np.frombuffer(offsets, np.int64)[ids.offset : ids.offset + len(ids) + 1]
            lengths.append(np.diff(ends).astype(np.uint32))
            yield np.frombuffer(data or b"", np.uint8)[ends[0] : ends[-1]]

    def write_columns(self, table: VertexTable, fill: Mapping[str, Any]) -> None:
        """The user's columns; a vertex the table does not list takes the fill value."""
        if not table.columns:
            return
        codes = self.codes.of(table.ids)
        known = codes != ABSENT
        numbers = self.number[codes[known]]
        kept = numbers != ABSENT
        for name, values in table.columns.items():
            dtype = self._dtype(name, table.types[name])
            column = self.scope.zeros(self.vertices, dtype, f"vertex column {name}")
            listed = np.zeros(self.vertices, bool)
            column[numbers[kept]] = np.asarray(values)[known][kept]
            listed[numbers[kept]] = True
            if not listed.all():
                if name not in fill:
                    raise self._unlisted(int(np.flatnonzero(~listed)[0]), name)
                column[~listed] = self._fill_value(name, table.types[name], fill[name])
            self.writer.vertex_column(name, str(table.types[name]), column)
            self.scope.release(column)

    def _dtype(self, name: str, kind: pa.DataType) -> np.dtype:
        if name in ("out_degree", "in_degree"):
            raise InputError(f"no vertex column may be called {name}: it is kept anyway", path=self.name)
        dtype = storage_dtype(kind)
        if dtype is None:
            raise InputError(f"vertex column {name} is {kind}, which has no fixed width", path=self.name)
        return dtype

    def _fill_value(self, name: str, kind: pa.DataType, value: Any) -> Any:
        """A fill value as it lies on disk: a bool is a byte, a time is a count."""
        try:
            given = pa.array([value], kind)
        except (pa.ArrowException, TypeError, ValueError, OverflowError):
            raise UsageError(f"vertex_fill[{name!r}] must be of type {kind}, which {value!r} is not") from None
        if given.null_count:
            raise UsageError(f"vertex_fill[{name!r}] must be of type {kind}, not {value!r}")
        if pa.types.is_boolean(kind):
            return np.uint8(given[0].as_py())
        return np.frombuffer(given.buffers()[1], storage_dtype(kind), 1)[0]

    def _unlisted(self, number: int, column: str) -> InputError:
        user = pa.array(self.codes.users(self.code[number : number + 1]))[0].as_py()
        return InputError(
            f"vertex {user!r} has edges but no row in the vertex table, so no {column}",
            path=self.name,
            hint=f"give vertex_fill={{{column!r}: ...}}",
        )


def _offsets(lengths: list[np.ndarray]) -> Iterator[np.ndarray]:
    yield np.zeros(1, np.uint64)
    end = np.uint64(0)
    for piece in lengths:
        ends = end + np.cumsum(piece, dtype=np.uint64)
        end = ends[-1]
        yield ends
