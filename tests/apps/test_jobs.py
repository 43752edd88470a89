"""Each job equals a plain oracle, in core and with everything on disk."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import networkx as nx
import numpy as np
import pytest

import penstock as pk
from penstock.apps import jobs
from penstock.apps.jobs.clusters import labels
from penstock.apps.jobs.histograms import degree_histogram
from penstock.errors import InputError, UsageError
from penstock.mapreduce.session import MapReduce


@pytest.fixture(params=["in core", "on disk"])
def mr(request: pytest.FixtureRequest) -> Iterator[MapReduce]:
    options = {"force_out_of_core": True, "memory_limit": "4MB"} if request.param == "on disk" else {}
    with MapReduce(**options) as made:
        yield made


def random_edges(n: int, m: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return rng.integers(0, n, m), rng.integers(0, n, m)


def as_graph(edges: tuple[np.ndarray, np.ndarray]) -> nx.Graph:
    return nx.Graph(list(zip(edges[0].tolist(), edges[1].tolist(), strict=True)))


# ---- text


def zipf_text(count: int, seed: int) -> bytes:
    numbers = np.random.default_rng(seed).zipf(1.3, count) % 5000
    words = [f"w{k}" + "x" * (20 * (k % 7 == 0)) for k in numbers.tolist()]
    gaps = ["\n" if k % 11 == 0 else "\t " if k % 5 == 0 else " " for k in numbers.tolist()]
    return "".join(a + b for a, b in zip(words, gaps, strict=True)).encode()


def counted(found: object) -> dict[bytes, int]:
    return {word.encode("utf-8", "surrogateescape"): count for word, count in found}  # type: ignore[attr-defined]


def test_word_count(mr: MapReduce, tmp_path: Path) -> None:
    texts = {"a.txt": zipf_text(20_000, 1), "b.txt": b" \n\n", "c.txt": b"\xff\xfe nul\0nul nul\0nul w1", "d.txt": b""}
    for name, text in texts.items():
        (tmp_path / name).write_bytes(text)
    want = Counter(word for text in texts.values() for word in text.split())
    assert counted(jobs.word_count(mr, tmp_path)) == dict(want)


def test_word_count_lets_pass_what_its_tables_do_not_hold(tmp_path: Path) -> None:
    words = [f"word{k}" for k in range(60_000)] * 2 + ["the"] * 50_000
    (tmp_path / "t").write_text("\n".join(words))
    with MapReduce(memory_limit="1MiB", threads=2) as mr:
        found = counted(jobs.word_count(mr, tmp_path / "t"))
        assert mr.spill.written
    assert found == {word.encode(): count for word, count in Counter(words).items()}


def test_word_count_of_words_longer_than_its_tables(tmp_path: Path) -> None:
    words = [letter * size for letter in "abc" for size in (9, 40, 5_000, 70_000)] + [f"{k:017}" for k in range(9_000)]
    (tmp_path / "t").write_text("\n".join(words * 2))
    with MapReduce(memory_limit="2MiB", threads=2) as mr:
        found = counted(jobs.word_count(mr, tmp_path / "t"))
    assert found == {word.encode(): 2 for word in words}


@pytest.mark.parametrize("limit", ["8MiB", "12MB", "16MB", "40MB"])
def test_word_count_of_many_words_fits_any_budget(tmp_path: Path, limit: str) -> None:
    numbers = np.random.default_rng(4).integers(0, 400_000, 500_000)
    (tmp_path / "t").write_text("\n".join(map(str, numbers.tolist())))
    with MapReduce(memory_limit=limit, threads=2) as mr:
        found = jobs.word_count(mr, tmp_path / "t")
        assert sorted(count for _, count in found) == sorted(Counter(numbers.tolist()).values())
        assert mr.budget.peak <= mr.budget.limit


def test_word_count_of_no_file(mr: MapReduce, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file"):
        jobs.word_count(mr, tmp_path / "none")


def test_inverted_index(mr: MapReduce, tmp_path: Path) -> None:
    texts = [b"b a b", b"c\n", b"a b \xc3\xa9 a a"]
    for k, text in enumerate(texts):
        (tmp_path / f"{k}.txt").write_bytes(text)
    want = [
        (word, (k, text.split().count(word)))
        for word in sorted({word for text in texts for word in text.split()})
        for k, text in enumerate(texts)
        if word in text.split()
    ]
    assert [(word.encode(), tuple(posting)) for word, posting in jobs.inverted_index(mr, tmp_path)] == want


def test_page_views(mr: MapReduce, tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    views = [(f"/p{a}", f"10.0.0.{b}") for a, b in zip(rng.integers(0, 9, 500), rng.integers(0, 7, 500), strict=True)]
    lines = [f"{who}\t200\t{page}\trest" for page, who in views] + ["", "too\tshort"]
    (tmp_path / "log").write_text("\r\n".join(lines))
    found = jobs.page_views(mr, tmp_path / "log", page=2, visitor=0)
    assert list(found) == sorted(Counter(page for page, _ in views).items())
    found = jobs.page_views(mr, tmp_path / "log", page=2, visitor=0, distinct=True)
    assert list(found) == sorted(Counter(page for page, _ in set(views)).items())
    with pytest.raises(UsageError, match="separator"):
        jobs.page_views(mr, tmp_path / "log", separator="::")


# ---- numbers


def lloyd(points: np.ndarray, centers: np.ndarray, rounds: int) -> tuple[np.ndarray, np.ndarray]:
    for _ in range(rounds):
        near = ((points[:, None] - centers[None]) ** 2).sum(axis=2).argmin(axis=1)
        centers = np.array(
            [points[near == k].mean(axis=0) if (near == k).any() else center for k, center in enumerate(centers)]
        )
    return centers, ((points[:, None] - centers[None]) ** 2).sum(axis=2).argmin(axis=1)


def test_kmeans(mr: MapReduce, tmp_path: Path) -> None:
    rng = np.random.default_rng(4)
    points = np.concatenate([rng.normal(middle, 1.0, (300, 3)) for middle in (0, 9, 30)])
    start = points[np.sort(np.random.default_rng(7).choice(len(points), 4, replace=False))]
    centers, near = lloyd(points, start, 50)
    np.save(tmp_path / "points.npy", points)
    found = jobs.kmeans(mr, tmp_path / "points.npy", 4, max_iter=50, tol=0, seed=7)
    made = [value for _, value in found]
    assert np.allclose([value[0] for value in made], centers)
    assert [value[1] for value in made] == np.bincount(near, minlength=4).tolist()
    assert [label for _, label in labels(mr, points, found)] == near.tolist()
    with pytest.raises(UsageError, match="k must be from 1 to the number of points, 900, not 901"):
        jobs.kmeans(mr, points, 901)


def test_histogram(mr: MapReduce) -> None:
    values = np.random.default_rng(5).integers(-5, 50, 3000)
    assert dict(jobs.histogram(mr, values)) == dict(Counter(values.tolist()))
    assert list(jobs.histogram(mr, ["b", "a", "b"])) == [("a", 1), ("b", 2)]


# ---- graphs


def test_degree(mr: MapReduce) -> None:
    edges = random_edges(40, 300, 6)
    both = Counter(np.concatenate(edges).tolist())
    found = jobs.degree(mr, edges)
    assert list(found) == sorted(both.items())
    assert list(jobs.degree(mr, edges, count="out")) == sorted(Counter(edges[0].tolist()).items())
    assert dict(degree_histogram(mr, found)) == dict(Counter(both.values()))


def test_edges_from_everywhere(mr: MapReduce, tmp_path: Path) -> None:
    source, target = random_edges(30, 100, 7)
    want = sorted(Counter(np.concatenate([source, target]).tolist()).items())
    (tmp_path / "edges.txt").write_text("".join(f"{u} {v}\n" for u, v in zip(source, target, strict=True)))
    with pk.ingest({"source": source, "target": target}, tmp_path / "g.pen") as graph:
        for edges in (graph, tmp_path / "g.pen", tmp_path / "edges.txt", mr.keyvalue(source, target)):
            assert list(jobs.degree(mr, edges)) == want
    with pytest.raises(UsageError, match="negative"):
        jobs.degree(mr, ([-1], [2]))
    with pk.from_edges(["a"], ["b"]) as graph, pytest.raises(UsageError, match="strings for ids"):
        jobs.degree(mr, graph)


def test_triangles(mr: MapReduce) -> None:
    edges = random_edges(40, 400, 8)
    graph = as_graph(edges)
    graph.remove_edges_from(nx.selfloop_edges(graph))
    want = sorted(tuple(sorted(clique)) for clique in nx.enumerate_all_cliques(graph) if len(clique) == 3)
    assert want
    assert [(a, *corners) for a, corners in jobs.triangles(mr, edges)] == want
    assert list(jobs.triangles(mr, ([0, 1], [1, 2]))) == []
    with MapReduce(memory_limit="1MiB") as small:  # more wedges than a chunk has room for
        every = np.nonzero(np.triu(np.ones((40, 40)), 1))
        assert len(jobs.triangles(small, every)) == 40 * 39 * 38 // 6
    with pytest.raises(UsageError, match="above 2"):
        jobs.triangles(mr, ([0], [1 << 33]))


def test_independent_set(mr: MapReduce) -> None:
    edges = random_edges(80, 150, 9)
    graph = as_graph(edges)
    chosen = [vertex for vertex, _ in jobs.independent_set(mr, edges, seed=3)]
    assert chosen == sorted(set(chosen))
    graph.remove_edges_from(nx.selfloop_edges(graph))
    assert not graph.subgraph(chosen).edges
    assert set(chosen) | {near for vertex in chosen for near in graph[vertex]} == set(graph)
    assert [vertex for vertex, _ in jobs.independent_set(mr, edges, seed=3)] == chosen
    assert list(jobs.independent_set(mr, ([], []))) == []


def test_components(mr: MapReduce) -> None:
    line = np.arange(30)
    edges = random_edges(100, 70, 10)
    edges = tuple(
        np.concatenate([ends, more]) for ends, more in zip(edges, (line[:-1] + 200, line[1:] + 200), strict=True)
    )
    want = {v: min(part) for part in nx.connected_components(as_graph(edges)) for v in part}
    assert dict(jobs.components(mr, edges)) == want
    assert dict(jobs.components(mr, ([5], [5]))) == {5: 5}


def test_rmat(mr: MapReduce) -> None:
    found = list(jobs.rmat(mr, 6, 8, seed=2))
    assert len(found) == len(set(found)) == 8 * 64
    assert found == sorted(found)
    assert max(max(edge) for edge in found) < 64
    # Quadrant a is the likeliest: small numbers have more edges.
    sources = np.array(found)[:, 0]
    assert (sources < 32).sum() > 1.5 * (sources >= 32).sum()
    assert list(jobs.rmat(mr, 6, 8, seed=2)) == found
    assert list(jobs.rmat(mr, 6, 8, seed=3)) != found
    assert len(jobs.rmat(mr, 5, 4, fraction=0.3)) == 4 * 32
    with pytest.raises(UsageError, match="sum to 1"):
        jobs.rmat(mr, 6, 8, a=0.9)
    with pytest.raises(UsageError, match="room for"):
        jobs.rmat(mr, 2, 16)


def test_every_job_is_named() -> None:
    for name in jobs.JOBS:
        assert callable(getattr(jobs, name))
    with pytest.raises(AttributeError):
        _ = jobs.no_such_job
