"""Matrix Market coordinate files: the entry (i, j, value) of a square matrix is the edge i -> j, ids 1 to n.

A symmetric matrix is an undirected graph and stores each edge once. Skew-symmetric and Hermitian ones store one
triangle of a directed graph: the mirrored entry is added, negated or conjugated.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa

from penstock.errors import InputError
from penstock.ingest.source import EdgeChunk, VertexTable
from penstock.ingest.text.layout import Column, Layout
from penstock.ingest.text.lines import LineSource
from penstock.ingest.text.rows import BadRow, Rows, quote
from penstock.ingest.text.textfile import TextFile

_VALUES = {
    "pattern": {},
    "real": {"weight": pa.float64()},
    "double": {"weight": pa.float64()},
    "integer": {"weight": pa.int64()},
    "unsigned-integer": {"weight": pa.uint64()},
    "complex": {"real": pa.float64(), "imag": pa.float64()},
}
_SYMMETRIES = ("general", "symmetric", "skew-symmetric", "hermitian")


class MatrixMarketSource(LineSource):
    """A `.mtx` file."""

    def __init__(
        self,
        path: str | Path,
        *,
        columns: Sequence[str] | None = None,
        allow_empty: bool = False,
        block_size: int | None = None,
    ) -> None:
        file = TextFile(path)
        lines = file.lines(file.start)
        number, _, banner = next(lines, (1, 0, b""))
        field, self.symmetry = _read_banner(file.path, banner)
        self.vertex_count, entries, start = 0, 0, None
        for number, offset, text in lines:
            if text.strip() and not text.lstrip().startswith(b"%"):
                self.vertex_count, entries = _read_size(file.path, number, text)
                start = offset + len(text) + 1
                break
        if start is None:
            raise InputError("ends before the size line `rows columns entries`", path=file.path, line=number)
        values = {name: Column(2 + k, kind) for k, (name, kind) in enumerate(_VALUES[field].items())}
        layout = Layout(
            2 + len(values),
            columns=values,
            comments=("%",),
            lowest=1,
            highest=self.vertex_count,
            bounds=f"the declared range 1 to {self.vertex_count}",
        )
        super().__init__(
            [(file, start)],
            layout,
            declared=entries,
            noun="entries",
            columns=columns,
            allow_empty=allow_empty or self.vertex_count > 0,
            block_size=block_size,
        )
        self.undirected = self.symmetry == "symmetric"
        self.id_bounds = (1, self.vertex_count)
        if self.symmetry in ("skew-symmetric", "hermitian"):
            self.estimated_edges, self.expansion = 2 * entries, 3

    def convert(self, rows: Rows) -> EdgeChunk:
        if self.symmetry == "general":
            return super().convert(rows)
        i, j = np.asarray(rows.source), np.asarray(rows.target)
        above = j > i
        if above.any():
            row = int(np.argmax(above))
            reason = f"entry ({i[row]}, {j[row]}) is above the diagonal, where a {self.symmetry} matrix stores none"
            raise BadRow(row, reason)
        if self.symmetry == "symmetric":
            return super().convert(rows)
        diagonal = i == j
        if self.symmetry == "skew-symmetric" and diagonal.any():
            row = int(np.argmax(diagonal))
            raise BadRow(
                row, f"entry ({i[row]}, {i[row]}) is on the diagonal, which is zero in a skew-symmetric matrix"
            )
        if self.symmetry == "hermitian":
            unreal = diagonal & (rows.columns["imag"] != 0)
            if unreal.any():
                row = int(np.argmax(unreal))
                reason = f"entry ({i[row]}, {i[row]}) is not real, but the diagonal of a hermitian matrix is"
                raise BadRow(row, reason)
        below = ~diagonal
        columns = {}
        for name, values in rows.columns.items():
            mirrored = values[below] if (self.symmetry, name) == ("hermitian", "real") else -values[below]
            columns[name] = np.concatenate([values, mirrored])
        return EdgeChunk(np.concatenate([i, j[below]]), np.concatenate([j, i[below]]), columns)

    def vertices(self) -> VertexTable:
        return VertexTable(range(1, self.vertex_count + 1))


def _read_banner(path: Path, banner: bytes) -> tuple[str, str]:
    words = banner.decode("latin-1").lower().split()
    known = "it must be `%%MatrixMarket matrix coordinate FIELD SYMMETRY`"
    if len(words) != 5 or words[0] != "%%matrixmarket" or words[1] != "matrix":
        raise InputError(f"{quote(banner[:60])} is no Matrix Market banner: {known}", path=path, line=1)
    form, field, symmetry = words[2:]
    if form == "array":
        reason = "a dense matrix (`array`) is not read as a graph: write it as `coordinate`"
        raise InputError(reason, path=path, line=1)
    if form != "coordinate":
        raise InputError(f"the format '{form}' is not known: {known}", path=path, line=1)
    if field not in _VALUES:
        raise InputError(f"the field '{field}' is none of {', '.join(_VALUES)}", path=path, line=1)
    if symmetry not in _SYMMETRIES:
        raise InputError(f"the symmetry '{symmetry}' is none of {', '.join(_SYMMETRIES)}", path=path, line=1)
    if (symmetry == "hermitian" and field != "complex") or (
        symmetry == "skew-symmetric" and field in ("pattern", "unsigned-integer")
    ):
        raise InputError(f"a {symmetry} matrix cannot be of field {field}", path=path, line=1)
    return field, symmetry


def _read_size(path: Path, number: int, text: bytes) -> tuple[int, int]:
    words = text.split()
    if len(words) != 3 or not all(word.isdigit() for word in words):
        reason = f"{quote(text.strip())} is no size line: it must be `rows columns entries`"
        raise InputError(reason, path=path, line=number)
    rows, columns, entries = map(int, words)
    if rows != columns:
        reason = f"the matrix is {rows} by {columns}: a graph needs a square one"
        raise InputError(reason, path=path, line=number)
    if rows >= 2**63:
        raise InputError(f"{rows} rows do not fit 64 bits", path=path, line=number)
    return rows, entries


__all__ = ["MatrixMarketSource"]
