"""Templates of the combine form for the GPU. Each makes a kernel around a program's functions, given as `c`; see
`penstock.engine.kernels.combine` for their names. Here besides: `kind`, what contributions are held as; `get(message,
i, j)`, `of_total(totals, i, j)`, `set_total(totals, i, j, value)`, `into(totals, i, j, value)`, which other threads do
at the same time; `lanes`, `fused`; `windowed`, only vertices in the window from `near` on gather; `ranged`, and only
neighbours in the range from `far` on count; `block`, the threads of a block. What arcs keep is `kept`: that of a page's
arc a lies at `begin + a`, where `begin` is `arcs_from(kept, page)`; whoever visits an arc, one thread, stores it.

A kernel goes over tasks, pieces of pages (see `penstock.memory.tasks`): a block takes one, `width` threads each vertex.
Heavy vertices are left to segments, a block each, whose totals are finished later. What is active or touched is a byte
per slot, written without care by anyone, and packed to bits between supersteps.
"""

from __future__ import annotations

import numpy as np

from penstock.memory.device import inlined
from penstock.memory.gpu import SIMULATED, WARP, cuda, inside, once

TALLY, CHANGES, SPREAD = 0, 32, 1024
"""Places among the scalars: the tally, and from CHANGES on parts of the change. Thousands of blocks that add to one
number would wait for one another, and those that read one beside it, too."""
ACTIVE, ARCS = 0, 1
"""Places among the counts."""


@inlined
def together():
    """Threads of a warp wait for one another; simulated ones, which have none, for all of their block."""
    if SIMULATED:
        inside.syncthreads()
    else:
        inside.syncwarp()


@inlined
def has(front, u):
    """Whether the bit of a vertex is set."""
    return (front[u >> np.uint32(5)] >> (u & np.uint32(31))) & np.uint32(1) != np.uint32(0)


def gatherer(c):
    """(total, whether anything arrived) over every `step`-th arc from `a` to `end` of a page."""
    combine, edge, arc_values, zero, kind, get = c.combine, c.edge, c.arc_values, c.zero, c.kind, c.get
    frontier, ranged, numbered, first, loops = c.frontier, c.ranged, c.numbered, c.first, c.loops
    plain, store_arc = not (frontier or ranged or first) and loops and not numbered, c.store_arc

    def gather(
        n, words, base, a, end, step, columns, strides, frame, kept, begin, message, far, size, front, p, j
    ):  # fmt: skip
        total, hit = zero, False
        if plain:
            # Four at a time: a thread waits for memory once, not four times.
            while np.uint64(a) + np.uint64(3) * np.uint64(step) < np.uint64(end):
                b, c, d = np.uint32(a + step), np.uint32(a + step + step), np.uint32(a + step + step + step)
                u, v = once(words, base + np.uint64(a)), once(words, base + np.uint64(b))
                w, x = once(words, base + np.uint64(c)), once(words, base + np.uint64(d))
                k, q = get(message, u, j), get(message, v, j)
                m, o = get(message, w, j), get(message, x, j)
                # All values before anything is stored, or each would wait for the one before.
                e = arc_values(columns, strides, frame, kept, begin, a)
                f = arc_values(columns, strides, frame, kept, begin, b)
                g = arc_values(columns, strides, frame, kept, begin, c)
                h = arc_values(columns, strides, frame, kept, begin, d)
                total = kind(combine(total, kind(store_arc(kept, begin, a, edge(k, e, p)))))
                total = kind(combine(total, kind(store_arc(kept, begin, b, edge(q, f, p)))))
                total = kind(combine(total, kind(store_arc(kept, begin, c, edge(m, g, p)))))
                total = kind(combine(total, kind(store_arc(kept, begin, d, edge(o, h, p)))))
                a = np.uint32(d + step)
        while a < end:
            u = once(words, base + np.uint64(a))
            at = a
            a = np.uint32(a + step)
            if not loops and u == n:
                continue
            if ranged and np.uint32(u - far) >= size:
                continue
            if frontier and not has(front, u):
                continue
            if frontier or first:
                hit = True
            e = arc_values(columns, strides, frame, kept, begin, at)
            if numbered:
                total = kind(combine(total, kind(store_arc(kept, begin, at, edge(u, e, p)))))
            else:
                sent = get(message, np.uint32(u - far), j)
                total = kind(combine(total, kind(store_arc(kept, begin, at, edge(sent, e, p)))))
            if first:
                break
        return total, hit

    return inlined(gather)


def merger(c):
    """(total, whether anything arrived) of two pieces."""
    combine, kind, flagged = c.combine, c.kind, c.frontier or c.first

    def merge(a, hit_a, b, hit_b):
        if not flagged:
            return kind(combine(a, b)), False
        if not hit_b:
            return a, hit_a
        if not hit_a:
            return b, hit_b
        return kind(combine(a, b)), True

    return inlined(merge)


