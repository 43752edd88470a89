"""Templates of the sweep form for the GPU; see `penstock.engine.kernels.sweep` for the functions, and `combine` here
for tasks and segments."""

from __future__ import annotations

import numpy as np

from penstock.memory.device import inlined
from penstock.memory.gpu import cuda


def visitor(c):
    """Visit every `step`-th arc from `a` to `end` of a page; with `once` only those to vertices not larger, which come
    first."""
    arc, arc_values = c.arc, c.arc_values

    def visit(u, words, base, a, end, step, columns, strides, frame, once, state, p):
        while a < end:
            v = words[base + np.uint64(a)]
            if once and v > u:
                break
            arc(u, v, arc_values(columns, strides, frame, a), state, p)
            a = np.uint32(a + step)

    return inlined(visit)


def arcs(c):
    """Visit the arcs of a task's vertices, of each those from its `begin`-th to before its `end`-th; where `choosy`,
    only of those that are not settled."""
    visit, whole, unpack, settled, block = visitor(c), c.whole, c.unpack, c.settled, c.block

    def arcs(
        order, tasks, heaviest, words, page_words, columns, strides, first_of, vertices_of, frame_of,
        begin, end, once, choosy, state, params, scalars,
    ):  # fmt: skip
        s, p = whole(state), unpack(params, scalars)
        tid = np.uint32(cuda.threadIdx.x)
        task = order[cuda.blockIdx.x]
        page, start, count, width = tasks[task, 0], tasks[task, 1], tasks[task, 2], tasks[task, 3]
        frame = frame_of[page]
        base = np.uint64(frame) * page_words
        slots = base + page_words - np.uint64(vertices_of[page]) - np.uint64(1)
        lane = tid & np.uint32(width - np.uint32(1))
        groups = np.uint32(np.uint32(block) // width)
        r = np.uint32(tid // width)
        while r < count:
            i = np.uint32(start + r)
            u = np.uint32(first_of[page] + i)
            r = np.uint32(r + groups)
            if choosy and settled(u, s, p):
                continue
            lo, hi = words[slots + np.uint64(i)], words[slots + np.uint64(i) + np.uint64(1)]
            if hi - lo > heaviest:
                continue
            if end < np.uint32(hi - lo):
                hi = np.uint32(lo + end)
            visit(u, words, base, np.uint32(lo + begin + lane), hi, width, columns, strides, frame, once, s, p)

    return arcs


def segments(c):
    """The same for pieces of heavy vertices: the first `begin` arcs of a vertex are in its first piece."""
    visit, whole, unpack, settled, block = visitor(c), c.whole, c.unpack, c.settled, c.block

    def segments(
        order, pieces, heavy, part_start, words, page_words, columns, strides, frame_of,
        begin, end, once, choosy, state, params, scalars,
    ):  # fmt: skip
        s, p = whole(state), unpack(params, scalars)
        segment = order[cuda.blockIdx.x]
        h = pieces[segment, 3]
        u = heavy[h]
        if choosy and settled(u, s, p):
            return
        lo, hi = pieces[segment, 1], pieces[segment, 2]
        if segment == part_start[h]:
            if end < np.uint32(hi - lo):
                hi = np.uint32(lo + end)
            lo = np.uint32(lo + begin)
        elif end != np.uint32(0xFFFFFFFF):
            return
        frame = frame_of[pieces[segment, 0]]
        a = np.uint32(lo + np.uint32(cuda.threadIdx.x))
        base = np.uint64(frame) * page_words
        visit(u, words, base, a, hi, np.uint32(block), columns, strides, frame, once, s, p)

    return segments


def vertices(c):
    """Visit each vertex."""
    vertex, whole, unpack = c.vertex, c.whole, c.unpack

    def vertices(count, state, params, scalars):
        u = np.uint32(cuda.grid(1))
        if u < count:
            vertex(u, whole(state), unpack(params, scalars))

    return vertices
