"""The kernels of one combine program, made when first used and kept for the next run."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np

from penstock.engine.compile import FAST, adapters, make_kernel, usable
from penstock.engine.defaults import always, nothing, same, still
from penstock.engine.kernels import combine as scalar
from penstock.engine.kernels import crawl as crawling
from penstock.engine.kernels import lanes as laned
from penstock.engine.kernels.combine import atomic_into
from penstock.engine.monoid import MAX
from penstock.engine.program import Combine
from penstock.memory.fingerprint import fingerprint


class CombineKernels:
    """`kernels.pull(...)`, `kernels.push(...)`: see `penstock.engine.kernels.combine`. `_ranged` kernels address a
    range of what lies at the other end of the arcs."""

    def __init__(self, program: Combine, number: np.dtype) -> None:
        self.program, self.number = program, number
        self._made: dict[tuple[str, bool], Any] = {}
        self._parts: dict[bool, SimpleNamespace] = {}

    def __getattr__(self, name: str) -> Any:
        return self.make(name)

    def make(self, name: str, ranged: bool = False) -> Any:
        if (name, ranged) not in self._made:
            templates = crawling if name == "crawl" else laned if self.program.lanes > 1 else scalar
            if ranged not in self._parts:
                self._parts[ranged] = self.functions(ranged)
            self._made[name, ranged] = make_kernel(
                getattr(templates, name), self._parts[ranged], self.program, ranged, str(self.number)
            )
        return self._made[name, ranged]

    def functions(self, ranged: bool = False) -> SimpleNamespace:
        """What templates are made around: the program's functions, or what stands for those it leaves out."""
        program = self.program
        combine = usable(program.combine.combine)
        found = adapters(program, flagged=program.frontier)
        found.init, found.update = usable(program.init), usable(program.update)
        found.emit = usable(program.emit or nothing)
        found.edge = usable(program.edge or same)
        found.wants, found.wanted = usable(program.wants or always), program.wants is not None
        found.tally, found.tallied = usable(program.tally or nothing), program.tally is not None
        found.change, found.changing = usable(program.change or still), program.change is not None
        found.fold = usable(program.change_by.combine)
        found.combine, found.into = combine, atomic_into(combine, program.combine.known)
        found.zero = program.combine.zero(program.contribution_dtype(self.number))
        found.first, found.numbered, found.frontier = program.combine.first, program.numbered, program.frontier
        found.ranged, found.lanes, found.fast, found.loops = ranged, program.lanes, FAST, program.loops
        found.kept = bool(program.edge_state)
        return found


_KEPT: dict[str, CombineKernels] = {}


def combine_kernels(program: Combine, number: np.dtype) -> CombineKernels:
    """The kernels of a program; the same ones for a program that does the same."""
    key = fingerprint(program.makeup(), str(number))
    if key not in _KEPT:
        _KEPT[key] = CombineKernels(program, number)
    return _KEPT[key]


def fold_changes(program: Combine, changes: list[float]) -> float:
    """The change of a superstep from those of its pieces."""
    if program.change_by == MAX:
        return max(changes, default=0.0)
    return float(sum(changes))
