"""Closeness against the oracle, the checker and NetworkX."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cases
import oracle
import penstock as pk
from penstock.engine.words import count_ones
from penstock.errors import UsageError
from penstock.verify import CHECKERS
from places import at


@settings(max_examples=15)
@given(
    edges=st.lists(st.tuples(st.integers(0, 80), st.integers(0, 80)), max_size=200),
    undirected=st.booleans(),
    incoming=st.booleans(),
)
def test_small_graphs(
    tmp_path_factory: pytest.TempPathFactory, edges: list[Any], undirected: bool, incoming: bool
) -> None:
    """More than one batch of sources."""
    graph = pk.ingest(
        {"source": np.array([e[0] for e in edges], int), "target": np.array([e[1] for e in edges], int)},
        tmp_path_factory.mktemp("p") / "g.pen",
        vertices={"id": np.arange(82)},
        undirected=undirected,
        page_size=4096,
        allow_empty=True,
        **({} if incoming or undirected else {"incoming": False}),
    )
    g = oracle.of(graph)
    for options in ({}, {"harmonic": True}, {"samples": 70}, {"samples": 3, "harmonic": True}):
        answer = cases.expected("closeness", g, options)
        for place in ("memory", "disk"):
            cases.compare("closeness", at(place, partial(pk.run, "closeness", graph, **options)).to_dict(), answer)


@pytest.mark.parametrize("undirected", [False, True])
def test_against_networkx(tmp_path: Path, undirected: bool) -> None:
    known = nx.gnp_random_graph(150, 0.02, seed=4, directed=not undirected)
    graph = pk.ingest(known, tmp_path / "g.pen", page_size=4096)
    assert pk.run("closeness", graph).to_dict() == pytest.approx(nx.closeness_centrality(known))
    assert pk.run("closeness", graph, harmonic=True).to_dict() == pytest.approx(nx.harmonic_centrality(known))


@pytest.mark.parametrize("undirected", [False, True])
@pytest.mark.parametrize("harmonic", [False, True])
def test_against_the_checker(tmp_path: Path, undirected: bool, harmonic: bool) -> None:
    graph = pk.generate("kron", tmp_path / "g.pen", scale=11, seed=3, undirected=undirected, page_size=4096)
    for place in ("memory", "disk", "ranges", "smallest"):
        result = at(place, partial(pk.run, "closeness", graph, samples=100, harmonic=harmonic))
        assert CHECKERS["closeness"](graph, result.table, samples=100, harmonic=harmonic) == []
    result = pk.run("closeness", graph, harmonic=harmonic)
    assert CHECKERS["closeness"](graph, result.table, harmonic=harmonic) == []
    assert result.stats["batches"] == -(-graph.store.active // 64)


def test_refusals(tmp_path: Path) -> None:
    graph = pk.generate("path", tmp_path / "g.pen", vertices=5, page_size=4096)
    for samples in (0, 6):
        with pytest.raises(UsageError, match="samples must be"):
            pk.run("closeness", graph, samples=samples)
    with pytest.raises(UsageError, match=r"samples must be a whole number, not 2\.5"):
        pk.run("closeness", graph, samples=2.5)
    with pytest.raises(UsageError, match="seed must be at least 0, not -5"):
        pk.run("closeness", graph, samples=2, seed=-5)
    with pytest.raises(UsageError, match="seed must be at least 0, not -5"):
        pk.verify("closeness", graph, pk.run("closeness", graph, samples=2), samples=2, seed=-5)


@given(st.integers(0, (1 << 64) - 1))
def test_bits_are_counted(word: int) -> None:
    assert count_ones(np.uint64(word)) == word.bit_count()
