"""Loops of the jobs."""

from __future__ import annotations

import numpy as np

from penstock.memory.device import inlined, kernel

_0, _1 = np.uint64(0), np.uint64(1)
_HALF = np.uint64(32)
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_M1, _M2 = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_S27, _S30, _S31, _S11 = np.uint64(27), np.uint64(30), np.uint64(31), np.uint64(11)


@inlined
def draw(key, counter):
    """64 random bits: SplitMix64 at one position."""
    z = key + (counter + _1) * _GOLDEN
    z = (z ^ (z >> _S30)) * _M1
    z = (z ^ (z >> _S27)) * _M2
    return z ^ (z >> _S31)


@inlined
def uniform(key, counter):
    """A number from 0 to 1, without 1."""
    return np.float64(draw(key, counter) >> _S11) * 2.0**-53


@kernel()
def wedges(group, first, second, keys, offsets, values, out, apexes):
    """Every two values of a group as a packed edge, with the group's key, from a place on and as many as there is room
    for; returns the place to go on from, and how many."""
    room, count = np.uint64(out.size), _0
    while group < np.uint64(keys.size):
        begin, size = np.uint64(offsets[group]), np.uint64(offsets[group + _1] - offsets[group])
        while first + _1 < size:
            a = values[begin + first]
            while second < size:
                if count == room:
                    return group, first, second, count
                b = values[begin + second]
                out[count] = (a << _HALF | b) if a < b else (b << _HALF | a)
                apexes[count] = keys[group]
                count += _1
                second += _1
            first += _1
            second = first + _1
        group, first, second = group + _1, _0, _1
    return group, first, second, count


@kernel()
def _closest(points, i, centers):
    """The center nearest to a point, of equally near ones the first, and its squared distance."""
    best, least = 0, np.inf
    for c in range(centers.shape[0]):
        distance = 0.0
        for j in range(np.uint64(points.shape[1])):
            away = points[i, j] - centers[c, j]
            distance += away * away
        if distance < least:
            best, least = c, distance
    return best, least


@kernel()
def nearest(points, centers, sums, counts):
    """Add each point to the sum of its nearest center; returns the squared distances, summed up."""
    total = 0.0
    for i in range(np.uint64(points.shape[0])):
        best, least = _closest(points, i, centers)
        total += least
        counts[best] += 1
        for j in range(np.uint64(points.shape[1])):
            sums[best, j] += points[i, j]
    return total


@kernel()
def labelled(points, centers, labels):
    """The nearest center of each point; of equally near ones the first."""
    for i in range(np.uint64(points.shape[0])):
        labels[i] = _closest(points, i, centers)[0]


@kernel()
def rmat_edges(first, levels, quadrants, fraction, key, out):
    """Packed edges `first` and on: at each level one of four quadrants, whose chances may be shaken by a fraction."""
    per_edge = levels * np.uint64(5)
    for e in range(np.uint64(out.size)):
        counter = (first + e) * per_edge
        row, column = _0, _0
        for _ in range(levels):
            a, b, c, d = quadrants[0], quadrants[1], quadrants[2], quadrants[3]
            if fraction > 0.0:
                a *= 1.0 + fraction * (uniform(key, counter + _1) - 0.5)
                b *= 1.0 + fraction * (uniform(key, counter + np.uint64(2)) - 0.5)
                c *= 1.0 + fraction * (uniform(key, counter + np.uint64(3)) - 0.5)
                d *= 1.0 + fraction * (uniform(key, counter + np.uint64(4)) - 0.5)
            at = uniform(key, counter) * (a + b + c + d)
            row, column = row << _1, column << _1
            if at >= a + b:
                row |= _1
                at -= a + b
                if at >= c:
                    column |= _1
            elif at >= a:
                column |= _1
            counter += np.uint64(5)
        out[e] = row << _HALF | column


@kernel()
def priorities(vertices, key, out):
    """A random number for each vertex."""
    for i in range(np.uint64(vertices.size)):
        out[i] = draw(key, vertices[i])


__all__ = ["labelled", "nearest", "priorities", "rmat_edges", "wedges"]
