"""What happens to the pairs of a job: a file, a table on stdout, figures as JSON, and a line or two on stderr."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from penstock.config import format_size
from penstock.interfaces.cli.options import Limits
from penstock.interfaces.cli.run import Targets, print_table, write_json
from penstock.interfaces.cli.summary import number, tell

if TYPE_CHECKING:
    from penstock.mapreduce.keyvalue import KeyValue
    from penstock.mapreduce.session import MapReduce


@dataclass(frozen=True)
class Tables:
    """The pairs of a job, and how they are shown."""

    pairs: KeyValue
    columns: tuple[str, ...]
    """Names of the columns; of those that follow the job says none."""
    lookup: Mapping[str, Any] = field(default_factory=dict)
    ranked: bool = False
    notes: Mapping[str, Any] = field(default_factory=dict)


@contextlib.contextmanager
def running(
    name: str, settings: dict[str, Any], targets: Targets, limits: Limits
) -> Iterator[tuple[MapReduce, Callable[[Tables], None]]]:
    """A session, and what to call with what it made."""
    from penstock.mapreduce.session import MapReduce
    from penstock.observe.events import recording

    targets.check()
    began = time.perf_counter()
    with contextlib.ExitStack() as held:
        events = held.enter_context(recording()) if targets.trace is not None else None
        mr = held.enter_context(MapReduce(verbosity=int(limits.verbose), **limits.settings, **settings))

        def finish(made: Tables) -> None:
            seconds = time.perf_counter() - began
            figures = _delivered(name, mr, made, targets, seconds)
            if events is not None:
                from penstock.observe.trace import write_trace

                write_trace(str(targets.trace), events, figures)
            if targets.json_to is not None:
                write_json(figures, targets.json_to)
            tell(*_summary(figures), quiet=limits.quiet)

        yield mr, finish


def _delivered(name: str, mr: MapReduce, made: Tables, targets: Targets, seconds: float) -> dict[str, Any]:
    from penstock.mapreduce.table import Table
    from penstock.observe.plain import strict

    plain = Table(made.pairs)
    table = Table(made.pairs, [*made.columns, *plain.names[len(made.columns) :]], made.lookup)
    began = time.perf_counter()
    if targets.output is not None:
        table.write(targets.output, overwrite=targets.overwrite)
    writing = time.perf_counter() - began
    if targets.shown:
        _show(table, targets.shown, made.ranked)
    figures: dict[str, Any] = strict(
        {
            "job": name,
            "rows": len(made.pairs),
            "seconds": seconds,
            "writing_seconds": writing,
            "output": None if targets.output is None else str(targets.output),
            "threads": mr.threads,
            **made.notes,
            **mr.stats(),
        }
    )
    return figures


def _show(table: Any, count: int, ranked: bool) -> None:
    """The rows of the largest values, or the first ones."""
    rows: list[tuple[Any, ...]] = []
    batches = [table.top(count)] if ranked else table.batches()
    for batch in batches:
        rows += zip(*(column.to_pylist() for column in batch.slice(0, count - len(rows)).columns), strict=True)
        if len(rows) >= count:
            break
    print_table(table.names, rows)


def _summary(figures: Mapping[str, Any]) -> list[str]:
    from penstock.observe.bar import format_seconds

    return [
        f"{figures['job']}: {number(figures['rows'], 'row')} in {format_seconds(figures['seconds'])}",
        memory_line(figures),
    ]


def memory_line(figures: Mapping[str, Any]) -> str:
    """What a session of key-value work took."""
    spilled = figures["spill_written"]
    return (
        f"{'in memory' if not spilled else f'{format_size(spilled)} spilled'}, "
        f"{format_size(figures['memory_peak'])} of {format_size(figures['memory_limit'])} used, "
        f"peak memory {format_size(figures['process_peak'])}"
    )


__all__ = ["Tables", "memory_line", "running"]
