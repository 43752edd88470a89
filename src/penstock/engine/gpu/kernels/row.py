"""Templates of the row form for the GPU, made around a program's functions `c`; see `penstock.engine.kernels.row`.

What arrives at the vertices of a window is put together in `rows`, that of vertex `near + i` from `starts[i]` on; then
a thread takes each row. A row that is only voted on (see `penstock.engine.gpu.voting`) is voted on by a warp, or if it
is long by several blocks: its winner is put in its first place, and the row is then given as an array of two
dimensions, of which `mode` looks at the first place only.
"""

from __future__ import annotations

import numpy as np

from penstock.engine.gpu.kernels.combine import folder, together
from penstock.memory.device import inlined
from penstock.memory.gpu import WARP, cuda, inside

FULL = np.uint32(0xFFFFFFFF)
"""Instead of a count: there were more values than the table has places for."""


def collector(c):
    """Copy what arrives over every `step`-th arc from `a` to `end` of a page; that of arc `first` to `rows[at]`."""
    edge, arc_values, kind = c.edge, c.arc_values, c.message_kind

    def collect(words, base, first, a, end, step, columns, strides, frame, message, p, rows, at):
        while a < end:
            sent = message[words[base + np.uint64(a)]]
            rows[at + np.uint64(np.uint32(a - first))] = kind(edge(sent, arc_values(columns, strides, frame, a), p))
            a = np.uint32(a + step)

    return inlined(collect)


