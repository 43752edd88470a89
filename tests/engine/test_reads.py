"""What a run reads: only the pages it must, and no column that it does not use."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import penstock as pk
from penstock.observe.events import recording

FAR = 0xFFFFFFFF


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> pk.Graph:
    path = tmp_path_factory.mktemp("reads") / "g.pen"
    return pk.generate("kron", path, scale=13, edge_factor=8, seed=3, page_size=4096)


def pages_with(graph: pk.Graph, side: str, chosen: np.ndarray) -> set[int]:
    """The pages of a direction that hold one of these vertices."""
    records = graph.store.direction(side).records
    first, count = records["first_vertex"].astype(int), records["vertices"].astype(int)
    return {page for page in range(len(records)) if chosen[first[page] : first[page] + count[page]].any()}


@pytest.mark.parametrize("number", [0, 7, 300])
def test_a_search_reads_the_pages_of_its_frontier_or_of_what_is_left(graph: pk.Graph, number: int) -> None:
    source = graph.users()[number].as_py()  # a vertex of high degree
    with recording() as events:
        result = pk.run("bfs", graph, source=source, tier="disk", threads=2)
    active = graph.store.active
    level = result._values["level"][:active].astype(np.int64)
    level[level == FAR] = 1 << 40
    pages = sorted((s.begin, s.args["item"]) for s in events.slices if s.name == "page")
    steps = sorted((s for s in events.slices if s.lane == "engine" and "superstep" in s.name), key=lambda s: s.begin)
    figures = result.stats["supersteps"]
    assert len(steps) == len(figures) >= 3
    seen = set()
    for k, (step, figure) in enumerate(zip(steps, figures, strict=True)):
        read = [item for at, item in pages if step.begin <= at <= step.end]
        assert len(read) == len(set(read)) == figure["pages"]
        if figure["direction"] == "push":
            expected = pages_with(graph, "out", level == k)
        else:
            expected = pages_with(graph, "in", level > k)
        assert set(read) == expected
        seen.add(figure["direction"])
    assert seen == {"push", "pull"}


def test_columns_that_are_not_used_are_not_read(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    ends = rng.integers(0, 2000, (2, 20000))
    columns = {f"c{k}": rng.random(20000) for k in range(4)} | {"weight": rng.integers(1, 9, 20000)}
    wide = pk.ingest(
        {"source": ends[0], "target": ends[1], **columns}, tmp_path / "wide.pen", page_size=4096, columns=[*columns]
    )
    assert len(wide.columns) == 5
    pages = {side: len(wide.store.direction(side)) * 4096 for side in ("out", "in")}
    options: dict[str, Any] = {"tier": "disk", "threads": 2}
    assert pk.run("wcc", wide, **options).stats["bytes_read"] == pages["out"]
    once = pk.run("pagerank", wide, stop="fixed", max_iter=1, **options)
    assert once.stats["bytes_read"] == pages["in"]
    assert pk.run("bfs", wide, source=int(ends[0][0]), **options).stats["bytes_read"] <= sum(pages.values())
    weighted = pk.run("sssp", wide, source=int(ends[0][0]), **options).stats["bytes_read"]
    assert weighted > 0


def test_wcc_reads_each_page_once(graph: pk.Graph) -> None:
    with recording() as events:
        pk.run("wcc", graph, tier="disk", threads=2)
    items = [s.args["item"] for s in events.slices if s.name == "page"]
    assert sorted(items) == list(range(len(graph.store.direction("out"))))


def test_a_cache_for_half_of_the_pages_saves_half_of_the_reads(tmp_path: Path) -> None:
    graph = pk.generate("kron", tmp_path / "g.pen", scale=15, seed=1, page_size="64KiB")
    size = len(graph.store.direction("in")) * (64 << 10)
    state = pk.run("pagerank", graph, stop="fixed", max_iter=1, tier="disk").stats["plans"][0]
    limit = state["window_bytes"] + state["fixed_bytes"] + size // 2 + (1 << 20)
    found = pk.run("pagerank", graph, stop="fixed", max_iter=6, tier="disk", memory_limit=limit, threads=2).stats
    later = [step["bytes_read"] for step in found["supersteps"][1:]]
    assert max(later) <= 0.55 * size
    assert found["ledger_peak"] <= limit


def test_a_cache_serves_all_programs_of_an_algorithm(graph: pk.Graph) -> None:
    """Each round of peeling is a run of its own: the pages that earlier ones left are found."""
    pages = sum(len(graph.store.direction(side)) for side in ("out", "in")) * 4096
    for name, most in (("kcore", 2), ("hits", 1)):  # pages are kept in one way for passes, in another for searches
        limit = pk.explain(name, graph, tier="disk", threads=2).smallest + 2 * pages
        found = pk.run(name, graph, tier="disk", memory_limit=limit, threads=2).stats
        assert found["bytes_read"] <= most * pages, name
        assert found["ledger_peak"] <= limit
