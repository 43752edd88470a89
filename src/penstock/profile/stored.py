"""What profiles are made of: a graph's store, read in pieces."""

from __future__ import annotations

from typing import Protocol

from penstock.store.reader import Store

PIECE = 1 << 20
"""Values looked at together."""


class Stored(Protocol):
    """A graph: what has a store."""

    @property
    def store(self) -> Store: ...


def store_of(graph: Stored | Store) -> Store:
    return graph if isinstance(graph, Store) else graph.store


__all__ = ["PIECE", "Stored", "store_of"]
