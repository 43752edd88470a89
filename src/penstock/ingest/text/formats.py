"""Which text format a file is in, by its name, and the source that reads it."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from penstock.errors import UsageError
from penstock.ingest.source import EdgeSource
from penstock.ingest.text.textfile import expand, strip_compression

FORMATS: dict[str, tuple[str, ...]] = {
    "text": (".txt", ".csv", ".tsv", ".tab", ".edges", ".edgelist", ".snap"),
    "el": (".el",),
    "wel": (".wel",),
    "matrix-market": (".mtx", ".mm"),
    "metis": (".graph", ".metis"),
    "dimacs": (".gr", ".dimacs"),
    "ldbc": (".properties", ".e", ".v"),
}
"""The formats and the endings that mean them; any other ending is an edge list."""


def text_format(path: str | Path) -> str:
    """The format a file name stands for; `.gz` and its like do not count."""
    suffix = strip_compression(Path(path)).suffix.lower()
    return next((name for name, endings in FORMATS.items() if suffix in endings), "text")


def open_text(path: str | Path | Sequence[str | Path], format: str | None = None, **options: Any) -> EdgeSource:
    """The edges of a text file; of several (a list, a glob, a directory) if they are edge lists."""
    paths = expand(path)
    name = format or text_format(paths[0])
    if name not in FORMATS:
        raise UsageError(f"there is no text format {name!r}; the formats are {', '.join(FORMATS)}")
    make, fixed = _maker(name)
    known = set(inspect.signature(make).parameters) - {"self", "path", "paths", *fixed}
    for option in options:
        if option not in known:
            raise UsageError(f"format {name!r} has no option {option!r}; it has {', '.join(sorted(known))}")
    if name == "text":
        return make(paths, **options)
    if len(paths) > 1:
        raise UsageError(f"only edge lists may come in several files; {paths[0]} is in format {name!r}")
    return make(paths[0], **fixed, **options)


def _maker(name: str) -> tuple[Callable[..., EdgeSource], dict[str, Any]]:
    # Imported here: the sources bring Numba with them.
    if name == "matrix-market":
        from penstock.ingest.text.matrix_market import MatrixMarketSource

        return MatrixMarketSource, {}
    if name == "metis":
        from penstock.ingest.text.metis import MetisSource

        return MetisSource, {}
    if name == "dimacs":
        from penstock.ingest.text.dimacs import DimacsSource

        return DimacsSource, {}
    if name == "ldbc":
        from penstock.ingest.text.ldbc import LdbcSource

        return LdbcSource, {}
    from penstock.ingest.text.edge_list import GapSource, TextSource

    return (TextSource, {}) if name == "text" else (GapSource, {"weighted": name == "wel"})


__all__ = ["FORMATS", "open_text", "text_format"]
