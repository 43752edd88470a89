"""Keys out of files: the lines of text, or a column of a table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from penstock.errors import InputError, UsageError
from penstock.mapreduce.files import list_files
from penstock.mapreduce.functions import chunk
from penstock.mapreduce.keyvalue import KeyValue
from penstock.mapreduce.session import MapReduce
from penstock.mapreduce.text import lines

TABLES = {".parquet": "parquet", ".arrow": "ipc", ".feather": "ipc", ".csv": "csv"}
_ROWS = 1 << 16


@chunk(key="string", value=None, parallel=True)
def _every_line(piece: np.ndarray) -> tuple[Any, None]:
    return lines(piece), None


def keys_of(mr: MapReduce, paths: Sequence[Any], column: str | None = None) -> KeyValue:
    """(key, nothing) of every row; ranks share out the files."""
    files = list_files(paths)
    kinds = {TABLES.get(path.suffix.lower()) for path in files}
    if kinds <= {None}:
        if column is not None:
            raise UsageError(f"column is for tables ({', '.join(TABLES)}): lines of text have none")
        return mr.map_pieces(files, _every_line)
    if len(kinds) > 1:
        raise UsageError("the files are of several kinds: give those of each by themselves")
    if column is None:
        raise UsageError("a table needs column=: the name of the one that has the keys")
    form = str(kinds.pop())
    mine = files[mr.communicator.rank :: mr.communicator.size]
    return mr.keyvalue((batch, None) for path in mine for batch in _column(path, form, column))


def _column(path: Path, form: str, column: str) -> Iterator[Any]:
    import pyarrow as pa
    from pyarrow import dataset

    try:
        table = dataset.dataset(path, format=form)
        if column not in table.schema.names:
            raise InputError(f"has no column {column!r}, only {', '.join(table.schema.names)}", path=path)
        for batch in table.to_batches(columns=[column], batch_size=_ROWS, batch_readahead=1, fragment_readahead=1):
            yield batch.column(0)
    except (pa.ArrowException, OSError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"cannot be read: {str(error).splitlines()[0]}", path=path) from None


__all__ = ["TABLES", "keys_of"]
