"""The algorithms by name. Each is a function of that name in a module of that name."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable
from typing import Any

from penstock.config import Settings
from penstock.errors import UsageError

ALGORITHMS: dict[str, str] = {
    "pagerank": "how often a random surfer is at each vertex",
    "bfs": "levels and parents of a breadth-first search",
}
"""What each algorithm finds, in a line."""


def find(name: str) -> Callable[..., Any]:
    """The function `name(job, **options)`."""
    if name not in ALGORITHMS:
        raise UsageError(f"there is no algorithm {name!r}; there are {', '.join(ALGORITHMS)}")
    return getattr(importlib.import_module(f"penstock.algorithms.{name}"), name)  # type: ignore[no-any-return]


def options_of(name: str) -> dict[str, inspect.Parameter]:
    """The options of an algorithm: its keyword parameters, with their annotations."""
    return {
        key: parameter
        for key, parameter in inspect.signature(find(name), eval_str=True).parameters.items()
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY
    }


def run(name: str, graph: Any, settings: Settings, options: dict[str, Any]) -> Any:
    """Run an algorithm; what it took is given back, whatever happens."""
    from penstock.algorithms.job import Job

    function, known = find(name), options_of(name)
    for key in options:
        if key not in known:
            raise UsageError(f"{name} has no option {key!r}; it has {', '.join(known) or 'none'}")
    for key, parameter in known.items():
        if parameter.default is inspect.Parameter.empty and key not in options:
            raise UsageError(f"{name} needs {key}")
    job = Job(graph, settings, name, options)
    try:
        return function(job, **options)
    finally:
        job.close()
