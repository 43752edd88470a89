"""Files written by export, read back by other libraries."""

from __future__ import annotations

import bz2
import errno
import gzip
import io
import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.io

import penstock
from graphs import ids_of, make_graph, random_edges
from penstock.errors import DiskFull, StoreError, TargetExists, TargetLocked, UsageError
from penstock.export.files import export_graph, export_vertices
from penstock.graph import Graph

EDGES = 4000
HARD = [0.1, 1 / 3, 1e23, 5e-324, -0.0, 100.0, 1e16, float("inf"), float("nan"), -2.5e-300, 123456789.0]


def hard_columns(count: int) -> dict[str, pa.Array]:
    rng = np.random.default_rng(7)
    real = rng.random(count)
    real[: len(HARD)] = HARD
    bits = rng.integers(0, 1 << 32, count, dtype=np.uint32).view(np.float32)
    single = np.where(np.isnan(bits), np.float32(0.1), bits)
    when = rng.integers(-(10**15), 10**15, count)
    return {
        "real": pa.array(real),
        "single": pa.array(single),
        "whole": pa.array(rng.integers(-(1 << 63), (1 << 63) - 1, count)),
        "big": pa.array(rng.integers(0, (1 << 64) - 1, count, dtype=np.uint64)),
        "ok": pa.array(rng.random(count) < 0.5),
        "when": pa.array(when, pa.timestamp("us")),
        "zoned": pa.array(when * 1000, pa.timestamp("ns", "Europe/Berlin")),
        "day": pa.array(rng.integers(-9999, 9999, count).astype(np.int32), pa.date32()),
    }


def as_ids(kind: str, numbers: np.ndarray) -> list[Any]:
    if kind == "string":
        marks = ["{}", "name {}", 'q"{}"', "#{}", "%{}", "//{}", "a,b{}", "é\t{}", "{} "]
        return [marks[number % len(marks)].format(number) for number in numbers.tolist()]
    shift = {"int64": -700, "uint64": (1 << 63) + 5, "one": 1, "plain": 0}[kind]
    return [number + shift for number in numbers.tolist()]


def graph_of(path: Path, kind: str = "plain", *, columns: Any = None, **options: Any) -> tuple[Graph, Counter]:
    """A random graph, and its edges as a multiset of rows."""
    source, target = random_edges(11, 300, EDGES)
    us, vs = as_ids(kind, source), as_ids(kind, target)
    graph = make_graph(path, us, vs, columns, duplicates="keep", **options)
    ends = zip(us, vs, strict=True)
    if options.get("undirected"):
        order = (lambda v: v.encode()) if kind == "string" else None
        ends = (tuple(sorted(pair, key=order)) for pair in ends)  # type: ignore[assignment]
    values = [column.to_pylist() for column in (columns or {}).values()]
    return graph, Counter((*pair, *rest) for pair, *rest in zip(ends, *values, strict=True))


def split_rows(text: str) -> Iterator[list[str]]:
    return (line.split() for line in text.splitlines() if line and line[0] not in "%c")


@pytest.fixture
def out(tmp_path: Path) -> Path:
    folder = tmp_path / "out"
    folder.mkdir()
    return folder


@pytest.fixture(autouse=True)
def no_litter(tmp_path: Path) -> Iterator[None]:
    yield
    assert not [path for path in tmp_path.rglob("*") if path.name.startswith((".", "penstock-spill"))]


# ---- edge lists


@pytest.mark.parametrize("undirected", [False, True])
@pytest.mark.parametrize("kind", ["plain", "int64", "uint64", "string"])
@pytest.mark.parametrize("name", ["e.csv", "e.tsv", "e.txt", "e.csv.gz", "e.tsv.zst", "e.edges.bz2"])
def test_edge_lists(tmp_path: Path, out: Path, name: str, kind: str, undirected: bool) -> None:
    graph, expected = graph_of(tmp_path, kind, undirected=undirected)
    path = export_graph(graph, out / name)
    assert path == out / name
    header = 0 if name.startswith(("e.csv", "e.tsv")) else None
    mark = "," if ".csv" in name else "\t" if ".tsv" in name else " "
    # Read through pyarrow: pandas itself would need a package for zstd.
    raw = pa.input_stream(path).read()
    dtype: Any = {"string": str, "int64": np.int64, "plain": np.int64, "uint64": np.uint64}[kind]
    frame = pd.read_csv(io.BytesIO(raw), header=header, sep=mark, dtype=dtype, keep_default_na=False)
    if header == 0:
        assert list(frame.columns) == ["source", "target"]
    assert Counter(zip(*(frame[column].tolist() for column in frame.columns), strict=True)) == expected


