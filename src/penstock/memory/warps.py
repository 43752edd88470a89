"""How the warps of a block walk a task, counted from degrees; and tasks cut by them, in which no warp walks long while
others are done."""

from __future__ import annotations

import numpy as np

from penstock.memory.device import kernel

ROUND = 4
"""What it costs a warp to turn to its next vertices, in steps: it waits for their offsets, and for their state. An
estimate, and a rough one is enough: of Kronecker graphs, widths chosen with 2 or 8 take 3 to 7 % longer."""
_ONE, _ROUND = np.uint64(1), np.uint64(ROUND)


@kernel()
def walk(degrees, width, warp, warps):
    """(steps of all warps, steps and rounds of the slowest) in a task of vertices with these degrees, `width` threads
    each, on `warps` warps of `warp` threads. Degrees of vertices that tasks pass over are given as 0.

    Each round a warp takes warp / width consecutive vertices, behind those that the other warps take. In a step each of
    its threads visits an arc if it has one left: a round has as many steps as its largest vertex needs.
    """
    n, each = np.uint64(len(degrees)), warp // width
    steps, slowest = np.uint64(0), np.uint64(0)
    for k in range(warps):
        own, first = np.uint64(0), np.uint64(k) * each
        while first < n:
            largest = np.uint64(0)
            for i in range(first, min(first + each, n)):
                largest = max(largest, np.uint64(degrees[i]))
            largest = (largest + width - _ONE) // width
            steps += largest
            own += largest + _ROUND
            first += warps * each
        slowest = max(slowest, own)
    return steps, slowest


@kernel()
def fit(degrees, pages, first, vertices, warp, warps, arcs, tasks, work):
    """Cut pages, whose vertices have the degrees from `first` on, into tasks of about so many arcs, and choose for each
    the width with which its slowest warp is done first: threads of a block that are done wait for the others. Returns
    how many tasks that makes."""
    found = np.uint64(0)
    for k in range(len(pages)):
        begin = np.uint64(first[k])
        a, end = begin, begin + np.uint64(vertices[k])
        while a < end:
            b, held = a, np.uint64(0)
            while b < end and held < arcs and b - a < arcs:
                held += np.uint64(degrees[b])
                b += _ONE
            best, width, least = _ONE, _ONE, np.uint64(0xFFFFFFFFFFFFFFFF)
            while width <= warp:
                slowest = walk(degrees[a:b], width, warp, warps)[1]
                if slowest < least:
                    best, least = width, slowest
                width += width
            tasks[found, 0], tasks[found, 1], tasks[found, 2], tasks[found, 3] = pages[k], a - begin, b - a, best
            work[found] = held + b - a
            found += _ONE
            a = b
    return found


__all__ = ["ROUND", "fit", "walk"]
