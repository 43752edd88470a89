"""GAP, Matrix Market, METIS, DIMACS and LDBC files: what they mean, and what is wrong with bad ones."""

from __future__ import annotations

import gzip
import io
import random

import numpy as np
import pyarrow as pa
import pytest
import scipy.io
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import InputError, UsageError
from penstock.ingest.text.formats import FORMATS, open_text, text_format

MM = "%%MatrixMarket matrix coordinate "


def edges(source, threads=2):
    """(source, target, column values...) of each edge, in order."""
    rows = []
    for c in source.chunks(threads=threads, memory=1 << 20):
        values = [c.source.tolist(), c.target.tolist(), *(c.columns[name].tolist() for name in source.columns)]
        rows += list(zip(*values, strict=True))
    return rows


def made(folder, name, content, **options):
    data = content if isinstance(content, bytes) else content.encode()
    (folder / name).write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    return open_text(folder / name, **options)


def test_format_by_name():
    for name, endings in FORMATS.items():
        for ending in endings:
            assert text_format(f"dir.v/x{ending}") == name
            assert text_format(f"x{ending.upper()}.gz") == name
            assert text_format(f"x{ending}.zst") == name
    assert text_format("x") == text_format("x.whatever") == text_format("x.gz") == "text"


def test_format_can_be_said(tmp_path):
    assert edges(made(tmp_path, "x.txt", "p sp 2 1\na 1 2 7\n", format="dimacs")) == [(1, 2, 7)]
    with pytest.raises(UsageError, match="several files"):
        open_text([tmp_path / "x.txt", tmp_path / "x.txt"], format="dimacs")
    with pytest.raises(UsageError, match="format 'dimacs' has no option 'delimiter'"):
        open_text(tmp_path / "x.txt", format="dimacs", delimiter=",")


def test_gap(tmp_path):
    assert edges(made(tmp_path, "x.el", "0 1\n1 2\n")) == [(0, 1), (1, 2)]
    source = made(tmp_path, "x.wel", "0 1 5\n1 2 -6\n")
    assert source.columns == {"weight": pa.int64()}
    assert source.undirected is None
    assert edges(source) == [(0, 1, 5), (1, 2, -6)]
    assert edges(made(tmp_path, "x.wel.gz", "0 1 5\n1 2 0.25\n")) == [(0, 1, 5.0), (1, 2, 0.25)]


@pytest.mark.parametrize(
    ("field", "symmetry", "body", "expected"),
    [
        ("pattern", "general", "1 2\n2 1\n3 3\n", [(1, 2), (2, 1), (3, 3)]),
        ("real", "general", "1 2 0.5\n2 1 -1e3\n", [(1, 2, 0.5), (2, 1, -1000.0)]),
        ("integer", "general", "1 2 5\n3 3 -6\n", [(1, 2, 5), (3, 3, -6)]),
        ("unsigned-integer", "general", "1 2 18446744073709551615\n", [(1, 2, 2**64 - 1)]),
        ("complex", "general", "1 2 5 -1\n", [(1, 2, 5.0, -1.0)]),
        ("pattern", "symmetric", "2 1\n3 3\n", [(2, 1), (3, 3)]),
        ("real", "symmetric", "2 1 0.5\n", [(2, 1, 0.5)]),
        ("real", "skew-symmetric", "2 1 0.5\n3 1 -2\n", [(2, 1, 0.5), (3, 1, -2.0), (1, 2, -0.5), (1, 3, 2.0)]),
        ("integer", "skew-symmetric", "2 1 5\n", [(2, 1, 5), (1, 2, -5)]),
        ("complex", "skew-symmetric", "2 1 5 1\n", [(2, 1, 5.0, 1.0), (1, 2, -5.0, -1.0)]),
        ("complex", "hermitian", "1 1 4 0\n2 1 5 1\n", [(1, 1, 4.0, 0.0), (2, 1, 5.0, 1.0), (1, 2, 5.0, -1.0)]),
    ],
)
@pytest.mark.parametrize("name", ["x.mtx", "x.mtx.gz"])
def test_matrix_market(tmp_path, name, field, symmetry, body, expected):
    count = body.count("\n")
    source = made(tmp_path, name, f"{MM}{field} {symmetry}\n% note\n\n3 3 {count}\n\n{body}")
    assert edges(source) == expected
    assert source.undirected is (symmetry == "symmetric")
    assert source.vertices().ids == range(1, 4)