def test_compressed_files_are_what_they_say(tmp_path: Path, out: Path) -> None:
    graph, _ = graph_of(tmp_path)
    plain = export_graph(graph, out / "e.csv").read_bytes()
    assert gzip.decompress(export_graph(graph, out / "e.csv.gz").read_bytes()) == plain
    assert bz2.decompress(export_graph(graph, out / "e.csv.bz2").read_bytes()) == plain
    zstd = export_graph(graph, out / "e.csv.zst").read_bytes()
    assert zstd[:4] == b"\x28\xb5\x2f\xfd"
    assert pa.input_stream(out / "e.csv.zst").read() == plain


@pytest.mark.parametrize("undirected", [False, True])
@pytest.mark.parametrize("name", ["e.csv", "e.txt"])
def test_column_values_read_back_bit_for_bit(tmp_path: Path, out: Path, name: str, undirected: bool) -> None:
    columns = hard_columns(EDGES)
    graph, _ = graph_of(tmp_path, columns=columns, undirected=undirected)
    export_graph(graph, out / name)
    wanted = pa.Table.from_batches(graph.edge_batches())
    names = ["source", "target", *columns]
    # Plain Python: what a reader does who knows no more than the text.
    fields = [line.split("," if name == "e.csv" else " ") for line in (out / name).read_text().splitlines()]
    if name == "e.csv":
        assert fields.pop(0) == names
    rows = dict(zip(names, zip(*fields, strict=True), strict=True))
    for integer in ("source", "target", "whole", "big"):
        assert list(map(int, rows[integer])) == wanted[integer].to_pylist()
    for real in ("real", "single"):
        read = np.array(list(map(float, rows[real])))
        assert (read.view(np.uint64) == np.asarray(wanted[real]).astype(np.float64).view(np.uint64)).all()
        assert not any(value.lstrip("-").isdigit() for value in rows[real]), "a float must not look like an integer"
    assert [value == "true" for value in rows["ok"]] == wanted["ok"].to_pylist()
    assert (np.array(rows["when"], "datetime64[us]") == wanted["when"].to_numpy()).all()
    utc = np.array([value.removesuffix("Z") for value in rows["zoned"]], "datetime64[ns]")
    assert all(value.endswith("Z") for value in rows["zoned"])
    assert (utc == np.asarray(wanted["zoned"].cast(pa.timestamp("ns", "UTC")).cast(pa.int64())).view("M8[ns]")).all()
    assert (np.array(rows["day"], "datetime64[D]") == wanted["day"].to_numpy()).all()


def test_chosen_columns_in_the_order_asked_for(tmp_path: Path, out: Path) -> None:
    columns = {"a": pa.array(range(EDGES)), "b": pa.array([0.5] * EDGES)}
    graph, _ = graph_of(tmp_path, columns=columns)
    export_graph(graph, out / "some.csv", columns=["b", "a"])
    assert (out / "some.csv").open().readline() == "source,target,b,a\n"
    export_graph(graph, out / "none.csv", columns=[])
    assert (out / "none.csv").open().readline() == "source,target\n"


def test_names_are_quoted_in_the_header(tmp_path: Path, out: Path) -> None:
    graph = make_graph(tmp_path, [1], [2], {'a "b",c': pa.array([1])})
    export_graph(graph, out / "e.csv")
    assert list(pd.read_csv(out / "e.csv").columns) == ["source", "target", 'a "b",c']


def test_gap_files(tmp_path: Path, out: Path) -> None:
    weight = {"w": pa.array(np.random.default_rng(1).integers(1, 256, EDGES))}
    graph, expected = graph_of(tmp_path, columns=weight)
    export_graph(graph, out / "e.wel")
    assert Counter(tuple(map(int, row)) for row in split_rows((out / "e.wel").read_text())) == expected
    export_graph(graph, out / "e.el", columns=[])
    read = nx.read_edgelist(out / "e.el", nodetype=int, create_using=nx.MultiDiGraph)
    assert Counter(read.edges()) == Counter(edge[:2] for edge in expected.elements())
    export_graph(graph, out / "one.wel", weight=1)
    assert {row[2] for row in split_rows((out / "one.wel").read_text())} == {"1"}


