"""Betweenness against the oracle, the checker and NetworkX."""

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
from penstock.errors import UsageError, VertexNotFound
from penstock.verify import CHECKERS
from places import at


@settings(max_examples=15)
@given(
    edges=st.lists(st.tuples(st.integers(0, 11), st.integers(0, 11)), max_size=40),
    undirected=st.booleans(),
    incoming=st.booleans(),
)
def test_small_graphs(
    tmp_path_factory: pytest.TempPathFactory, edges: list[Any], undirected: bool, incoming: bool
) -> None:
    """Loops, parallel arcs, vertices without any, stores without incoming arcs."""
    graph = pk.ingest(
        {"source": np.array([e[0] for e in edges], int), "target": np.array([e[1] for e in edges], int)},
        tmp_path_factory.mktemp("p") / "g.pen",
        vertices={"id": np.arange(13)},
        undirected=undirected,
        page_size=4096,
        allow_empty=True,
        **({} if incoming or undirected else {"incoming": False}),
    )
    g = oracle.of(graph)
    for options in ({}, {"samples": 3, "normalized": False}, {"sources": [0, 12]}):
        answer = cases.expected("betweenness", g, options)
        for place in ("memory", "disk"):
            cases.compare("betweenness", at(place, partial(pk.run, "betweenness", graph, **options)).to_dict(), answer)


@pytest.mark.parametrize("undirected", [False, True])
@pytest.mark.parametrize("normalized", [False, True])
def test_against_networkx(tmp_path: Path, undirected: bool, normalized: bool) -> None:
    known = nx.gnp_random_graph(60, 0.06, seed=4, directed=not undirected)
    graph = pk.ingest(known, tmp_path / "g.pen", page_size=4096)
    assert graph.directed is not undirected
    found = pk.run("betweenness", graph, normalized=normalized).to_dict()
    assert found == pytest.approx(nx.betweenness_centrality(known, normalized=normalized))


@pytest.mark.parametrize("undirected", [False, True])
def test_against_the_checker(tmp_path: Path, undirected: bool) -> None:
    graph = pk.generate("kron", tmp_path / "g.pen", scale=11, seed=3, undirected=undirected, page_size=4096)
    for place in ("memory", "disk", "ranges", "smallest"):
        result = at(place, partial(pk.run, "betweenness", graph, samples=6, seed=2))
        assert CHECKERS["betweenness"](graph, result.table, samples=6, seed=2) == []


def test_many_paths_on_a_long_way(tmp_path: Path) -> None:
    """A ladder of parallel arcs: 2**80 shortest paths, on 80 levels."""
    steps = np.repeat(np.arange(80), 2)
    graph = pk.ingest({"source": steps, "target": steps + 1}, tmp_path / "g.pen", page_size=4096)
    found = pk.run("betweenness", graph, normalized=False).to_dict()
    assert found == pytest.approx({v: v * (80.0 - v) for v in range(81)})


def test_only_touched_pages_are_read(tmp_path: Path) -> None:
    ring = pk.generate("ring", tmp_path / "g.pen", vertices=2100, page_size=4096, order="input")
    assert len(ring.store.direction("out")) > 4
    result = pk.run("betweenness", ring, sources=[2090], tier="disk", memory_limit="4MB")
    assert result.stats["searches"] == 1
    steps = [step for step in result.stats["supersteps"] if step["program"] == "dependencies"]
    assert max(step["pages"] for step in steps) <= 2


def test_refusals(tmp_path: Path) -> None:
    graph = pk.generate("path", tmp_path / "g.pen", vertices=5, page_size=4096)
    with pytest.raises(UsageError, match="not both"):
        pk.run("betweenness", graph, samples=2, sources=[1])
    for samples in (0, 6):
        with pytest.raises(UsageError, match="samples must be"):
            pk.run("betweenness", graph, samples=samples)
    with pytest.raises(VertexNotFound):
        pk.run("betweenness", graph, sources=[17])