def test_matrix_market_as_scipy_writes_it(tmp_path):
    rng = np.random.default_rng(5)
    for symmetry in ("general", "symmetric", "skew-symmetric", "hermitian"):
        matrix = scipy.sparse.random(30, 30, 0.2, random_state=rng).toarray()
        if symmetry == "symmetric":
            matrix = matrix + matrix.T
        elif symmetry == "skew-symmetric":
            matrix = matrix - matrix.T
        elif symmetry == "hermitian":
            matrix = matrix + 1j * np.where(matrix, rng.random((30, 30)), 0)
            matrix = matrix + matrix.conj().T
        out = io.BytesIO()
        scipy.io.mmwrite(out, scipy.sparse.coo_array(matrix), symmetry=symmetry, precision=17)
        source = made(tmp_path, "x.mtx", out.getvalue(), block_size=100)
        back = np.zeros_like(matrix)
        for i, j, *value in edges(source):
            back[i - 1, j - 1] = complex(*value) if len(value) == 2 else value[0]
            if source.undirected:
                back[j - 1, i - 1] = value[0]
        assert np.array_equal(back, matrix)


def test_metis(tmp_path):
    plain = "% the graph of the manual\n7 11\n5 3 2\n1 3 4\n% inside\n5 4 2 1\n2 3 6 7\n1 3 6\n5 4 7\n6 4\n"
    source = made(tmp_path, "x.graph", plain)
    expected = {(1, 5), (1, 3), (1, 2), (2, 3), (2, 4), (3, 5), (3, 4), (4, 6), (4, 7), (5, 6), (6, 7)}
    assert set(edges(source)) == expected
    assert source.undirected is True
    assert source.vertices().ids == range(1, 8)
    assert source.vertices().columns == {}


def test_metis_with_everything(tmp_path):
    text = "4 3 111 2\n9 1 2 2 50 3 60\n8 3 4 1 50\n7 5 6 1 60 3 70\r\n6 7 8"
    source = made(tmp_path, "x.graph.gz", text, block_size=5)
    assert edges(source) == [(1, 2, 50), (1, 3, 60), (3, 3, 70)]
    table = source.vertices()
    assert {name: values.tolist() for name, values in table.columns.items()} == {
        "size": [9, 8, 7, 6],
        "weight0": [1, 3, 5, 7],
        "weight1": [2, 4, 6, 8],
    }
    assert edges(made(tmp_path, "y.graph", "2 1 10\n5 2\n6 1\n")) == [(1, 2)]


def test_metis_blank_lines_are_isolated_vertices(tmp_path):
    source = made(tmp_path, "x.graph", "4 1\n\n4\n\n2\n\n\n")
    assert edges(source) == [(2, 4)]
    assert source.vertices().ids == range(1, 5)


@given(st.integers(1, 12), st.randoms(use_true_random=False), st.booleans(), st.sampled_from([4, 7, 64, None]))
def test_metis_random(tmp_path_factory, n, rng: random.Random, weighted, block):
    pairs = {(u, v): rng.randrange(1, 99) for u in range(1, n + 1) for v in range(u, n + 1) if rng.random() < 0.4}
    lines = [f"{n} {len(pairs)}{' 1' if weighted else ''}"]
    for u in range(1, n + 1):
        around = [(b if a == u else a, w) for (a, b), w in pairs.items() if u in (a, b)]
        rng.shuffle(around)
        lines.append("  ".join(f"{v} {w}" if weighted else f"{v}" for v, w in around))
    path = tmp_path_factory.mktemp("metis") / "x.graph"
    path.write_text("\n".join(lines) + "\n")
    got = edges(open_text(path, block_size=block))
    assert sorted(got) == sorted((*pair, w) if weighted else pair for pair, w in pairs.items())


def test_dimacs(tmp_path):
    text = "c road\np sp 3 4\na 1 2 17\nc\na 1 3 10\na 2 1 17\na 3 3 1\n"
    source = made(tmp_path, "x.gr", text)
    assert source.columns == {"weight": pa.int64()}
    assert edges(source) == [(1, 2, 17), (1, 3, 10), (2, 1, 17), (3, 3, 1)]
    assert source.undirected is False
    assert source.vertices().ids == range(1, 4)
    assert edges(made(tmp_path, "x.gr.gz", "p sp 2 1\na 1 2 0.5\n")) == [(1, 2, 0.5)]