@pytest.mark.parametrize(("name", "word"), [("e.el", "write .wel"), ("e.wel", "choose one with columns=")])
def test_gap_refusals(tmp_path: Path, out: Path, name: str, word: str) -> None:
    columns = {"a": pa.array([1])} if name == "e.el" else {"a": pa.array([1]), "b": pa.array([1])}
    graph = make_graph(tmp_path, [1], [2], columns)
    with pytest.raises(UsageError, match=word):
        export_graph(graph, out / name)
    bare = make_graph(tmp_path, [1], [2])
    with pytest.raises(UsageError, match="needs a weight"):
        export_graph(bare, out / "e.wel")
    with pytest.raises(UsageError, match=r"begin at 0, but .* has vertex -1"):
        export_graph(make_graph(tmp_path, [-1], [2]), out / "e.el")
    with pytest.raises(UsageError, match=r"ids of .* are strings"):
        export_graph(make_graph(tmp_path, ["a"], ["b"]), out / "e.el")
    assert list(out.iterdir()) == []


def test_ids_with_line_breaks_are_refused(tmp_path: Path, out: Path) -> None:
    graph = make_graph(tmp_path, ["a\nb"], ["c"])
    with pytest.raises(UsageError, match=r"'a\\nb' has a line break"):
        export_graph(graph, out / "e.csv")
    assert list(out.iterdir()) == []
    assert pq.read_table(export_graph(graph, out / "e.parquet")).to_pydict() == {"source": ["a\nb"], "target": ["c"]}


# ---- tables


@pytest.mark.parametrize("undirected", [False, True])
@pytest.mark.parametrize("kind", ["plain", "int64", "uint64", "string"])
@pytest.mark.parametrize("name", ["e.parquet", "e.arrow", "e.feather"])
def test_tables(tmp_path: Path, out: Path, name: str, kind: str, undirected: bool) -> None:
    columns = hard_columns(EDGES)
    graph, _ = graph_of(tmp_path, kind, columns=columns, undirected=undirected)
    path = export_graph(graph, out / name)
    read = pq.read_table(path) if name == "e.parquet" else pa.ipc.open_file(path).read_all()
    assert read.schema.names == ["source", "target", *columns]
    assert read.schema.field("single").type == pa.float32()
    assert read.schema.field("zoned").type == pa.timestamp("ns", "Europe/Berlin")
    # NaN is not equal to itself: rows are compared by `whole`, which tells them apart, and the bits beside it.
    given = pa.table({"source": ids_of(as_ids(kind, random_edges(11, 300, EDGES)[0])), **columns})
    read, given = (table.sort_by("whole") for table in (read, given))
    if not undirected:
        assert read["source"].equals(given["source"])
    for column in columns:
        a, b = (np.asarray(table[column].to_numpy()) for table in (read, given))
        assert (a == b).all() if a.dtype.kind != "f" else (a.tobytes() == b.tobytes())


@pytest.mark.parametrize("name", ["e.parquet", "e.arrow"])
def test_table_compression(tmp_path: Path, out: Path, name: str) -> None:
    graph, _ = graph_of(tmp_path)
    export_graph(graph, out / name, compression="zstd")
    export_graph(graph, out / f"plain-{name}", compression="none")
    assert (out / name).stat().st_size < (out / f"plain-{name}").stat().st_size
    with pytest.raises(UsageError, match="cannot be compressed by 'rar': choose "):
        export_graph(graph, out / name, compression="rar", overwrite=True)
    with pytest.raises(UsageError, match=r"leave \.gz out"):
        export_graph(graph, out / f"{name}.gz")


# ---- Matrix Market


