"""A user's own program, run like the algorithms that come with Penstock."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.algorithms.job import Job
from penstock.config import Settings
from penstock.edges import Edges
from penstock.engine.engine import Outcome, Until
from penstock.engine.plan import sides_of
from penstock.engine.program import Combine, Common, Each, Program, change_below, iterations
from penstock.engine.vectors import let_go
from penstock.errors import UsageError
from penstock.graph import Graph
from penstock.options import whole
from penstock.result import Result
from penstock.store.arrow import plain_array


def run(program: Program, graph: Graph, settings: Settings, options: dict[str, Any]) -> Result:
    """Run the program and return its state. Options: its parameters; `source` (the seeds), `max_iter` and `tol`, which
    bound the supersteps and the change that goes on."""
    if not isinstance(program, Program):
        raise UsageError(f"{program!r} is neither the name of an algorithm nor a program")
    if isinstance(program, Each):
        raise UsageError(f"program {program.name} sees no arcs: it is for what is done between other programs")
    if isinstance(program, Common) and options.get("tol") is not None:
        raise UsageError(f"program {program.name} has no change that tol could bound: say max_iter, how many passes")
    job = Job(graph, settings, program.name, options)
    rest = dict(options)
    source, most, tol = rest.pop("source", None), rest.pop("max_iter", None), rest.pop("tol", None)
    until: Until | None = None
    if tol is not None:
        until = change_below(float(tol), 1 << 31 if most is None else whole("max_iter", most, 0))
    elif most is not None:
        until = iterations(whole("max_iter", most, 0))
    elif isinstance(program, Combine) and not program.frontier:
        raise UsageError(f"program {program.name} has no frontier: say when to stop, by max_iter or tol")
    try:
        seeds = job.seeds(source) if source is not None else []
        outcome = job.engine.run(program, params=rest, seeds=seeds, until=until)
        result = job.result(outcome, outcome.state, iterations=outcome.steps, residual=outcome.change, **outcome.totals)
        if isinstance(program, Combine) and program.edge_state:
            result.edges = arcs_kept(graph, program, outcome, result.stats)
        return result
    finally:
        job.close()


def arcs_kept(graph: Graph, program: Combine, outcome: Outcome, stats: dict[str, Any]) -> Edges:
    """What the arcs kept, a row for each, page by page. An arc is told as it is stored, also when messages travel
    against it; where they travel both ways it comes twice, each time from the sender to the receiver."""
    ends, fields = graph.store.ids.arrow_type, program.edge_fields()
    schema = pa.schema(
        [("source", ends), ("target", ends), *((name, pa.from_numpy_dtype(kind)) for name, kind in fields.items())]
    )
    # A page's own vertices receive where messages are pulled, and send where they are pushed.
    receives = bool(sides_of(graph.store, program.along).pull)
    turned = receives != (program.along == "in")

    def make() -> Iterator[pa.RecordBatch]:
        for name, arrays in outcome.edge_state.items():
            direction = graph.store.direction(name)
            for page in range(len(direction)):
                block = graph.store.direction(name).block(page)  # asked each time: the graph may have been closed
                begin = int(direction.records["first_arc"][page])
                end = begin + len(block.neighbours)
                own = np.arange(len(block.offsets) - 1, dtype=np.uint64) + np.uint64(block.first_vertex)
                near = np.repeat(own, block.offsets[1:].astype(np.int64) - block.offsets[:-1].astype(np.int64))
                far = block.neighbours.astype(np.uint64)
                users = graph.users()
                columns = [users.take(plain_array(numbers)) for numbers in ((far, near) if turned else (near, far))]
                columns += [plain_array(values[begin:end].copy()) for values in arrays.values()]
                yield pa.record_batch(columns, schema=schema)
                for values in arrays.values():
                    let_go(values, begin, end)

    return Edges(make, schema, stats)
