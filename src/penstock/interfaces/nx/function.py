"""The decorator that makes a function one of the backend's: `@function(light=True)`.

A function is written with NetworkX's own signature; it is called with an `NxGraph`, whatever the caller gave. The
decorator adds the parameters that Penstock has beyond NetworkX's.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import networkx as nx

from penstock.graph import Graph
from penstock.interfaces.nx.graph import NxGraph, stored

PARAMETERS = {
    "memory_limit": "How much memory the run may take, as 4GB; by default 80 % of what there is.",
    "device": "Who computes: auto, cpu, gpu, or reference, which is slow and obvious.",
}
"""What every function takes besides NetworkX's own parameters, and how NetworkX's documentation describes it."""


@dataclass(frozen=True)
class Function:
    """One function of the backend."""

    body: Callable[..., Any]
    call: Callable[..., Any]
    light: bool
    """Whether NetworkX needs less time for it than a conversion takes."""
    refuses: Callable[..., str | None] | None
    """`refuses(the function's arguments)`: why it cannot run with them; None if it can."""

    @functools.cached_property
    def signature(self) -> inspect.Signature:
        return inspect.signature(self.body)

    @property
    def docs(self) -> str:
        """The first line of the docstring, if it says how Penstock differs."""
        return (inspect.getdoc(self.body) or "").partition("\n")[0]

    def refusal(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str | None:
        """Why it cannot run with these arguments."""
        if self.refuses is None:
            return None
        try:
            bound = self.signature.bind(*args, **{name: kwargs[name] for name in kwargs if name not in PARAMETERS})
        except TypeError as error:
            return str(error)
        bound.apply_defaults()
        asked = inspect.signature(self.refuses).parameters
        return self.refuses(**{name: value for name, value in bound.arguments.items() if name in asked})


FUNCTIONS: dict[str, Function] = {}


def function(
    *, light: bool = False, refuses: Callable[..., str | None] | None = None
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Make a function one of the backend's, under its own name."""

    def add(body: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(body)
        def call(G: Any, *args: Any, **kwargs: Any) -> Any:
            limits = {name: kwargs.pop(name) for name in PARAMETERS if name in kwargs}
            graph = graph_of(G).limited({name: value for name, value in limits.items() if value is not None})
            return body(graph, *args, **kwargs)

        own = inspect.signature(body)
        more = [inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None) for name in PARAMETERS]
        call.__signature__ = own.replace(parameters=[*own.parameters.values(), *more])  # type: ignore[attr-defined]
        FUNCTIONS[body.__name__] = Function(body, call, light, refuses)
        return call

    return add


def graph_of(graph: Any) -> NxGraph:
    """What the functions work on, from what they are called with."""
    if isinstance(graph, NxGraph):
        return graph
    if isinstance(graph, Graph):
        return stored(graph)
    if isinstance(graph, nx.Graph):
        from penstock.interfaces.nx.convert import from_networkx

        return from_networkx(graph)
    raise TypeError(f"Penstock's functions take a graph, not {type(graph).__name__}")


# ---- common reasons not to run


def weighted(weight: Any) -> str | None:
    """Of functions that count arcs only."""
    return None if weight is None else "weighted edges are not supported here"


def callable_weight(weight: Any) -> str | None:
    return "weights given by a function are not supported" if callable(weight) else None


__all__ = ["FUNCTIONS", "PARAMETERS", "Function", "callable_weight", "function", "graph_of", "weighted"]
