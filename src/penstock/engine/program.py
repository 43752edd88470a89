"""Programs: an algorithm in one of five forms, and `Each` for what it does between them. Functions are plain Python on
numbers and named tuples; the engine compiles them, or calls them as they are (`reference`).

A function sees a vertex `v` as a named tuple of its state, of the columns the program `reads`, and where asked for of
`number` (its internal number), `seed` (1 + its place among the seeds, 0 for all others) and `lane`. It sees `p`, the
parameters, with `p.vertices`, `p.step` (from 0) and `p.tally` beside the program's own. It sees an arc's columns as a
named tuple `e`.
"""

from __future__ import annotations

import keyword
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from penstock.engine.monoid import MAX, MIN, SUM, Monoid
from penstock.errors import UsageError

Along = Literal["out", "in", "both"]
NUMBER = "number"
"""A message that is the sender's internal number: nothing is stored or sent for it."""
NEVER = 1 << 32
"""More neighbours than there can be: of `Common`, to leave an edge out."""
GIVEN = ("vertices", "step", "tally")
"""Parameters that the engine adds."""


def _mentions(value: Any, name: str, seen: set[int]) -> bool:
    """Whether a function, or one that it calls, reads an attribute of this name."""
    code = getattr(value, "__code__", None)
    if code is None or id(value) in seen:
        return False
    seen.add(id(value))
    others = [value.__globals__.get(other) for other in code.co_names]
    others += [cell.cell_contents for cell in value.__closure__ or ()]
    return name in code.co_names or any(_mentions(other, name, seen) for other in others)


def _check_change_by(program: str, monoid: Monoid) -> None:
    if monoid not in (SUM, MAX):
        raise UsageError(f"program {program}: changes add up by SUM or MAX, not by {monoid.name}")


def _check_name(program: str, name: str) -> None:
    if not name.isidentifier() or keyword.iskeyword(name) or name.startswith("_"):
        raise UsageError(f"program {program}: {name!r} cannot be the name of a field")


def _check_dtype(program: str, name: str, kind: Any) -> None:
    if np.dtype(kind).kind not in "fiub":
        raise UsageError(f"program {program}: field {name!r} is a number or a bool, not {kind!r}")