@pytest.mark.parametrize("undirected", [False, True])
@pytest.mark.parametrize("column", [None, "real", "whole", "big", "ok"])
def test_matrix_market(tmp_path: Path, out: Path, column: str | None, undirected: bool) -> None:
    columns = {column: hard_columns(EDGES)[column]} if column else None
    if column == "real":
        columns = {"real": pa.array(np.random.default_rng(1).random(EDGES))}
    graph, expected = graph_of(tmp_path, "one", columns=columns, undirected=undirected, vertices=range(1, 351))
    path = export_graph(graph, out / "e.mtx")
    banner = path.open().readline().split()
    kinds = {None: "pattern", "real": "real", "whole": "integer", "big": "unsigned-integer", "ok": "integer"}
    assert banner[3:] == [kinds[column], "symmetric" if undirected else "general"]
    entries = list(split_rows(path.read_text()))
    assert entries.pop(0) == ["350", "350", str(EDGES)]
    number = float if column == "real" else int
    ends = slice(None, None, -1) if undirected else slice(None)
    assert Counter((*list(map(int, row[:2]))[ends], *map(number, row[2:])) for row in entries) == expected
    if column in (None, "real", "ok"):  # sums of the others leave 64 bits
        dense = np.zeros((350, 350))
        for u, v, *value in expected.elements():
            dense[u - 1, v - 1] += value[0] if value else 1
            if undirected and u != v:
                dense[v - 1, u - 1] += value[0] if value else 1
        np.testing.assert_allclose(scipy.io.mmread(path).toarray(), dense, rtol=1e-12)


@pytest.mark.parametrize("kind", ["plain", "int64", "uint64", "string"])
def test_matrix_market_renumbers_only_when_told(tmp_path: Path, out: Path, kind: str) -> None:
    graph, expected = graph_of(tmp_path, kind)
    with pytest.raises(UsageError, match=r"numbers its vertices 1 to n.*renumber=True"):
        export_graph(graph, out / "e.mtx")
    assert list(out.iterdir()) == []
    lines = export_graph(graph, out / "e.mtx", renumber=True).read_text().splitlines()
    assert lines[1].startswith("%")
    assert "renumbered 1 to n in order of their ids" in lines[1]
    ids = [v for batch in graph.vertex_batches([]) for v in batch.column("id").to_pylist()]
    assert ids == sorted(ids, key=lambda v: v.encode() if isinstance(v, str) else v)
    read = scipy.io.mmread(out / "e.mtx")
    assert Counter((ids[i], ids[j]) for i, j in zip(read.row, read.col, strict=True)) == expected


def test_matrix_market_refusals(tmp_path: Path, out: Path) -> None:
    graph = make_graph(tmp_path, [1], [2], {"t": pa.array([1], pa.timestamp("s")), "w": pa.array([1])})
    with pytest.raises(UsageError, match="holds one column, not t, w"):
        export_graph(graph, out / "e.mtx")
    with pytest.raises(UsageError, match=r"'t' is timestamp\[s\]"):
        export_graph(graph, out / "e.mtx", columns=["t"])
    export_graph(graph, out / "e.mtx", weight="w")
    assert (out / "e.mtx").read_text().splitlines()[-1] == "1 2 1"


# ---- METIS


def simple_edges(seed: int, vertices: int, edges: int) -> tuple[list[int], list[int]]:
    """Ends from 1 without loops and repetitions; some vertices have none, vertex 1 has many."""
    rng = np.random.default_rng(seed)
    pairs = {tuple(sorted(pair)) for pair in rng.integers(2, vertices, (edges, 2)).tolist() if pair[0] != pair[1]}
    pairs |= {(1, v) for v in range(2, vertices, 2)}
    us, vs = zip(*sorted(pairs, key=lambda pair: hash((pair, seed))), strict=True)
    return list(us), list(vs)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("memory", ["64MB", "100kB"])
def test_metis(tmp_path: Path, out: Path, weighted: bool, memory: str) -> None:
    us, vs = simple_edges(1, 3000, 4000)
    columns = {"w": pa.array(np.random.default_rng(3).integers(1, 1 << 60, len(us)))} if weighted else None
    graph = make_graph(tmp_path, us, vs, columns, undirected=True, vertices=range(1, 3006))
    path = export_graph(graph, out / "e.graph", memory_limit=memory)
    head, *lines = path.read_text().split("\n")
    assert lines.pop() == ""
    assert head == f"3005 {len(us)}{' 001' if weighted else ''}"
    assert len(lines) == 3005
    weights = columns["w"].to_pylist() if columns else [None] * len(us)
    expected: dict[int, dict[int, Any]] = {v: {} for v in range(1, 3006)}
    for u, v, w in zip(us, vs, weights, strict=True):
        expected[u][v] = expected[v][u] = w
    for vertex, line in enumerate(lines, 1):
        words = list(map(int, line.split()))
        found = zip(words[::2], words[1::2], strict=True) if weighted else ((word, None) for word in words)
        assert list(found) == sorted(expected[vertex].items())


