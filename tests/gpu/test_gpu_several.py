"""One GPU that stands for several: state and pages are shared out, and what is found is what one CPU finds."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import penstock as pk
from penstock.graph import Graph

KRONECKER = {"scale": 13, "edge_factor": 16, "weights": "1:255", "page_size": 16 << 10, "seed": 8}
OPTIONS: dict[str, dict[str, Any]] = {
    "pagerank": {"max_iter": 5, "stop": "fixed", "dtype": "float64"},
    "bfs": {"source": 0},
    "sssp": {"source": 0, "weight": "weight", "parents": True},
    "kcore": {},
    "hits": {"max_iter": 3},
    "ppr": {"source": 0, "max_iter": 3},
    "betweenness": {"sources": [0]},
    "scc": {},
}
SHARED_OUT = [("P", 2, "resident"), ("P", 3, "streamed"), ("S", 3, "resident"), ("S", 2, "streamed")]


@pytest.fixture(scope="module")
def graphs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[bool, Graph]]:
    folder = tmp_path_factory.mktemp("several")
    found = {way: pk.generate("kron", folder / f"{way}.pen", undirected=way, **KRONECKER) for way in (False, True)}
    yield found
    for graph in found.values():
        graph.close()


def options_of(name: str, graph: Graph) -> dict[str, Any]:
    """Searches begin at the vertex of the most arcs."""
    first, options = int(graph.store.ids.values.read(0, 1)[0]), OPTIONS[name]
    begins: dict[str, Any] = {"source": first, "sources": [first]}
    return options | {key: begins[key] for key in begins if key in options}


WAYS = [(name, way) for name in OPTIONS for way in (False, True) if (name, way) != ("scc", True)]
"""Of an undirected graph scc is a sweep, which runs on one device."""


@pytest.mark.gpu
@pytest.mark.parametrize(("undirected", "name"), [(way, name) for name, way in WAYS])
def test_several_find_what_a_cpu_finds(graphs: dict[bool, Graph], name: str, undirected: bool) -> None:
    graph = graphs[undirected]
    options = options_of(name, graph)
    wanted = pk.run(name, graph, device="cpu", **options).to_pandas()
    for strategy, devices, place in SHARED_OUT:
        chosen: dict[str, Any] = {"device": "gpu", "gpu_devices": devices, "gpu_strategy": strategy} | options
        if place == "streamed":
            chosen["gpu_memory_limit"] = pk.explain(name, graph, gpu_memory_limit=1 << 30, **chosen).smallest_gpu
        result = pk.run(name, graph, **chosen)
        assert result.stats["gpu_devices"] == devices
        assert result.stats["gpu"]["resident"] is (place == "resident")
        found, where = result.to_pandas(), f"{name}, {strategy}, {devices} devices, {place}"
        for column in wanted.columns:
            if wanted[column].dtype.kind == "f":
                np.testing.assert_allclose(found[column], wanted[column], rtol=1e-9, atol=1e-12, err_msg=where)
            else:
                assert found[column].equals(wanted[column]), where
