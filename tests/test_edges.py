"""Edges: batches of a function, read as often as one likes."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from penstock import rows
from penstock.edges import Edges
from penstock.errors import TargetExists, UsageError

SCHEMA = pa.schema([("source", pa.int64()), ("target", pa.int64()), ("weight", pa.float64())])
ROWS = [(1, 2, 0.5), (1, 3, 1.5), (7, 7, 2.0), (9, 1, 1 / 3)]


def batch(part: list[tuple[int, int, float]]) -> pa.RecordBatch:
    columns = list(zip(*part, strict=True)) or [(), (), ()]
    arrays = [pa.array(list(values), field.type) for values, field in zip(columns, SCHEMA, strict=True)]
    return pa.record_batch(arrays, schema=SCHEMA)


def make() -> Iterator[pa.RecordBatch]:
    yield from (batch(ROWS[:1]), batch([]), batch(ROWS[1:3]), batch(ROWS[3:]))


EDGES = Edges(make, SCHEMA, {"seconds": 1})


def test_read_as_often_as_one_likes() -> None:
    for _ in range(2):
        assert [len(part) for part in EDGES.batches()] == [1, 2, 1]
        assert list(zip(*(column.to_pylist() for column in EDGES.table.columns), strict=True)) == ROWS
    assert EDGES.table.schema == EDGES.schema == SCHEMA
    assert EDGES.stats == {"seconds": 1}
    assert repr(EDGES) == "<penstock.Edges: source, target, weight>"
    assert pa.table(EDGES).equals(EDGES.table)
    assert list(EDGES.to_pandas().itertuples(index=False, name=None)) == ROWS
    with pytest.raises(TypeError):
        len(EDGES)  # type: ignore[arg-type]


def test_polars() -> None:
    pytest.importorskip("polars")
    assert EDGES.to_polars().rows() == ROWS


READERS: dict[str, Callable[[Path], Any]] = {
    "e.parquet": pd.read_parquet,
    "e.csv": pd.read_csv,
    "e.tsv": lambda path: pd.read_csv(path, sep="\t"),
    "e.txt": lambda path: pd.read_csv(path, sep=" ", names=SCHEMA.names),
    "e.json": lambda path: pd.read_json(path, lines=True, precise_float=True),
    "e.arrow": lambda path: pa.ipc.open_file(path).read_pandas(),
}


@pytest.mark.parametrize("name", READERS)
@pytest.mark.parametrize("edges", [EDGES, Edges(list, SCHEMA, {})], ids=["some", "none"])
def test_files(tmp_path: Path, name: str, edges: Edges) -> None:
    frame = READERS[name](edges.write(tmp_path / name))
    assert list(frame.itertuples(index=False, name=None)) == (ROWS if edges is EDGES else [])
    with pytest.raises(TargetExists):
        edges.write(tmp_path / name)
    with pytest.raises(UsageError, match="does not end in one of"):
        edges.write(tmp_path / "e.doc")


@pytest.mark.parametrize("group", [1, 2, 3, 100])
def test_small_batches_make_large_row_groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, group: int) -> None:
    monkeypatch.setattr(rows.Rows, "group", group)
    file = pq.ParquetFile(EDGES.write(tmp_path / "e.parquet"))
    assert file.read().equals(EDGES.table)
    sizes = [file.metadata.row_group(k).num_rows for k in range(file.num_row_groups)]
    assert sizes == {1: [1, 1, 1, 1], 2: [2, 1, 1], 3: [3, 1], 100: [4]}[group]


def test_times_in_json(tmp_path: Path) -> None:
    day = pa.record_batch({"when": [datetime.date(2020, 1, 2)]})
    path = Edges(lambda: [day], day.schema, {}).write(tmp_path / "e.json")
    assert path.read_text() == '{"when": "2020-01-02"}\n'
