"""Templates of the two stages, made around the functions of a combine program, which are given as `c` and named in
`penstock.engine.kernels.combine`. State and totals are (elements,) or (elements, lanes); elements of the vector are
addressed as `number - base`."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np

from penstock.engine.compile import make_kernel
from penstock.engine.cpu.kernels import combine_kernels
from penstock.engine.program import Combine
from penstock.memory.device import inlined
from penstock.memory.fingerprint import fingerprint

_ZERO, _ONE = np.uint64(0), np.uint64(1)


def initialise(c):
    """Give elements their first state; whether one is active is 1 in `active`."""
    load, store, unpack, init, awake, frontier = c.load, c.store, c.unpack, c.init, c.awake, c.frontier
    lanes = np.uint64(c.lanes)

    def initialise(base, state, reads, seed, params, active):
        p = unpack(params)
        for i in range(np.uint64(active.size)):
            woken = not frontier
            for j in range(lanes):
                new = init(load(state, reads, i, base + i, j, seed[i]), p)
                store(state, i, j, new)
                woken = woken or awake(new)
            active[i] = woken

    return initialise


def tallied(c):
    """The tally of elements; the one at `alike` counts `weight` times."""
    load, unpack, tally = c.load, c.unpack, c.tally
    lanes = np.uint64(c.lanes)

    def tallied(base, count, state, reads, params, alike, weight):
        p = unpack(params)
        total = 0.0
        for i in range(count):
            for j in range(lanes):
                found = tally(load(state, reads, i, base + i, j), p)
                total += found * weight if base + i == alike else found
        return total

    return tallied


def join(c):
    """Stage 1 of columns `first` to `last`: combine2 of each matrix element with the vector's element of its column.
    Columns that are not active send nothing. Returns how many results were written from `at` on."""
    load, unpack, emit, edge, arc_values = c.load, c.unpack, c.emit, c.edge, c.arc_values
    numbered, frontier, loops, put = c.numbered, c.frontier, c.loops, c.put
    lanes, scalar, plain = np.uint64(c.lanes), c.lanes == 1, c.plain

    def join(first, last, at, keys, offsets, rows, columns, base, state, reads, active, params, message, to, out):
        p = unpack(params)
        begin = at
        for g in range(first, last):
            n = np.uint64(keys[g])
            i = n - base
            if frontier and not active[i]:
                continue
            if not numbered:
                for j in range(lanes):
                    message[j] = emit(load(state, reads, i, n, j), p)
            for a in range(np.uint64(offsets[g]), np.uint64(offsets[g + _ONE])):
                if not loops and np.uint64(rows[a]) == n:
                    continue
                if not plain:
                    to[at] = rows[a]
                e = arc_values(columns, a)
                if scalar:
                    put(out, at, _ZERO, edge(n if numbered else message[_ZERO], e, p))
                else:
                    for j in range(lanes):
                        put(out, at, j, edge(n if numbered else message[j], e, p))
                at += _ONE
        return at - begin

    return join


def combine_all(c):
    """Stage 2, combineAll of rows `first` to `last`: one total for all results of a row."""
    combine, put, get, zero = c.combine, c.put, c.get, c.zero
    lanes = np.uint64(c.lanes)

    def combine_all(first, last, offsets, values, totals):
        for g in range(first, last):
            for j in range(lanes):
                total = zero
                for a in range(np.uint64(offsets[g]), np.uint64(offsets[g + _ONE])):
                    total = combine(total, get(values, a, j))
                put(totals, g, j, total)

    return combine_all


def assign(c):
    """Stage 2, assign: each element takes the total of its row in, or what nothing combines to. `rows` ascend. With a
    frontier only elements with a total do. Returns (change, active elements)."""
    load, store, unpack, update, awake = c.load, c.store, c.unpack, c.update, c.awake
    change, changing, fold, wants, wanted, summed = c.change, c.changing, c.fold, c.wants, c.wanted, c.summed
    get, zero, frontier = c.get, c.zero, c.frontier
    lanes = np.uint64(c.lanes)

    def assign(base, state, reads, params, rows, totals, active, alike, weight):
        p = unpack(params)
        moved, awake_now, k = 0.0, 0, _ZERO
        for i in range(np.uint64(active.size)):
            n = base + i
            arrived = k < np.uint64(rows.size) and np.uint64(rows[k]) == n
            woken = not frontier
            if arrived or not frontier:
                for j in range(lanes):
                    v = load(state, reads, i, n, j)
                    if wanted and not wants(v, p):
                        continue
                    new = update(v, get(totals, k, j) if arrived else zero, p)
                    if changing and (n != alike or weight > 0.0):
                        found = change(v, new, p)
                        moved = fold(moved, found * weight if summed and n == alike else found)
                    store(state, i, j, new)
                    woken = woken or awake(new)
            active[i] = woken
            awake_now += woken
            if arrived:
                k += _ONE
        return moved, awake_now

    return assign


@inlined
def _put_one(array, i, j, value):
    array[i] = value


@inlined
def _put_lane(array, i, j, value):
    array[i, j] = value


@inlined
def _get_one(array, i, j):
    return array[i]


@inlined
def _get_lane(array, i, j):
    return array[i, j]


class Kernels:
    """The kernels of one program, made when first used."""

    def __init__(self, program: Combine, number: np.dtype) -> None:
        self.program, self.number = program, number
        self.plain = not program.frontier and program.loops
        """Whether every matrix element has a result, so that the rows need not be written again."""
        self._made: dict[str, Any] = {}
        self._parts: SimpleNamespace | None = None

    def __getattr__(self, name: str) -> Any:
        if name not in self._made:
            if self._parts is None:
                self._parts = self._functions()
            template = globals()[name]
            self._made[name] = make_kernel(template, self._parts, self.program, "two stages", str(self.number))
        return self._made[name]

    def _functions(self) -> SimpleNamespace:
        program = self.program
        found = combine_kernels(program, self.number).functions()
        found.summed, found.plain = program.change_by.name == "sum", self.plain
        found.put, found.get = (_put_one, _get_one) if program.lanes == 1 else (_put_lane, _get_lane)
        return found


_KEPT: dict[str, Kernels] = {}


def kernels_of(program: Combine, number: np.dtype) -> Kernels:
    """The kernels of a program; the same ones for a program that does the same."""
    key = fingerprint(program.makeup(), str(number))
    if key not in _KEPT:
        _KEPT[key] = Kernels(program, number)
    return _KEPT[key]


__all__ = ["Kernels", "kernels_of"]
