"""Jobs on several ranks: together they have what one rank has alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cluster.threads import ThreadRank, on_ranks
from penstock.apps import jobs
from penstock.apps.jobs.clusters import labels
from penstock.mapreduce.keyvalue import KeyValue
from penstock.mapreduce.session import MapReduce

EDGES = np.random.default_rng(5).integers(0, 60, (2, 90))
POINTS = np.random.default_rng(6).normal(size=(300, 2)) + np.repeat([[0, 0], [9, 0], [0, 9]], 100, axis=0)
WORDS = ["ab", "c", "ab", "d\n", "e" * 30]


def mine(rank: Any, whole: np.ndarray) -> np.ndarray:
    """What a rank has of an array."""
    return whole[..., rank.rank :: rank.size]


def _edges(mr: MapReduce) -> tuple[np.ndarray, np.ndarray]:
    own = mine(mr.communicator, EDGES)
    return own[0], own[1]


JOBS: dict[str, Callable[[MapReduce, Path], KeyValue]] = {
    "word count": lambda mr, folder: jobs.word_count(mr, folder / "texts"),
    "inverted index": lambda mr, folder: jobs.inverted_index(mr, folder / "texts"),
    "page views": lambda mr, folder: jobs.page_views(mr, folder / "texts", separator=" ", distinct=True),
    "kmeans": lambda mr, folder: jobs.kmeans(mr, folder / "points.npy", 3, seed=2),
    "components": lambda mr, folder: jobs.components(mr, _edges(mr)),
    "components of a file": lambda mr, folder: jobs.components(mr, folder / "edges.txt"),
    "triangles": lambda mr, folder: jobs.triangles(mr, _edges(mr)),
    "independent set": lambda mr, folder: jobs.independent_set(mr, _edges(mr), seed=4),
    "degree": lambda mr, folder: jobs.degree(mr, _edges(mr)),
    "histogram": lambda mr, folder: jobs.histogram(mr, mine(mr.communicator, EDGES[0])),
    "rmat": lambda mr, folder: jobs.rmat(mr, 6, 4, seed=3),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("ranks")
    (made / "texts").mkdir()
    for k in range(5):
        (made / "texts" / f"{k}.txt").write_text(" ".join(WORDS[: k + 1]) + "\n")
    np.save(made / "points.npy", POINTS)
    (made / "edges.txt").write_text("".join(f"{u} {v}\n" for u, v in EDGES.T.tolist()))
    return made


def rows(found: KeyValue) -> Counter[str]:
    return Counter(map(_row, found))


def _row(pair: tuple[Any, Any]) -> str:
    key, value = pair
    if isinstance(value, tuple) and np.ndim(value[0]):
        value = np.round(value[0], 9).tolist(), value[1]
    return f"{key!r} {value!r}"


@pytest.mark.parametrize("name", JOBS)
def test_ranks_find_together_what_one_finds_alone(folder: Path, name: str) -> None:
    def task(rank: ThreadRank | None) -> Counter[str]:
        options: dict[str, Any] = {"memory_limit": "8MB", "threads": 1, "chunk_size": 4096}
        with MapReduce(communicator=rank, **options) as mr:
            return rows(JOBS[name](mr, folder))

    found = on_ranks(3, task)
    if name == "kmeans":
        assert found == [task(None)] * 3
    else:
        assert sum(found, Counter()) == task(None)


def test_labels_are_those_of_each_ranks_points() -> None:
    def task(rank: ThreadRank | None) -> list[tuple[int, int]]:
        with MapReduce(communicator=rank, memory_limit="8MB", threads=1) as mr:
            own = POINTS if rank is None else np.array_split(POINTS, 2)[rank.rank]
            return list(labels(mr, own, jobs.kmeans(mr, own, 3, seed=2)))

    first, second = on_ranks(2, task)
    assert first + second == task(None)
    assert len(second) == len(POINTS) // 2


def test_matrices() -> None:
    from penstock.apps.matrix import Matrix, power, shortest_paths, similarity, spmv

    rng = np.random.default_rng(8)
    dense = np.where(rng.random((7, 7)) < 0.4, rng.integers(1, 9, (7, 7)), 0).astype(float)
    rows, columns = np.nonzero(dense)

    def task(rank: ThreadRank | None) -> list[Any]:
        with MapReduce(communicator=rank, memory_limit="8MB", threads=1) as mr:
            own = slice(mr.rank, None, mr.communicator.size)
            given = rows[own], columns[own], dense[rows, columns][own]
            matrix = Matrix.of(mr, given, (7, 7))
            made = [power(matrix, 3), similarity(matrix, threshold=0.2), shortest_paths(matrix)]
            made.append(shortest_paths(matrix, method="floyd-warshall"))
            return [[dict(each.entries) for each in made], spmv(matrix, np.arange(7)).tolist()]

    alone, vector = task(None)
    ranks = on_ranks(3, task)
    for number, want in enumerate(alone):
        assert sum(len(found[number]) for found, _ in ranks) == len(want)
        found = {key: value for found, _ in ranks for key, value in found[number].items()}
        assert found == pytest.approx(want)
    assert [found for _, found in ranks] == [vector] * 3
