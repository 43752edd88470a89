"""DIMACS shortest-path files: `p sp n m`, then `a u v weight` for each arc. An undirected edge is two arcs."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from penstock.errors import UsageError
from penstock.export.job import Job, is_whole
from penstock.export.lines import lines
from penstock.export.sink import open_sink
from penstock.store.arrow import plain_array


def write_dimacs(job: Job, path: Path) -> None:
    graph, what = job.graph, "a DIMACS .gr file"
    column = job.one_column(what, is_whole, "an integer for each arc")
    if column is None and job.weight is None:
        raise UsageError(f"{what} needs a weight for each arc: name a column or a number with weight= (--weight)")
    labels = job.labels(what)
    arcs = graph.edge_arrays(labels, job.columns, both_ways=True)
    with open_sink(path, job.compression) as sink:
        if job.renumber:
            sink.write(b"c vertices were renumbered 1 to n in order of their ids\n")
        sink.write(f"p sp {graph.vertices} {graph.arcs}\n".encode())
        for source, target, values in job.shown(arcs, lambda piece: len(piece[0]), graph.arcs, "arcs"):
            weights = np.full(len(source), job.weight, np.int64) if column is None else values[column]
            columns = [plain_array(array) for array in (source, target, weights)]
            sink.write(lines(columns, ["u", "v", "weight"], " ", b"a "))


__all__ = ["write_dimacs"]
