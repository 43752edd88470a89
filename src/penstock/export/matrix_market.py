"""Matrix Market: the edge i -> j is the entry (i, j) of a sparse matrix. An undirected graph is a symmetric matrix, of
which the lower triangle is written."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from penstock.export.job import Job, is_number
from penstock.export.lines import lines
from penstock.export.sink import open_sink
from penstock.export.text import as_number
from penstock.store.arrow import plain_array, typed_array


def write_matrix_market(job: Job, path: Path) -> None:
    graph, what = job.graph, "a Matrix Market file"
    column = job.one_column(what, is_number, "one number for each entry")
    labels = job.labels(what)
    symmetry = "general" if graph.directed else "symmetric"
    pieces = job.shown(graph.edge_arrays(labels, job.columns), lambda piece: len(piece[0]), graph.edges)
    with open_sink(path, job.compression) as sink:
        sink.write(f"%%MatrixMarket matrix coordinate {_field(job)} {symmetry}\n".encode())
        if job.renumber:
            sink.write(b"% vertices were renumbered 1 to n in order of their ids\n")
        sink.write(f"{graph.vertices} {graph.vertices} {graph.edges}\n".encode())
        for source, target, values in pieces:
            # The smaller id comes first; below the diagonal the row is the larger.
            ends = (source, target) if graph.directed else (target, source)
            columns = [plain_array(end) for end in ends]
            if column is not None:
                columns.append(as_number(typed_array(values[column], graph.columns[column])))
            sink.write(lines(columns, ["row", "column", "value"][: len(columns)], " "))


def _field(job: Job) -> str:
    if not job.columns:
        return "pattern"
    kind = job.types[0]
    if pa.types.is_floating(kind):
        return "real"
    return "unsigned-integer" if pa.types.is_uint64(kind) else "integer"


__all__ = ["write_matrix_market"]