def test_metis_refusals(tmp_path: Path, out: Path) -> None:
    def refused(why: str, *args: Any, **options: Any) -> None:
        with pytest.raises(UsageError, match=why):
            export_graph(make_graph(tmp_path, *args, **options), out / "e.graph")
        assert list(out.iterdir()) == []

    refused("holds undirected graphs", [1], [2])
    refused("self-loops, and vertex 2 has one", [1, 2], [2, 2], undirected=True)
    refused("an edge twice, and there are several between 1 and 2", [1, 2], [2, 1], undirected=True, duplicates="keep")
    refused("1 to n", [0], [1], undirected=True)
    refused("an integer for each edge", [1], [2], {"w": pa.array([0.5])}, undirected=True)
    refused("at least 1, but column 'w' has 0", [1], [2], {"w": pa.array([0])}, undirected=True)
    renumbered = make_graph(tmp_path, ["a"], ["b"], undirected=True)
    lines = export_graph(renumbered, out / "r.graph", renumber=True).read_text().splitlines()
    assert lines[0].startswith("% vertices were renumbered")
    assert lines[1:] == ["2 1", "2", "1"]


# ---- DIMACS


@pytest.mark.parametrize("undirected", [False, True])
def test_dimacs(tmp_path: Path, out: Path, undirected: bool) -> None:
    weight = {"w": pa.array(np.random.default_rng(5).integers(-100, 100, EDGES))}
    graph, edges = graph_of(tmp_path, "one", columns=weight, undirected=undirected)
    expected = Counter(edges)
    if undirected:
        expected.update(Counter({(v, u, w): count for (u, v, w), count in edges.items() if u != v}))
    head, *lines = export_graph(graph, out / "e.gr").read_text().splitlines()
    assert head == f"p sp {graph.vertices} {sum(expected.values())}"
    assert {line[:2] for line in lines} == {"a "}
    assert Counter(tuple(map(int, line[2:].split(" "))) for line in lines) == expected


def test_dimacs_weights(tmp_path: Path, out: Path) -> None:
    graph = make_graph(tmp_path, [1], [2], {"w": pa.array([7]), "f": pa.array([0.5])})
    with pytest.raises(UsageError, match="holds one column"):
        export_graph(graph, out / "e.gr")
    with pytest.raises(UsageError, match="an integer for each arc, but column 'f' is double"):
        export_graph(graph, out / "e.gr", weight="f")
    with pytest.raises(UsageError, match="needs a weight"):
        export_graph(graph, out / "e.gr", columns=[])
    with pytest.raises(UsageError, match="both name columns"):
        export_graph(graph, out / "e.gr", columns=["w"], weight="w")
    assert export_graph(graph, out / "e.gr", weight="w").read_text() == "p sp 2 1\na 1 2 7\n"
    assert export_graph(graph, out / "one.gr", weight=1).read_text() == "p sp 2 1\na 1 2 1\n"
    strings = make_graph(tmp_path, ["b"], ["a"])
    text = export_graph(strings, out / "r.gr", weight=1, renumber=True).read_text()
    assert text == "c vertices were renumbered 1 to n in order of their ids\np sp 2 1\na 2 1 1\n"


# ---- LDBC


@pytest.mark.parametrize("undirected", [False, True])
@pytest.mark.parametrize("kind", ["plain", "uint64"])
@pytest.mark.parametrize("memory", ["64MB", "100kB"])
def test_ldbc(tmp_path: Path, out: Path, kind: str, undirected: bool, memory: str) -> None:
    values = np.random.default_rng(6).random(EDGES)
    columns = {"cost": pa.array(values), "n": pa.array(range(EDGES))}
    lonely = as_ids(kind, np.arange(310))
    graph, expected = graph_of(tmp_path, kind, columns=columns, undirected=undirected, vertices=lonely)
    export_graph(graph, out / "g.properties", memory_limit=memory)
    assert sorted(path.name for path in out.iterdir()) == ["g.e", "g.properties", "g.v"]
    lines = [line.split(" = ") for line in (out / "g.properties").read_text().splitlines() if line[0] != "#"]
    assert {key.removeprefix("graph.g."): value for key, value in lines} == {
        "vertex-file": "g.v",
        "edge-file": "g.e",
        "meta.vertices": "310",
        "meta.edges": str(EDGES),
        "directed": str(not undirected).lower(),
        "edge-properties.names": "cost, n",
        "edge-properties.types": "real, integer",
    }
    assert list(map(int, (out / "g.v").read_text().split())) == lonely
    rows = [line.split(" ") for line in (out / "g.e").read_text().splitlines()]
    edges = [(int(u), int(v), float(cost), int(n)) for u, v, cost, n in rows]
    assert Counter(edges) == expected
    assert [edge[:2] for edge in edges] == sorted(edge[:2] for edge in edges)


