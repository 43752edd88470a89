"""The checker of label propagation: all iterations again, with modes by sorting."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from penstock.graph import Graph
from penstock.verify.common import PIECE, Answer, Csr, checker, csr, wrong

_LABEL_BITS = np.uint64(40)
"""A vertex within its piece and a label share 64 bits: one sort orders by both."""


@checker
def check_cdlp(graph: Graph, table: pa.Table, *, max_iter: int = 10) -> Iterator[str]:
    """Community detection by label propagation as LDBC defines it, iteration by iteration."""
    label = Answer(graph, table).vertices("label")
    if (label < 0).any():
        yield from wrong(graph, label < 0, "has no label")
        return
    rank = graph.ranks().astype(np.uint64)  # labels are compared by id
    adjacency = csr(graph, "both")
    labels = rank
    for _ in range(max_iter):
        new = propagated(adjacency, labels)
        if np.array_equal(new, labels):
            break
        labels = new
    yield from wrong(graph, rank[label] != labels, f"has another label than {max_iter} iterations give")


def propagated(adjacency: Csr, labels: np.ndarray) -> np.ndarray:
    """The most frequent label among the neighbours of each vertex, of equally frequent ones the smallest."""
    result = labels.copy()
    offsets = adjacency.offsets.astype(np.int64)
    for begin, end in _pieces(offsets):
        degrees = np.diff(offsets[begin : end + 1])
        owner = np.repeat(np.arange(end - begin, dtype=np.uint64), degrees)
        seen = labels[adjacency.neighbours[offsets[begin] : offsets[end]]]
        keys = np.sort(owner << _LABEL_BITS | seen)
        starts = np.flatnonzero(np.concatenate([[True], keys[1:] != keys[:-1]]))
        counts = np.diff(np.append(starts, len(keys)))
        runs = keys[starts]  # one for each owner and label, by owner and then by label
        owners = runs >> _LABEL_BITS
        firsts = np.flatnonzero(np.concatenate([[True], owners[1:] != owners[:-1]]))
        most = np.maximum.reduceat(counts, firsts)
        best = np.flatnonzero(counts == np.repeat(most, np.diff(np.append(firsts, len(runs)))))
        chosen, at = np.unique(owners[best], return_index=True)
        result[begin + chosen.astype(np.int64)] = runs[best[at]] & np.uint64((1 << 40) - 1)
    return result


def _pieces(offsets: np.ndarray) -> Iterator[tuple[int, int]]:
    """Ranges of vertices with about `PIECE` neighbours, and at least one."""
    begin, last = 0, len(offsets) - 1
    while begin < last:
        end = int(np.searchsorted(offsets, offsets[begin] + PIECE, side="right")) - 1
        end = min(max(end, begin + 1), begin + PIECE, last)
        if offsets[end] > offsets[begin]:
            yield begin, end
        begin = end


__all__ = ["check_cdlp"]
