"""Kernels over tasks and segments that count how often each arc is visited, and add up what they find there."""

from __future__ import annotations

import numpy as np

from penstock.memory.gpu import cuda

u32, u64 = np.uint32, np.uint64


def tasks(
    order, tasks, words, page_words, column, stride, first_of, vertices_of, frame_of, first_arc, limit,
    visits, neighbours, values, vertices,
):  # fmt: skip
    """A block per task, `width` threads per vertex; vertices with more arcs than `limit` are passed over."""
    t = tasks[order[cuda.blockIdx.x]]
    page, begin, count, width = t[0], t[1], t[2], t[3]
    frame = u64(frame_of[page])
    base, values_base = frame * u64(page_words), frame * u64(stride)
    slots = base + u64(page_words) - u64(vertices_of[page]) - u64(1)
    together = u32(cuda.blockDim.x) // width
    i = u32(cuda.threadIdx.x) // width
    lane = u64(u32(cuda.threadIdx.x) % width)
    while i < count:
        at = slots + u64(begin + i)
        a, b = u64(words[at]), u64(words[at + u64(1)])
        vertex = first_of[page] + begin + i
        if lane == u64(0):
            cuda.atomic.add(vertices, vertex, 1)
        if b - a <= u64(limit):
            a += lane
            while a < b:
                cuda.atomic.add(visits, first_arc[page] + a, 1)
                cuda.atomic.add(neighbours, vertex, np.int64(words[base + a]) + 1)
                cuda.atomic.add(values, vertex, np.float64(column[values_base + a]))
                a += u64(width)
        i += together


def segments(
    order, segments, words, page_words, column, stride, heavy, frame_of, first_arc, visits, neighbours, values,
):  # fmt: skip
    """A block per segment."""
    s = segments[order[cuda.blockIdx.x]]
    page, vertex = s[0], heavy[s[3]]
    frame = u64(frame_of[page])
    base, values_base = frame * u64(page_words), frame * u64(stride)
    a = u64(s[1]) + u64(cuda.threadIdx.x)
    while a < u64(s[2]):
        cuda.atomic.add(visits, first_arc[page] + a, 1)
        cuda.atomic.add(neighbours, vertex, np.int64(words[base + a]) + 1)
        cuda.atomic.add(values, vertex, np.float64(column[values_base + a]))
        a += u64(cuda.blockDim.x)