def test_ldbc_refusals(tmp_path: Path, out: Path) -> None:
    with pytest.raises(UsageError, match="has vertex -1"):
        export_graph(make_graph(tmp_path, [-1], [2]), out / "g.properties")
    with pytest.raises(UsageError, match="integer or real, but column 'ok' is bool"):
        export_graph(make_graph(tmp_path, [1], [2], {"ok": pa.array([True])}), out / "g.properties")
    (out / "g.e").write_text("mine")
    with pytest.raises(TargetExists, match=r"g\.e exists"):
        export_graph(make_graph(tmp_path, [1], [2]), out / "g.properties")
    assert [path.name for path in out.iterdir()] == ["g.e"]
    export_graph(make_graph(tmp_path, [1], [2]), out / "g.properties", overwrite=True)
    assert (out / "g.e").read_text() == "1 2\n"


# ---- vertices


@pytest.mark.parametrize("name", ["v.parquet", "v.csv", "v.tsv.gz", "v.arrow"])
def test_vertices(tmp_path: Path, out: Path, name: str) -> None:
    ids = ["b", "é x", "a", "lonely"]
    graph = make_graph(
        tmp_path, ["b", "a"], ["é x", "b"], vertices=ids, vertex_columns={"size": pa.array([1.0, 0.1, 3.5, 4.0])}
    )
    path = export_vertices(graph, out / name)
    if name == "v.parquet":
        frame = pd.read_parquet(path)
    elif name == "v.arrow":
        frame = pa.ipc.open_file(path).read_pandas()
    else:
        frame = pd.read_csv(path, sep="," if name == "v.csv" else "\t")
    assert frame.to_dict("list") == {"id": ["a", "b", "lonely", "é x"], "size": [3.5, 1.0, 4.0, 0.1]}
    export_vertices(graph, path, columns=["out_degree"], overwrite=True)
    with pytest.raises(UsageError, match="no vertex column 'x'"):
        export_vertices(graph, path, columns=["x"], overwrite=True)
    with pytest.raises(UsageError, match="does not end in one of"):
        export_vertices(graph, out / "v.mtx")


# ---- empty graphs


@pytest.mark.parametrize("undirected", [False, True])
def test_empty_graphs(tmp_path: Path, out: Path, undirected: bool) -> None:
    for count in (0, 3):
        columns = {"w": pa.array([], pa.int64())}
        graph = make_graph(tmp_path, [], [], columns, undirected=undirected, vertices=range(1, count + 1) or None)
        for name in ("e.csv", "e.txt", "e.parquet", "e.arrow", "e.mtx", "e.gr", "e.wel", "e.properties", "e.txt.zst"):
            export_graph(graph, out / name, overwrite=True)
        assert (out / "e.csv").read_text() == "source,target,w\n"
        assert (out / "e.txt").read_text() == ""
        assert pq.read_table(out / "e.parquet").num_rows == 0
        assert (out / "e.mtx").read_text().splitlines()[1] == f"{count} {count} 0"
        assert (out / "e.v").read_text() == "1\n2\n3\n"[: 2 * count]
        if undirected:
            export_graph(graph, out / "e.graph", overwrite=True)
            assert (out / "e.graph").read_text() == f"{count} 0 001\n" + "\n" * count
        export_vertices(graph, out / "v.csv", overwrite=True)
        assert pd.read_csv(out / "v.csv")["id"].tolist() == list(range(1, count + 1))


# ---- complete or nothing


