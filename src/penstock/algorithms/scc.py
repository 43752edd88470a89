"""Strongly connected components: which vertices reach each other.

Returns   component, a vertex: the one of the smallest id among those that this one reaches and is reached from.
Needs     arcs in both directions to turn around; outgoing ones are enough. Undirected, it is wcc.
Defined   u and v are in one component if paths of arcs lead from u to v and from v to u.
Passes    trimming vertices without arcs in, or out, among what is left reads their arcs once; the giant component takes
          two traversals; each round of colouring of the rest, traversals of the rest. Only touched pages are read.
Ref       Fleischer et al. 2000 (forward-backward); Orzan 2004 (colouring); Slota et al. 2014 (both, and trimming)
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from penstock.algorithms.job import Job
from penstock.algorithms.shared import Shared, stages_of
from penstock.algorithms.wcc import stages as wcc_stages
from penstock.algorithms.wcc import wcc
from penstock.engine.explain import Stage
from penstock.engine.monoid import FIRST, MAX, MIN, SUM
from penstock.engine.plan import number_dtype
from penstock.engine.program import NUMBER, Along, Combine, Each
from penstock.engine.representatives import Representatives
from penstock.errors import UsageError
from penstock.result import Result
from penstock.store.reader import Store


def untouched(v, p):
    """Fields are given; nothing is initialised."""
    return v.component, v.component, False


def is_left(v, p):
    return v.component == p.none


def one(v, p):
    return 1


def lose_in(v, arcs, p):
    """Some arcs come from what is no longer left; a vertex that loses all of them is a component of its own."""
    left = v.in_left - arcs
    return (v.number if left == 0 else v.component), left, left == 0


def lose_out(v, arcs, p):
    left = v.out_left - arcs
    return (v.number if left == 0 else v.component), left, left == 0


def is_left_uncoloured(v, p):
    return v.component == p.none and v.colour != p.root


def colour_by_root(v, first, p):
    return v.component, p.root, True


def is_left_coloured(v, p):
    return v.component == p.none and v.colour == p.root


def join_root(v, first, p):
    return p.root, v.colour, True


def colour_of(v, p):
    return v.colour


def take_smaller(v, colour, p):
    return v.component, min(v.colour, colour), colour < v.colour


def join_colour(v, colour, p):
    """Arcs between the left lead to equal or smaller colours: if the largest colour ahead that has joined its root is
    mine, I reach that root, which reaches me."""
    return (v.colour if colour == v.colour else v.component), v.colour, colour == v.colour


def is_bare(v, p):
    return v.component == p.none and v[1] == 0


def own(v, p):
    return v.number, v[1]


def is_root(v, p):
    return v.component == p.none and v.colour == v.number


def itself(v, p):
    return v.number


def is_busiest(v, p):
    return v.component == p.none and ways(v, p) == p.most


def ways(v, p):
    """Pairs of an arc in and an arc out."""
    return np.float64(v.in_left) * np.float64(v.out_left)


class Programs:
    """The steps, for vertex numbers of this type."""

    def __init__(self, number: np.dtype, degree: np.dtype) -> None:
        none = number.type(np.iinfo(number).max)
        state = {"component": number, "colour": number}
        rooted = {"none": none, "root": none}

        def trim(side: str, along: Along, lose: Any) -> Combine:
            return Combine(
                name="trim", state={"component": number, side: degree}, reads=("number",), params={"none": none},
                init=untouched, along=along, message="uint8", contribution="uint64", emit=one, combine=SUM,
                wants=is_left, update=lose, frontier=True,
            )  # fmt: skip

        self.none = none
        self.bare = {
            side: Each(
                name="bare", state={"component": number, side: degree}, reads=("number",), params={"none": none},
                chosen=is_bare, update=own,
            )
            for side in ("in_left", "out_left")
        }  # fmt: skip
        """Those who have no arcs in, or none out, become components of their own."""
        self.roots = Each(
            name="roots", state=state, reads=("number",), params={"none": none}, chosen=is_root, update=own
        )
        """So do those that have their own colour."""
        self.uncolour = Each(name="uncolour", state={"colour": number}, reads=("number",), update=itself)
        ends = {"component": number, "in_left": degree, "out_left": degree}
        self.most = Each(
            name="most ways", state=ends, params={"none": none}, chosen=is_left, measure=ways, measured="float64",
            fold=MAX,
        )  # fmt: skip
        """The most ways through a vertex, and which have them."""
        self.busiest = Each(name="busiest", state=ends, params={"none": none, "most": 0.0}, chosen=is_busiest)
        self.trims = {"in_left": trim("in_left", "out", lose_in), "out_left": trim("out_left", "in", lose_out)}
        self.forward = Combine(
            name="forward", state=state, params=rooted, init=untouched, message=NUMBER, combine=FIRST,
            wants=is_left_uncoloured, update=colour_by_root, frontier=True,
        )  # fmt: skip
        self.backward = Combine(
            name="backward", state=state, params=rooted, init=untouched, along="in", message=NUMBER, combine=FIRST,
            wants=is_left_coloured, update=join_root, frontier=True,
        )  # fmt: skip
        self.colour = Combine(
            name="colour", state=state, params={"none": none}, init=untouched, message=number, emit=colour_of,
            combine=MIN, wants=is_left, update=take_smaller, frontier=True,
        )  # fmt: skip
        self.join = Combine(
            name="join", state=state, params={"none": none}, init=untouched, along="in", message=number, emit=colour_of,
            combine=MAX, wants=is_left, update=join_colour, frontier=True,
        )  # fmt: skip

    def all(self) -> list[Combine]:
        return [*self.trims.values(), self.forward, self.backward, self.colour, self.join]


def programs_of(store: Store) -> Programs:
    """The steps, as narrow as the store's numbers are."""
    degree = np.promote_types(store.vertex_column("in_degree").dtype, store.vertex_column("out_degree").dtype)
    return Programs(number_dtype(store), degree)


