"""Templates that go over slots, a thread each: first state, messages, totals taken in, bits packed. See `combine`."""

from __future__ import annotations

import numpy as np

from penstock.engine.gpu.kernels.combine import ACTIVE, ARCS, TALLY, folder, has
from penstock.memory.device import inlined
from penstock.memory.gpu import cuda, inside


def initialise(c):
    """Give the slots `lo` to `hi` their first state; a byte each says whether they are active."""
    load, store, unpack, init, awake = c.load, c.store, c.unpack, c.init, c.awake
    frontier, lanes = c.frontier, c.lanes

    def initialise(lo, hi, near, state, reads, params, scalars, after):
        n = np.uint32(lo + np.uint32(cuda.grid(1)))
        if n >= hi:
            return
        p = unpack(params, scalars)
        woken = False
        for j in range(lanes):
            new = init(load(state, reads, np.uint32(n - near), n, j, np.uint32(0)), p)
            store(state, np.uint32(n - near), j, new)
            if frontier and awake(new):
                woken = True
        if frontier:
            after[n] = np.uint8(1) if woken else np.uint8(0)

    return initialise


def initialise_seeds(c):
    """The same for the seeds: slots and their places, from 1."""
    load, store, unpack, init, awake = c.load, c.store, c.unpack, c.init, c.awake
    frontier, lanes = c.frontier, c.lanes

    def initialise_seeds(slots, places, near, room, state, reads, params, scalars, after):
        k = np.uint32(cuda.grid(1))
        if k >= np.uint32(slots.size) or np.uint32(slots[k] - near) >= room:
            return
        n = slots[k]
        p = unpack(params, scalars)
        woken = False
        for j in range(lanes):
            new = init(load(state, reads, np.uint32(n - near), n, j, places[k]), p)
            store(state, np.uint32(n - near), j, new)
            if frontier and awake(new):
                woken = True
        if frontier:
            after[n] = np.uint8(1) if woken else np.uint8(0)

    return initialise_seeds


