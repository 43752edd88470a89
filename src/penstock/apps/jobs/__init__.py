"""Jobs that people know MapReduce by. Each takes a MapReduce first, and returns a KeyValue of it."""

from __future__ import annotations

import importlib
from typing import Any

JOBS: dict[str, tuple[str, str]] = {
    "word_count": ("wordcount", "how often each word occurs in text files"),
    "inverted_index": ("index", "in which files each word occurs, and how often"),
    "page_views": ("pageviews", "how often each page of a web log was seen"),
    "kmeans": ("clusters", "points by the nearest of k centers"),
    "degree": ("degrees", "how many edges each vertex has"),
    "histogram": ("histograms", "how often each key occurs"),
    "triangles": ("triads", "the triangles of a graph, each once"),
    "independent_set": ("independent", "vertices without edges between them, to which none can be added"),
    "components": ("zones", "the smallest vertex that each vertex is connected with"),
    "rmat": ("quadrants", "the edges of a random graph, all different"),
}
"""The module of each job, and what it finds, in a line."""


def __getattr__(name: str) -> Any:
    if name not in JOBS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"penstock.apps.jobs.{JOBS[name][0]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *JOBS})


__all__ = ["JOBS"]
