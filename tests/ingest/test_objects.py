from __future__ import annotations

from typing import Any

import networkx as nx
import numpy as np
import pyarrow as pa
import pytest
import scipy.sparse as sp

from penstock.errors import InputError, UsageError
from penstock.ingest.source import EdgeSource
from penstock.ingest.tables.objects import open_object


def edges(obj: Any, *, memory: int = 1 << 20, **options: Any) -> dict[str, list]:
    source = obj if isinstance(obj, EdgeSource) else open_object(obj, **options)
    assert source is not None
    out: dict[str, list] = {"source": [], "target": [], **{name: [] for name in source.columns}}
    for chunk in source.chunks(threads=2, memory=memory):
        for name, values in {"source": chunk.source, "target": chunk.target, **chunk.columns}.items():
            out[name] += values.to_pylist() if isinstance(values, pa.Array) else values.tolist()
    assert source.position == source.size == len(out["source"])
    return out


def opened(obj: Any, **options: Any) -> EdgeSource:
    source = open_object(obj, **options)
    assert source is not None
    return source


# NumPy

A, B, W = np.array([1, 2, 3]), np.array([4, 5, 6]), np.array([0.5, 1.5, 2.5])
PLAIN = {"source": [1, 2, 3], "target": [4, 5, 6]}
WEIGHTED = PLAIN | {"weight": [0.5, 1.5, 2.5]}


@pytest.mark.parametrize(
    ("obj", "expected"),
    [
        ((A, B), PLAIN),
        ([A, B], PLAIN),
        (([1, 2, 3], [4, 5, 6]), PLAIN),
        ((A, B, W), WEIGHTED),
        (np.stack([A, B], axis=1), PLAIN),
        (np.stack([A, B, W], axis=1), WEIGHTED),
        (np.asfortranarray(np.stack([A, B], axis=1)), PLAIN),
        (np.stack([A, B], axis=1).astype(np.uint32), PLAIN),
        (np.stack([A, B], axis=1).astype(">i4"), PLAIN),
        ([(1, 4), (2, 5), (3, 6)], PLAIN),
        ([(1, 4, 0.5), (2, 5, 1.5), (3, 6, 2.5)], WEIGHTED),
        ({"weight": W, "target": B, "source": A}, WEIGHTED),
        ({"src": A, "dst": B}, PLAIN),
        (np.rec.fromarrays([A, B], names="u,v"), PLAIN),
        ((A.astype(object), B), PLAIN),
        ((A[::-1][::-1], B), PLAIN),
        (([2**64 - 1], [0]), {"source": [2**64 - 1], "target": [0]}),
    ],
)
def test_numpy_shapes(obj: Any, expected: dict) -> None:
    assert edges(obj) == expected


@pytest.mark.parametrize("kind", [str, object, np.dtypes.StringDType()])
def test_numpy_strings(kind: Any) -> None:
    words = np.array(["a", "bb", "c"], dtype=kind)
    source = opened((words, words[::-1]))
    assert source.string_ids
    assert edges(source) == {"source": ["a", "bb", "c"], "target": ["c", "bb", "a"]}


def test_numpy_columns_of_other_types() -> None:
    times = np.array(["1970-01-01T00:00:01"] * 3, dtype="datetime64[s]")
    data = {"u": A, "v": B, "flag": A > 1, "at": times, "half": W.astype(np.float16)}
    source = opened(data)
    assert source.columns == {"flag": pa.bool_(), "at": pa.timestamp("s"), "half": pa.float32()}
    assert edges(source) == PLAIN | {"flag": [0, 1, 1], "at": [1, 1, 1], "half": [0.5, 1.5, 2.5]}


def test_numpy_is_sliced_not_copied() -> None:
    ids = np.arange(100_000)
    chunks = list(opened((ids, ids)).chunks(threads=2, memory=1 << 18))
    assert len(chunks) > 10
    assert all(np.shares_memory(chunk.source, ids) for chunk in chunks)