LDBC = """\
# Properties of the example
graph.ex-1.5.vertex-file = ex.v
graph.ex-1.5.edge-file = ex.e
graph.ex-1.5.meta.vertices = 4
graph.ex-1.5.meta.edges = 2
graph.ex-1.5.directed = DIRECTED
graph.ex-1.5.edge-properties.names = weight, kind
graph.ex-1.5.edge-properties.types = real, int
graph.ex-1.5.algorithms = bfs, pr
graph.ex-1.5.bfs.source-vertex = 6
"""


@pytest.mark.parametrize(("directed", "undirected"), [("true", False), ("false", True)])
def test_ldbc_properties(tmp_path, directed, undirected):
    (tmp_path / "ex.v").write_text("1\n2\n10\n18446744073709551615\n")
    (tmp_path / "ex.e").write_text("1 2 1 7\n2 10 0.5 8\n")
    source = made(tmp_path, "ex.properties", LDBC.replace("DIRECTED", directed))
    assert source.columns == {"weight": pa.float64(), "kind": pa.int64()}
    assert source.undirected is undirected
    assert edges(source) == [(1, 2, 1.0, 7), (2, 10, 0.5, 8)]
    assert source.vertices().ids.dtype == np.uint64
    assert source.vertices().ids.tolist() == [1, 2, 10, 2**64 - 1]


def test_ldbc_by_edge_or_vertex_file(tmp_path):
    (tmp_path / "ex.v.gz").write_bytes(gzip.compress(b"5 0.5\n1 1.5\n"))
    (tmp_path / "ex.e").write_text("1 5\n")
    for name in ("ex.e", "ex.v.gz"):
        source = open_text(tmp_path / name)
        assert edges(source) == [(1, 5)]
        assert source.undirected is None
        table = source.vertices()
        assert (table.ids.tolist(), table.columns["value"].tolist()) == ([5, 1], [0.5, 1.5])
    (tmp_path / "lone.e").write_text("1 5\n")
    with pytest.raises(InputError, match=r"has no lone\.v beside it"):
        open_text(tmp_path / "lone.e")


def test_declared_vertices_need_no_edges(tmp_path):
    for name, text in [("x.mtx", MM + "real general\n3 3 0\n"), ("x.gr", "p sp 3 0\n"), ("x.graph", "3 0\n\n\n\n")]:
        source = made(tmp_path, name, text)
        assert edges(source) == []
        assert source.vertices().ids == range(1, 4)
    for name, text in [("x.mtx", MM + "real general\n0 0 0\n"), ("x.gr", "p sp 0 0\n"), ("x.graph", "0 0\n")]:
        with pytest.raises(InputError, match="holds no edges"):
            edges(made(tmp_path, name, text))


def test_columns_may_be_left_out(tmp_path):
    hermitian = f"{MM}complex hermitian\n2 2 1\n2 1 5 1\n"
    assert edges(made(tmp_path, "x.mtx", hermitian, columns=["imag"])) == [(2, 1, 1.0), (1, 2, -1.0)]
    assert edges(made(tmp_path, "x.wel", "0 1 5\n", columns=())) == [(0, 1)]
    assert edges(made(tmp_path, "x.gr", "p sp 2 1\na 1 2 7\n", columns=())) == [(1, 2)]
    assert edges(made(tmp_path, "x.graph", "2 1 1\n2 9\n1 9\n", columns=())) == [(1, 2)]
    (tmp_path / "ex.v").write_text("1\n2\n")
    assert edges(made(tmp_path, "ex.e", "1 2 0.5\n", columns=())) == [(1, 2)]
    with pytest.raises(UsageError, match="no column 'cost'; the columns are weight"):
        made(tmp_path, "x.wel", "0 1 5\n", columns=["cost"])


