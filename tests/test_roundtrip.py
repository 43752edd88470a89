"""What goes in comes out: the same edges, ids and columns, through every format, encoding and order."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import oracle
import penstock as pk

ENCODINGS = [None, "logical6", "physical22", "physical33", "physical24", "physical42"]
KINDS: dict[str, tuple[pa.DataType, st.SearchStrategy[Any]]] = {
    "int": (pa.int64(), st.integers(-(2**63), 2**63 - 1)),
    "byte": (pa.uint8(), st.integers(0, 255)),
    "real": (pa.float64(), st.floats(allow_nan=False, allow_infinity=False)),
    "single": (pa.float32(), st.floats(width=32, allow_nan=False, allow_infinity=False)),
    "flag": (pa.bool_(), st.booleans()),
    "when": (
        pa.timestamp("us", tz="UTC"),
        st.datetimes(datetime(1970, 1, 2), datetime(2200, 1, 1)).map(lambda t: t.replace(tzinfo=UTC)),
    ),
}
IDS: dict[str, st.SearchStrategy[Any]] = {
    "small": st.integers(0, 40),
    "sparse": st.integers(0, 40).map(lambda k: k * 99_999_999_977),
    "negative": st.integers(-20, 20),
    "unsigned": st.integers(0, 40).map(lambda k: k + 2**63 - 20),
    "string": st.integers(0, 40).map(lambda k: f"v{k}" if k % 2 else f"straße {k}, «{k}»"),
}


@st.composite
def tables(draw: st.DrawFn, ids: str, columns: list[str], size: int = 80) -> tuple[pa.Table, list[tuple[Any, ...]]]:
    """A table of edges in which some vertices have very many, and the same as a list of rows."""
    hub = draw(IDS[ids])
    ends = IDS[ids] | st.just(hub)
    row = st.tuples(ends, ends, *(KINDS[name][1] for name in columns))
    rows = draw(st.lists(row, min_size=1, max_size=size))
    kind = {"string": pa.string(), "unsigned": pa.uint64()}.get(ids, pa.int64())
    types = [kind, kind, *(KINDS[name][0] for name in columns)]
    names = ["source", "target", *columns]
    arrays = [pa.array([r[k] for r in rows], types[k]) for k in range(len(names))]
    # What the types made of the values (32-bit floats) is what must come back.
    return pa.table(arrays, names=names), [tuple(r.values()) for r in pa.table(arrays, names=names).to_pylist()]


def edges_of(graph: pk.Graph, columns: list[str] | None = None) -> Counter[tuple[Any, ...]]:
    return Counter(tuple(row.values()) for batch in graph.edge_batches(columns) for row in batch.to_pylist())


def ingest(source: Any, folder: Path, name: str, **options: Any) -> pk.Graph:
    return pk.ingest(source, folder / f"{name}.pen", page_size=4096, memory_limit="64MB", **options)


choices = st.fixed_dictionaries(
    {"encoding": st.sampled_from(ENCODINGS), "order": st.sampled_from(["degree", "input"]), "undirected": st.booleans()}
)


@settings(max_examples=40)
@given(data=st.data(), ids=st.sampled_from(list(IDS)), choice=choices, ending=st.sampled_from(["parquet", "arrow"]))
def test_tables(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject, ids: str, choice: Any, ending: str
) -> None:
    folder = tmp_path_factory.mktemp("t")
    table, rows = data.draw(tables(ids, list(KINDS)))
    expected = oracle.kept_edges(rows, undirected=choice["undirected"], duplicates="keep")
    graph = ingest(table, folder, "a", duplicates="keep", **choice)
    assert edges_of(graph) == expected
    pk.export(graph, folder / f"e.{ending}")
    again = ingest(folder / f"e.{ending}", folder, "b", duplicates="keep", **choice)
    assert edges_of(again) == expected
    assert again.columns == graph.columns
    assert again.store.ids.kind == graph.store.ids.kind


@settings(max_examples=60)
@given(
    data=st.data(),
    ids=st.sampled_from(list(IDS)),
    choice=choices,
    ending=st.sampled_from(["csv", "tsv", "csv.gz", "tsv.zst", "csv.bz2"]),
)
def test_delimited_text(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject, ids: str, choice: Any, ending: str
) -> None:
    folder = tmp_path_factory.mktemp("d")
    columns = ["int", "real", "flag", "when"]
    table, rows = data.draw(tables(ids, columns))
    expected = oracle.kept_edges(rows, undirected=choice["undirected"], duplicates="keep")
    pk.export(ingest(table, folder, "a", duplicates="keep", undirected=choice["undirected"]), folder / f"e.{ending}")
    types = {name: str(KINDS[name][0]) for name in columns}
    mode = "string" if ids == "string" else "integer"
    again = ingest(folder / f"e.{ending}", folder, "b", duplicates="keep", types=types, ids=mode, **choice)
    assert edges_of(again) == expected


@settings(max_examples=40)
@given(data=st.data(), choice=choices, ending=st.sampled_from(["txt", "txt.gz", "el", "wel"]))
def test_plain_text(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject, choice: Any, ending: str) -> None:
    folder = tmp_path_factory.mktemp("x")
    columns = ["real"] if ending == "wel" else []
    table, rows = data.draw(tables("small", columns))
    expected = oracle.kept_edges(rows, undirected=choice["undirected"], duplicates="keep")
    pk.export(ingest(table, folder, "a", duplicates="keep", undirected=choice["undirected"]), folder / f"e.{ending}")
    again = ingest(folder / f"e.{ending}", folder, "b", duplicates="keep", **choice)
    assert edges_of(again) == expected


@settings(max_examples=60)
@given(
    ends=st.lists(st.tuples(st.integers(1, 9), st.integers(1, 9)), min_size=1, max_size=60, unique=True),
    encoding=st.sampled_from(ENCODINGS),
    order=st.sampled_from(["degree", "input"]),
    ending=st.sampled_from(["mtx", "mtx.gz", "gr", "graph", "properties"]),
    undirected=st.booleans(),
    seed=st.integers(0, 99),
)
def test_formats_with_a_vertex_count(
    tmp_path_factory: pytest.TempPathFactory,
    ends: list[tuple[int, int]],
    encoding: str | None,
    order: str,
    ending: str,
    undirected: bool,
    seed: int,
) -> None:
    """Formats that number vertices 1..n: isolated ones come back too."""
    folder = tmp_path_factory.mktemp("n")
    undirected = {"gr": False, "graph": True}.get(ending, undirected)
    if ending in ("graph", "properties"):
        ends = [end for end in ends if end[0] != end[1]] or [(1, 2)]
    weights = np.random.default_rng(seed).integers(1, 1000, len(ends))
    rows = [(u, v, int(w)) for (u, v), w in zip(ends, weights, strict=True)]
    options: dict[str, Any] = {"undirected": undirected, "duplicates": "merge"}
    columns = {"source": [r[0] for r in rows], "target": [r[1] for r in rows], "weight": weights}
    graph = ingest(columns, folder, "a", vertices={"id": np.arange(1, 10)}, **options)
    expected = oracle.kept_edges(rows, **options)
    assert edges_of(graph) == expected
    pk.export(graph, folder / f"e.{ending}")
    again = ingest(folder / f"e.{ending}", folder, "b", encoding=encoding, order=order)
    assert edges_of(again) == expected
    assert again.directed == (not undirected)
    assert sorted(again.users().to_pylist()) == list(range(1, 10))


@settings(max_examples=40)
@given(data=st.data(), ids=st.sampled_from(["small", "negative", "string"]), choice=choices)
def test_objects(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject, ids: str, choice: Any) -> None:
    folder = tmp_path_factory.mktemp("o")
    table, rows = data.draw(tables(ids, ["int", "real"]))
    expected = oracle.kept_edges(rows, undirected=choice["undirected"], duplicates="keep")
    arrays = {name: table.column(name).to_numpy() for name in table.column_names}
    for name, source in {
        "dict": arrays,
        "pandas": table.to_pandas(),
        "polars": pl.from_arrow(table),
        "reader": table.to_reader(max_chunksize=7),
    }.items():
        graph = ingest(source, folder, name, duplicates="keep", **choice)
        assert edges_of(graph) == expected, name
    assert edges_of(ingest(pk.to_arrow(graph), folder, "arrow", duplicates="keep", **choice)) == expected
    assert edges_of(ingest(pk.to_numpy(graph), folder, "numpy", duplicates="keep", **choice)) == expected
    assert edges_of(ingest(pd.DataFrame(pk.to_numpy(graph)), folder, "frame", duplicates="keep", **choice)) == expected
    network = pk.to_networkx(graph)
    assert edges_of(ingest(network, folder, "networkx", **choice | {"duplicates": "keep"})) == expected
    assert isinstance(network, nx.Graph)


@settings(max_examples=30)
@given(data=st.data(), choice=choices)
def test_scipy(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject, choice: Any) -> None:
    folder = tmp_path_factory.mktemp("s")
    table, rows = data.draw(tables("small", ["real"]))
    wanted = oracle.kept_edges(rows, duplicates="drop")
    graph = ingest(table, folder, "a", duplicates="drop", vertices={"id": np.arange(41)})
    matrix = pk.to_scipy(graph, weight="real")
    for form in ("csr", "csc", "coo"):
        again = ingest(matrix.asformat(form), folder, form, undirected=False, encoding=choice["encoding"])
        assert edges_of(again) == wanted
        assert again.vertices == 41
