"""Templates of the row form. Each makes a kernel around a program's functions, given as `c`:

    load(state, reads, i, n, j) -> v     store(state, i, j, new)     unpack(params) -> p     arc_values(columns, a) -> e
    edge(message, e, p)     row(v, messages, p)     change(v, new, p)     fold(a, b)

and constants `sides` (1 or 2), `ranged`, `changing`. Chunks of vertices are taken from a counter.
"""

from __future__ import annotations

import numpy as np

from penstock.engine.kernels.bits import ONE
from penstock.memory.device import atomic_add, inlined


def collector(c):
    """Copy what arrives over the arcs `begin` to `end` to `out` from `at` on. Of another range, nothing arrives."""
    edge, arc_values, ranged = c.edge, c.arc_values, c.ranged

    def collect(neighbours, begin, end, columns, message, far, p, out, at):
        for a in range(begin, end):
            u = np.uint64(neighbours[a]) - far
            if ranged and u >= np.uint64(message.size):
                continue
            out[at + a - begin] = edge(message[u], arc_values(columns, a), p)

    return inlined(collect)


def taker(c):
    """Give a vertex its row; returns its change folded into `moved`."""
    load, store, row, change, fold, changing = c.load, c.store, c.row, c.change, c.fold, c.changing

    def take(i, n, messages, state, reads, p, moved):
        old = load(state, reads, i, n, np.uint64(0))
        new = row(old, messages, p)
        store(state, i, np.uint64(0), new)
        if changing:
            moved = fold(moved, change(old, new, p))
        return moved

    return inlined(take)


def rows(c):
    """Collect and take the rows of all vertices, in memory; `scratch` holds the longest. Returns the change."""
    collect, take, unpack, two = collector(c), taker(c), c.unpack, c.sides == 2

    def rows(
        counter,
        cuts,
        offsets,
        neighbours,
        columns,
        offsets2,
        neighbours2,
        columns2,
        message,
        state,
        reads,
        params,
        scratch,
    ):
        p, none = unpack(params), np.uint64(0)
        moved = 0.0
        while True:
            k = atomic_add(counter, 0, ONE)
            if k + ONE >= np.uint64(cuts.size):
                return moved
            for i in range(cuts[k], cuts[k + ONE]):
                begin, end = np.uint64(offsets[i]), np.uint64(offsets[i + ONE])
                count = end - begin
                collect(neighbours, begin, end, columns, message, none, p, scratch, none)
                if two:
                    begin, end = np.uint64(offsets2[i]), np.uint64(offsets2[i + ONE])
                    collect(neighbours2, begin, end, columns2, message, none, p, scratch, count)
                    count += end - begin
                moved = take(i, i, scratch[:count], state, reads, p, moved)

    return rows


def gather(c):
    """Put what arrives over a block's arcs to its place among the rows of a window that begins at vertex `near`: the
    row of vertex n goes on at `places[n - near]`, or `later` behind it."""
    collect, unpack = collector(c), c.unpack

    def gather(counter, cuts, first, offsets, neighbours, columns, message, far, near, places, later, params, rows):
        p = unpack(params)
        while True:
            k = atomic_add(counter, 0, ONE)
            if k + ONE >= np.uint64(cuts.size):
                return
            for i in range(cuts[k], cuts[k + ONE]):
                at = places[first + i - near] + later
                begin, end = np.uint64(offsets[i]), np.uint64(offsets[i + ONE])
                collect(neighbours, begin, end, columns, message, far, p, rows, at)

    return gather


def take_rows(c):
    """Take the rows of a window, that of vertex `near + i` from `starts[i]` on. Returns the change."""
    take, unpack = taker(c), c.unpack

    def take_rows(counter, cuts, near, starts, rows, state, reads, params):
        p = unpack(params)
        moved = 0.0
        while True:
            k = atomic_add(counter, 0, ONE)
            if k + ONE >= np.uint64(cuts.size):
                return moved
            for i in range(cuts[k], cuts[k + ONE]):
                moved = take(i, near + i, rows[starts[i] : starts[i + ONE]], state, reads, p, moved)

    return take_rows