@pytest.mark.parametrize(
    ("obj", "words"),
    [
        ((A, B[:2]), "differ in length: source has 3, target has 2"),
        ((A,), r"give \(source, target\)"),
        (np.zeros((3, 4)), "two or three columns, this one is 3 x 4"),
        (np.zeros(3), "two or three columns, this one is 3"),
        ((A, W), "row 1: column 'target' holds 0.5, ids must be integers or strings"),
        ((A, B, np.array([1, np.nan, 2])), "row 2: column 'weight' is NaN"),
        ((A, B, W + 1j), "column 'weight' is of type complex128"),
        (([1, "a"], [2, "b"]), "more than one kind"),
        ((A, [1, None, 2]), "row 2: column 'target' is null"),
        ([(1, 2), (1, 2, 3)], "pairs"),
        ((np.zeros((3, 2)), B), "2 dimensions"),
        (([2**65], [1]), "column 'source'"),
        ((5, 6), "0 dimensions"),
        ((A[:0], B[:0]), "holds no edges"),
        ([], "holds no edges"),
    ],
)
def test_bad_arrays(obj: Any, words: str) -> None:
    with pytest.raises(InputError, match=words):
        edges(obj)


def test_array_options() -> None:
    assert edges((A[:0], B[:0]), allow_empty=True) == {"source": [], "target": []}
    assert edges({"a": A, "b": B, "w": W}, source="b", target="a", columns=()) == {
        "source": [4, 5, 6],
        "target": [1, 2, 3],
    }
    assert edges((A, B, np.array([1, np.nan, 2])), fill={"weight": 7})["weight"] == [1, 7, 2]


def test_unknown_objects() -> None:
    assert open_object(5) is None
    assert open_object("edges.txt") is None
    assert open_object(object()) is None


# scipy.sparse

CELLS = [(0, 1, 2.0), (0, 3, 0.0), (2, 0, -1.0), (3, 3, 4.0)]


def matrix(layout: str, index: type = np.int32, array: bool = False) -> Any:
    row, col, data = (np.array(x) for x in zip(*CELLS, strict=True))
    make = sp.coo_array if array else sp.coo_matrix
    coo = make((data, (row.astype(index), col.astype(index))), shape=(5, 5))
    result = coo.asformat(layout)
    for name in ("indices", "indptr"):
        if hasattr(result, name):
            setattr(result, name, getattr(result, name).astype(index))
    return result


@pytest.mark.parametrize("layout", ["csr", "csc", "coo", "lil", "dok", "bsr"])
@pytest.mark.parametrize("index", [np.int32, np.int64])
@pytest.mark.parametrize("array", [False, True])
@pytest.mark.parametrize("memory", [1, 1 << 20])
def test_sparse_layouts(layout: str, index: type, array: bool, memory: int) -> None:
    source = opened(matrix(layout, index, array))
    table = source.vertices()
    assert table is not None
    assert table.ids == range(5)
    got = edges(source, memory=memory)
    cells = sorted(zip(got["source"], got["target"], got["weight"], strict=True))
    if layout in ("csr", "csc", "coo"):
        assert cells == sorted(CELLS)
    else:
        assert [cell for cell in cells if cell[2]] == [cell for cell in sorted(CELLS) if cell[2]]


@pytest.mark.parametrize("layout", ["csr", "csc"])
@pytest.mark.parametrize("density", [1e-5, 1e-3, 0.05])
def test_sparse_in_many_chunks(layout: str, density: float) -> None:
    whole = sp.random_array((2000, 2000), density=density, rng=np.random.default_rng(0), format=layout)
    got = edges(whole, memory=1)
    back = sp.coo_array((got["weight"], (got["source"], got["target"])), shape=(2000, 2000))
    assert (back != whole).nnz == 0


def test_sparse_values() -> None:
    plain = matrix("csr")
    chunk = next(opened(plain).chunks(threads=1, memory=1 << 20))
    assert chunk.source.dtype == chunk.target.dtype == np.uint32
    assert np.shares_memory(chunk.target, plain.indices)
    assert np.shares_memory(chunk.columns["weight"], plain.data)
    assert edges(plain.astype(bool))["weight"] == [1, 0, 1, 1]
    assert opened(plain.astype(bool)).columns == {"weight": pa.bool_()}
    assert list(edges(plain, columns=())) == ["source", "target"]
    assert list(edges(plain.astype(complex), columns=())) == ["source", "target"]
    with pytest.raises(InputError, match="complex128"):
        opened(plain.astype(complex))
    with pytest.raises(InputError, match="no column 'cost'"):
        opened(plain, columns=["cost"])
    plain.data[0] = np.nan
    with pytest.raises(InputError, match="row 1: column 'weight' is NaN"):
        edges(plain)


