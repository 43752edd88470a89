"""Stores of the shapes, each built once and read by many tests: building takes longer than most runs on them."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import small
from shapes import Shape

if TYPE_CHECKING:
    from penstock.graph import Graph


class Stored:
    """Stores by shape, way and options, with what the oracle needs to know of them. Not to be changed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._graphs: dict[Any, tuple[Graph, small.G]] = {}

    def get(self, shape: Shape, undirected: bool, **options: Any) -> tuple[Graph, small.G]:
        key = shape.name, undirected, *sorted(options.items())
        if key not in self._graphs:
            graph = shape.build(self.folder / f"{len(self._graphs)}.pen", undirected, **options)
            self._graphs[key] = graph, small.of(graph)
        return self._graphs[key]

    def close(self) -> None:
        for graph, _ in self._graphs.values():
            graph.close()
        shutil.rmtree(self.folder, ignore_errors=True)
