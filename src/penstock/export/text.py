"""Edge lists and tables of vertices as text: .txt, .csv, .tsv, .el, .wel."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pyarrow as pa

from penstock.errors import UsageError
from penstock.export.job import Job, is_number
from penstock.export.lines import header, lines
from penstock.export.sink import open_sink
from penstock.store.arrow import plain_array

_DELIMITERS = {"csv": ",", "tsv": "\t"}


def write_rows(job: Job, path: Path, schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> None:
    """One row on each line; CSV and TSV begin with a line of names."""
    delimiter, names = _DELIMITERS.get(job.format, " "), schema.names
    with open_sink(path, job.compression) as sink:
        if job.format in _DELIMITERS:
            sink.write(header(names, delimiter))
        for batch in batches:
            sink.write(lines(batch.columns, names, delimiter))


def write_gap(job: Job, path: Path) -> None:
    """`u v` or `u v w`, ids from 0."""
    what = f"a GAP .{job.format} file"
    job.integer_ids(what)
    if job.format == "el" and job.columns:
        there = ", ".join(job.columns)
        raise UsageError(f"{what} holds no columns, but there is {there}: write .wel, or leave it out with columns=[]")
    column = job.one_column(what, is_number, "a number for each edge")
    if job.format == "wel" and column is None and job.weight is None:
        raise UsageError(f"{what} needs a weight for each edge: name a column or a number with weight= (--weight)")
    with open_sink(path, job.compression) as sink:
        for batch in job.batches():
            columns = [as_number(array) for array in batch.columns]
            if job.weight is not None and job.format == "wel":
                columns.append(plain_array(np.full(len(batch), job.weight, np.int64)))
            sink.write(lines(columns, ["id", "id", "weight"][: len(columns)], " "))


def as_number(array: pa.Array) -> pa.Array:
    """Truth values as 0 and 1, for formats that know numbers only."""
    return array.cast(pa.uint8()) if pa.types.is_boolean(array.type) else array


__all__ = ["as_number", "write_gap", "write_rows"]
