"""A graph as the functions of the backend see it: NetworkX's nodes, in their order, over a Penstock graph."""

from __future__ import annotations

import copy
from collections.abc import Hashable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import networkx as nx
import numpy as np
import pyarrow as pa

from penstock.config import Settings, settings
from penstock.engine.vectors import Slots
from penstock.errors import DoesNotFit, VertexNotFound
from penstock.graph import Graph
from penstock.result import Result

if TYPE_CHECKING:
    from penstock.algorithms.job import Job

COLUMN = "weight"
"""The edge column that holds the attribute of a converted graph, whatever NetworkX calls it."""


@dataclass(frozen=True)
class Weight:
    """What edges weigh: a column, or a whole number that is the same for all."""

    column: str | None = None
    uniform: int | float = 1
    finite: bool = True
    """Whether no value of the column is infinite or NaN."""


class NxGraph:
    """Nodes in NetworkX's order, and a Penstock graph whose ids are, if it was converted, their places in it."""

    __networkx_backend__ = "penstock"

    def __init__(
        self,
        graph: Graph,
        nodes: Sequence[Any],
        index: dict[Any, int] | None,
        *,
        multigraph: bool,
        weights: dict[Any, Weight] | None = None,
        parallel: bool = False,
    ) -> None:
        self.graph, self.nodes, self._index = graph, nodes, index
        self.multigraph, self.weights, self.parallel = multigraph, dict(weights or {}), parallel
        self.numbers = graph.store.ids.order.read()
        """The internal number of each node."""
        self.__networkx_cache__: dict[str, Any] = {}
        self._limits: dict[str, Any] = {}
        self._merged: list[NxGraph] = []

    # ---- what NetworkX asks of a graph

    def is_directed(self) -> bool:
        return self.graph.directed

    def is_multigraph(self) -> bool:
        return self.multigraph

    def __len__(self) -> int:
        return len(self.nodes)

    order = number_of_nodes = __len__

    def number_of_edges(self) -> int:
        return self.graph.edges

    def __iter__(self) -> Iterator[Any]:
        return iter(self.nodes)

    def __contains__(self, node: Any) -> bool:
        try:
            return node in self._adj if self._index is not None else self._find(node) is not None
        except TypeError:
            return False

    def __repr__(self) -> str:
        return f"<penstock NxGraph of {len(self)} nodes: {self.graph!r}>"

    @cached_property
    def _adj(self) -> dict[Any, int]:
        """The place of each node; NetworkX's own `nbunch_iter` looks nodes up in it."""
        return self._index if self._index is not None else {node: place for place, node in enumerate(self.nodes)}

    nbunch_iter = nx.Graph.nbunch_iter

    # ---- from nodes to vertices

    def _find(self, node: Any) -> int | None:
        """The internal number of a node of a stored graph."""
        hash(node)
        if isinstance(node, str) != (self.graph.store.ids.kind == "string"):
            return None
        try:
            return self.graph.store.ids.number(node)
        except VertexNotFound:
            return None

    def number(self, node: Hashable) -> int:
        """The internal number of a node that is there."""
        if self._index is not None:
            return int(self.numbers[self._index[node]])
        found = self._find(node)
        if found is None:
            raise KeyError(node)
        return found

    def id(self, node: Hashable) -> Any:
        """Its id in the Penstock graph."""
        return node if self._index is None else self._index[node]

    def by_node(self, vector: np.ndarray, slots: Slots) -> np.ndarray:
        """A vector by slot, in the order of the nodes."""
        if slots.active == len(self.numbers):
            return vector[self.numbers]
        at = np.minimum(self.numbers, slots.active).astype(np.int64)
        isolated = np.flatnonzero(at == slots.active)
        alone = np.array(slots.alone, self.numbers.dtype)
        place = np.searchsorted(alone, self.numbers[isolated])
        known = place < len(alone)
        known[known] = alone[place[known]] == self.numbers[isolated[known]]
        at[isolated] = np.where(known, slots.active + place, slots.body)
        return vector[at]

    def by_slot(self, values: np.ndarray, slots: Slots, out: np.ndarray) -> None:
        """The inverse: values in the order of the nodes, each of which has a slot of its own."""
        at = self.numbers.astype(np.int64)
        if slots.alone:
            isolated = at >= slots.active
            at[isolated] = slots.active + np.searchsorted(np.array(slots.alone), at[isolated])
        out[at] = values

    def mapping(self, values: np.ndarray) -> dict[Any, Any]:
        """node -> value, as plain Python numbers."""
        return dict(zip(self.nodes, values.tolist(), strict=True))

    def named(self, places: Iterable[int]) -> Iterator[Any]:
        """The nodes at these places."""
        return map(self.nodes.__getitem__, places)

    # ---- running

    def limited(self, limits: dict[str, Any]) -> Self:
        """The same graph, run within these limits."""
        if not limits:
            return self
        other = copy.copy(self)
        other._limits = self._limits | limits
        return other

    def settings(self) -> Settings:
        chosen = {name: value for name, value in dict(nx.config.backends.penstock).items() if name in _SETTINGS}
        return settings(**{"progress": False} | chosen | self._limits)

    @contextmanager
    def job(self, name: str) -> Iterator[Job]:
        """An engine on the graph for one call. What was converted is taken into memory once, if there is room."""
        from penstock.algorithms.job import Job

        chosen, graph = self.settings(), self.graph
        if self._index is not None and not graph.loaded and graph.card is None:
            try:
                graph.load(columns=list(graph.columns), memory_limit=chosen.memory_limit, device="cpu")
            except DoesNotFit:
                graph.unload()
        job = Job(graph, chosen, name, {})
        try:
            yield job
        finally:
            job.close()

    def run(self, name: str, **options: Any) -> Result:
        """One of Penstock's algorithms."""
        from penstock.algorithms import registry

        with self.job(name) as job:
            return registry.find(name)(job, **options)

    @staticmethod
    def column(result: Result, name: str) -> tuple[np.ndarray, np.ndarray]:
        """A column of a result in the order of the nodes, and which of its values are known. Vertices are given as
        numbers that are equal for equal ones."""
        values = result.table.column(name).combine_chunks()
        known = np.asarray(values.is_valid())
        if pa.types.is_large_string(values.type):
            return values.dictionary_encode().indices.to_numpy(), known
        return (values if known.all() else values.fill_null(0)).to_numpy(), known

    # ---- edges

    def weight(self, attribute: Any) -> Weight:
        """What edges weigh by an attribute; 1 where there is none of this name."""
        if attribute is None:
            return Weight()
        if self._index is None and attribute in self.graph.columns:
            return Weight(attribute)
        return self.weights.get(attribute, Weight())

    def simple(self) -> NxGraph:
        """The graph with parallel edges merged."""
        if self._index is None:
            if self.multigraph:
                raise NotImplementedError(f"{self.graph.path} has parallel edges: build it with duplicates='drop'")
            return self
        if not self.parallel:
            return self
        if not self._merged:
            from penstock.interfaces.nx.convert import merged

            self._merged.append(merged(self))
        return self._merged[0].limited(self._limits)


_SETTINGS = ("memory_limit", "device", "gpu_memory_limit", "temp_directory", "threads")


def stored(graph: Graph) -> NxGraph:
    """A Penstock graph as the functions see it: its nodes are its ids, in their order."""
    known = graph.__networkx_cache__
    if "view" not in known:
        ids = graph.store.ids
        nodes = ids.all().take(pa.array(ids.order.read())).to_pylist()
        known["view"] = NxGraph(graph, nodes, None, multigraph=graph.is_multigraph())
    return known["view"]


__all__ = ["COLUMN", "NxGraph", "Weight", "stored"]
