"""One export: the graph, what of it is wanted, and what the format's writer may ask about it."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import numpy as np
import pyarrow as pa

from penstock.config import Settings
from penstock.errors import UsageError
from penstock.graph import Graph
from penstock.observe.progress import progress
from penstock.store.arrow import arrow_type

T = TypeVar("T")


@dataclass(frozen=True)
class Job:
    """What a writer is given."""

    graph: Graph
    target: Path
    """The file's final name, for messages."""
    format: str
    columns: list[str]
    compression: str | None
    settings: Settings
    renumber: bool = False
    weight: int | None = None
    """The weight of every edge, where a format must have one and no column is written."""

    @property
    def types(self) -> list[pa.DataType]:
        return [arrow_type(self.graph.columns[name]) for name in self.columns]

    def shown(
        self, items: Iterable[T], rows: Callable[[T], int], total: int, unit: str = "edges"
    ) -> Generator[T, None, None]:
        """The items, with a progress bar. Close it where spill files stand behind the items."""
        with progress(f"writing {self.target.name}", total=total, unit=unit, settings=self.settings) as bar:
            for item in items:
                yield item
                bar.advance(rows(item))

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The edges under the user's ids."""
        return self.shown(self.graph.edge_batches(self.columns), len, self.graph.edges)

    # ---- what formats ask for

    def integer_ids(self, what: str) -> None:
        """Refuse ids that are not whole numbers from 0."""
        ids = self.graph.store.ids
        if ids.kind == "string":
            raise UsageError(f"{what} has numbers for ids, but the ids of {self.graph.path} are strings")
        if ids.count and ids.of(int(ids.order.read(0, 1)[0])) < 0:
            smallest = ids.of(int(ids.order.read(0, 1)[0]))
            raise UsageError(f"the ids of {what} begin at 0, but {self.graph.path} has vertex {smallest}")

    def labels(self, what: str) -> np.ndarray:
        """Ids 1 to n for formats that know no others: the user's if they are just that, else their places in order."""
        graph, ids = self.graph, self.graph.store.ids
        if not self.renumber:
            ends = [ids.of(int(ids.order.read(at, at + 1)[0])) for at in (0, ids.count - 1)] if ids.count else []
            if ends and (ids.kind == "string" or ends != [1, ids.count]):
                shown = f"from {ends[0]} to {ends[1]}" if ids.kind != "string" else "strings"
                raise UsageError(
                    f"{what} numbers its vertices 1 to n, but the {ids.count} ids of {graph.path} are {shown}: pass "
                    "renumber=True (--renumber) to number them 1 to n in order of their ids, or export to .parquet"
                )
        labels = graph.ranks()
        labels += labels.dtype.type(1)
        return labels

    def one_column(self, what: str, allowed: Callable[[pa.DataType], bool], kinds: str) -> str | None:
        """The column that is written as the weight, None if there is none."""
        if len(self.columns) > 1:
            raise UsageError(
                f"{what} holds one column, not {', '.join(self.columns)}: choose one with columns= (--columns)"
            )
        if self.columns and not allowed(self.types[0]):
            raise UsageError(
                f"{what} holds {kinds}, but column {self.columns[0]!r} is {self.types[0]}: leave it out with "
                "columns=[], or give one number for all edges with weight= (--weight)"
            )
        return self.columns[0] if self.columns else None


def is_number(kind: pa.DataType) -> bool:
    return pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)


def is_whole(kind: pa.DataType) -> bool:
    return pa.types.is_integer(kind) or pa.types.is_boolean(kind)


__all__ = ["Job", "is_number", "is_whole"]
