"""What an algorithm returns whose answer is edges: source, target and edge columns, as a stream."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import pyarrow as pa

from penstock.networks import network
from penstock.rows import Rows


class Edges(Rows):
    """Edges under the user's ids. `make` is called each time they are read: how many there are is known after that."""

    def __init__(
        self, make: Callable[[], Iterable[pa.RecordBatch]], schema: pa.Schema, stats: Mapping[str, Any]
    ) -> None:
        self._make, self._schema = make, schema
        self.stats = dict(stats)

    def __repr__(self) -> str:
        return f"<penstock.Edges: {', '.join(self._schema.names)}>"

    @property
    def schema(self) -> pa.Schema:
        return self._schema

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The edges as a stream; batches may have any size, empty ones are left out."""
        return (batch for batch in self._make() if len(batch))

    def to_networkx(self, *, multigraph: bool = False) -> Any:
        """A NetworkX graph of these edges, directed like the graph that they come from."""
        directed = True if self.graph is None else self.graph.directed
        return network(self.batches(), directed=directed, multigraph=multigraph)


__all__ = ["Edges"]