@dataclass(frozen=True)
class Bucketed:
    """Let the vertices with the least value go first: those whose `field` is below a limit that moves by `delta`.

    The field is not negative, an edge never makes less of a message than it was, MIN combines, and `update` takes the
    smaller of the field and the total and is active when that is the total. Then the order changes no result.
    """

    field: str
    delta: str = "delta"
    """The parameter that holds the width of a bucket."""

    @staticmethod
    def end(least: Any, delta: float, kind: np.dtype) -> Any:
        """The end of the bucket that the least value is in."""
        if kind.kind == "f":
            # What is so large that the bucket's end rounds to itself goes alone; so does what an edge made of NaN.
            end = (math.floor(least / delta) + 1) * delta if 0 <= least < np.inf else 0.0
            return max(kind.type(end), np.nextafter(kind.type(least), kind.type(np.inf)))
        width = max(1, int(delta))
        return kind.type(min((int(least) // width + 1) * width, int(np.iinfo(kind).max)))


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
            _check_name(self.name, name)
        twice = {name for name in names if names.count(name) > 1}
        if twice:
            raise UsageError(f"program {self.name} names {min(twice)!r} twice among state and reads")
        if taken := set(self.params) & set(GIVEN):
            raise UsageError(f"program {self.name}: the engine itself gives the parameter {min(taken)!r}")
        if self.along not in ("out", "in", "both"):
            raise UsageError(f"program {self.name}: along is 'out', 'in' or 'both', not {self.along!r}")
        for name, kind in self.state.items():
            _check_dtype(self.name, name, kind)

    def fields(self) -> dict[str, np.dtype]:
        return {name: np.dtype(kind) for name, kind in self.state.items()}

    def makeup(self) -> list[tuple[str, Any]]:
        """All but its name: programs that are alike in this do the same, by the same kernels."""
        return [(name, getattr(self, name)) for name in sorted(self.__dataclass_fields__) if name != "name"]

    def stored_reads(self) -> tuple[str, ...]:
        """The reads that take memory: all but those that a kernel can make up."""
        return tuple(name for name in self.reads if name not in ("number", "lane", "seed") or self.seeded == name)

    @property
    def seeded(self) -> str | None:
        """`seed`, if more than `init` asks who is one; what only `init` needs is not kept."""
        asked = any(_mentions(value, "seed", set()) for name, value in vars(self).items() if name != "init")
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
    loops: bool = True
    """Whether arcs from a vertex to itself count."""
    lanes: int = 1
    """So many copies of the state that share each pass over the arcs; functions work on one lane at a time."""
    bucketed: Bucketed | None = None
    """An order for the active vertices. Only for programs whose result does not depend on the order."""
    edge_state: Mapping[str, Any] = field(default_factory=dict)
    """The fields of an arc and their dtypes; all start at 0. `e` has them after the columns, and `edge` returns the
    contribution and then the new fields in their order. An undirected edge is two arcs, each with fields of its own;
    those of an arc that carries no message stay as they are."""

    form = "combine"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.message is None or self.update is None:
            raise UsageError(f"program {self.name} needs a message type and an update function")
        if self.message != NUMBER and self.emit is None:
            raise UsageError(f"program {self.name} needs an emit function, or NUMBER for its message")
        if self.lanes < 1:
            raise UsageError(f"program {self.name} has {self.lanes} lanes; it needs at least one")
        if self.tally is not None and self.frontier:
            raise UsageError(f"program {self.name} has a frontier: a tally counts all vertices, and needs none")
        _check_change_by(self.name, self.change_by)
        if self.bucketed and (not self.frontier or self.bucketed.field not in self.state):
            raise UsageError(
                f"program {self.name} is bucketed: it needs a frontier and a field {self.bucketed.field!r}"
            )
        if self.edge_state:
            self._check_edge_state()

    def _check_edge_state(self) -> None:
        for name, kind in self.edge_state.items():
            _check_name(self.name, name)
            if name in (*self.columns, "source", "target"):
                raise UsageError(f"program {self.name}: {name!r} is a column of the edge, and cannot be in edge_state")
            _check_dtype(self.name, name, kind)
        if self.edge is None:
            raise UsageError(f"program {self.name} has edge_state: it needs an edge function, which returns it")
        if self.lanes > 1 or self.bucketed is not None or self.combine.first:
            raise UsageError(
                f"program {self.name} has edge_state, which goes with neither lanes nor bucketed nor a monoid that "
                f"stops at the first contribution: leave out one of them"
            )

    def edge_fields(self) -> dict[str, np.dtype]:
        return {name: np.dtype(kind) for name, kind in self.edge_state.items()}

    @property
    def numbered(self) -> bool:
        """Whether the message is the sender's number."""
        return isinstance(self.message, str) and self.message == NUMBER

    @property
    def stepped(self) -> bool:
        """Whether it may run by delta-stepping: bucketed, with nothing but the field that its buckets are made of."""
        return self.bucketed is not None and len(self.state) == 1 and self.lanes == 1 and self.combine.known == "min"

    def contribution_dtype(self, number: np.dtype) -> np.dtype:
        """The dtype of totals; `number` is that of vertex numbers."""
        if self.contribution is not None:
            return np.dtype(self.contribution)
        return number if self.numbered else np.dtype(self.message)


@dataclass(frozen=True)
class Sweep(Program):
    """A function of each arc over shared state: one pass over the arcs, in any order, on all threads at once. What
    others may change at the same time is changed with `penstock.engine.atomics`.

    The functions see `state`, a named tuple of whole arrays by vertex number. They are not split into ranges.
    """

    arc: Callable[..., Any] | None = None
    """`arc(u, v, e, state, p)`: for each arc from u to v; of an undirected edge there are two."""
    once: bool = False
    """Whether one of the two arcs of an undirected edge is enough: then it may be visited from its larger end only."""
    vertex: Callable[..., Any] | None = None
    """`vertex(u, state, p)`: for each vertex after the pass, and after the sampled arcs."""
    sampled: int = 0
    """In memory, visit the first so many arcs of each vertex before the rest. From disk one pass visits everything."""
    between: Callable[..., Any] | None = None
    """`between(state, p)`: called once after the sampled arcs, in plain Python; returns the parameters to change."""
    settled: Callable[..., Any] | None = None
    """`settled(u, state, p)`: whether the rest of u's arcs may be left out as far as u is concerned. An arc is left
    out when both its ends are settled: asked only where each arc can be visited from either end, in which case `arc`
    may be given the ends of an arc in either order."""

    form = "sweep"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.arc is None:
            raise UsageError(f"program {self.name} needs an arc function")
        if self.sampled < 0:
            raise UsageError(f"program {self.name} samples {self.sampled} arcs; it cannot be less than none")


@dataclass(frozen=True)
class Row(Program):
    """All messages of a vertex at once: what no monoid can say. They come in the order of the arcs, those over
    in-arcs before those over out-arcs where messages travel both ways."""

    message: Any = None
    """The dtype of a message."""
    emit: Callable[..., Any] | None = None
    """`emit(v, p)`: the message of a vertex, once per superstep."""
    edge: Callable[..., Any] | None = None
    """`edge(message, e, p)`: what arrives along one arc; by default the message itself."""
    row: Callable[..., Any] | None = None
    """`row(v, messages, p)`: the new fields in their order. `messages` is an array that the function may reorder; that
    of a vertex without neighbours is empty."""
    change: Callable[..., Any] | None = None
    """`change(v, new, p)`: how much a superstep moved a vertex; `new` is what row returned."""
    change_by: Monoid = SUM
    """How changes add up: SUM or MAX."""

    form = "row"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.message is None or self.emit is None or self.row is None:
            raise UsageError(f"program {self.name} needs a message type, an emit function and a row function")
        _check_change_by(self.name, self.change_by)


@dataclass(frozen=True)
class Pair(Program):
    """Neighbours in common: each triangle of the simple graph, without directions, loops and parallel arcs, adds to its
    three corners, and each vertex takes its total in. `reads` may name `neighbours`: of how many other vertices there
    are arcs from or to a vertex."""

    corner: Callable[..., Any] | None = None
    """`corner(arcs, p)`: what a triangle adds to one of its corners. `arcs`, 1 or 2, are those between the other two,
    parallel ones as one, an undirected edge as two. Without it, a triangle adds 1."""
    total: Any = "uint64"
    """The dtype of totals."""
    update: Callable[..., Any] | None = None
    """`update(v, total, p)`: the new fields in their order."""
    per_vertex: bool = True
    """Without it triangles are only counted, which is faster; vertices are left alone."""

    form = "pair"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.per_vertex and self.update is None:
            raise UsageError(f"program {self.name} needs an update function, or per_vertex=False")
        if np.dtype(self.total).kind not in "fiu" or np.dtype(self.total).itemsize < 4:
            raise UsageError(f"program {self.name}: totals are numbers of 4 or 8 bytes, not {self.total!r}")


@dataclass(frozen=True)
class Common(Program):
    """A function of each edge whose ends have enough neighbours in common, over shared state. It sees the simple graph:
    without directions, loops and parallel arcs. `reads` may name `neighbours`: of how many other vertices there are
    arcs from or to a vertex.

    Edges come in any order, on all threads at once, and each once in a pass; of its ends `u` has no fewer neighbours
    than `v`. Functions see `state` and change it as those of a `Sweep` do. `p.step` says which pass it is.
    """

    least: Callable[..., Any] | None = None
    """`least(u, v, state, p)`: how many neighbours in common are enough. No more of them are counted, and none where v
    has fewer neighbours than that; `NEVER` leaves the edge out."""
    edge: Callable[..., Any] | None = None
    """`edge(u, v, state, p)`: for each edge whose ends have that many."""
    vertex: Callable[..., Any] | None = None
    """`vertex(u, state, p)`: for each vertex after each pass."""

    form = "common"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.least is None or self.edge is None:
            raise UsageError(f"program {self.name} needs a least function and an edge function")
        if self.columns:
            raise UsageError(f"program {self.name} sees the simple graph, whose edges have no columns")


def _given(v, p):
    """The first state of fields that are all there."""


@dataclass(frozen=True)
class Each(Program):
    """Each vertex with arcs by itself, without its arcs: what is done to the vectors of programs between these, where
    they lie. All fields are given. Of the vertices that are `chosen`, numbers are added up and fields change."""

    init: Callable[..., Any] = _given
    chosen: Callable[..., Any] | None = None
    """`chosen(v, p)`: whether the vertex is meant; by default all are."""
    measure: Callable[..., Any] | None = None
    """`measure(v, p)`: a number of a chosen vertex, before it changes."""
    measured: Any = "int64"
    """What the numbers are added up as: int64 or float64."""
    fold: Monoid = SUM
    """How they add up: SUM, MIN or MAX."""
    update: Callable[..., Any] | None = None
    """`update(v, p)`: the new fields of a chosen vertex, in their order."""

    form = "each"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.chosen is None and self.measure is None and self.update is None:
            raise UsageError(f"program {self.name} does nothing: give it chosen, measure or update")
        if np.dtype(self.measured) not in (np.int64, np.float64):
            raise UsageError(f"program {self.name} measures in int64 or float64, not {self.measured!r}")
        if self.fold not in (SUM, MIN, MAX):
            raise UsageError(f"program {self.name}: what is measured adds up by SUM, MIN or MAX, not {self.fold.name}")
        if self.columns or {"seed", "lane"} & set(self.reads):
            raise UsageError(f"program {self.name} sees vertices by themselves: no arcs, no seeds, no lanes")


@dataclass(frozen=True)
class Iterations:
    """Stop after so many supersteps, whatever they changed: an executor need not wait to see what that was."""

    count: int

    def __call__(self, step: int, change: float) -> bool:
        return step >= self.count


def iterations(count: int) -> Iterations:
    """Stop after so many supersteps."""
    return Iterations(count)


@dataclass(frozen=True)
class ChangeBelow:
    """Stop when the change of a superstep is below the bound, or after so many supersteps."""

    bound: float
    at_most: int

    def __call__(self, step: int, change: float) -> bool:
        return change < self.bound or step >= self.at_most


def change_below(bound: float, at_most: int) -> ChangeBelow:
    """Stop when the change of a superstep is below the bound, or after so many supersteps."""
    return ChangeBelow(bound, at_most)


def looks(until: Callable[[int, float], bool]) -> bool:
    """Whether it may look at vectors that the program was given: ours do not."""
    return not isinstance(until, Iterations | ChangeBelow)


__all__ = [
    "NEVER",
    "NUMBER",
    "Bucketed",
    "ChangeBelow",
    "Combine",
    "Common",
    "Each",
    "Iterations",
    "Pair",
    "Program",
    "Row",
    "Sweep",
    "change_below",
    "iterations",
    "looks",
]