def _summing(block):
    """Add up a number of each thread of a block: the first one finds the sum in the first place."""

    def add_up(shared, tid, value):
        shared[tid] = value
        step = np.uint32(block // 2)
        inside.syncthreads()
        while step > np.uint32(0):
            if tid < step:
                shared[tid] += shared[tid + step]
            step >>= np.uint32(1)
            inside.syncthreads()

    return inlined(add_up)


def _adder(block, place):
    """Add up a number of each thread of a block into a scalar."""
    add_up = _summing(block)

    def add_block(shared, tid, value, scalars):
        add_up(shared, tid, value)
        if tid == np.uint32(0) and shared[0] != 0:
            inside.atomic.add(scalars, place, shared[0])

    return inlined(add_block)


def emit(c):
    """The messages of the slots `lo` to `hi`, and their tally; the last slot stands for `rest` vertices."""
    load, unpack, tally, emit, put = c.load, c.unpack, c.tally, c.emit, c.put
    numbered, tallied, lanes, block, message_kind = c.numbered, c.tallied, c.lanes, c.block, c.message_kind
    add_block = _adder(c.block, TALLY)

    def emit_all(lo, hi, near, body, rest, state, reads, params, scalars, message):
        tid = np.uint32(cuda.threadIdx.x)
        n = np.uint32(lo + np.uint32(cuda.grid(1)))
        found = 0.0
        if n < hi:
            p = unpack(params, scalars)
            for j in range(lanes):
                v = load(state, reads, np.uint32(n - near), n, j)
                if not numbered:
                    put(message, np.uint32(n - near), j, message_kind(emit(v, p)))
                if tallied and (n != body or rest > 0.0):
                    found += tally(v, p) * (rest if n == body else 1.0)
        if tallied:
            add_block(cuda.shared.array(block, np.float64), tid, found, scalars)

    return emit_all


def emit_active(c):
    """The messages of the active vertices among the slots `lo` to `hi`."""
    load, unpack, emit, put, lanes, message_kind = c.load, c.unpack, c.emit, c.put, c.lanes, c.message_kind

    def emit_active(lo, hi, near, front, state, reads, params, scalars, message):
        n = np.uint32(lo + np.uint32(cuda.grid(1)))
        if n >= hi or not has(front, n):
            return
        p = unpack(params, scalars)
        for j in range(lanes):
            put(message, np.uint32(n - near), j, message_kind(emit(load(state, reads, np.uint32(n - near), n, j), p)))

    return emit_active


def absorb(c):
    """Update the touched vertices among the slots `lo` to `hi`, and make totals and touches ready for the next
    superstep."""
    load, store, unpack, update, awake, wants = c.load, c.store, c.unpack, c.update, c.awake, c.wants
    change, fold, of_total, set_total, zero = c.change, c.fold, c.of_total, c.set_total, c.zero
    wanted, changing, lanes, block, fold_warp = c.wanted, c.changing, c.lanes, c.block, folder(c)

    def absorb(lo, hi, near, state, reads, params, scalars, totals, touched, after):
        tid = np.uint32(cuda.threadIdx.x)
        n = np.uint32(lo + np.uint32(cuda.grid(1)))
        moved = 0.0
        if n < hi and touched[n] != 0:
            touched[n] = np.uint8(0)
            p = unpack(params, scalars)
            i = np.uint32(n - near)
            woken = False
            for j in range(lanes):
                total = of_total(totals, i, j)
                set_total(totals, i, j, zero)
                old = load(state, reads, i, n, j)
                if not wanted or wants(old, p):
                    new = update(old, total, p)
                    store(state, i, j, new)
                    if changing:
                        moved = fold(moved, change(old, new, p))
                    if awake(new):
                        woken = True
            if woken:
                after[n] = np.uint8(1)
        if changing:
            fold_warp(cuda.shared.array(block, np.float64), tid, moved, scalars)

    return absorb


def update_all(c):
    """Update the slots `lo` to `hi` by their totals; the last slot stands for `rest` vertices."""
    load, store, unpack, update, wants = c.load, c.store, c.unpack, c.update, c.wants
    change, fold, of_total, set_total, zero = c.change, c.fold, c.of_total, c.set_total, c.zero
    wanted, changing, lanes, block, largest = c.wanted, c.changing, c.lanes, c.block, c.change_largest
    fold_warp, empty = folder(c), c.empty_totals

    def update_all(lo, hi, near, body, rest, state, reads, params, scalars, totals):
        tid = np.uint32(cuda.threadIdx.x)
        n = np.uint32(lo + np.uint32(cuda.grid(1)))
        moved = 0.0
        if n < hi:
            p = unpack(params, scalars)
            i = np.uint32(n - near)
            for j in range(lanes):
                total = zero
                if not empty:
                    total = of_total(totals, i, j)
                    set_total(totals, i, j, zero)
                old = load(state, reads, i, n, j)
                if not wanted or wants(old, p):
                    new = update(old, total, p)
                    store(state, i, j, new)
                    if changing:
                        by = change(old, new, p)
                        if n == body:
                            by = by * (1.0 if largest else rest) if rest > 0.0 else 0.0
                        moved = fold(moved, by)
        if changing:
            fold_warp(cuda.shared.array(block, np.float64), tid, moved, scalars)

    return update_all


def wanting(c):
    """Bits of the vertices among the slots `lo` to `hi` that want contributions, a word of 32 each thread."""
    load, unpack, wants, lanes = c.load, c.unpack, c.wants, c.lanes

    def wanting(lo, hi, near, state, reads, params, scalars, found):
        w = np.uint32((lo >> np.uint32(5)) + np.uint32(cuda.grid(1)))
        n = np.uint32(w << np.uint32(5))
        if n >= hi:
            return
        p = unpack(params, scalars)
        word = np.uint32(0)
        for bit in range(32):
            if lo <= n < hi:
                for j in range(lanes):
                    if wants(load(state, reads, np.uint32(n - near), n, j), p):
                        word |= np.uint32(np.uint32(1) << np.uint32(bit))
            n = np.uint32(n + np.uint32(1))
        # Windows may share a word.
        cuda.atomic.or_(found, w, word)

    return wanting


def select(c):
    """Of the vertices that wait, those below the limit become the frontier; of the others the least is told. Integers
    and reals that are not negative sort like their bits."""
    field, block, bits_of, numbers = c.field, c.block, c.bits_of, c.order_kind
    count_block, weigh_block = _adder(c.block, ACTIVE), _adder(c.block, ARCS)

    def select(size, state, limit, waiting, degrees, front, counts, least):
        tid = np.uint32(cuda.threadIdx.x)
        w = np.uint32(cuda.grid(1))
        word, active, arcs = np.uint32(0), np.uint64(0), np.uint64(0)
        n = np.uint32(w << np.uint32(5))
        if n < size:
            for bit in range(32):
                if n < size and waiting[n] != 0:
                    value = state[field][n]
                    if value < limit:
                        waiting[n] = np.uint8(0)
                        word |= np.uint32(np.uint32(1) << np.uint32(bit))
                        active += np.uint64(1)
                        if n < np.uint32(degrees.size):
                            arcs += np.uint64(degrees[n])
                    else:
                        order = numbers(bits_of(value))
                        if order < least[0]:
                            cuda.atomic.min(least, 0, order)
                n = np.uint32(n + np.uint32(1))
            front[w] = word
        shared = cuda.shared.array(block, np.uint64)
        count_block(shared, tid, active, counts)
        cuda.syncthreads()
        weigh_block(shared, tid, arcs, counts)

    return select


def pack(block):
    """Make bits of bytes, which are cleared; count them and the arcs of their vertices. No program is in it."""
    count_block, weigh_block = _adder(block, ACTIVE), _adder(block, ARCS)

    def pack(size, marks, degrees, front, counts):
        tid = np.uint32(cuda.threadIdx.x)
        w = np.uint32(cuda.grid(1))
        word, active, arcs = np.uint32(0), np.uint64(0), np.uint64(0)
        n = np.uint32(w << np.uint32(5))
        if n < size:
            for bit in range(32):
                if n < size and marks[n] != 0:
                    marks[n] = np.uint8(0)
                    word |= np.uint32(np.uint32(1) << np.uint32(bit))
                    active += np.uint64(1)
                    if n < np.uint32(degrees.size):
                        arcs += np.uint64(degrees[n])
                n = np.uint32(n + np.uint32(1))
            front[w] = word
        shared = cuda.shared.array(block, np.uint64)
        count_block(shared, tid, active, counts)
        cuda.syncthreads()
        weigh_block(shared, tid, arcs, counts)

    return pack


def unpack(block):
    """Make bytes of bits. No program is in it."""

    def unpack(size, front, marks):
        n = np.uint32(cuda.grid(1))
        if n < size:
            marks[n] = np.uint8((front[n >> np.uint32(5)] >> (n & np.uint32(31))) & np.uint32(1))

    return unpack


def each(c):
    """Of the slots below `size` that are chosen: how many and what was measured, by blocks; their new fields; and the
    marks of those below `marked`."""
    load, store, unpack, chosen, measure, update = c.load, c.store, c.unpack, c.chosen, c.measure, c.update
    fold, zero, kind, measuring, updating, block = c.fold, c.zero, c.kind, c.measuring, c.updating, c.block

    def each(size, marked, state, reads, params, scalars, marks, counts, totals):
        tid = np.uint32(cuda.threadIdx.x)
        n, step = np.uint32(cuda.grid(1)), np.uint32(cuda.gridsize(1))
        numbers = cuda.shared.array(block, np.uint32)
        sums = cuda.shared.array(block, kind)
        p = unpack(params, scalars)
        count, total = np.uint32(0), zero
        while n < size:
            v = load(state, reads, n, n, np.uint32(0))
            here = chosen(v, p)
            if n < marked:
                marks[n] = np.uint8(1) if here else np.uint8(0)
            if here:
                count += np.uint32(1)
                if measuring:
                    total = kind(fold(total, kind(measure(v, p))))
                if updating:
                    store(state, n, np.uint32(0), update(v, p))
            if np.uint32(size - n) <= step:
                break  # adding could pass zero
            n = np.uint32(n + step)
        numbers[tid], sums[tid] = count, total
        half = np.uint32(block // 2)
        cuda.syncthreads()
        while half > np.uint32(0):
            if tid < half:
                numbers[tid] += numbers[tid + half]
                if measuring:
                    sums[tid] = kind(fold(sums[tid], sums[tid + half]))
            half >>= np.uint32(1)
            cuda.syncthreads()
        if tid == np.uint32(0):
            counts[cuda.blockIdx.x], totals[cuda.blockIdx.x] = numbers[0], sums[0]

    return each


PER_VERTEX = 256
"""What it costs to find a vertex's arcs in the host's memory, in bytes of a copy: its offsets and its first arcs are
two reads over the bus, each of 64 to 128 bytes however few are wanted."""
PER_ARC = 12
"""What an arc costs there: its four bytes, at about 0.6 of the rate of a copy, and bytes that come along at the ends of
rows and for neighbouring threads that are not there at the same time."""


def page_costs(block):
    """What it would cost to read the arcs of chosen vertices where they lie in the host's memory, for each page, in
    bytes of a copy, but no more than `most`; more than 0 for a page that holds one of them. A block for each page:
    those of small vertices hold a hundred thousand."""
    add_up = _summing(block)

    def page_costs(chosen, first_of, vertices_of, degrees, most, found):
        tid, page = np.uint32(cuda.threadIdx.x), np.uint32(cuda.blockIdx.x)
        costs = cuda.shared.array(block, np.uint64)
        lo = first_of[page]
        hi = np.uint32(lo + vertices_of[page])
        w, last = np.uint32(lo >> np.uint32(5)), np.uint32((hi - np.uint32(1)) >> np.uint32(5))
        w += tid
        cost = np.uint64(0)
        while w <= last and cost < np.uint64(most):
            word = chosen[w]
            n = np.uint32(w << np.uint32(5))
            while word != np.uint32(0):
                if word & np.uint32(1) != np.uint32(0) and lo <= n < hi:
                    cost += np.uint64(PER_VERTEX)
                    if n < np.uint32(degrees.size):
                        cost += np.uint64(PER_ARC) * np.uint64(degrees[n])
                word >>= np.uint32(1)
                n = np.uint32(n + np.uint32(1))
            w += np.uint32(block)
        add_up(costs, tid, cost)
        if tid == np.uint32(0):
            found[page] = np.uint32(min(costs[0], np.uint64(most)))

    return page_costs
