"""Programs: an algorithm in one of four forms. Functions are plain Python on numbers and named tuples; the engine
compiles them, or calls them as they are (`reference`).

A function sees a vertex `v` as a named tuple of its state, of the columns the program `reads`, and where asked for of
`number` (its internal number), `seed` (1 + its place among the seeds, 0 for all others) and `lane`. It sees `p`, the
parameters, with `p.vertices`, `p.step` (from 0) and `p.tally` beside the program's own. It sees an arc's columns as a
named tuple `e`.
"""

from __future__ import annotations

import keyword
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from penstock.engine.monoid import SUM, Monoid
from penstock.errors import UsageError

Along = Literal["out", "in", "both"]
NUMBER = "number"
"""A message that is the sender's internal number: nothing is stored or sent for it."""
SPECIAL = ("number", "seed", "lane")
GIVEN = ("vertices", "step", "tally")
"""Parameters that the engine adds."""


@dataclass(frozen=True)
class Bucketed:
    """Let the vertices with the least value go first: those whose `field` is below a limit that moves by `delta`."""

    field: str
    delta: str = "delta"
    """The parameter that holds the width of a bucket."""


@dataclass(frozen=True)
class Program:
    """What all forms share."""

    name: str
    state: Mapping[str, Any]
    """The fields of a vertex and their dtypes."""
    init: Callable[..., Any]
    """`init(v, p)`: the fields in their order; with a frontier, and whether the vertex is active at first."""
    reads: tuple[str, ...] = ()
    """Vertex columns that the functions read: `out_degree`, `in_degree`, the user's own; `number`, `seed`, `lane`."""
    params: Mapping[str, Any] = field(default_factory=dict)
    """Parameters and their default values; a run may replace them by values of the same type."""
    columns: tuple[str, ...] = ()
    """Edge columns that the functions read. Only these are read from disk."""
    along: Along = "out"
    """Messages travel with the arcs (`out`), against them (`in`), or both ways."""

    form = ""

    def __post_init__(self) -> None:
        if not self.state:
            raise UsageError(f"program {self.name} has no state: give it at least one field")
        names = [*self.state, *self.reads]
        for name in [*names, *self.params]:
            if not name.isidentifier() or keyword.iskeyword(name) or name.startswith("_"):
                raise UsageError(f"program {self.name}: {name!r} cannot be the name of a field")
        twice = {name for name in names if names.count(name) > 1}
        if twice:
            raise UsageError(f"program {self.name} names {min(twice)!r} twice among state and reads")
        if taken := set(self.params) & set(GIVEN):
            raise UsageError(f"program {self.name}: the engine itself gives the parameter {min(taken)!r}")
        if self.along not in ("out", "in", "both"):
            raise UsageError(f"program {self.name}: along is 'out', 'in' or 'both', not {self.along!r}")
        for name, kind in self.state.items():
            if np.dtype(kind).kind not in "fiub":
                raise UsageError(f"program {self.name}: field {name!r} is a number or a bool, not {kind!r}")

    def fields(self) -> dict[str, np.dtype]:
        return {name: np.dtype(kind) for name, kind in self.state.items()}

    def stored_reads(self) -> tuple[str, ...]:
        """The reads that take memory: all but those that a kernel can make up."""
        return tuple(name for name in self.reads if name not in ("number", "lane", "seed") or self.seeded == name)

    @property
    def seeded(self) -> str | None:
        """`seed`, if more than `init` asks who is one; what only `init` needs is not kept."""
        functions = [value for name, value in vars(self).items() if name != "init" and hasattr(value, "__code__")]
        asked = any("seed" in function.__code__.co_names for function in functions)
        return "seed" if "seed" in self.reads and asked else None


