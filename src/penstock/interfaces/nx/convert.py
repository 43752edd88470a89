"""From a NetworkX graph to one of Penstock's, and back.

NetworkX's dictionaries are read by iterators that run in C; no statement is executed per edge.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from itertools import chain, compress
from typing import Any

import networkx as nx
import numpy as np
import pyarrow as pa

from penstock.api import from_edges
from penstock.config import settings
from penstock.graph import Graph
from penstock.interfaces.nx.graph import COLUMN, NxGraph, Weight
from penstock.interfaces.nx.shelf import shelf

_SMALL, _KEPT = 2048, 64
"""Edges of a graph that is small, and how many of their stores are kept."""
_SHAPES: OrderedDict[tuple[Any, ...], Graph] = OrderedDict()


def from_networkx(graph: nx.Graph, edge_attrs: Mapping[Any, Any] | None = None) -> NxGraph:
    """Nodes and edges, and of the edges' attributes those in `edge_attrs` (with defaults). Parallel edges are kept."""
    adjacency = _adjacency(graph)
    nodes = list(adjacency)
    index = dict(zip(nodes, range(len(nodes)), strict=True))
    degrees = np.fromiter(map(len, adjacency.values()), np.int64, len(nodes))
    source = np.repeat(np.arange(len(nodes)), degrees)
    target = _targets(adjacency, nodes, index, len(source))
    multigraph, parallel = graph.is_multigraph(), False
    # Undirected edges are there twice, a loop once.
    wanted = None if graph.is_directed() else source <= target
    if multigraph:
        times = np.fromiter(map(len, _data(adjacency)), np.int64, len(source))
        parallel = bool((times > 1).any())
        source, target = np.repeat(source, times), np.repeat(target, times)
        wanted = None if wanted is None else np.repeat(wanted, times)
    weights = {
        name: _values(lambda: _edge_data(adjacency, multigraph), wanted, name, default)
        for name, default in (edge_attrs or {}).items()
    }
    if wanted is not None:
        source, target = source[wanted], target[wanted]
    column, found = None, {}
    for name, values in weights.items():
        if (same := _uniform(values)) is not None:
            found[name] = Weight(uniform=same)
        elif column is None:
            assert values is not None
            column, found[name] = values, Weight(COLUMN, finite=bool(np.isfinite(values).all()))
        else:
            raise NotImplementedError("Penstock's backend converts one edge attribute at a time")
    made = _build(source, target, column, len(nodes), directed=graph.is_directed())
    return NxGraph(made, nodes, index, multigraph=multigraph, weights=found, parallel=parallel)


def _adjacency(graph: nx.Graph) -> Mapping[Any, Mapping[Any, Any]]:
    """The dictionaries of a graph. Views, whose lengths may count what they hide, are copied into plain ones."""
    kinds = (nx.MultiDiGraph, nx.MultiGraph, nx.DiGraph, nx.Graph)
    base = next(kind for kind in kinds if isinstance(graph, kind))
    if any(getattr(type(graph), name) is not getattr(base, name) for name in ("neighbors", "adjacency", "__getitem__")):
        raise NotImplementedError(f"{type(graph).__name__} has neighbours of its own making")
    if type(graph._adj) is dict:
        return graph._adj
    copied = dict if graph.is_multigraph() else _itself
    return {node: {other: copied(data) for other, data in near.items()} for node, near in graph._adj.items()}


def _itself(data: Any) -> Any:
    return data


def _data(adjacency: Mapping[Any, Mapping[Any, Any]]) -> Iterator[Any]:
    return chain.from_iterable(neighbours.values() for neighbours in adjacency.values())


def _edge_data(adjacency: Mapping[Any, Any], multigraph: bool) -> Iterator[dict[Any, Any]]:
    """The attributes of each edge; of each parallel one in a multigraph."""
    data = _data(adjacency)
    return chain.from_iterable(keyed.values() for keyed in data) if multigraph else data


def _targets(adjacency: Mapping[Any, Any], nodes: list[Any], index: dict[Any, int], count: int) -> np.ndarray:
    """The places of all neighbours, node by node. Whole numbers are looked up together: three times faster."""
    if set(map(type, nodes)) == {int}:
        try:
            names = np.array(nodes, np.int64)
            found = np.fromiter(chain.from_iterable(adjacency.values()), np.int64, count)
        except OverflowError:
            pass
        else:
            low, high = int(names.min()), int(names.max())
            if low == 0 and high == len(names) - 1 and (names[1:] > names[:-1]).all():
                return found
            if high - low <= 8 * len(names) + 1024:
                places = np.empty(high - low + 1, np.int64)
                places[names - low] = np.arange(len(names))
                return places[found - low]
            order = np.argsort(names)
            return order[np.searchsorted(names, found, sorter=order)]
    return np.fromiter(map(index.__getitem__, chain.from_iterable(adjacency.values())), np.int64, count)


