"""What a caller hands an algorithm: a graph, a store, or edges in a file, a table or an object of another library.

Edges become a store for as long as somebody holds the graph or a result of it.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import weakref
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from penstock.config import Settings
from penstock.graph import Graph

PAGE_SIZE = "64KiB"
"""Small graphs are the rule where nobody made a store: pages of a MiB would be empty ones."""
LARGE = 1 << 26
"""From here on a file of edges gets pages of the usual size, and a store beside it: the system's folder for temporary
files may be in memory."""


def graph_of(given: Any, settings: Settings, options: Mapping[str, Any] | None = None) -> Graph:
    """The graph of what was handed over. `options` are for edges: how to read and to build."""
    if isinstance(given, Graph):
        return given
    return Graph.open(given) if is_store(given) else temporary(given, settings, options or {})


def is_store(given: Any) -> bool:
    """Whether it is a graph, or the path of one: not edges that have to be read first."""
    return isinstance(given, Graph) or (isinstance(given, str | os.PathLike) and not is_edges(given))


def is_edges(path: str | os.PathLike[str]) -> bool:
    """Whether a path is a file or a folder of edges. What is not there is no edges either."""
    place = Path(path)
    if not place.is_dir():
        return place.exists()
    if (place / "meta.json").exists() or place.suffix == ".pen":
        return False
    from penstock.ingest.open import TABLE_ENDINGS

    return any(child.suffix.lower() in TABLE_ENDINGS for child in place.rglob("*"))


def temporary(edges: Any, settings: Settings, options: Mapping[str, Any]) -> Graph:
    """A graph of edges in a store that is deleted with it."""
    from penstock.ingest.build.builder import build
    from penstock.ingest.open import open_source, open_vertices, split_options
    from penstock.store.draft import remove_store
    from penstock.store.reader import Store

    large = _file_size(edges) >= LARGE
    build_options, source_options, vertices = split_options(({} if large else {"page_size": PAGE_SIZE}) | dict(options))
    source = open_source(edges, **source_options)
    table = open_vertices(vertices, string_ids=source.string_ids)
    folder = Path(tempfile.mkdtemp(prefix="penstock-", dir=_place(edges, settings, large)))
    path = folder / "graph.pen"

    def remove() -> None:
        remove_store(path)
        shutil.rmtree(folder, ignore_errors=True)

    try:
        build(source, path, build_options, settings, table)
        graph = Graph(Store(path), temporary=True)
    except BaseException:
        remove()
        raise
    weakref.finalize(graph, remove)
    return graph


def _place(edges: Any, settings: Settings, large: bool) -> Path | None:
    if settings.temp_directory is not None:
        settings.temp_directory.mkdir(parents=True, exist_ok=True)
        return settings.temp_directory
    beside = Path(edges).absolute().parent if large and isinstance(edges, str | os.PathLike) else None
    return beside if beside is not None and os.access(beside, os.W_OK) else None


def _file_size(edges: Any) -> int:
    if not isinstance(edges, str | os.PathLike):
        return 0
    path = Path(edges)
    files = path.rglob("*") if path.is_dir() else [path]
    return sum(file.stat().st_size for file in files if file.is_file())


__all__ = ["graph_of", "is_edges", "is_store", "temporary"]
