"""Distributions and densities are those of the edges, counted the obvious way; samples come near them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import penstock as pk
from penstock.errors import UsageError
from penstock.profile import Distribution, degree_distribution, density, group_sizes, value_distribution


class Column:
    """A result of one column."""

    def __init__(self, values: np.ndarray, valid: Any = True, *, labels: bool = False, size: int = 3) -> None:
        self.values, self.valid, self.size = values, np.broadcast_to(valid, len(values)), size
        self.schema = pa.schema([("vertex", pa.int64()), ("x", pa.from_numpy_dtype(values.dtype))])
        self.references = frozenset(["x"] if labels else [])

    def pieces_of(self, name: str) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        for at in range(0, len(self.values), self.size):
            yield self.values[at : at + self.size], self.valid[at : at + self.size]


def counted(found: Distribution) -> dict[Any, int]:
    return dict(zip(found.values.tolist(), found.counts.tolist(), strict=True))


@pytest.fixture(scope="module")
def skewed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[pk.Graph]:
    """Many small pages, large ones among them."""
    target = tmp_path_factory.mktemp("skewed") / "k.pen"
    with pk.generate("kron", target, scale=11, edge_factor=16, seed=3, undirected=True, page_size="4KiB") as graph:
        yield graph


def test_degrees_are_counted(skewed: pk.Graph) -> None:
    degrees = skewed.store.degree_column("out").read()
    found = degree_distribution(skewed)
    assert counted(found) == Counter(degrees.tolist())
    assert found.of == "degrees"
    bins = found.binned()
    assert bins.edges is not None
    assert bins.log
    assert bins.counts.sum() == np.count_nonzero(degrees)
    for low, high, count in zip(bins.edges, bins.edges[1:], bins.counts, strict=False):
        assert np.count_nonzero((degrees >= low) & (degrees < high)) == count


def test_a_density_is_the_matrix_in_boxes(skewed: pk.Graph) -> None:
    bins, expected = 24, np.zeros((24, 24))
    number, active = skewed.store.ids.number, skewed.store.active
    for batch in skewed.edge_batches():
        for ends in zip(*(column.to_pylist() for column in batch.columns), strict=True):
            u, v = (number(vertex) * bins // active for vertex in ends)
            expected[u, v] += 1
            expected[v, u] += 1
    found = density(skewed, bins)
    assert found.sampled == 1
    assert (found.counts == expected).all()


def test_a_sampled_density_comes_near_and_leaves_no_row_out(skewed: pk.Graph) -> None:
    whole, part = density(skewed, 24), density(skewed, 24, sample=len(skewed.store.direction("out")) // 4 * 4096)
    assert part.sampled < 0.3
    assert part.counts.sum() == pytest.approx(whole.arcs)
    assert (part.counts.sum(axis=1) > 0).all()
    assert np.abs(part.counts - whole.counts).sum() < 0.5 * whole.arcs


def test_an_empty_graph_has_empty_distributions(tmp_path: Path) -> None:
    (tmp_path / "none.txt").write_text("# nothing\n")
    with pk.ingest(tmp_path / "none.txt", tmp_path / "none.pen", allow_empty=True) as graph:
        assert counted(degree_distribution(graph)) == {}
        assert density(graph, 8).counts.sum() == 0
        assert counted(value_distribution(pk.pagerank(graph))) == {}


def test_small_whole_numbers_are_counted_one_by_one() -> None:
    values = np.array([3, 3, 5, -1, 3, 0], np.int32)
    found = value_distribution(Column(values, values != 0))
    assert counted(found) == {-1: 1, 3: 3, 5: 1}
    assert found.nulls == 1
    large = Column(np.array([2**64 - 1, 2**64 - 2], np.uint64))
    assert counted(value_distribution(large)) == {2**64 - 2: 1, 2**64 - 1: 1}
    assert counted(value_distribution(Column(np.array([True, False, True])))) == {0: 1, 1: 2}


@pytest.mark.parametrize("kind", ["f8", "f4", "i8", "u8"])
def test_values_of_many_sizes_get_bins_by_their_logarithm(kind: str) -> None:
    values = np.concatenate([np.zeros(5), np.arange(1, 200), [4e6]]).astype(kind)
    found = value_distribution(Column(values, size=64))
    assert found.edges is not None
    assert found.log
    assert (found.zeros, found.total) == (5, 205)
    assert (np.diff(found.edges) > 0).all()


def test_values_that_are_no_numbers_are_counted_apart() -> None:
    found = value_distribution(Column(np.array([1.0, np.nan, np.inf, 1.5, 2.0])))
    assert not found.log
    assert (found.odd, found.total) == (2, 3)
    assert value_distribution(Column(np.array([0.5, 0.5]))).counts.tolist() == [2]
    nothing = value_distribution(Column(np.array([np.nan])))
    assert (nothing.total, nothing.odd) == (0, 1)


def test_labels_tell_the_sizes_of_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("penstock.profile.distribution.GROUPS", 4)  # more labels than fit at once
    labels = np.array([0, 0, 0, 7, 7, 2, 9, 9, 0], np.uint32)
    assert counted(group_sizes(Column(labels, labels != 2, labels=True), "x")) == {4: 1, 2: 2}
    found = value_distribution(Column(labels, labels=True))
    assert found.of == "sizes"


def test_what_is_not_there_is_refused(skewed: pk.Graph) -> None:
    with pytest.raises(UsageError, match="no column 'y'"):
        value_distribution(Column(np.zeros(1)), "y")
    with pytest.raises(UsageError, match="direction"):
        degree_distribution(skewed, "up")
    with pytest.raises(UsageError, match="at least one bin"):
        density(skewed, 0)
