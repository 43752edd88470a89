"""Products over semirings equal NumPy's and SciPy's, in core and with everything on disk."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np
import pytest
from scipy import sparse
from scipy.sparse import csgraph

import penstock as pk
from penstock.apps.matrix import (
    MAX_MIN,
    MIN_PLUS,
    OR_AND,
    PLUS_TIMES,
    Matrix,
    Semiring,
    power,
    shortest_paths,
    similarity,
    spgemm,
    spmv,
)
from penstock.engine.monoid import Monoid
from penstock.errors import ProgramError, UsageError
from penstock.mapreduce.session import MapReduce


@pytest.fixture(params=["in core", "on disk"])
def mr(request: pytest.FixtureRequest) -> Iterator[MapReduce]:
    options = {"force_out_of_core": True, "memory_limit": "2MB"} if request.param == "on disk" else {}
    with MapReduce(**options) as made:
        yield made


def random_dense(rows: int, columns: int, seed: int, density: float = 0.2) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return np.where(rng.random((rows, columns)) < density, rng.integers(1, 9, (rows, columns)), 0).astype(float)


def naive(ring: Semiring, a: np.ndarray, b: np.ndarray, kind: np.dtype) -> np.ndarray:
    """Element by element; what is 0 is not stored."""
    found = np.full((a.shape[0], b.shape[1]), ring.zero(kind), kind)
    for i, j, k in itertools.product(range(a.shape[0]), range(a.shape[1]), range(b.shape[1])):
        if a[i, j] and b[j, k]:
            found[i, k] = ring.add.combine(found[i, k], ring.multiply(kind.type(a[i, j]), kind.type(b[j, k])))
    return found


def _last(a, b):
    return a if a > b else b


def _triple(a, b):
    return a * b + a


OWN = Semiring("own", Monoid("largest of all", _last, -1.0), _triple)


@pytest.mark.parametrize("method", ["mapreduce", "direct"])
@pytest.mark.parametrize("ring", [PLUS_TIMES, MIN_PLUS, OR_AND, MAX_MIN, OWN], ids=lambda ring: ring.name)
def test_spgemm(mr: MapReduce, ring: Semiring, method: str) -> None:
    a, b = random_dense(17, 23, 1), random_dense(23, 11, 2)
    found = spgemm(Matrix.of(mr, a), Matrix.of(mr, b), ring, method=method)
    kind = ring.kind(np.dtype(float))
    assert found.shape == (17, 11)
    assert found.dtype == kind
    assert np.array_equal(found.dense(ring.zero(kind)), naive(ring, a, b, kind))


def test_a_column_whose_products_fill_more_than_a_chunk(mr: MapReduce) -> None:
    # One dense column times one dense row: the outer product is cut.
    a, b = np.arange(1.0, 301).reshape(-1, 1), np.arange(1.0, 401).reshape(1, -1)
    assert np.array_equal(spgemm(Matrix.of(mr, a), Matrix.of(mr, b)).dense(), a @ b)


@pytest.mark.parametrize("method", ["mapreduce", "direct"])
def test_spmv_and_nothing(mr: MapReduce, method: str) -> None:
    a, x = random_dense(30, 20, 3), np.arange(20.0)
    assert np.allclose(spmv(Matrix.of(mr, a), x, method=method), a @ x)
    none = Matrix.of(mr, np.zeros((4, 4)))
    assert spgemm(none, none, method=method).stored == 0
    assert np.array_equal(spmv(none, np.ones(4), MIN_PLUS, method=method), np.full(4, np.inf))


def test_power(mr: MapReduce) -> None:
    a = random_dense(8, 8, 4)
    for exponent in (0, 1, 2, 5):
        assert np.array_equal(power(Matrix.of(mr, a), exponent).dense(), np.linalg.matrix_power(a, exponent))


def test_matrices_from_everything(mr: MapReduce) -> None:
    a = random_dense(9, 6, 5)
    rows, columns = np.nonzero(a)
    for made in (a, sparse.coo_matrix(a), sparse.csc_matrix(a)):
        assert np.array_equal(Matrix.of(mr, made).dense(), a)
    given = Matrix.of(mr, (rows, columns, a[rows, columns]), shape=a.shape)
    assert np.array_equal(given.dense(), a)
    assert np.array_equal(given.transposed.dense(), a.T)
    assert (given.to_scipy() != sparse.csr_matrix(a)).nnz == 0
    with pk.from_edges([0, 1, 2], [1, 2, 0], weight=[2.0, 3.0, 4.0]) as graph:
        found = Matrix.of(mr, graph)
        assert found.stored == 3
        assert sorted(found.arrays()[2].tolist()) == [2.0, 3.0, 4.0]


def test_what_makes_no_sense(mr: MapReduce) -> None:
    a = Matrix.of(mr, random_dense(3, 4, 6))
    with pytest.raises(UsageError, match="3 x 4 cannot be multiplied with one of 3 x 4"):
        spgemm(a, a)
    with pytest.raises(UsageError, match="row 5 is outside of the 3 rows"):
        Matrix.of(mr, ([5], [0], [1.0]), shape=(3, 4))
    with pytest.raises(UsageError, match=r"\(0, 1\) is given twice"):
        Matrix.of(mr, ([0, 0], [1, 1], [1.0, 2.0]), shape=(3, 4))
    with pytest.raises(UsageError, match="no semiring 'plus'"):
        spgemm(a, a.transposed, "plus")

    def wrong(x, y):
        return x.no_such_thing

    with pytest.raises(ProgramError, match="semiring bad does not compile"):
        spgemm(a, a.transposed, Semiring("bad", PLUS_TIMES.add, wrong))


# ---- similarity


@pytest.mark.parametrize("method", ["mapreduce", "direct"])
def test_similarity(mr: MapReduce, method: str) -> None:
    a = random_dense(25, 40, 7, 0.3)
    dot = a @ a.T
    own = np.diag(dot)
    stored = (a != 0).astype(float)
    common = stored @ stored.T
    sizes = np.diag(common)
    want = {
        "cosine": dot / np.sqrt(np.outer(own, own)),
        "jaccard": common / (sizes[:, None] + sizes[None, :] - common),
        "dot": dot,
    }
    for measure, expected in want.items():
        threshold = float(np.median(expected))
        upper = np.triu(expected, 1)
        upper[upper < threshold] = 0
        found = similarity(Matrix.of(mr, a), measure, threshold=threshold, method=method)
        assert np.allclose(found.dense(), upper)


def test_similarity_by_a_function(mr: MapReduce) -> None:
    a = random_dense(12, 12, 8, 0.4)

    def dice(dot: np.ndarray, own: np.ndarray, other: np.ndarray) -> np.ndarray:
        return 2 * dot / (own + other)

    dot = a @ a.T
    own = np.diag(dot)
    upper = np.triu(2 * dot / (own[:, None] + own[None, :]), 1)
    assert np.allclose(similarity(Matrix.of(mr, a), dice, threshold=1e-9).dense(), upper)


# ---- paths


@pytest.mark.parametrize("method", ["squaring", "floyd-warshall", "direct"])
def test_shortest_paths(mr: MapReduce, method: str) -> None:
    for n, density in ((1, 0.0), (2, 1.0), (33, 0.08), (70, 0.05)):
        a = random_dense(n, n, n, density)
        want = csgraph.shortest_path(sparse.csr_matrix(a), method="D")
        found = shortest_paths(Matrix.of(mr, a), method=method)
        assert np.allclose(found.dense(np.inf), want)


def test_paths_along_a_line_and_a_negative_circle(mr: MapReduce) -> None:
    # The longest way has n - 1 edges: squaring must not stop a round too soon.
    for n in (5, 9, 10):
        line = Matrix.of(mr, (np.arange(n - 1), np.arange(1, n), np.ones(n - 1)), shape=(n, n))
        assert shortest_paths(line).dense(np.inf)[0, n - 1] == n - 1
    circle = Matrix.of(mr, np.array([[0, 1.0], [-2.0, 0]]))
    for method in ("squaring", "floyd-warshall", "direct"):
        with pytest.raises(UsageError, match="negative"):
            shortest_paths(circle, method=method)
