from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
from scipy import stats

from penstock.errors import UsageError
from penstock.ingest.generate.kronecker import alias_table, path_probabilities
from penstock.ingest.generate.random import below, draw, scramble, scramble_keys, stream_key
from penstock.ingest.generate.registry import GENERATORS, generator
from penstock.ingest.generate.weights import Weights
from penstock.ingest.source import EdgeSource

SMALL = 1 << 12
"""Bytes for buffers: so little that every graph here comes in many chunks."""


def edges(source: EdgeSource, *, threads: int = 2, memory: int = 1 << 24) -> tuple[np.ndarray, np.ndarray, dict]:
    chunks = list(source.chunks(threads=threads, memory=memory))
    assert source.position == source.size == source.estimated_edges == sum(map(len, chunks))
    columns = {name: np.concatenate([c.columns[name] for c in chunks]) for name in source.columns}
    empty = np.empty(0, np.uint32)
    return (
        np.concatenate([empty, *(c.source for c in chunks)]),
        np.concatenate([empty, *(c.target for c in chunks)]),
        columns,
    )


CASES = {
    "kron": {"scale": 10, "edge_factor": 4, "weights": "1:255"},
    "uniform": {"vertices": 1000, "edges": 4001, "weights": "0.0:1.0"},
    "grid": {"rows": 31, "columns": 17, "diagonal": True},
    "chain": {"vertices": 2000},
    "ring": {"vertices": 2000},
    "star": {"vertices": 2000, "weights": (-5, 5)},
    "complete": {"vertices": 70},
    "tree": {"height": 10},
}


def test_every_kind_has_a_case() -> None:
    assert set(CASES) == set(GENERATORS)


@pytest.mark.parametrize("kind", CASES)
def test_the_seed_alone_decides(kind: str) -> None:
    whole = edges(generator(kind, **CASES[kind]), threads=1)
    for threads, memory in ((1, SMALL), (2, SMALL), (3, 1 << 14), (2, 1)):
        if memory == 1 and whole[0].size > 5000:
            continue
        source = generator(kind, **CASES[kind])
        count = sum(1 for _ in generator(kind, **CASES[kind]).chunks(threads=threads, memory=memory))
        assert count > 1
        again = edges(source, threads=threads, memory=memory)
        np.testing.assert_array_equal(whole[0], again[0])
        np.testing.assert_array_equal(whole[1], again[1])
        for name, values in whole[2].items():
            np.testing.assert_array_equal(values, again[2][name])


@pytest.mark.parametrize("kind", ["kron", "uniform"])
def test_another_seed_is_another_graph(kind: str) -> None:
    first, second = (edges(generator(kind, seed=seed, **CASES[kind])) for seed in (1, 2))
    assert (first[0] == second[0]).mean() < 0.1
    assert (first[2]["weight"] == second[2]["weight"]).mean() < 0.1


def test_chunks_stay_within_memory_and_can_be_left() -> None:
    source = generator("kron", scale=14)
    stream = source.chunks(threads=2, memory=1 << 16)
    assert len(next(stream)) * 8 * 6 <= 1 << 16
    stream.close()


def test_vertices_are_declared() -> None:
    for kind, count in (("kron", 1024), ("uniform", 1000), ("grid", 31 * 17), ("tree", 2047), ("complete", 70)):
        source = generator(kind, **CASES[kind])
        table = source.vertices()
        assert table is not None
        assert table.ids == range(count)


# Kronecker


def test_alias_table_holds_the_exact_probabilities() -> None:
    quadrants = (0.57, 0.19, 0.19, 0.05)
    for levels in range(5):
        weights = np.zeros(256)
        for bin_, entry in enumerate(alias_table(quadrants, levels).tolist()):
            threshold, alias = entry >> 8, entry & 255
            weights[bin_] += threshold
            weights[alias] += (1 << 24) - threshold
        side = 1 << levels
        got = weights.reshape(16, 16) / 2**32
        np.testing.assert_allclose(got[:side, :side], path_probabilities(quadrants, levels), atol=2.0**-31)
        assert got.sum() == pytest.approx(1, abs=1e-15)
        assert got[:side, :side].sum() == pytest.approx(1, abs=1e-15)