def _values(
    data: Callable[[], Iterator[dict[Any, Any]]], wanted: np.ndarray | None, name: Any, default: Any
) -> np.ndarray | None:
    """An attribute of the wanted edges as numbers; None: they all have the default, 1."""
    if default == 1 and not any(data()):
        return None
    chosen = data() if wanted is None else compress(data(), wanted.tolist())
    values = [edge.get(name, default) for edge in chosen]
    try:
        found = np.array(values)
    except (ValueError, OverflowError):
        found = np.array(values, object)
    if found.ndim != 1 or found.dtype.kind not in "biuf" or (found.dtype.kind == "u" and found.max() >= 1 << 63):
        if not values:
            return np.zeros(0, np.int64)
        raise NotImplementedError(f"edge attribute {name!r} holds what is no number of 64 bits")
    return found.astype(np.float64 if found.dtype.kind == "f" else np.int64)


def _uniform(values: np.ndarray | None) -> int | float | None:
    """The whole number that all of them are, if there is one."""
    if values is None or not len(values):
        return 1
    first = values[0].item()
    if not 0 < first < 1 << 31 or first != int(first):
        return None
    return first if (values == first).all() else None


def _build(
    source: np.ndarray,
    target: np.ndarray,
    weight: np.ndarray | None,
    count: int,
    *,
    directed: bool,
    merge: bool = False,
) -> Graph:
    """The store of these edges. Small graphs of the same shape, whatever their nodes are called, share one: who calls
    many functions on a graph that NetworkX does not cache would build it each time."""
    small = len(source) <= _SMALL
    key = (count, directed, merge, *map(_bytes, (source, target, weight))) if small else ()
    if key in _SHAPES:
        _SHAPES.move_to_end(key)
        return _SHAPES[key]
    options: dict[str, Any] = {
        "duplicates": "drop" if merge else "keep",
        "undirected": not directed,
        "allow_empty": True,
    }
    named = np.zeros(count, bool)
    named[source] = named[target] = True
    if not named.all():
        options["vertices"] = pa.table({"id": np.arange(count)})
    if settings().temp_directory is None:
        options["temp_directory"] = shelf(len(source))
    made = from_edges(source, target, weight, progress=False, **options)
    if small:
        _SHAPES[key] = made
        if len(_SHAPES) > _KEPT:
            _SHAPES.popitem(last=False)
    return made


def _bytes(values: np.ndarray | None) -> tuple[str, bytes] | None:
    return None if values is None else (values.dtype.str, values.tobytes())


def merged(graph: NxGraph) -> NxGraph:
    """A converted graph without its parallel edges, and without weights."""
    pieces = list(graph.graph.edge_arrays(graph.graph.users().to_numpy()))
    source = np.concatenate([np.zeros(0, np.int64), *(piece[0] for piece in pieces)])
    target = np.concatenate([np.zeros(0, np.int64), *(piece[1] for piece in pieces)])
    made = _build(source, target, None, len(graph), directed=graph.is_directed(), merge=True)
    return NxGraph(made, graph.nodes, graph._index, multigraph=False)


def to_networkx(graph: NxGraph | Graph) -> nx.Graph:
    """A NetworkX graph: of a stored graph with all that it holds, of a converted one with the attributes it took."""
    if isinstance(graph, Graph):
        return graph.to_networkx()
    kinds = {
        (False, False): nx.Graph, (True, False): nx.DiGraph, (False, True): nx.MultiGraph, (True, True): nx.MultiDiGraph
    }  # fmt: skip
    made = kinds[graph.is_directed(), graph.is_multigraph()]()
    made.add_nodes_from(graph)
    names = [name for name, weight in graph.weights.items() if weight.column is not None]
    same = {name: weight.uniform for name, weight in graph.weights.items() if weight.column is None}
    columns = [COLUMN] if names else []
    for source, target, values in graph.graph.edge_arrays(graph.graph.users().to_numpy(), columns):
        ends = zip(graph.named(source.tolist()), graph.named(target.tolist()), strict=True)
        if names:
            held = values[COLUMN].tolist()
            made.add_edges_from((u, v, same | {names[0]: w}) for (u, v), w in zip(ends, held, strict=True))
        else:
            made.add_edges_from(ends, **same)
    return made


__all__ = ["from_networkx", "merged", "to_networkx"]