def test_bad_matrices() -> None:
    with pytest.raises(InputError, match="scipy csr_matrix: is 2 x 3"):
        opened(sp.csr_matrix((2, 3)))
    with pytest.raises(UsageError, match="source= has no meaning"):
        opened(matrix("csr"), source="a")
    broken = matrix("csr")
    broken.indices[1] = 7
    with pytest.raises(InputError, match=r"index outside 0 .. 4"):
        edges(broken)
    broken.indices[1] = -1
    with pytest.raises(InputError, match=r"index outside 0 .. 4"):
        edges(broken)


def test_matrix_without_entries() -> None:
    assert edges(sp.csr_array((3, 3))) == {"source": [], "target": [], "weight": []}


# NetworkX


@pytest.mark.parametrize("kind", [nx.Graph, nx.DiGraph, nx.MultiGraph, nx.MultiDiGraph])
def test_networkx_kinds(kind: type) -> None:
    graph = kind([(5, 3), (3, 9), (9, 9)])
    graph.add_edge(5, 3)
    graph.add_node(-7)
    source = opened(graph)
    assert source.undirected == (not graph.is_directed())
    got = edges(source)
    assert list(zip(got["source"], got["target"], strict=True)) == list(graph.edges())
    table = source.vertices()
    assert table is not None
    assert isinstance(table.ids, np.ndarray)
    assert table.ids.tolist() == [5, 3, 9, -7]


def test_networkx_strings_in_many_chunks() -> None:
    graph = nx.relabel_nodes(nx.gnm_random_graph(200, 3000, seed=1, directed=True), str)
    source = opened(graph)
    got = edges(source, memory=1)
    assert list(zip(got["source"], got["target"], strict=True)) == list(graph.edges())
    table = source.vertices()
    assert table is not None
    assert isinstance(table.ids, pa.Array)
    assert table.ids.to_pylist() == list(graph)


def test_networkx_attributes() -> None:
    graph = nx.DiGraph()
    graph.add_node("a", size=1, kind="x", rank=1)
    graph.add_node("b", size=2.5, kind="y")
    graph.add_node("c", size=True, kind="y", flag=True)
    graph.add_edge("a", "b", weight=1, source=3, good=True, label="text")
    graph.add_edge("b", "c", weight=np.float32(2.5), source=np.int64(4), good=np.bool_(False))
    source = opened(graph)
    assert source.columns == {"weight": pa.float64(), "source": pa.int64(), "good": pa.bool_()}
    chunk = next(source.chunks(threads=1, memory=1 << 20))
    assert {name: values.tolist() for name, values in chunk.columns.items()} == {
        "weight": [1, 2.5],
        "source": [3, 4],
        "good": [1, 0],
    }
    table = source.vertices()
    assert table is not None
    assert {name: values.tolist() for name, values in table.columns.items()} == {"size": [1, 2.5, 1]}
    assert table.types == {"size": pa.float64()}
    assert opened(graph, columns=["good"]).columns == {"good": pa.bool_()}
    assert opened(graph, columns=()).columns == {}
    table = opened(graph, vertex_columns=["rank", "flag"], fill={"rank": 0, "flag": False}).vertices()
    assert table is not None
    assert {name: values.tolist() for name, values in table.columns.items()} == {"rank": [1, 0, 0], "flag": [0, 0, 1]}


def test_networkx_partial_attributes() -> None:
    graph = nx.Graph()
    graph.add_edge(1, 2, weight=3)
    graph.add_edge(2, 4)
    with pytest.raises(InputError, match=r"edge \(2, 4\) has no 'weight'.*pass fill="):
        opened(graph)
    assert edges(graph, fill={"weight": 1})["weight"] == [3, 1]
    assert edges(graph, fill={"weight": 0.5})["weight"] == [3, 0.5]
    assert list(edges(graph, columns=())) == ["source", "target"]
    with pytest.raises(UsageError, match="fill names 'cost'"):
        opened(graph, fill={"cost": 1, "weight": 1})
    with pytest.raises(InputError, match="no edge has a number 'cost'; the numeric attributes are 'weight'"):
        opened(graph, columns=["cost"])
    graph.add_edge(2, 4, weight="heavy")
    with pytest.raises(InputError, match=r"edge \(2, 4\): 'weight' is 'heavy', not a number"):
        opened(graph, columns=["weight"])
    graph.add_edge(2, 4, weight=float("nan"))
    with pytest.raises(InputError, match="row 2: column 'weight' is NaN"):
        edges(graph)


