"""Jobs that people know MapReduce by. Each takes a MapReduce first, and returns a KeyValue of it."""

from __future__ import annotations

import importlib
import inspect
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Job:
    """What is known of a job before it is loaded."""

    module: str
    finds: str
    """What it returns, in a line."""
    takes: str
    """What it reads: text files, edges, points, keys, or nothing."""
    columns: tuple[str, ...]
    """The names of what it returns, as a table."""
    ranked: bool = False
    """Whether people look at the largest values first, and not at the first rows."""


JOBS: dict[str, Job] = {
    "word_count": Job("wordcount", "how often each word occurs in text files", "text", ("word", "count"), True),
    "inverted_index": Job("index", "in which files each word occurs, and how often", "text", ("word", "file", "count")),
    "page_views": Job("pageviews", "how often each page of a web log was seen", "text", ("page", "views"), True),
    "histogram": Job("histograms", "how often each key occurs", "keys", ("key", "count"), True),
    "kmeans": Job("clusters", "points by the nearest of k centers", "points", ("cluster",)),
    "degree": Job("degrees", "how many edges each vertex has", "edges", ("vertex", "degree"), True),
    "triangles": Job("triads", "the triangles of a graph, each once", "edges", ("a", "b", "c")),
    "independent_set": Job(
        "independent", "vertices without edges between them, to which none can be added", "edges", ("vertex", "round")
    ),
    "components": Job(
        "zones", "the smallest vertex that each vertex is connected with", "edges", ("vertex", "component")
    ),
    "rmat": Job("quadrants", "the edges of a random graph, all different", "nothing", ("source", "target")),
}


def options_of(name: str) -> dict[str, inspect.Parameter]:
    """The options of a job: its annotated parameters."""
    found = inspect.signature(getattr(importlib.import_module(_home(name)), name), eval_str=True).parameters
    return {key: each for key, each in found.items() if hasattr(each.annotation, "__metadata__")}


def _home(name: str) -> str:
    return f"penstock.apps.jobs.{JOBS[name].module}"


def __getattr__(name: str) -> Any:
    if name not in JOBS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_home(name)), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *JOBS})


__all__ = ["JOBS", "Job", "options_of"]