@pytest.mark.parametrize("quadrants", [(0.57, 0.19, 0.19, 0.05), (0.80, 0.05, 0.05, 0.10), (0.1, 0.2, 0.3, 0.4)])
@pytest.mark.parametrize("scale", [1, 4, 5, 6, 8, 11])
def test_each_level_and_each_pair_of_levels_follows_the_quadrants(quadrants: tuple[float, ...], scale: int) -> None:
    params = dict(zip("abcd", quadrants, strict=True))
    edge_factor = 400_000 / 2**scale
    source, target, _ = edges(generator("kron", scale=scale, edge_factor=edge_factor, scramble=False, **params))
    at = [(source >> level & 1) * 2 + (target >> level & 1) for level in range(scale)]
    for level in range(scale):
        counts = np.bincount(at[level], minlength=4)
        assert stats.chisquare(counts, np.array(quadrants) * len(source)).pvalue > 1e-4
    for level in range(1, scale):
        counts = np.bincount(at[level] * 4 + at[level - 1], minlength=16)
        assert stats.chisquare(counts, np.outer(quadrants, quadrants).ravel() * len(source)).pvalue > 1e-4


def test_degrees_are_those_of_the_kronecker_product() -> None:
    source, _, _ = edges(generator("kron", scale=10, edge_factor=512, scramble=False, seed=3))
    expected = path_probabilities((0.57, 0.19, 0.19, 0.05), 10).sum(axis=1) * len(source)
    assert stats.chisquare(np.bincount(source, minlength=1024), expected).pvalue > 1e-4


def test_scrambling_only_renames() -> None:
    plain = edges(generator("kron", scale=9, scramble=False))
    named = edges(generator("kron", scale=9))
    pairs = set(zip(plain[0].tolist(), named[0].tolist(), strict=True))
    pairs |= set(zip(plain[1].tolist(), named[1].tolist(), strict=True))
    assert len({a for a, _ in pairs}) == len({b for _, b in pairs}) == len(pairs)
    assert (plain[0] == named[0]).mean() < 0.1