@pytest.mark.parametrize("nodes", [[1, "a"], [(0, 1), (1, 1)], [1.5, 2], [True, 2], [2**64, 1], [-1, 2**63]])
def test_networkx_nodes_that_are_no_ids(nodes: list) -> None:
    graph = nx.Graph()
    graph.add_nodes_from(nodes)
    with pytest.raises(InputError, match="convert_node_labels_to_integers"):
        opened(graph)


def test_networkx_large_ids_and_no_edges() -> None:
    graph = nx.Graph([(2**64 - 1, 0)])
    assert edges(graph) == {"source": [2**64 - 1], "target": [0]}
    graph = nx.empty_graph(3)
    assert edges(graph) == {"source": [], "target": []}
    assert edges(nx.Graph()) == {"source": [], "target": []}


def test_arrow_objects_go_to_tables() -> None:
    assert edges(pa.table({"u": [1], "v": [2]})) == {"source": [1], "target": [2]}


def test_a_lazy_frame_is_computed_in_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame({"u": [1, 2, 3], "v": ["4", "5", "6"], "w": [0.5, 1.5, 2.5]}).lazy()
    lazy = frame.with_columns(polars.col("v").cast(polars.Int64)).filter(polars.col("w") > 1)
    found = {"source": [2, 3], "target": [5, 6], "w": [1.5, 2.5]}
    assert _columns(opened(lazy)) == found
    monkeypatch.delattr(polars.LazyFrame, "collect_batches", raising=False)
    assert _columns(opened(lazy)) == found
    with pytest.raises(InputError, match="polars LazyFrame: there is no column 'vv', do you mean v"):
        opened(lazy, source="u", target="vv")


def _columns(source: EdgeSource) -> dict[str, list]:
    out: dict[str, list] = {}
    for chunk in source.chunks(threads=1, memory=1 << 20):
        for name, values in {"source": chunk.source, "target": chunk.target, **chunk.columns}.items():
            out.setdefault(name, []).extend(values.tolist())
    return out


class Tensor:
    """An array that speaks DLPack and nothing else, here or on a device."""

    def __init__(self, values: np.ndarray, device: int = 1) -> None:
        self.values, self.device = values, device

    def __dlpack__(self, **options: Any) -> Any:
        if self.device != 1 and options.get("dl_device") != (1, 0):
            raise BufferError("it lies on a device. And more words")
        return self.values.__dlpack__()

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.device, 0


class Moved(Tensor):
    """CuPy's way to the host."""

    def get(self) -> np.ndarray:
        return self.values


@pytest.mark.parametrize("kind", [Tensor, lambda a: Tensor(a, 2), lambda a: Moved(a, 2)])
def test_arrays_through_dlpack(kind: Any) -> None:
    assert edges((kind(A), kind(B), kind(W))) == WEIGHTED
    assert edges(kind(np.stack([A, B], axis=1))) == PLAIN


def test_a_device_that_gives_nothing_away() -> None:
    class Locked(Tensor):
        def __dlpack__(self, **options: Any) -> Any:
            raise BufferError("it is busy")

    with pytest.raises(InputError, match="Locked cannot be read through DLPack: it is busy"):
        opened((Locked(A), Locked(B)))


def test_igraph() -> None:
    igraph = pytest.importorskip("igraph")
    graph = igraph.Graph([(0, 1), (1, 2)], n=4, directed=True, edge_attrs={"km": [1.5, 2.0], "road": ["A1", "B2"]})
    source = opened(graph)
    assert source.undirected is False
    assert edges(source) == {"source": [0, 1], "target": [1, 2], "km": [1.5, 2.0]}
    declared = source.vertices()
    assert declared is not None
    assert list(declared.ids) == [0, 1, 2, 3]
    named = igraph.Graph([(0, 1)], vertex_attrs={"name": ["ann", "bob"]})
    assert opened(named).undirected
    assert edges(named) == {"source": ["ann"], "target": ["bob"]}
    assert edges(igraph.Graph(2)) == {"source": [], "target": []}
    assert edges(graph, columns=()) == {"source": [0, 1], "target": [1, 2]}
    with pytest.raises(InputError, match="no column 'kms', do you mean km"):
        opened(graph, columns=["kms"])
    with pytest.raises(UsageError, match="an igraph graph knows its ends"):
        opened(graph, source="a", target="b")
