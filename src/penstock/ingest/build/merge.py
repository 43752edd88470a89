"""Equal edges brought together by sorting, and made one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import TracebackType
from typing import Any, Self

import numpy as np

from penstock.errors import InputError
from penstock.ingest.build import arcs
from penstock.ingest.build.log import Piece
from penstock.memory.spill import Spill
from penstock.sorting.external import ExternalSorter
from penstock.sorting.partition import gather

PIECE = 1 << 20
MANY = 1 << 16
"""Values that are worth all threads, and a kernel of their type."""
Row = tuple[int, dict[str, Any]]
"""A key and its column values."""


class EdgeMerger:
    """Takes edges in any order; gives each once, its columns combined by `rules`. Edges come in no order."""

    def __init__(
        self,
        spill: Spill,
        columns: Mapping[str, np.dtype],
        rules: Mapping[str, str],
        *,
        domain: int,
        symmetric: bool,
        drop_loops: bool,
        memory: int,
        threads: int,
        expected: int | None,
    ) -> None:
        self._names, self._threads = list(columns), threads
        self._rules = {name: arcs.RULES[rules[name]] for name in columns}
        self._bits = max(1, (domain - 1).bit_length())
        self._symmetric, self._drop_loops = symmetric, drop_loops
        self._sorter = ExternalSorter(
            spill, memory=memory, threads=threads, payload=columns, expected=expected, grouping=True, name="merge"
        )

    @property
    def count(self) -> int:
        """Edges taken in so far, dropped loops left out."""
        return self._sorter.count

    def add(self, source: np.ndarray, target: np.ndarray, columns: Mapping[str, np.ndarray]) -> None:
        """Take edges in; in a symmetric graph (u, v) and (v, u) are the same one."""
        at = 0
        while at < len(source):
            room, fields = self._sorter.room()
            take = min(len(room), len(source) - at, PIECE)
            part = slice(at, at + take)
            kept = np.empty(take if self._names else 0, np.uint32)
            count = int(
                arcs.edge_keys(
                    source[part], target[part], self._bits, self._symmetric, self._drop_loops, room, kept, self._threads
                )
            )
            for field, name in zip(fields, self._names, strict=True):
                values, places = columns[name][part], kept[:count]
                if count < MANY:
                    field[:count] = values[places]
                else:
                    gather(values, places, field[:count])
            self._sorter.advance(count)
            at += take

    def edges(self) -> Iterator[tuple[int, Piece]]:
        """The merged edges, and how many were looked at for each piece of them."""
        pending: Row | None = None
        for keys, payload in self._sorter.sorted():
            looked = len(keys)
            merged, pending = self._merge(keys, payload, pending)
            for piece in merged:
                yield looked, piece
                looked = 0
        if pending is not None:
            yield 0, self._single(pending)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self._sorter.close()

    def _merge(
        self, keys: np.ndarray, payload: Mapping[str, np.ndarray], pending: Row | None
    ) -> tuple[Iterator[Piece], Row | None]:
        """Merge one run. Its last edge waits: the next run may go on with the same one."""
        if not len(keys):
            return iter(()), pending
        for name, values in payload.items():
            _merge_column(name, keys, values, self._rules[name])
        count = int(arcs.unique_keys(keys))
        columns = {name: values[:count] for name, values in payload.items()}
        before: Row | None = None
        if pending is not None:
            if pending[0] == int(keys[0]):
                for name, column in columns.items():
                    column[0] = _combine(name, self._rules[name], pending[1][name], column[0])
            else:
                before = pending
        waits = int(keys[count - 1]), {name: column[-1] for name, column in columns.items()}
        return self._pieces(keys[: count - 1], columns, before), waits

    def _pieces(self, keys: np.ndarray, columns: Mapping[str, np.ndarray], before: Row | None) -> Iterator[Piece]:
        if before is not None:
            yield self._single(before)
        for at in range(0, len(keys), PIECE):
            part = slice(at, min(at + PIECE, len(keys)))
            yield *self._split(keys[part]), {name: column[part] for name, column in columns.items()}

    def _split(self, keys: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        source, target = np.empty(len(keys), np.uint32), np.empty(len(keys), np.uint32)
        arcs.split_keys(keys, self._bits, source, target)
        return source, target

    def _single(self, row: Row) -> Piece:
        key, values = row
        return *self._split(np.array([key], np.uint64)), {name: np.array([value]) for name, value in values.items()}


def merged_type(kind: str, rule: str) -> str:
    """Sums are kept in the widest type of their kind, so that they do not overflow where the summands just fit."""
    if rule != "sum" or kind.startswith("duration"):
        return kind
    if kind.startswith(("timestamp", "date", "time")) or kind == "bool":
        raise InputError(f"a column of type {kind} cannot be summed", hint="merge='first', 'min' or 'max'")
    return "double" if kind in ("float", "double") else "uint64" if kind.startswith("uint") else "int64"


def _combine(name: str, rule: int, a: np.generic, b: np.generic) -> Any:
    """What `merge_column` makes of two values."""
    pair = np.array([a, b])
    _merge_column(name, np.zeros(2, np.uint64), pair, rule)
    return pair[0]


def _merge_column(name: str, keys: np.ndarray, values: np.ndarray, rule: int) -> None:
    kind = values.dtype
    low, high = (-np.inf, np.inf) if kind.kind == "f" else (np.iinfo(kind).min, np.iinfo(kind).max)
    if arcs.merge_column(keys, values, rule, kind.type(low), kind.type(high)):
        raise InputError(
            f"the values of column {name} in equal edges add up to more than {kind} holds",
            hint="make the column floating, or merge='first', 'min' or 'max'",
        )
