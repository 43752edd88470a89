"""What does not fit on a GPU, or beside it, is said before it starts; and who does what it is told gets there. At sizes
that a simulated GPU would take hours for: kernels are not run, which no decision about memory depends on. Started by
test_gpu_simulated.py in a process that Numba's simulator was chosen for."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest

import penstock as pk
from penstock.algorithms.registry import ALGORITHMS, options_of
from penstock.errors import DoesNotFit
from penstock.graph import Graph
from penstock.memory import gpu
from penstock.memory.frames import DevicePages

PAGE = 64 << 10
NAMES = [name for name in ALGORITHMS if name not in ("degree", "induced", "cross_edges")]
"""Those that go over arcs."""


@pytest.fixture(scope="module", params=["undirected", "directed"])
def graph(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Graph]:
    shape = {"scale": 13, "edge_factor": 16, "weights": "1:255", "page_size": PAGE, "seed": 3}
    path = tmp_path_factory.mktemp("refused") / "g.pen"
    with pk.generate("kron", path, undirected=request.param == "undirected", **shape) as made:
        yield made


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    """Kernels that would have been started, and sides that were loaded."""
    found, load = {"kernels": 0, "loads": 0}, DevicePages.load

    def started(*args: Any) -> None:
        found["kernels"] += 1

    def loaded(self: DevicePages) -> None:
        found["loads"] += not self._loaded
        load(self)

    monkeypatch.setattr(gpu.Launcher, "__call__", started)
    monkeypatch.setattr(DevicePages, "load", loaded)
    return found


def options(name: str, graph: Graph) -> dict[str, Any]:
    first = int(graph.store.ids.values.read(0, 1)[0])
    short = {"source": first, "max_iter": 2, "sources": [first]}
    return {key: short[key] for key in short if key in options_of(name)}


def run(name: str, graph: Graph, **limits: int) -> Any:
    """No kernel has computed anything, so sums may be zero where they are divided by."""
    with suppress(ZeroDivisionError):
        return pk.run(name, graph, device="gpu", threads=3, **limits, **options(name, graph))
    return None


@pytest.mark.parametrize("name", NAMES)
def test_what_does_not_fit_is_said_before_it_starts(graph: Graph, name: str, counted: dict[str, int]) -> None:
    limits, refused = {"gpu_memory_limit": 1, "memory_limit": 1}, 0
    while True:
        try:
            run(name, graph, **limits)
            break
        except DoesNotFit as error:
            limits[error.setting] = error.needed
            refused += 1
        assert counted["kernels"] == 0, f"refused after it has begun; {limits} would do"
        assert refused < 6, f"it does not fit into {limits}, though it was said that it would"
    more = limits["memory_limit"]
    for tenth in range(1, 13):  # of which pages take what is left, until all have room
        run(name, graph, **(limits | {"memory_limit": more + more * tenth // 10}))


@pytest.mark.parametrize("name", ["kcore", "hits", "betweenness"])
def test_pages_serve_all_programs_of_an_algorithm(graph: Graph, name: str, counted: dict[str, int]) -> None:
    told = pk.explain(name, graph, device="gpu", gpu_memory_limit=1 << 20, **options(name, graph))
    run(name, graph, gpu_memory_limit=told.smallest_gpu + 4 * PAGE)
    # Once for programs that go over all arcs, once for those that search: as many as there are directions each.
    assert 0 < counted["loads"] <= 2 * (2 if graph.store.directed else 1)
