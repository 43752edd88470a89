"""Edges between two sets of vertices, read from the pages that hold the sets and from no others."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.algorithms.job import Job
from penstock.edges import Edges
from penstock.engine.explain import Reading, Stage
from penstock.engine.kernels.bits import has, pages_of, words_for
from penstock.engine.plan import SLACK
from penstock.memory.device import kernel
from penstock.store.arrow import plain_array, typed_array
from penstock.store.encodings import decode
from penstock.store.reader import Store

SIZE = 1 << 16
"""Arcs looked at for a batch, at least."""


@kernel()
def _select(first, offsets, neighbours, these, those, keys, mutual, reverse, near, far, kept, at, arc):
    """Append the arcs from `these` to `those`. `mutual`: an edge found from both ends is taken from the one with the
    smaller key, or without keys from the forward direction only."""
    one = np.uint64(1)
    for i in range(np.uint64(offsets.size - 1)):
        u = first + i
        if not has(these, u):
            continue
        for a in range(np.uint64(offsets[i]), np.uint64(offsets[i + one])):
            v = np.uint64(neighbours[a])
            if not has(those, v):
                continue
            if mutual and has(these, v) and has(those, u):
                if keys.size > 0:
                    if keys[u] > keys[v]:
                        continue
                elif reverse:
                    continue
            near[at], far[at], kept[at] = u, v, arc + a
            at += one
    return at


def bitmap(store_vertices: int, numbers: np.ndarray) -> np.ndarray:
    """A set of vertices by internal number."""
    found = np.zeros(words_for(store_vertices), np.uint64)
    for at in range(0, len(numbers), SIZE):
        piece = numbers[at : at + SIZE].astype(np.uint64)
        np.bitwise_or.at(found, piece >> np.uint64(6), np.uint64(1) << (piece & np.uint64(63)))
    return found


def complement(words: np.ndarray) -> np.ndarray:
    return ~words


def directions_of(store: Store, both_ways: bool) -> list[str]:
    """The directions whose pages are read, one after the other."""
    if not both_ways or not store.directed:
        return ["out"]
    return ["out", "in"] if store.has_direction("in") else ["out", "out"]


def edge_stage(store: Store, name: str, *, both_ways: bool, note: str = "") -> Stage:
    """What finding the edges between two sets would do: it holds the sets, all ids, and a batch at a time."""
    names = directions_of(store, both_ways)
    read = store.ids.nbytes
    for direction in map(store.direction, names):
        read += len(direction) * store.page_size
        read += sum(int(records["bytes"].sum()) for records in direction.column_records.values())
    held = SLACK + 2 * 8 * words_for(store.vertices) + store.ids.nbytes
    if not store.directed:
        held += len(store.ids.order) * store.ids.order.dtype.itemsize
    batch = max((_batch_bytes(store, direction) for direction in names), default=0)
    pages = "the pages of the vertices of a set"
    return Stage(Reading(name, pages, held + batch, read), len(names), note)


def _batch_bytes(store: Store, name: str) -> int:
    """The arcs of a batch: both ends and where they lie, both ends again in order, their ids, their columns twice."""
    direction, ids = store.direction(name), store.ids
    arcs = min(direction.arcs, SIZE + int(direction.records["arcs"].max(initial=0)))
    columns = sum(direction.column_dtype(column).itemsize for column in direction.columns)
    mean = -(-ids.nbytes // max(1, ids.count))
    index = direction.records.nbytes + 8 * len(direction)
    return arcs * (5 * 8 + 2 * mean + 2 * columns) + index + direction.scratch_bytes + store.page_size


def edges_between(job: Job, these: np.ndarray, those: np.ndarray, *, both_ways: bool, **notes: Any) -> Edges:
    """The edges from the one set to the other, or with `both_ways` between them; undirected ones have no way."""
    graph, store = job.graph, job.store
    schema = graph.edge_schema()
    passes = [("out", these, those, False)]
    second = directions_of(store, both_ways)[1:]
    passes += [(name, these, those, True) if name == "in" else (name, those, these, True) for name in second]
    stats = job.figures(**notes)

    def make() -> Iterator[pa.RecordBatch]:
        for name, a, b, again in passes:
            yield from _pass(job, schema, name, a, b, again, name == "in")

    return Edges(make, schema, stats)


def _pass(
    job: Job, schema: pa.Schema, name: str, these: np.ndarray, those: np.ndarray, again: bool, turned: bool
) -> Iterator[pa.RecordBatch]:
    graph, direction = job.graph, job.store.direction(name)
    users, keys = graph.users(), np.empty(0, np.uint64)
    rank = graph.ranks() if not job.store.directed else keys
    records = direction.records
    found = np.empty(len(records), np.int64)
    pages = found[: pages_of(these, records, found)]
    scratch, home, columns = direction.scratch(), direction.home, schema.names[2:]
    begin = 0
    while begin < len(pages):
        end = begin + 1
        while end < len(pages) and int(records["arcs"][pages[begin:end]].sum()) < SIZE:
            end += 1
        chosen = pages[begin:end]
        begin = end
        total = int(records["arcs"][chosen].sum())
        near, far, kept = np.empty(total, np.uint64), np.empty(total, np.uint64), np.empty(total, np.uint64)
        count = arc = np.uint64(0)
        for page in chosen.tolist():
            block = decode(direction.read_page(page), records[page], home, scratch)
            mutual = again or not job.store.directed
            count = np.uint64(
                _select(
                    np.uint64(block.first_vertex),
                    block.offsets,
                    block.neighbours,
                    these,
                    those,
                    rank,
                    mutual,
                    again,
                    near,
                    far,
                    kept,
                    np.uint64(count),
                    arc,
                )
            )
            arc += np.uint64(len(block.neighbours))
        if not count:
            continue
        near, far, kept = near[:count], far[:count], kept[:count]
        if len(rank):
            swap = rank[near] > rank[far]
            near, far = np.where(swap, far, near), np.where(swap, near, far)
        source, target = (far, near) if turned else (near, far)
        values = {
            column: np.concatenate([direction.read_column(column, page) for page in chosen.tolist()])[kept]
            for column in columns
        }
        ends = [users.take(plain_array(numbers)) for numbers in (source, target)]
        typed = [typed_array(value, graph.columns[column]) for column, value in values.items()]
        yield pa.record_batch([*ends, *typed], schema=schema)
