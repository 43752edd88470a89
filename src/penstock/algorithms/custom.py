"""A user's own program, run like the algorithms that come with Penstock."""

from __future__ import annotations

from typing import Any

from penstock.algorithms.job import Job
from penstock.config import Settings
from penstock.engine.program import Combine, Program, change_below, iterations
from penstock.errors import UsageError
from penstock.graph import Graph
from penstock.result import Result


def run(program: Program, graph: Graph, settings: Settings, options: dict[str, Any]) -> Result:
    """Run the program and return its state. Options: its parameters; `source` (the seeds), `max_iter` and `tol`, which
    bound the supersteps and the change that goes on."""
    if not isinstance(program, Program):
        raise UsageError(f"{program!r} is neither the name of an algorithm nor a program")
    job = Job(graph, settings, program.name, options)
    rest = dict(options)
    source, most, tol = rest.pop("source", None), rest.pop("max_iter", None), rest.pop("tol", None)
    until = None
    if tol is not None:
        until = change_below(float(tol), int(most or 1 << 31))
    elif most is not None:
        until = iterations(int(most))
    elif isinstance(program, Combine) and not program.frontier:
        raise UsageError(f"program {program.name} has no frontier: say when to stop, by max_iter or tol")
    try:
        seeds = job.seeds(source) if source is not None else []
        outcome = job.engine.run(program, params=rest, seeds=seeds, until=until)
        return job.result(outcome, outcome.state, iterations=outcome.steps, residual=outcome.change)
    finally:
        job.close()
