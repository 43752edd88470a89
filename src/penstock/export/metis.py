"""METIS graph files: `n m [fmt]`, then for each vertex in turn a line of its neighbours; every edge stands twice."""

from __future__ import annotations

import contextlib
from pathlib import Path

import numpy as np

from penstock.errors import UsageError
from penstock.export.job import Job, is_whole
from penstock.export.lines import put, width_of
from penstock.export.ordered import ordered_arcs
from penstock.export.sink import open_sink
from penstock.memory.device import kernel

_BLANK, _NEWLINE = ord(" "), ord("\n")


def write_metis(job: Job, path: Path) -> None:
    graph, what = job.graph, "a METIS file"
    if graph.directed:
        raise UsageError(f"{what} holds undirected graphs, and {graph.path} is directed: build it with undirected=True")
    column = job.one_column(what, is_whole, "an integer for each edge")
    job.labels(what)  # the places of the ids are the labels; this refuses ids that are not just that
    state = np.zeros(2, np.uint64)
    last = np.zeros(2, np.uint64)
    arcs = job.shown(ordered_arcs(job, both_ways=True), lambda piece: len(piece[0]), graph.arcs, "arcs")
    with contextlib.closing(arcs), open_sink(path, job.compression) as sink:
        if job.renumber:
            sink.write(b"% vertices were renumbered 1 to n in order of their ids\n")
        sink.write(f"{graph.vertices} {graph.edges}{' 001' if column else ''}\n".encode())
        for source, target, values in arcs:
            weights = values[column].astype(np.uint64) if column else np.empty(0, np.uint64)
            if column and (values[column] < 1).any():
                least = values[column].min()
                raise UsageError(f"METIS weights are at least 1, but column {column!r} has {least}: leave it out")
            _refuse_repeats(job, source, target, last)
            sink.write(_adjacency(source, target, weights, state))
        sink.write(b"\n" * (graph.vertices - int(state[0])))


def _refuse_repeats(job: Job, source: np.ndarray, target: np.ndarray, last: np.ndarray) -> None:
    """Loops and parallel edges, which METIS cannot hold. Sorted arcs: equal ones are neighbours."""
    if not len(source):
        return
    loops = np.flatnonzero(source == target)
    if len(loops):
        raise UsageError(
            f"a METIS file cannot hold self-loops, and vertex {_user(job, source[loops[0]])!r} has one: "
            "build the store with self_loops='drop'"
        )
    same = (source == np.append(last[:1], source[:-1])) & (target == np.append(last[1:], target[:-1]))
    if same.any():
        at = int(np.argmax(same))
        raise UsageError(
            f"a METIS file cannot hold an edge twice, and there are several between {_user(job, source[at])!r} and "
            f"{_user(job, target[at])!r}: build the store with duplicates='merge'"
        )
    last[:] = source[-1], target[-1]


def _user(job: Job, rank: np.uint64) -> object:
    ids = job.graph.store.ids
    return ids.of(int(ids.order.read(int(rank), int(rank) + 1)[0]))


def _adjacency(source: np.ndarray, target: np.ndarray, weights: np.ndarray, state: np.ndarray) -> np.ndarray:
    text = np.empty(int(_measure(source, target, weights, state[0])), np.uint8)
    return text[: int(_write(source, target, weights, state, text))]


@kernel()
def _measure(source, target, weights, line):
    """An upper bound of the bytes `_write` needs."""
    total, one = np.uint64(0), np.uint64(1)
    for i in range(source.size):
        total += source[i] - line + one + width_of(target[i] + one)
        line = source[i]
        if weights.size:
            total += one + width_of(weights[i])
    return total


@kernel()
def _write(source, target, weights, state, text):
    """`state`: the line we are in, and whether it holds something."""
    at, one = np.uint64(0), np.uint64(1)
    line, begun = state[0], state[1]
    for i in range(source.size):
        while line < source[i]:
            text[at] = _NEWLINE
            at += one
            line += one
            begun = np.uint64(0)
        if begun:
            text[at] = _BLANK
            at += one
        at += width_of(target[i] + one)
        put(text, at, target[i] + one)
        if weights.size:
            text[at] = _BLANK
            at += one + width_of(weights[i])
            put(text, at, weights[i])
        begun = one
    state[0], state[1] = line, begun
    return at


__all__ = ["write_metis"]