def folder(c):
    """Fold the changes of a warp's threads into one of the parts."""
    fold, largest, block = c.fold, c.change_largest, c.block

    def fold_warp(shared, tid, moved, scalars):
        shared[tid] = moved
        lane = tid & np.uint32(WARP - 1)
        step = np.uint32(WARP // 2)
        together()
        while step > np.uint32(0):
            if lane < step:
                shared[tid] = fold(shared[tid], shared[tid + step])
            step >>= np.uint32(1)
            together()
        if lane == np.uint32(0) and shared[tid] != 0.0:
            warp = (np.uint32(inside.blockIdx.x) * np.uint32(block) + tid) // np.uint32(WARP)
            place = np.uint32(CHANGES) + (warp & np.uint32(SPREAD - 1))
            if largest:
                inside.atomic.max(scalars, place, shared[tid])
            else:
                inside.atomic.add(scalars, place, shared[tid])

    return inlined(fold_warp)


def pull(c):
    """Gather for the vertices of a task; update them, or add to their totals for later."""
    gather, merge, fold_warp = gatherer(c), merger(c), folder(c)
    load, store, unpack, update, awake, wants = c.load, c.store, c.unpack, c.update, c.awake, c.wants
    change, fold, combine, kind = c.change, c.fold, c.combine, c.kind
    of_total, set_total, arcs_from = c.of_total, c.set_total, c.arcs_from
    frontier, wanted, changing, fused, windowed = c.frontier, c.wanted, c.changing, c.fused, c.windowed
    flagged, lanes, block, held = c.frontier or c.first, c.lanes, c.block, c.held

    def pull(
        order, tasks, heaviest, words, page_words, columns, strides, kept, first_of, vertices_of, frame_of,
        message, far, size, front, near, room, state, reads, params, scalars, after, totals, touched,
    ):  # fmt: skip
        sums = cuda.shared.array(block, held)
        hits = cuda.shared.array(block, np.uint8)
        p = unpack(params, scalars)
        tid = np.uint32(cuda.threadIdx.x)
        task = order[cuda.blockIdx.x]
        page, begin, count, width = tasks[task, 0], tasks[task, 1], tasks[task, 2], tasks[task, 3]
        frame = frame_of[page]
        base = np.uint64(frame) * page_words
        slots = base + page_words - np.uint64(vertices_of[page]) - np.uint64(1)
        from_arc = arcs_from(kept, page)
        lane = tid & np.uint32(width - np.uint32(1))
        groups = np.uint32(block) // width
        moved = 0.0
        r = tid // width
        rest = np.uint32((count + groups - np.uint32(1)) // groups)
        while rest > np.uint32(0):
            rest -= np.uint32(1)
            live = r < count
            lo, hi = np.uint32(0), np.uint32(0)
            i = np.uint32(begin + r)
            n = np.uint32(first_of[page] + i)
            if windowed and np.uint32(n - near) >= room:
                live = False
            if live and wanted:
                wishes = False
                for j in range(lanes):
                    if wants(load(state, reads, np.uint32(n - near), n, j), p):
                        wishes = True
                live = wishes
            # Only now, for the page may lie beyond the bus.
            if live:
                lo, hi = words[slots + np.uint64(i)], words[slots + np.uint64(i) + np.uint64(1)]
                live = hi - lo <= heaviest
            if not live:
                hi = lo
            for j in range(lanes):
                total, hit = gather(
                    n, words, base, np.uint32(lo + lane), hi, width, columns, strides, frame, kept, from_arc, message,
                    far, size, front, p, j,
                )  # fmt: skip
                if width > np.uint32(1):
                    sums[tid] = total
                    if flagged:
                        hits[tid] = np.uint8(1) if hit else np.uint8(0)
                    step = np.uint32(width >> np.uint32(1))
                    together()
                    while step > np.uint32(0):
                        if lane < step:
                            total, hit = merge(
                                kind(sums[tid]), flagged and hits[tid] != 0,
                                kind(sums[tid + step]), flagged and hits[tid + step] != 0,
                            )  # fmt: skip
                            sums[tid] = total
                            if flagged:
                                hits[tid] = np.uint8(1) if hit else np.uint8(0)
                        step >>= np.uint32(1)
                        together()
                if lane == np.uint32(0) and live and (hit or not flagged or (fused and not frontier)):
                    i = np.uint32(n - near)
                    if fused:
                        old = load(state, reads, i, n, j)
                        new = update(old, total, p)
                        store(state, i, j, new)
                        if changing:
                            moved = fold(moved, change(old, new, p))
                        if frontier and awake(new):
                            after[n] = np.uint8(1)
                    else:
                        set_total(totals, i, j, kind(combine(of_total(totals, i, j), total)))
                        if frontier:
                            touched[n] = np.uint8(1)
            r += groups
        if fused and changing:
            fold_warp(cuda.shared.array(block, np.float64), tid, moved, scalars)

    return pull


def pull_segments(c):
    """Gather for one piece of a heavy vertex, into its part."""
    gather, merge = gatherer(c), merger(c)
    load, unpack, wants, kind, arcs_from = c.load, c.unpack, c.wants, c.kind, c.arcs_from
    wanted, windowed, flagged = c.wanted, c.windowed, c.frontier or c.first
    lanes, block, held = c.lanes, c.block, c.held

    def pull_segments(
        order, segments, heavy, words, page_words, columns, strides, kept, frame_of,
        message, far, size, front, near, room, state, reads, params, scalars, parts, arrived,
    ):  # fmt: skip
        sums = cuda.shared.array(block, held)
        hits = cuda.shared.array(block, np.uint8)
        p = unpack(params, scalars)
        tid = np.uint32(cuda.threadIdx.x)
        segment = order[cuda.blockIdx.x]
        frame, from_arc = frame_of[segments[segment, 0]], arcs_from(kept, segments[segment, 0])
        base = np.uint64(frame) * page_words
        n = heavy[segments[segment, 3]]
        lo, hi = segments[segment, 1], segments[segment, 2]
        live = True
        if windowed and np.uint32(n - near) >= room:
            live = False
        if live and wanted:
            wishes = False
            for j in range(lanes):
                if wants(load(state, reads, np.uint32(n - near), n, j), p):
                    wishes = True
            live = wishes
        if not live:
            hi = lo
        for j in range(lanes):
            total, hit = gather(
                n, words, base, np.uint32(lo + tid), hi, np.uint32(block), columns, strides, frame, kept, from_arc,
                message, far, size, front, p, j,
            )  # fmt: skip
            sums[tid] = total
            hits[tid] = np.uint8(1) if hit else np.uint8(0)
            step = np.uint32(block // 2)
            cuda.syncthreads()
            while step > np.uint32(0):
                if tid < step:
                    total, hit = merge(kind(sums[tid]), hits[tid] != 0, kind(sums[tid + step]), hits[tid + step] != 0)
                    sums[tid] = total
                    hits[tid] = np.uint8(1) if hit else np.uint8(0)
                step >>= np.uint32(1)
                cuda.syncthreads()
            if tid == np.uint32(0) and live:
                parts[segment, j] = total
                # Where nothing need arrive, a part that was gathered counts all the same.
                arrived[segment] = np.uint8(1) if hit or not flagged else np.uint8(0)

    return pull_segments


def finish(c):
    """Put the parts of each heavy vertex together; update it, or add to its totals. Leaves the parts empty."""
    merge, fold_warp = merger(c), folder(c)
    load, store, unpack, update, awake, wants = c.load, c.store, c.unpack, c.update, c.awake, c.wants
    change, fold, combine, kind, zero = c.change, c.fold, c.combine, c.kind, c.zero
    of_total, set_total = c.of_total, c.set_total
    frontier, changing, fused, windowed, wanted = c.frontier, c.changing, c.fused, c.windowed, c.wanted
    lanes, block = c.lanes, c.block

    def finish(heavy, part_start, parts, arrived, near, room, state, reads, params, scalars, after, totals, touched):
        tid = np.uint32(cuda.threadIdx.x)
        h = np.uint32(cuda.blockIdx.x) * np.uint32(block) + tid
        moved = 0.0
        p = unpack(params, scalars)
        if h < np.uint32(heavy.size):
            n = heavy[h]
            i = np.uint32(n - near)
            gathered = not windowed or i < room
            for j in range(lanes):
                total, hit, any_part = zero, False, False
                k = part_start[h]
                while k < part_start[h + np.uint32(1)]:
                    if arrived[k] != 0:
                        any_part = True
                        total, hit = merge(total, hit, kind(parts[k, j]), True)
                    k += np.uint32(1)
                if gathered and (any_part or (fused and not frontier)):
                    if fused:
                        old = load(state, reads, i, n, j)
                        if not wanted or wants(old, p):
                            new = update(old, total, p)
                            store(state, i, j, new)
                            if changing:
                                moved = fold(moved, change(old, new, p))
                            if frontier and awake(new):
                                after[n] = np.uint8(1)
                    else:
                        set_total(totals, i, j, kind(combine(of_total(totals, i, j), total)))
                        if frontier:
                            touched[n] = np.uint8(1)
            k = part_start[h]
            while k < part_start[h + np.uint32(1)]:
                arrived[k] = np.uint8(0)
                k += np.uint32(1)
        if fused and changing:
            fold_warp(cuda.shared.array(block, np.float64), tid, moved, scalars)

    return finish


def pusher(c):
    """Carry one vertex's message along every `step`-th of its arcs in a page."""
    load, emit, edge, arc_values, wants = c.load, c.emit, c.edge, c.arc_values, c.wants
    into, get, kind, message_kind = c.into, c.get, c.kind, c.message_kind
    numbered, ranged, frontier, loops, lanes = c.numbered, c.ranged, c.frontier, c.loops, c.lanes
    laned, store_arc = c.lanes > 1, c.store_arc
    # In ranges its state may not be here, and of several lanes each has its own wish: who takes it in asks. What an arc
    # keeps cannot wait for that: then the state that is here is that of the range it leads to.
    asked, asked_there = c.wanted and not c.ranged and c.lanes == 1, c.wanted and c.ranged and c.kept

    def carry(
        n, words, base, a, end, step, columns, strides, frame, kept, begin, sent, near, state, reads, p, far, size,
        totals, touched,
    ):  # fmt: skip
        while a < end:
            u = once(words, base + np.uint64(a))
            at = a
            a = np.uint32(a + step)
            if not loops and u == n:
                continue
            if ranged and np.uint32(u - far) >= size:
                continue
            if asked and not wants(load(state, reads, np.uint32(u - near), u, 0), p):
                continue
            if asked_there and not wants(load(state, reads, np.uint32(u - far), u, 0), p):
                continue
            e = arc_values(columns, strides, frame, kept, begin, at)
            for j in range(lanes):
                if numbered:
                    into(totals, np.uint32(u - far), j, kind(store_arc(kept, begin, at, edge(n, e, p))))
                elif ranged or laned:
                    message = get(sent, np.uint32(n - near), j)
                    into(totals, np.uint32(u - far), j, kind(store_arc(kept, begin, at, edge(message, e, p))))
                else:
                    message = message_kind(emit(load(state, reads, np.uint32(n - near), n, j), p))
                    into(totals, np.uint32(u - far), j, kind(store_arc(kept, begin, at, edge(message, e, p))))
            if frontier:
                touched[u] = np.uint8(1)

    return inlined(carry)


def push(c):
    """Carry the messages of a task's active vertices to the other ends of their arcs, into totals there."""
    carry, unpack, arcs_from = pusher(c), c.unpack, c.arcs_from
    frontier, ranged, block = c.frontier, c.ranged, c.block

    def push(
        order, tasks, heaviest, words, page_words, columns, strides, kept, first_of, vertices_of, frame_of,
        sent, front, near, room, state, reads, params, scalars, far, size, totals, touched,
    ):  # fmt: skip
        p = unpack(params, scalars)
        tid = np.uint32(cuda.threadIdx.x)
        task = order[cuda.blockIdx.x]
        page, begin, count, width = tasks[task, 0], tasks[task, 1], tasks[task, 2], tasks[task, 3]
        frame = frame_of[page]
        base = np.uint64(frame) * page_words
        slots = base + page_words - np.uint64(vertices_of[page]) - np.uint64(1)
        from_arc = arcs_from(kept, page)
        lane = tid & np.uint32(width - np.uint32(1))
        groups = np.uint32(block) // width
        r = tid // width
        while r < count:
            i = np.uint32(begin + r)
            n = np.uint32(first_of[page] + i)
            r += groups
            if frontier and not has(front, n):
                continue
            if ranged and np.uint32(n - near) >= room:
                continue
            lo, hi = words[slots + np.uint64(i)], words[slots + np.uint64(i) + np.uint64(1)]
            if hi - lo > heaviest:
                continue
            carry(
                n, words, base, np.uint32(lo + lane), hi, width, columns, strides, frame, kept, from_arc, sent, near,
                state, reads, p, far, size, totals, touched,
            )  # fmt: skip

    return push


def push_segments(c):
    """The same for one piece of a heavy vertex."""
    carry, unpack, arcs_from = pusher(c), c.unpack, c.arcs_from
    frontier, ranged, block = c.frontier, c.ranged, c.block

    def push_segments(
        order, segments, heavy, words, page_words, columns, strides, kept, frame_of,
        sent, front, near, room, state, reads, params, scalars, far, size, totals, touched,
    ):  # fmt: skip
        segment = order[cuda.blockIdx.x]
        n = heavy[segments[segment, 3]]
        if frontier and not has(front, n):
            return
        if ranged and np.uint32(n - near) >= room:
            return
        p = unpack(params, scalars)
        frame, from_arc = frame_of[segments[segment, 0]], arcs_from(kept, segments[segment, 0])
        a = np.uint32(segments[segment, 1] + np.uint32(cuda.threadIdx.x))
        carry(
            n, words, np.uint64(frame) * page_words, a, segments[segment, 2], np.uint32(block), columns, strides, frame,
            kept, from_arc, sent, near, state, reads, p, far, size, totals, touched,
        )  # fmt: skip

    return push_segments