@dataclass(frozen=True)
class Combine(Program):
    """GIM-V, or message, aggregate and update of a superstep: each vertex emits, contributions combine along the
    arcs, each vertex takes the total in. Edge functions see the messages of the superstep before, on every tier."""

    message: Any = None
    """The dtype of a message, or NUMBER."""
    emit: Callable[..., Any] | None = None
    """`emit(v, p)`: the message of a vertex, once per superstep. What an edge need not do belongs here."""
    edge: Callable[..., Any] | None = None
    """`edge(message, e, p)`: the contribution along one arc; by default the message itself (combine2)."""
    contribution: Any = None
    """The dtype of a contribution; by default the message's."""
    combine: Monoid = SUM
    """How contributions combine (combineAll)."""
    update: Callable[..., Any] | None = None
    """`update(v, total, p)`: the new fields in their order (assign); with a frontier, and whether it is active."""
    frontier: bool = False
    """Only active vertices emit, and only vertices that something arrives at are updated."""
    wants: Callable[..., Any] | None = None
    """`wants(v, p)`: whether the vertex still takes contributions."""
    tally: Callable[..., Any] | None = None
    """`tally(v, p)`: a number per vertex whose sum over all is `p.tally` in the update of the superstep."""
    change: Callable[..., Any] | None = None
    """`change(v, new, p)`: how much an update moved a vertex; `new` is what update returned."""
    change_by: Monoid = SUM
    """How changes add up: SUM or MAX."""
    lanes: int = 1
    """So many copies of the state that share each pass over the arcs; functions work on one lane at a time."""
    bucketed: Bucketed | None = None
    """An order for the active vertices. Only for programs whose result does not depend on the order."""

    form = "combine"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.message is None or self.update is None:
            raise UsageError(f"program {self.name} needs a message type and an update function")
        if self.message != NUMBER and self.emit is None:
            raise UsageError(f"program {self.name} needs an emit function, or NUMBER for its message")
        if self.lanes < 1:
            raise UsageError(f"program {self.name} has {self.lanes} lanes; it needs at least one")
        if self.bucketed and (not self.frontier or self.bucketed.field not in self.state):
            raise UsageError(f"program {self.name} is bucketed: it needs a frontier and a field {self.bucketed.field!r}")

    @property
    def numbered(self) -> bool:
        """Whether the message is the sender's number."""
        return isinstance(self.message, str) and self.message == NUMBER

    def contribution_dtype(self, number: np.dtype) -> np.dtype:
        """The dtype of totals; `number` is that of vertex numbers."""
        if self.contribution is not None:
            return np.dtype(self.contribution)
        return number if self.numbered else np.dtype(self.message)


@dataclass(frozen=True)
class Sweep(Program):
    """A function of each arc over shared state, in any order, with the atomics of `penstock.engine.atomics`.

    `arc(u, v, e, state, p)`: `state` is a named tuple of whole arrays. It cannot be split into ranges.
    """

    arc: Callable[..., Any] | None = None
    vertex: Callable[..., Any] | None = None
    """`vertex(u, state, p)`: once for each vertex after each pass."""
    sampled: int = 0
    """In memory, first visit so many of each vertex's arcs, each round followed by the vertex function; then skip the
    vertices that `settled` names. From disk one pass visits everything."""
    settled: Callable[..., Any] | None = None
    """`settled(u, state, p)`: whether a vertex needs no more of its arcs, as its neighbours have seen them. Asked
    only where each arc is stored in both directions."""
    common: Callable[..., Any] | None = None
    """`common(state, p)`: called between the sampled rounds and the rest; returns parameters that change."""

    form = "sweep"


@dataclass(frozen=True)
class Row(Program):
    """All messages of a vertex at once: what no monoid can say.

    `row(v, messages, p)`: `messages` is an array that the function may reorder; returns the new fields in their order.
    """

    message: Any = None
    emit: Callable[..., Any] | None = None
    row: Callable[..., Any] | None = None
    change: Callable[..., Any] | None = None
    change_by: Monoid = SUM

    form = "row"


@dataclass(frozen=True)
class Pair(Program):
    """The common neighbours of the two ends of each arc: pairs of pages, for two-hop neighbourhoods."""

    form = "pair"


def iterations(count: int) -> Callable[[int, float], bool]:
    """Stop after so many supersteps."""
    return lambda step, change: step >= count


def change_below(bound: float, at_most: int) -> Callable[[int, float], bool]:
    """Stop when the change of a superstep is below the bound, or after so many supersteps."""
    return lambda step, change: change < bound or step >= at_most


__all__ = ["NUMBER", "Bucketed", "Combine", "Pair", "Program", "Row", "Sweep", "change_below", "iterations"]