@pytest.mark.parametrize(
    ("change", "phrase"),
    [
        (("meta.vertices = 4", "meta.vertices = 5"), "declares 5 vertices but holds 4"),
        (("meta.vertices = 4", "meta.vertices = 3"), "more vertices than the 3 declared"),
        (("meta.edges = 2", "meta.edges = 3"), "declares 3 edges but holds 2"),
        (("meta.edges = 2", "meta.edges = two"), "not a number"),
        (("edge-file = ex.e", "edge-file = ey.e"), "no such file"),
        (("vertex-file", "vertexfile"), "names no vertex-file"),
        (("real, int", "real"), "2 entries, edge-properties.types 1"),
        (("real, int", "real, string"), "'string' is no type"),
        (("= true", "= perhaps"), "neither true nor false"),
        (("= bfs, pr", "= bfs, pr\nnonsense"), "no `key = value`"),
    ],
)
def test_bad_ldbc(tmp_path, change, phrase):
    (tmp_path / "ex.v").write_text("1\n2\n10\n11\n")
    (tmp_path / "ex.e").write_text("1 2 1 7\n2 10 0.5 8\n")
    with pytest.raises(InputError) as caught:
        edges(made(tmp_path, "ex.properties", LDBC.replace("DIRECTED", "true").replace(*change)))
    assert phrase in str(caught.value)