def gather(c):
    """The rows of a task's vertices, or the part of them that comes over this side: it begins at `places`."""
    collect, unpack, block = collector(c), c.unpack, c.block

    def gather(
        order, tasks, heaviest, words, page_words, columns, strides, first_of, vertices_of, frame_of,
        message, params, scalars, near, room, places, rows,
    ):  # fmt: skip
        p = unpack(params, scalars)
        tid = np.uint32(cuda.threadIdx.x)
        task = order[cuda.blockIdx.x]
        page, begin, count, width = tasks[task, 0], tasks[task, 1], tasks[task, 2], tasks[task, 3]
        frame = frame_of[page]
        base = np.uint64(frame) * page_words
        slots = base + page_words - np.uint64(vertices_of[page]) - np.uint64(1)
        lane = np.uint32(tid & np.uint32(width - np.uint32(1)))
        groups = np.uint32(np.uint32(block) // width)
        r = np.uint32(tid // width)
        while r < count:
            i = np.uint32(begin + r)
            n = np.uint32(np.uint32(first_of[page] + i) - near)
            r = np.uint32(r + groups)
            if n >= room:
                continue
            lo, hi = words[slots + np.uint64(i)], words[slots + np.uint64(i) + np.uint64(1)]
            if hi - lo > heaviest:
                continue
            a = np.uint32(lo + lane)
            collect(words, base, lo, a, hi, width, columns, strides, frame, message, p, rows, places[n])

    return gather


def gather_segments(c):
    """The same for a piece of a heavy vertex, which begins `later[segment]` behind the first."""
    collect, unpack, block = collector(c), c.unpack, c.block

    def gather_segments(
        order, segments, heavy, later, words, page_words, columns, strides, frame_of,
        message, params, scalars, near, room, places, rows,
    ):  # fmt: skip
        segment = order[cuda.blockIdx.x]
        n = np.uint32(heavy[segments[segment, 3]] - near)
        if n >= room:
            return
        p = unpack(params, scalars)
        frame = frame_of[segments[segment, 0]]
        lo, hi = segments[segment, 1], segments[segment, 2]
        a = np.uint32(lo + np.uint32(cuda.threadIdx.x))
        at = places[n] + np.uint64(later[segment])
        base = np.uint64(frame) * page_words
        collect(words, base, lo, a, hi, np.uint32(block), columns, strides, frame, message, p, rows, at)

    return gather_segments


def take(c):
    """Have the slots `near` to `near + room` take their rows, but not those of more than `longest` messages. The slot
    `body` stands for `rest` vertices."""
    load, store, unpack, row = c.load, c.store, c.unpack, c.row
    change, fold, changing, largest, block = c.change, c.fold, c.changing, c.change_largest, c.block
    fold_warp = folder(c)

    def take(near, room, body, rest, longest, starts, rows, state, reads, params, scalars):
        tid = np.uint32(cuda.threadIdx.x)
        i = np.uint32(cuda.grid(1))
        moved = 0.0
        if i < room:
            begin, end = starts[i], starts[i + np.uint32(1)]
            if end - begin <= longest:
                n = np.uint32(near + i)
                p = unpack(params, scalars)
                old = load(state, reads, n, n, 0)
                new = row(old, rows[np.int64(begin) : np.int64(end)], p)
                store(state, n, 0, new)
                if changing:
                    moved = fold(moved, change(old, new, p))
                    if n == body:
                        moved = moved * (1.0 if largest else rest) if rest > 0.0 else 0.0
        if changing:
            fold_warp(cuda.shared.array(block, np.float64), tid, moved, scalars)

    return take


def take_voted(c):
    """Have the vertices of the rows that were voted on take them. Row k was cut into the parts `part_start[k]` to
    `part_start[k + 1]`; if there are none, the winner is in its place already."""
    load, store, unpack, row = c.load, c.store, c.unpack, c.row
    change, fold, changing, block = c.change, c.fold, c.changing, c.block
    fold_warp = folder(c)

    def take_voted(near, listed, part_start, values, counts, starts, rows, wide, state, reads, params, scalars):
        tid = np.uint32(cuda.threadIdx.x)
        k = np.uint32(cuda.grid(1))
        moved = 0.0
        if k < np.uint32(listed.size):
            i = listed[k]
            begin, end = starts[i], starts[i + np.uint32(1)]
            part, last = part_start[k], part_start[k + np.uint32(1)]
            most, full = np.uint32(0), False
            if part < last:
                best = values[part]
                while part < last:
                    count = counts[part]
                    if count == FULL:
                        full = True
                    if count > most or (count == most and values[part] < best):
                        best, most = values[part], count
                    part = np.uint32(part + np.uint32(1))
                if not full:
                    rows[begin] = best
            n = np.uint32(near + i)
            p = unpack(params, scalars)
            old = load(state, reads, n, n, 0)
            if full:
                new = row(old, rows[np.int64(begin) : np.int64(end)], p)
            else:
                new = row(old, wide[np.int64(begin) : np.int64(end)], p)
            store(state, n, 0, new)
            if changing:
                moved = fold(moved, change(old, new, p))
        if changing:
            fold_warp(cuda.shared.array(block, np.float64), tid, moved, scalars)

    return take_voted


# ---- votes: no program is in them


@inlined
def mixed(value):
    """32 bits of a number, each made of all its bits."""
    wide = np.uint64(value)
    h = np.uint64((wide ^ (wide >> np.uint64(32))) & np.uint64(0xFFFFFFFF))
    h = (h * np.uint64(0x9E3779B1)) & np.uint64(0xFFFFFFFF)
    h = ((h ^ (h >> np.uint64(15))) * np.uint64(0x85EBCA77)) & np.uint64(0xFFFFFFFF)
    return h ^ (h >> np.uint64(13))


def counter(c):
    """Count every `step`-th value from `a` to `end` whose hash is in a part, in the table from `base` on; whether there
    was room. `empty` stands for no value; if it is one, it has the place behind the table."""
    places, empty = np.uint64(c.places), c.empty

    def count(keys, counts, base, rows, a, end, step, part, parts):
        fits = True
        while a < end:
            value = rows[a]
            a += step
            h = mixed(value)
            if (h * parts) >> np.uint64(32) != part:
                continue
            at = h & (places - np.uint64(1))
            if value == empty:
                at = places
            else:
                tries = np.uint64(0)
                while True:
                    seen = keys[base + at]
                    if seen == empty:
                        seen = inside.atomic.cas(keys, base + at, empty, value)
                        if seen == empty:
                            break
                    if seen == value:
                        break
                    at = (at + np.uint64(1)) & (places - np.uint64(1))
                    tries += np.uint64(1)
                    if tries == places:
                        fits = False
                        break
                if not fits:
                    break
            inside.atomic.add(counts, base + at, np.uint32(1))
        return fits

    return inlined(count)


def chooser(c):
    """(the commonest, how often) of every `step`-th place of a table; of equally common ones the smallest."""
    places, empty = np.uint64(c.places), c.empty

    def choose(keys, counts, base, at, step):
        best, most = empty, np.uint32(0)
        while at <= places:
            count = counts[base + at]
            if count > most or (count == most and keys[base + at] < best):
                best, most = keys[base + at], count
            at += step
        return best, most

    return inlined(choose)


def vote(c):
    """The winner of each of some rows of fewer messages than a table has places: a warp each."""
    count, choose, block, kind, empty = counter(c), chooser(c), c.block, c.kind, c.empty
    warps, size = c.block // WARP, c.places + 1
    room = warps * size

    def vote(listed, chosen, starts, rows):
        keys = cuda.shared.array(room, kind)
        counts = cuda.shared.array(room, np.uint32)
        bests = cuda.shared.array(block, kind)
        mosts = cuda.shared.array(block, np.uint32)
        tid = np.uint32(cuda.threadIdx.x)
        lane = np.uint64(tid & np.uint32(WARP - 1))
        base = np.uint64(tid // np.uint32(WARP)) * np.uint64(size)
        k = np.uint32(np.uint32(cuda.blockIdx.x) * np.uint32(warps) + tid // np.uint32(WARP))
        begin, end = np.uint64(0), np.uint64(0)
        if k < chosen:
            begin, end = starts[listed[k]], starts[listed[k] + np.uint32(1)]
        at = lane
        while at < np.uint64(size):
            keys[base + at] = empty
            counts[base + at] = np.uint32(0)
            at += np.uint64(WARP)
        together()
        count(keys, counts, base, rows, begin + lane, end, np.uint64(WARP), np.uint64(0), np.uint64(1))
        together()
        best, most = choose(keys, counts, base, lane, np.uint64(WARP))
        bests[tid], mosts[tid] = best, most
        step = np.uint32(WARP // 2)
        together()
        while step > np.uint32(0):
            if lane < np.uint64(step):
                other, often = bests[tid + step], mosts[tid + step]
                if often > mosts[tid] or (often == mosts[tid] and other < bests[tid]):
                    bests[tid], mosts[tid] = other, often
            step >>= np.uint32(1)
            together()
        if lane == np.uint64(0) and k < chosen:
            rows[begin] = bests[tid]

    return vote


def vote_parts(c):
    """The winner among a part of the values of a long row, and its count: a block each. A part is (which of the listed
    rows, its number, how many the row has)."""
    count, choose, block, kind, empty = counter(c), chooser(c), c.block, c.kind, c.empty
    size = c.places + 1

    def vote_parts(items, listed, starts, rows, values, found):
        keys = cuda.shared.array(size, kind)
        counts = cuda.shared.array(size, np.uint32)
        bests = cuda.shared.array(block, kind)
        mosts = cuda.shared.array(block, np.uint32)
        full = cuda.shared.array(1, np.uint32)
        tid = np.uint32(cuda.threadIdx.x)
        item = np.uint32(cuda.blockIdx.x)
        i = listed[items[item, 0]]
        begin, end = starts[i], starts[i + np.uint32(1)]
        at = np.uint64(tid)
        while at < np.uint64(size):
            keys[at] = empty
            counts[at] = np.uint32(0)
            at += np.uint64(block)
        if tid == np.uint32(0):
            full[0] = np.uint32(0)
        cuda.syncthreads()
        fits = count(
            keys, counts, np.uint64(0), rows, begin + np.uint64(tid), end, np.uint64(block),
            np.uint64(items[item, 1]), np.uint64(items[item, 2]),
        )  # fmt: skip
        if not fits:
            full[0] = np.uint32(1)
        cuda.syncthreads()
        best, most = choose(keys, counts, np.uint64(0), np.uint64(tid), np.uint64(block))
        bests[tid], mosts[tid] = best, most
        step = np.uint32(block // 2)
        cuda.syncthreads()
        while step > np.uint32(0):
            if tid < step:
                other, often = bests[tid + step], mosts[tid + step]
                if often > mosts[tid] or (often == mosts[tid] and other < bests[tid]):
                    bests[tid], mosts[tid] = other, often
            step >>= np.uint32(1)
            cuda.syncthreads()
        if tid == np.uint32(0):
            values[item] = bests[0]
            found[item] = FULL if full[0] != np.uint32(0) else mosts[0]

    return vote_parts
