"""Small graphs of every shape that has ever broken a graph program, each with weights."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from small import Edge, G

if TYPE_CHECKING:
    from penstock.graph import Graph


@dataclass(frozen=True)
class Shape:
    """Edges with weights, and the vertices there are."""

    name: str
    vertices: Sequence[Any]
    edges: Sequence[Edge]
    weight: type = int
    ways: tuple[bool, ...] = (False, True)
    """What `undirected` should be tried with."""

    def graph(self, undirected: bool) -> G:
        """For the oracle. Parents and samples depend on the numbers of a store: there, take `oracle.of`."""
        return G(self.vertices, self.edges, undirected, columns={"weight": self.weight})

    def build(self, path: Path, undirected: bool, **options: Any) -> Graph:
        """Stored, in pages so small that there are many and large ones."""
        import penstock as pk

        text = any(isinstance(v, str) for v in self.vertices)
        kind = np.uint64 if not text and max(self.vertices, default=0) >= 1 << 63 else np.int64

        def ids(values: Iterable[Any]) -> Any:
            return list(values) if text else np.array(list(values), kind)

        columns = {
            "source": ids(edge[0] for edge in self.edges),
            "target": ids(edge[1] for edge in self.edges),
            "weight": np.array([edge[2] for edge in self.edges], np.float64 if self.weight is float else np.int64),
        }
        chosen = {"page_size": 4096, "allow_empty": True, "memory_limit": "64MB", **options}
        return pk.ingest(columns, path, vertices={"id": ids(self.vertices)}, undirected=undirected, **chosen)


def whole(rng: random.Random) -> int:
    return rng.randrange(8)


def real(rng: random.Random) -> float:
    """Some are 0, and many are equal, so that there are ties."""
    return rng.choice([0.0, 0.25, 0.25, 1.5, rng.random(), rng.random()])


def _shape(
    name: str,
    ends: Iterable[tuple[Any, Any]],
    vertices: Iterable[Any] = (),
    *,
    weight: Callable[[random.Random], Any] = whole,
    ways: tuple[bool, ...] = (False, True),
) -> Shape:
    rng = random.Random(name)
    edges = [(u, v, weight(rng)) for u, v in ends]
    known = list(dict.fromkeys([*vertices, *(end for edge in edges for end in edge[:2])]))
    return Shape(name, known, edges, float if weight is real else int, ways)


def shapes() -> list[Shape]:
    """All of them, the same ones each time."""
    path = [(v, v + 1) for v in range(12)]
    cycle = [(v, (v + 1) % 11) for v in range(11)]
    cliques = [*combinations(range(6), 2), *combinations(range(6, 11), 2), (5, 6)]
    dag = [(u, v) for u, v in combinations(range(16), 2) if (u * 7 + v * 3) % 4 == 0]
    # Three circles, a way from each to the next, a tail, and one on the way that is no circle.
    strong = [(0, 1), (1, 2), (2, 0), (2, 3), (3, 4), (4, 5), (5, 3), (5, 9), (9, 6), (6, 7), (7, 8), (8, 6), (8, 10)]
    return [
        _shape("empty", []),
        _shape("one vertex", [], [3]),
        _shape("one loop", [(3, 3)]),
        _shape("no edges", [], range(5), weight=real),
        _shape("two vertices", [(4, 2)]),
        _shape("there and back", [(4, 2), (2, 4)]),
        _shape("path", path),
        _shape("path, real weights", path, weight=real),
        _shape("cycle", cycle),
        _shape("star", [(0, v) for v in range(1, 2101)]),
        _shape("star inwards", [(v, 2100) for v in range(2100)], weight=real, ways=(False,)),
        _shape("hub of parallel arcs", _parallel_hub(), ways=(False,)),
        _shape("two cliques", cliques),
        _shape("bipartite", [(u, v) for u in range(5) for v in range(5, 12) if (u + v) % 3]),
        _shape("DAG", dag, weight=real),
        _shape("several SCCs", strong),
        _shape("disconnected", [(1, 2), (2, 5), (8, 7), (7, 9), (9, 8), (12, 13)], range(20)),
        _shape("duplicates", [(1, 2), (2, 3), (1, 2), (2, 1), (1, 2), (3, 1), (3, 4), (3, 4), (4, 3)], [0]),
        _shape("loops", [(1, 1), (1, 2), (2, 3), (3, 3), (3, 3), (3, 1), (4, 4), (5, 5), (5, 6)], [0]),
        _shape("random", _random(1, range(60), 300), range(65)),
        _shape("random, real weights", _random(2, range(60), 300), range(65), weight=real),
        _shape("sparse random", _random(3, range(150), 150), range(150)),
        _shape("string ids", _random(4, ["", "a", "B", "aa", "zoë", "ß", "東京", "10", "9", "x y"], 25), ["alone"]),
        _shape("large ids", _random(5, [(1 << 32) + 17 * v * v for v in range(20)], 60), [3, 1 << 62]),
        _shape("unsigned ids", _random(6, [(1 << 63) + 5 * v for v in range(15)], 40), [7]),
        _shape("negative ids", _random(7, range(-9, 9), 50), [-(1 << 40), 100], weight=real),
    ]


def _parallel_hub() -> list[tuple[int, int]]:
    """Runs of equal neighbours that go on in the next page, and a way back to the hub."""
    return [*((50, v % 700 + 100) for v in range(2100)), (100, 50), (101, 102), (102, 50), (102, 50), (50, 50)]


def _random(seed: int, ids: Sequence[Any], edges: int) -> list[tuple[Any, Any]]:
    """A multigraph with loops and a few vertices of many edges."""
    rng = random.Random(seed)
    some = [(ids[int(len(ids) * rng.random() ** 2)], rng.choice(ids)) for _ in range(edges)]
    some[-3:] = [some[0], (some[1][1], some[1][0]), (some[2][0], some[2][0])]
    return some
