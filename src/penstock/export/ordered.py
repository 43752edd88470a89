"""The arcs in order of their ends' ids, for formats that ask for it: sorted out of core, inside the budget."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from penstock.errors import UsageError
from penstock.export.job import Job
from penstock.memory.device import use_threads
from penstock.memory.spill import Spill
from penstock.sorting.external import ExternalSorter
from penstock.store.columns import type_dtype

Arcs = tuple[np.ndarray, np.ndarray, dict[str, np.ndarray]]
_PIECE = 1 << 17


def ordered_arcs(job: Job, *, both_ways: bool) -> Iterator[Arcs]:
    """(source, target, columns in storage form), sorted; ends are places in the order of ids, from 0. Undirected
    edges come once or, `both_ways`, as their arcs."""
    graph, settings = job.graph, job.settings
    bits = np.uint64(max(1, (graph.vertices - 1).bit_length()))
    if bits > 32:
        raise UsageError(f"{job.format} export sorts the arcs, which it can do for at most 2^32 vertices")
    mask = (np.uint64(1) << bits) - np.uint64(1)
    count = graph.arcs if both_ways else graph.edges
    payload = {name: type_dtype(graph.columns[name]) for name in job.columns}
    directory = settings.temp_directory or job.target.absolute().parent
    use_threads(settings.threads)
    with Spill(directory, quota=settings.max_temp_directory_size) as spill:
        memory = settings.memory_limit // 2
        sorter = ExternalSorter(spill, memory=memory, threads=settings.threads, payload=payload, expected=count)
        for source, target, values in graph.edge_arrays(graph.ranks(), job.columns, both_ways=both_ways):
            sorter.add(source.astype(np.uint64) << bits | target, values)
        for keys, columns in sorter.sorted():
            for at in range(0, len(keys), _PIECE):
                part = keys[at : at + _PIECE]
                yield part >> bits, part & mask, {name: column[at : at + _PIECE] for name, column in columns.items()}


__all__ = ["ordered_arcs"]