def test_targets(tmp_path: Path, out: Path) -> None:
    graph = make_graph(tmp_path, [1], [2])
    path = export_graph(graph, out / "e.csv")
    with pytest.raises(TargetExists, match=r"e\.csv exists: choose another name or pass --overwrite"):
        export_graph(graph, path)
    export_graph(graph, path, overwrite=True)
    with pytest.raises(StoreError, match="there is no folder"):
        export_graph(graph, out / "no" / "e.csv")
    (out / "d.csv").mkdir()
    with pytest.raises(TargetExists, match="is not a file"):
        export_graph(graph, out / "d.csv", overwrite=True)
    for bad, word in {"format": "bson", "compression": "gzip", "renumber": True, "weight": 3, "nonsense": 1}.items():
        with pytest.raises(UsageError, match=bad if bad != "compression" else r"\.gz"):
            export_graph(graph, out / "f.csv", **{bad: word})
    with pytest.raises(UsageError, match=r"does not end in one of \.txt"):
        export_graph(graph, out / "e.doc")
    assert export_graph(graph, out / "e.doc", format="csv").read_text() == "source,target\n1,2\n"
    assert sorted(entry.name for entry in out.iterdir()) == ["d.csv", "e.csv", "e.doc"]


@pytest.mark.parametrize("name", ["e.csv", "e.csv.gz", "e.tsv.zst", "e.parquet", "e.arrow", "e.mtx", "g.properties"])
@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError(errno.ENOSPC, "No space left on device")])
def test_a_failure_leaves_nothing_behind(
    tmp_path: Path, out: Path, monkeypatch: pytest.MonkeyPatch, name: str, error: Any
) -> None:
    graph, _ = graph_of(tmp_path, "one")
    (out / name).write_text("old")
    real = Graph.edge_arrays

    def failing(*args: Any, **options: Any) -> Iterator[Any]:
        yield next(real(*args, **options))
        raise error

    monkeypatch.setattr(Graph, "edge_arrays", failing)
    with pytest.raises(KeyboardInterrupt if error is KeyboardInterrupt else DiskFull, match=r"no space|^$"):
        export_graph(graph, out / name, overwrite=True)
    assert [path.name for path in out.iterdir()] == [name]
    assert (out / name).read_text() == "old"


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no full device")
@pytest.mark.parametrize("format", ["csv", "parquet", "arrow", "matrix-market"])
def test_a_full_disk_is_said_so(tmp_path: Path, out: Path, monkeypatch: pytest.MonkeyPatch, format: str) -> None:
    """Every write fails as on a full disk: the writers are led to the device that is always full."""
    from penstock.export import files

    graph, _ = graph_of(tmp_path, "one")
    real = files._write
    monkeypatch.setattr(files, "_write", lambda job, partial, overwrite: real(job, Path("/dev/full"), overwrite))
    with pytest.raises(DiskFull, match="no space left on the disk"):
        export_graph(graph, out / "e", format=format)
    assert list(out.iterdir()) == []


def test_two_runs_do_not_write_one_target(tmp_path: Path, out: Path) -> None:
    from penstock.store.whole import whole_file

    graph = make_graph(tmp_path, [1], [2])
    with whole_file(out / "e.csv") as partial:
        partial.write_text("first")
        with pytest.raises(TargetLocked, match="being written by another run"):
            export_graph(graph, out / "e.csv")
    assert (out / "e.csv").read_text() == "first"


def test_what_a_killed_run_left_is_used_again(tmp_path: Path, out: Path) -> None:
    (out / ".e.csv.tmp").write_text("x" * 1000)
    graph = make_graph(tmp_path, [1], [2])
    assert export_graph(graph, out / "e.csv").read_text() == "source,target\n1,2\n"


def test_two_columns_of_one_name(tmp_path: Path, out: Path) -> None:
    graph = make_graph(tmp_path, [1], [2], {"source": pa.array([5])})
    with pytest.raises(UsageError, match="two columns called 'source'"):
        export_graph(graph, out / "e.csv")
    export_graph(graph, out / "e.csv", columns=[])


def test_progress_is_told(tmp_path: Path, out: Path) -> None:
    events: list[Any] = []
    graph, _ = graph_of(tmp_path)
    export_graph(graph, out / "e.csv", progress=events.append)
    assert (events[-1].done, events[-1].total, events[-1].unit) == (EDGES, EDGES, "edges")
    assert events[-1].finished


def test_by_the_public_name(tmp_path: Path, out: Path) -> None:
    make_graph(tmp_path, [1, 2], [2, 3], {"w": pa.array([0.5, 2.0])}, order="input").close()
    path = penstock.export(tmp_path / "graph.pen", out / "e.csv", columns=["w"], memory_limit="64MB")
    assert path.read_text() == "source,target,w\n1,2,0.5\n2,3,2.0\n"
