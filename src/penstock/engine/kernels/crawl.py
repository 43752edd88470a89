"""Supersteps of a small frontier, kept as a list, many in one call of one thread: on a road or a chain a superstep
has a handful of vertices, and a look at every word of a bitmap would cost more than its work. For the names see
`combine`."""

from __future__ import annotations

import numpy as np

from penstock.engine.kernels.bits import LOW, ONE, SIX
from penstock.memory.device import lowest_bit


def crawl(c):
    """Go on while the frontier has at most `limit` arcs; returns (supersteps, vertices now active, change of the last
    superstep, vertices that were active, arcs visited). What is active at the end is in `front` again."""
    load, store, unpack, emit, edge, arc_values = c.load, c.store, c.unpack, c.emit, c.edge, c.arc_values
    combine, update, awake, wants, change, fold = c.combine, c.update, c.awake, c.wants, c.change, c.fold
    numbered, wanted, changing, loops, zero = c.numbered, c.wanted, c.changing, c.loops, c.zero

    def crawl(front, offsets, neighbours, columns, sent, state, reads, params, totals, touched, here, there, limit):
        kind, size = neighbours.dtype.type, np.uint64(offsets.size)
        count = np.uint64(0)
        for w in range(np.uint64(front.size)):
            word = front[w]
            front[w] = np.uint64(0)
            while word:
                here[count] = (np.uint64(w) << SIX) + lowest_bit(word)
                word &= word - ONE
                count += ONE
        steps, seen, visited, moved = 0, np.uint64(0), np.uint64(0), 0.0
        while count > 0:
            arcs = np.uint64(0)
            for k in range(count):
                if np.uint64(here[k]) + ONE < size:
                    arcs += np.uint64(offsets[here[k] + ONE] - offsets[here[k]])
            # What is touched must fit into the list.
            if arcs > limit:
                break
            p = unpack(params, steps)
            found = np.uint64(0)
            for k in range(count):
                n = np.uint64(here[k])
                if n + ONE >= size:  # a seed without arcs
                    continue
                if numbered:
                    message = kind(n)
                else:
                    message = sent.dtype.type(emit(load(state, reads, n, n, np.uint64(0)), p))
                for a in range(np.uint64(offsets[n]), np.uint64(offsets[n + ONE])):
                    u = np.uint64(neighbours[a])
                    if not loops and u == n:
                        continue
                    if wanted and not wants(load(state, reads, u, u, np.uint64(0)), p):
                        continue
                    totals[u] = combine(totals[u], totals.dtype.type(edge(message, arc_values(columns, a), p)))
                    mask = ONE << (u & LOW)
                    if not touched[u >> SIX] & mask:
                        touched[u >> SIX] |= mask
                        there[found] = u
                        found += ONE
            moved, seen, visited = 0.0, seen + count, visited + arcs
            count = np.uint64(0)
            for k in range(found):
                n = np.uint64(there[k])
                touched[n >> SIX] &= ~(ONE << (n & LOW))
                total = totals[n]
                totals[n] = zero
                old = load(state, reads, n, n, np.uint64(0))
                new = update(old, total, p)
                store(state, n, np.uint64(0), new)
                if changing:
                    moved = fold(moved, change(old, new, p))
                if awake(new):
                    here[count] = n
                    count += ONE
            steps += 1
        for k in range(count):
            front[np.uint64(here[k]) >> SIX] |= ONE << (np.uint64(here[k]) & LOW)
        return steps, count, moved, seen, visited

    return crawl
