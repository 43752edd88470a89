"""Right answers as the tables that runs write, and ways to spoil them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

import cases
import oracle
from penstock.graph import Graph
from penstock.verify.reading import REFERENCES

COLUMNS: dict[str, dict[str, pa.DataType | None]] = {
    "pagerank": {"rank": pa.float64()},
    "ppr": {"rank": pa.float64()},
    "bfs": {"level": pa.uint32(), "parent": None},
    "sssp": {"distance": None, "parent": None},
    "wcc": {"component": None},
    "scc": {"component": None},
    "cdlp": {"label": None},
    "degree": {"out_degree": pa.int64(), "in_degree": pa.int64(), "degree": pa.int64()},
    "kcore": {"core": pa.int64()},
    "betweenness": {"betweenness": pa.float64()},
    "closeness": {"closeness": pa.float64()},
    "hits": {"hub": pa.float64(), "authority": pa.float64()},
    "triangles": {"triangles": pa.int64()},
    "lcc": {"lcc": pa.float64()},
    "scan": {"cluster": None, "core": pa.bool_(), "hub": pa.bool_()},
    "neighborhood": {"level": pa.uint32()},
}
"""None: as the ids, or as the weights are."""


def answer(name: str, graph: Graph, g: oracle.G, options: Mapping[str, Any]) -> pa.Table:
    """What the oracle says, as a run would write it."""
    right = cases.expected(name, g, options)
    several = isinstance(next(iter(right.values()), None), tuple)
    rows = [(v, *(value if several else (value,))) for v, value in right.items()]
    names = ["vertex", *list(COLUMNS[name])[: len(rows[0]) - 1 if rows else None]]
    ids = graph.store.ids.arrow_type
    whole = "weight" in graph.columns and graph.columns["weight"].startswith(("int", "uint"))
    weight = pa.int64() if whole else pa.float64()
    kinds = [ids if column in REFERENCES else COLUMNS[name].get(column) or weight for column in names]
    columns = list(zip(*rows, strict=True)) or [()] * len(names)
    arrays = [pa.array(list(values), kind) for values, kind in zip(columns, kinds, strict=True)]
    return pa.table(arrays, names)


def spoiled(table: pa.Table, column: str, changes: Mapping[Any, Any]) -> pa.Table:
    """The table with other values in one column, by vertex."""
    values = dict(zip(table["vertex"].to_pylist(), table[column].to_pylist(), strict=True))
    assert all(vertex in values and values[vertex] != value for vertex, value in changes.items())
    values |= changes
    at = table.column_names.index(column)
    return table.set_column(at, column, pa.array(list(values.values()), table[column].type))
