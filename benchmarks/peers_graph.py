"""The graphs of the comparison with peers: stores, their arrays as every peer takes them, and the sources."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

ORDERS = ("input", "degree")
_FIELDS = ("indptr", "indices", "weight", "users")


@dataclass(frozen=True)
class Arrays:
    """A symmetric graph by rows. `users` is the id that vertex k has in every order."""

    indptr: np.ndarray
    indices: np.ndarray
    weight: np.ndarray
    users: np.ndarray

    @property
    def n(self) -> int:
        return len(self.indptr) - 1

    @property
    def degree(self) -> np.ndarray:
        return np.diff(self.indptr)

    def numbers(self, users: np.ndarray) -> np.ndarray:
        """The vertices of these ids."""
        at = np.argsort(self.users)
        return at[np.searchsorted(self.users, users, sorter=at)]

    def upper(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Each edge once, the smaller vertex first: source, target, weight."""
        source = np.repeat(np.arange(self.n, dtype=np.int32), self.degree)
        once = source < self.indices
        return source[once], self.indices[once], self.weight[once]


def store(folder: Path, scale: int, order: str) -> Path:
    """The store of Kronecker `scale`, edge factor 16, symmetrised, weights 1..255; made if it is not there."""
    path = folder / f"k{scale}-{order}.pen"
    if not path.exists():
        import penstock as pk

        options = {"edge_factor": 16, "undirected": True, "weights": "1:255", "order": order, "memory_limit": "2GB"}
        pk.generate("kron", path, scale=scale, **options).close()
    return path


def arrays(folder: Path, scale: int, order: str) -> Arrays:
    """The graph's arrays, mapped from files that are written once. Rows and columns are in the store's order."""
    place = folder / f"k{scale}-{order}.arrays"
    if not place.exists():
        _extract(store(folder, scale, order), place)
    return Arrays(*(np.load(place / f"{name}.npy", mmap_mode="r") for name in _FIELDS))


def _extract(path: Path, place: Path) -> None:
    import penstock as pk

    with pk.open(path) as graph:
        indices, weight = np.empty(graph.arcs, np.int32), np.empty(graph.arcs, np.uint8)
        degree, at = np.zeros(graph.vertices, np.int64), 0
        # Pages come in the order of their vertices and neighbours ascend: the arcs are in row order already.
        for source, target, columns in graph.edge_arrays(None, ["weight"], both_ways=True, size=1 << 22):
            part = slice(at, at + len(source))
            indices[part], weight[part] = target, columns["weight"]
            first, last = int(source[0]), int(source[-1]) + 1
            degree[first:last] += np.bincount(source - source[0], minlength=last - first)
            at += len(source)
        users = np.asarray(graph.users().to_numpy(), np.int64)
    indptr = np.concatenate([[0], np.cumsum(degree)])
    unfinished = place.with_suffix(".unfinished")
    unfinished.mkdir(exist_ok=True)
    for name, values in zip(_FIELDS, (indptr, indices, weight, users), strict=True):
        np.save(unfinished / f"{name}.npy", values)
    unfinished.rename(place)


def sources(folder: Path, scale: int, count: int) -> np.ndarray:
    """Ids of random vertices with arcs, the same in every order."""
    graph = arrays(folder, scale, "input")
    users = np.sort(graph.users[graph.degree > 0])
    return np.random.default_rng(27491095).choice(users, count, replace=False)