BAD = {
    "gap negative": ("x.el", "0 1\n-1 2\n", 2, "id -1 is outside GAP's ids"),
    "gap comment": ("x.el", "# 0 1\n1 2\n", 1, "# is not an integer id (read it with format='text'"),
    "gap header": ("x.wel", "0 1 2\nu v w\n", 2, "u is not an integer id"),
    "gap no weight": ("x.wel", "0 1 2\n0 1\n", 2, "weight is missing"),
    "gap empty": ("x.el", "", None, "holds no edges"),
    "mm empty": ("x.mtx", "", 1, "no Matrix Market banner"),
    "mm banner": ("x.mtx", "%MatrixMarket matrix coordinate real general\n1 1 0\n", 1, "no Matrix Market banner"),
    "mm vector": ("x.mtx", "%%MatrixMarket vector coordinate real general\n", 1, "no Matrix Market banner"),
    "mm array": ("x.mtx", "%%MatrixMarket matrix array real general\n2 2\n", 1, "dense matrix"),
    "mm field": ("x.mtx", MM + "quaternion general\n1 1 0\n", 1, "the field 'quaternion' is none of"),
    "mm symmetry": ("x.mtx", MM + "real lopsided\n1 1 0\n", 1, "the symmetry 'lopsided' is none of"),
    "mm hermitian": ("x.mtx", MM + "real hermitian\n1 1 0\n", 1, "cannot be of field real"),
    "mm skew": ("x.mtx", MM + "pattern skew-symmetric\n1 1 0\n", 1, "cannot be of field pattern"),
    "mm no size": ("x.mtx", MM + "real general\n% only\n", 2, "ends before the size line"),
    "mm bad size": ("x.mtx", MM + "real general\n3 3\n", 2, "'3 3' is no size line"),
    "mm rectangular": ("x.mtx", MM + "real general\n3 4 0\n", 2, "3 by 4: a graph needs a square one"),
    "mm zero": ("x.mtx", MM + "pattern general\n3 3 2\n1 1\n0 1\n", 4, "id 0 is outside the declared range 1 to 3"),
    "mm above": ("x.mtx", MM + "pattern general\n3 3 2\n1 1\n1 4\n", 4, "id 4 is outside the declared range"),
    "mm negative": ("x.mtx", MM + "pattern general\n3 3 2\n1 1\n-1 1\n", 4, "id -1 is outside the declared range"),
    "mm too few": ("x.mtx", MM + "pattern general\n3 3 2\n1 1\n", None, "declares 2 entries but holds 1"),
    "mm too many": ("x.mtx", MM + "pattern general\n3 3 1\n1 1\n\n2 2\n", 5, "more entries than the 1 declared"),
    "mm upper": ("x.mtx", MM + "pattern symmetric\n3 3 1\n1 2\n", 3, "entry (1, 2) is above the diagonal"),
    "mm skew diagonal": ("x.mtx", MM + "real skew-symmetric\n3 3 1\n2 2 1\n", 3, "entry (2, 2) is on the diagonal"),
    "mm unreal": ("x.mtx", MM + "complex hermitian\n3 3 1\n2 2 1 1\n", 3, "entry (2, 2) is not real"),
    "mm pattern value": ("x.mtx", MM + "pattern general\n3 3 1\n1 2 7\n", 3, "has 3 fields where 2 are expected"),
    "mm no value": ("x.mtx", MM + "real general\n3 3 1\n1 2\n", 3, "weight is missing"),
    "mm fraction": ("x.mtx", MM + "integer general\n3 3 1\n1 2 1.5\n", 3, "1.5 is not an integer"),
    "mm fractional id": ("x.mtx", MM + "pattern general\n3 3 1\n1 2.0\n", 3, "2.0 is not an integer id"),
    "metis empty": ("x.graph", "% nothing\n", 1, "ends before the header line"),
    "metis header": ("x.graph", "%\nthree 2\n", 2, "is no METIS header"),
    "metis fmt": ("x.graph", "1 0 12\n\n", 1, "the fmt '012'"),
    "metis ncon": ("x.graph", "1 0 1 2\n\n", 1, "ncon is 2"),
    "metis word": ("x.graph", "2 1\n2\nx\n", 3, "x is not an integer"),
    "metis fraction": ("x.graph", "2 1\n2\n1.0\n", 3, "1.0 is not an integer"),
    "metis range": ("x.graph", "2 1\n2\n%\n3\n", 4, "neighbour 3 is outside the declared range 1 to 2"),
    "metis zero": ("x.graph", "2 1\n0\n1\n", 2, "neighbour 0 is outside"),
    "metis few lines": ("x.graph", "3 1\n2\n1\n", None, "declares 3 vertices but has lines for 2"),
    "metis many lines": ("x.graph", "2 1\n2\n1\n1\n", 4, "more lines than the 2 vertices"),
    "metis one-sided": ("x.graph", "2 1\n2\n\n", None, "not listed by both of its ends"),
    "metis other end": ("x.graph", "4 2\n2\n1\n4\n2\n", None, "not listed by both of its ends"),
    "metis weights": ("x.graph", "2 1 1\n2 5\n1 6\n", None, "not listed by both of its ends with one weight"),
    "metis half": ("x.graph", "2 1 1\n2\n1 6\n", 2, "the last neighbour has no weight"),
    "metis no weight": ("x.graph", "2 0 10\n5\n\n", 3, "lacks the vertex size or weights"),
    "metis negative": ("x.graph", "2 0 10\n5\n-5\n", 3, "-5 is negative"),
    "metis count": ("x.graph", "2 2\n2\n1\n", None, "declares 2 edges but lists 1"),
    "dimacs empty": ("x.gr", "c nothing\n", 1, "ends before the problem line"),
    "dimacs no problem": ("x.gr", "a 1 2 3\n", 1, "begins with a where the problem line"),
    "dimacs other": ("x.gr", "p max 3 4\n", 1, "the problem is max"),
    "dimacs problem": ("x.gr", "p sp 3\n", 1, "is no problem line"),
    "dimacs tag": ("x.gr", "p sp 3 1\ne 1 2 3\n", 2, "begins with e, not with 'a'"),
    "dimacs two problems": ("x.gr", "p sp 3 1\np sp 3 1\n", 2, "begins with p"),
    "dimacs range": ("x.gr", "p sp 3 1\nc\na 1 4 3\n", 3, "id 4 is outside the declared range 1 to 3"),
    "dimacs zero": ("x.gr", "p sp 3 1\na 0 1 3\n", 2, "id 0 is outside"),
    "dimacs fields": ("x.gr", "p sp 3 1\na 1 2\n", 2, "weight is missing"),
    "dimacs few": ("x.gr", "p sp 3 2\na 1 2 3\n", None, "declares 2 arcs but holds 1"),
    "dimacs many": ("x.gr", "p sp 3 1\na 1 2 3\na 1 3 3\n", 3, "more arcs than the 1 declared"),
    "dimacs weight": ("x.gr", "p sp 3 1\na 1 2 x\n", 2, "x is not an integer"),
}


@pytest.mark.parametrize("packed", [False, True], ids=["plain", "gzip"])
@pytest.mark.parametrize("block_size", [6, None])
@pytest.mark.parametrize("case", BAD)
def test_bad_files(tmp_path, case, block_size, packed):
    name, content, line, phrase = BAD[case]
    with pytest.raises(InputError) as caught:
        edges(made(tmp_path, name + (".gz" if packed else ""), content, block_size=block_size))
    assert phrase in str(caught.value)
    assert str(tmp_path / name) in caught.value.path
    if line is not None:
        assert caught.value.line == line