@pytest.mark.parametrize("scale", range(13))
def test_scrambling_is_a_bijection(scale: int) -> None:
    mask, shift = np.uint64((1 << scale) - 1), np.uint64((scale + 1) // 2)
    for seed in range(3):
        keys = scramble_keys(seed, 1)
        got = [int(scramble(np.uint64(i), keys, mask, shift)) for i in range(1 << scale)]
        assert sorted(got) == list(range(1 << scale))


def test_scrambling_spreads_neighbours() -> None:
    keys, mask, shift = scramble_keys(1, 1), np.uint64((1 << 12) - 1), np.uint64(6)
    got = np.array([int(scramble(np.uint64(i), keys, mask, shift)) for i in range(1 << 12)])
    assert abs(np.corrcoef(got[:-1], got[1:])[0, 1]) < 0.05
    assert stats.chisquare(np.bincount(got[:256] >> 8, minlength=16)).pvalue > 1e-4


def test_ids_beyond_32_bits() -> None:
    source, target, _ = edges(generator("kron", scale=40, edge_factor=1e5 / 2**40))
    assert source.dtype == target.dtype == np.uint64
    assert 2**32 < source.max() < 2**40
    assert edges(generator("kron", scale=32, edge_factor=1e3 / 2**32))[0].dtype == np.uint32


@pytest.mark.parametrize("scale", [0, 1])
def test_tiny_scales(scale: int) -> None:
    source, target, _ = edges(generator("kron", scale=scale))
    assert len(source) == 16 << scale
    assert max(source.max(), target.max()) < 1 << scale


# Weights


@pytest.mark.parametrize(
    ("weights", "dtype"),
    [
        ("1:255", np.uint8),
        ("0:256", np.uint16),
        ((1, 65536), np.uint32),
        ((0, 2**64 - 1), np.uint64),
        ("-128:127", np.int8),
        ((-(2**63), 2**63 - 1), np.int64),
    ],
)
def test_whole_weights_fill_their_range_in_the_smallest_type(weights: object, dtype: type) -> None:
    bounds = Weights.parse(weights)
    _, _, columns = edges(generator("chain", vertices=100_001, weights=weights))
    values = columns["weight"]
    assert values.dtype == dtype
    assert values.min() >= bounds.low
    assert values.max() <= bounds.high
    share = (values.astype(np.float64) - bounds.low) / (float(bounds.high) - bounds.low)
    assert share.mean() == pytest.approx(0.5, abs=0.01)
    if bounds.high - bounds.low < 256:
        counts = np.bincount(values.astype(np.int64) - int(bounds.low), minlength=int(bounds.high - bounds.low) + 1)
        assert stats.chisquare(counts).pvalue > 1e-4


def test_float_weights() -> None:
    values = edges(generator("chain", vertices=100_001, weights="0.0:1.0"))[2]["weight"]
    assert values.dtype == np.float32
    assert 0 <= values.min() < values.max() < 1
    assert stats.kstest(values, "uniform").pvalue > 1e-4
    shifted = edges(generator("chain", vertices=100_001, weights=(1e6, 1e6 + 1)))[2]["weight"]
    assert 1e6 <= shifted.min() <= shifted.max() < 1e6 + 1


@pytest.mark.parametrize("weights", ["1", "a:b", "5:1", "1.0:1.0", "0:nan", (1, 2, 3), 7, (0, 2**64), "1e300:1e301"])
def test_bad_weights(weights: object) -> None:
    with pytest.raises(UsageError, match="weights"):
        generator("chain", vertices=3, weights=weights)


# Uniform


@pytest.mark.parametrize("vertices", [1, 7, 1000, 3 * 2**30, 2**32, 5 * 2**40])
def test_uniform_mean_and_variance(vertices: int) -> None:
    count = 100_000
    source, target, _ = edges(generator("uniform", vertices=vertices, edges=count, seed=5))
    assert source.dtype == (np.uint32 if vertices <= 2**32 else np.uint64)
    for end in (source, target):
        assert end.max() < vertices
        values = end.astype(np.float64)
        deviation = np.sqrt((vertices**2 - 1) / 12)
        assert values.mean() == pytest.approx((vertices - 1) / 2, abs=5 * deviation / np.sqrt(count) + 1e-9)
        assert values.std() == pytest.approx(deviation, rel=0.02)
    if vertices == 1000:
        assert stats.chisquare(np.bincount(source, minlength=1000)).pvalue > 1e-4
        assert stats.chisquare(np.bincount(source % 10 * 10 + target % 10, minlength=100)).pvalue > 1e-4


def test_high_half_of_the_product_is_exact() -> None:
    rng = np.random.default_rng(0)
    for bits, bound in rng.integers(0, 2**64, (500, 2), dtype=np.uint64):
        assert int(below(bits, bound)) == int(bits) * int(bound) >> 64


def test_draws_are_those_of_splitmix64() -> None:
    # The first outputs of the reference generator seeded with 1234567.
    reference = [6457827717110365317, 3203168211198807973, 9817491932198370423]
    assert [int(draw(np.uint64(1234567), np.uint64(i))) for i in range(3)] == reference
    assert len({int(stream_key(seed, stream)) for seed in range(50) for stream in range(8)}) == 400


# Families


def graph(source: EdgeSource) -> nx.Graph:
    result = nx.MultiGraph() if source.undirected else nx.MultiDiGraph()
    table = source.vertices()
    assert table is not None
    result.add_nodes_from(table.ids)
    heads, tails, _ = edges(source, memory=SMALL)
    result.add_edges_from(zip(heads.tolist(), tails.tolist(), strict=True))
    return result


def same(source: EdgeSource, expected: nx.Graph) -> bool:
    """The same vertices and the same edges, none twice."""
    made = graph(source)
    simple = nx.Graph(made) if source.undirected else nx.DiGraph(made)
    assert made.number_of_edges() == simple.number_of_edges()
    return set(simple.nodes) == set(expected.nodes) and nx.utils.edges_equal(
        list(simple.edges), list(expected.edges), directed=not source.undirected
    )


@pytest.mark.parametrize("n", [1, 2, 5, 400])
def test_simple_families_are_networkx_ones(n: int) -> None:
    assert same(generator("chain", vertices=n), nx.path_graph(n))
    assert same(generator("chain", vertices=n, directed=True), nx.path_graph(n, nx.DiGraph))
    assert same(generator("star", vertices=n), nx.star_graph(n - 1))
    assert same(generator("complete", vertices=min(n, 60)), nx.complete_graph(min(n, 60)))
    assert same(generator("complete", vertices=min(n, 60), directed=True), nx.complete_graph(min(n, 60), nx.DiGraph))
    if n > 2:
        assert same(generator("ring", vertices=n), nx.cycle_graph(n))
        assert same(generator("ring", vertices=n, directed=True), nx.cycle_graph(n, nx.DiGraph))


@pytest.mark.parametrize(("branching", "height"), [(1, 4), (2, 0), (2, 5), (3, 4)])
def test_tree(branching: int, height: int) -> None:
    expected = nx.balanced_tree(branching, height)
    assert same(generator("tree", branching=branching, height=height), expected)


@pytest.mark.parametrize(("rows", "columns"), [(1, 1), (1, 6), (6, 1), (2, 2), (3, 3), (5, 7), (20, 31)])
@pytest.mark.parametrize("diagonal", [False, True])
@pytest.mark.parametrize("torus", [False, True])
def test_grid(rows: int, columns: int, diagonal: bool, torus: bool) -> None:
    expected = nx.Graph()
    expected.add_nodes_from(range(rows * columns))
    steps = [(0, 1), (1, 0), *([(1, 1), (1, -1)] if diagonal else [])]
    for r in range(rows):
        for c in range(columns):
            for down, right in steps:
                y, x = r + down, c + right
                if torus and rows > 2:
                    y %= rows
                if torus and columns > 2:
                    x %= columns
                if 0 <= y < rows and 0 <= x < columns:
                    expected.add_edge(r * columns + c, y * columns + x)
    assert same(generator("grid", rows=rows, columns=columns, diagonal=diagonal, torus=torus), expected)
    if not diagonal and (not torus or min(rows, columns) > 2):
        library = nx.convert_node_labels_to_integers(nx.grid_2d_graph(rows, columns, periodic=torus), ordering="sorted")
        assert same(generator("grid", rows=rows, columns=columns, torus=torus), library)


def test_complete_graph_rows_at_the_largest_size() -> None:
    source = generator("complete", vertices=1 << 26)
    n, total = 1 << 26, source.size
    for first in (0, n - 2, n - 1, total // 3, total - 5):
        heads, tails = np.empty(5, np.uint32), np.empty(5, np.uint32)
        source.fill(first, heads, tails)  # type: ignore[attr-defined]
        for i, (u, v) in enumerate(zip(heads.tolist(), tails.tolist(), strict=True)):
            assert u < v < n
            assert u * n - u * (u + 1) // 2 + v - u - 1 == first + i


# Bad parameters


@pytest.mark.parametrize(
    ("kind", "params", "words"),
    [
        ("lattice", {}, "generators are kron, uniform, grid"),
        ("kron", {}, "needs scale="),
        ("kron", {"scale": 5, "factor": 3}, "no parameter 'factor'; it takes scale, edge_factor"),
        ("kron", {"scale": 49}, "at most 48"),
        ("kron", {"scale": -1}, "at least 0"),
        ("kron", {"scale": 3.5}, "whole number"),
        ("kron", {"scale": "ten"}, "whole number"),
        ("kron", {"scale": 5, "edge_factor": -1}, "must not be negative"),
        ("kron", {"scale": 5, "edge_factor": float("nan")}, "must be a number"),
        ("kron", {"scale": 5, "a": 0.5, "b": 0.5, "c": 0.5, "d": 0.5}, r"must be 1, but .* = 2"),
        ("kron", {"scale": 5, "a": 0.9}, "d must be a probability"),
        ("kron", {"scale": 5, "a": -0.1}, "a must be a probability"),
        ("kron", {"scale": 5, "seed": "x"}, "seed must be a whole number"),
        ("uniform", {"vertices": 0, "edges": 3}, "without vertices"),
        ("uniform", {"vertices": 3, "edges": -3}, "edges must be at least 0"),
        ("uniform", {"vertices": 2**63, "edges": 3}, "too many"),
        ("grid", {"rows": 0, "columns": 3}, "rows must be at least 1"),
        ("ring", {"vertices": 2}, "at least 3"),
        ("complete", {"vertices": 1 << 40}, "too many edges"),
        ("tree", {"height": 70}, "too many vertices"),
    ],
)
def test_bad_parameters_are_named(kind: str, params: dict, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        generator(kind, **params)


def test_other_names() -> None:
    assert generator("rmat", scale=3).name == generator("KRON", scale=3).name
    assert generator("cycle", vertices=3).name == "ring"


def test_no_edges_is_a_graph_too() -> None:
    assert len(edges(generator("kron", scale=4, edge_factor=0))[0]) == 0
    assert len(edges(generator("uniform", vertices=0, edges=0))[0]) == 0
