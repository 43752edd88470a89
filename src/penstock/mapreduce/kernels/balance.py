"""Longest processing time first, with a heap of the parts by their load."""

from __future__ import annotations

import numpy as np

from penstock.memory.device import kernel


@kernel()
def assign_longest(weights, order, parts, part, loads):
    """`part[i]`: who takes item i, the largest item first, each to who has least; ties to the lowest number."""
    heap = np.arange(parts)
    for item in order:
        taker = heap[0]
        part[item] = taker
        loads[taker] += weights[item]
        at = 0
        while True:
            child = 2 * at + 1
            if child >= parts:
                break
            other = child + 1
            if other < parts:
                one, two = heap[child], heap[other]
                if loads[two] < loads[one] or (loads[two] == loads[one] and two < one):
                    child = other
            below = heap[child]
            if loads[below] < loads[taker] or (loads[below] == loads[taker] and below < taker):
                heap[at] = below
                at = child
            else:
                break
        heap[at] = taker


@kernel()
def route_rows(offsets, data, split_offsets, split_data, part):
    """The part of each row is the number of splitters at or below it, byte by byte."""
    one = np.uint64(1)
    for i in range(np.uint64(part.size)):
        begin, end = np.uint64(offsets[i]), np.uint64(offsets[i + one])
        low, high = np.uint64(0), np.uint64(split_offsets.size) - one
        while low < high:
            middle = (low + high) >> one
            at, to = np.uint64(split_offsets[middle]), np.uint64(split_offsets[middle + one])
            mine = begin
            while at < to and mine < end and split_data[at] == data[mine]:
                at += one
                mine += one
            # Equal so far: whoever ends first is the smaller one.
            above = at < to and (mine == end or split_data[at] > data[mine])
            if above:
                high = middle
            else:
                low = middle + one
        part[i] = low