def scc(job: Job) -> Result:
    """The smallest vertex that each one reaches and is reached from."""
    if not job.store.directed:
        if job.settings.checkpoint is not None:
            raise UsageError("scc of an undirected graph is wcc, which has no checkpoints: run it without one")
        return wcc(job)
    names = Representatives(job.engine)
    search = Search(job)
    rounds = search.run()
    slots, component = search.slots, search.shared["component"]
    with job.stats.phase("label"):
        components = names.give(component)
    component[slots.body] = slots.body
    return job.result(
        slots, {"component": component}, references=("component",), components=components + slots.rest, rounds=rounds
    )


class Search:
    """The vertices that are left, and what takes them away."""

    def __init__(self, job: Job) -> None:
        self.engine, store = job.engine, job.store
        self.programs = programs_of(store)
        self.shared = Shared(job.engine, self.programs.all())
        self.slots = self.shared.slots
        self.shared.fill("component", self.programs.none)
        sides = {side: self.shared[f"{side}_left"] for side in ("in", "out")}
        for lo, hi in self.shared.pieces():
            for side, left in sides.items():
                left[lo:hi] = store.vertex_column(f"{side}_degree").read(lo, hi)
        self.left = self.shared.equal("component", self.programs.none)

    def run(self) -> int:
        """Until nothing is left; how many rounds of colouring it took."""
        self.trim()
        rounds = 0
        if self.left.any():
            self.take_giant()
            self.trim()
        while self.left.any():
            self.colour()
            self.trim()
            rounds += 1
        return rounds

    def gone(self) -> np.ndarray:
        """The set of those that were left when this was last asked, and are no more."""
        before, self.left = self.left, self.shared.equal("component", self.programs.none)
        return before & ~self.left

    def trim(self) -> None:
        """Take away who has no arcs in, or none out, among those who are left, again and again. No arc from those who
        are left leads to one who has none in, so the two sides do not disturb each other."""
        gone = self.gone()
        for side, program in self.programs.trims.items():
            bare = self.shared.members(self.programs.bare[side])
            self.engine.run(program, vectors=self.shared.of(program), active=gone | bare, slots=self.slots)
        self.gone()

    def take_giant(self) -> None:
        """Forward and backward from the vertex of most ways through it."""
        root = self.busiest()
        params = {"none": self.programs.none, "root": self.programs.none.dtype.type(root)}
        self.shared.each(self.programs.uncolour)
        start = self.shared.of_numbers([root])
        self.shared.put("component", root, root)
        for program in (self.programs.forward, self.programs.backward):
            self.engine.run(program, params=params, vectors=self.shared.of(program), active=start, slots=self.slots)

    def busiest(self) -> int:
        """Of those who are left, the one with the most pairs of an arc in and an arc out."""
        found = self.shared.members(self.programs.busiest, most=float(self.shared.each(self.programs.most).total))
        word = int(np.flatnonzero(found)[0])
        return 64 * word + (int(found[word]) & -int(found[word])).bit_length() - 1

    def colour(self) -> None:
        """Colour each by the smallest number that reaches it; who reaches the vertex of that number is with it."""
        vectors = self.shared.of(self.programs.colour)
        self.shared.each(self.programs.uncolour)
        self.engine.run(self.programs.colour, vectors=vectors, active=self.left, slots=self.slots)
        roots = self.shared.members(self.programs.roots)
        self.engine.run(self.programs.join, vectors=vectors, active=roots, slots=self.slots)


def stages(store: Store) -> list[Stage]:
    """What a run would do: how many rounds of trimming and colouring are left after the giant component, the run
    shows."""
    if not store.directed:
        return wcc_stages(store)
    notes = {"trim": "in all they go over the arcs about once", "forward": "one traversal", "backward": "one traversal"}
    rounds = "again in each round, of what is left"
    found = [Stage(program, note=notes.get(program.name, rounds)) for program in programs_of(store).all()]
    return [replace(stage, held=Representatives.needed(store)) for stage in stages_of(found)]
