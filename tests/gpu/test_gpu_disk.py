"""Pages that neither a GPU nor the host has room for come from disk, and what is found is the same."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import penstock as pk
from penstock.errors import DamagedStore, DoesNotFit
from penstock.graph import Graph

PAGE = 64 << 10
GRAPH = {"scale": 16, "edge_factor": 16, "undirected": True, "weights": "1:255", "page_size": PAGE, "seed": 3}
CALLS: dict[str, dict[str, Any]] = {
    "pagerank": {"stop": "fixed", "max_iter": 6, "dtype": "float64"},
    "bfs": {"source": 0},
    "wcc": {},
    "sssp": {"source": 0, "weight": "weight"},
    "cdlp": {"max_iter": 3},
}


@pytest.fixture(scope="module", params=["plain", "logical6"])
def graph(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Graph]:
    encoding = {} if request.param == "plain" else {"encoding": request.param}
    with pk.generate("kron", tmp_path_factory.mktemp("disk") / "g.pen", **GRAPH, **encoding) as made:
        yield made


def options_of(name: str, graph: Graph) -> dict[str, Any]:
    """Searches begin at the vertex with the most arcs: it reaches most others."""
    options = CALLS[name]
    first = int(graph.store.ids.values.read(0, 1)[0])
    return options | ({"source": first} if "source" in options else {})


def from_disk(name: str, graph: Graph, **options: Any) -> Any:
    """In as little of both memories as will do, and a few pages more."""
    limits = {"gpu_memory_limit": 1, "memory_limit": 1}
    for _ in range(16):
        try:
            result = pk.run(name, graph, device="gpu", threads=3, **limits, **options)
            break
        except DoesNotFit as error:
            limits[error.setting] = max(error.needed, limits[error.setting]) + 8 * PAGE
    else:
        raise AssertionError(f"it does not fit into {limits}")
    assert result.stats["device"].startswith("gpu"), result.stats
    assert result.stats["gpu"]["source"] == "disk", limits
    return result


@pytest.mark.gpu
@pytest.mark.parametrize("name", CALLS)
def test_from_disk_is_as_from_memory(graph: Graph, name: str) -> None:
    options = options_of(name, graph)
    wanted = pk.run(name, graph, device="cpu", **options).to_pandas()
    found = from_disk(name, graph, **options).to_pandas()
    if name == "pagerank":
        assert abs(found["rank"] - wanted["rank"]).max() < 1e-12
    else:
        assert found.equals(wanted)


@pytest.mark.gpu
@pytest.mark.parametrize("name", ["pagerank", "sssp"])
def test_a_page_that_changed_on_disk_is_refused(tmp_path: Path, name: str) -> None:
    with pk.generate("kron", tmp_path / "g.pen", **GRAPH) as graph:
        direction = graph.store.direction("out")
        page = len(direction) * 2 // 3  # of vertices that every search comes by
        with direction.path("pages", 0).open("r+b") as file:
            file.seek(page * PAGE + 9)
            file.write(b"\xff\xff\xff\xff")
        with pytest.raises(DamagedStore, match=f"page {page} is damaged"):
            from_disk(name, graph, **options_of(name, graph))
