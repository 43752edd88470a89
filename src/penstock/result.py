"""What an algorithm returns: one or more values per vertex, under the user's ids, and how the run went."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping
from enum import Enum
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.errors import UsageError, meant
from penstock.networks import annotate
from penstock.rows import Rows
from penstock.store.arrow import plain_array
from penstock.store.ids import Ids
from penstock.vector import Vector

BATCH = 1 << 16
_PIECE = 1 << 20
"""Values looked at together when the largest are wanted."""
_FEW = 256
"""Rows whose string ids are read one by one rather than with all others."""


class Marker(Enum):
    """Values that stand for something of the vertex itself."""

    SELF = "self"


SELF = Marker.SELF
"""The value that isolated vertices share in a column of references when each refers to itself."""


class Result(Rows):
    """Values by internal number for the first, active vertices, and one value that the isolated ones after them
    share; None: they have none. Rows come in order of ids.

    nulls       the value of a column that means null
    references  the columns whose values are internal numbers; they are shown as the user's ids
    exceptions  isolated vertices, by number, that differ from the others in some columns
    subset      the numbers of the vertices that are rows; without it, all are
    types       how columns are shown that are held in a narrower type
    """

    def __init__(
        self,
        ids: Ids,
        values: Mapping[str, np.ndarray],
        isolated: Mapping[str, Any],
        stats: Mapping[str, Any],
        *,
        nulls: Mapping[str, Any] | None = None,
        references: Collection[str] = (),
        exceptions: Mapping[int, Mapping[str, Any]] | None = None,
        subset: np.ndarray | None = None,
        types: Mapping[str, str] | None = None,
    ) -> None:
        self._ids, self._values, self._isolated = ids, dict(values), dict(isolated)
        self._nulls, self._references = dict(nulls or {}), frozenset(references)
        self._exceptions = {int(number): dict(row) for number, row in (exceptions or {}).items()}
        self._odd = np.array(sorted(self._exceptions), np.uint64)
        self._subset = None if subset is None else np.unique(np.asarray(subset, np.uint64))
        self._types = {name: np.dtype(kind) for name, kind in (types or {}).items()}
        self.stats = dict(stats)
        self.edges: Rows | None = None
        """What the arcs kept, of a program with `edge_state`: source, target, its fields."""

    def __len__(self) -> int:
        return self._ids.count if self._subset is None else len(self._subset)

    def __repr__(self) -> str:
        return f"<penstock.Result: {', '.join(self._values)} of {len(self)} vertices>"

    @property
    def schema(self) -> pa.Schema:
        return pa.schema([("vertex", self._ids.arrow_type), *((name, self._type(name)) for name in self._values)])

    @property
    def references(self) -> frozenset[str]:
        """The columns that hold vertices."""
        return self._references

    def _type(self, name: str) -> pa.DataType:
        if name in self._references:
            return self._ids.arrow_type
        return pa.from_numpy_dtype(self._types.get(name, self._values[name].dtype))

    # ---- rows

    def batches(self, size: int = BATCH) -> Iterator[pa.RecordBatch]:
        """The result as a stream: nothing but one batch and the ids is held."""
        if size < 1:
            raise UsageError(f"a batch holds at least one row, not {size}")
        return self._batches(size)

    def _batches(self, size: int) -> Iterator[pa.RecordBatch]:
        users = self._ids.all() if self._subset is None or len(self._subset) > _FEW else None
        chosen = None if self._subset is None else self._by_id(self._subset, users)
        for at in range(0, len(self), size):
            numbers = self._ids.order.read(at, at + size) if chosen is None else chosen[at : at + size]
            yield self._rows(numbers, users)

    def _by_id(self, numbers: np.ndarray, users: pa.Array | None) -> np.ndarray:
        """The numbers in order of their ids."""
        import pyarrow.compute as pc

        return numbers[pc.sort_indices(self._users(numbers, users)).to_numpy()]

    def _rows(self, numbers: np.ndarray, users: pa.Array | None) -> pa.RecordBatch:
        columns = (self._column(name, numbers, users) for name in self._values)
        return pa.record_batch([self._users(numbers, users), *columns], schema=self.schema)

    def _column(self, name: str, numbers: np.ndarray, users: pa.Array | None) -> pa.Array:
        values, valid = self._held(name, numbers)
        if name in self._references:
            return self._users(values, users, valid)
        kind = self._types.get(name, values.dtype)
        return plain_array(values.astype(kind, copy=False), None if valid.all() else valid)

    def _held(self, name: str, numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The values of these vertices as they are held, and which of them are not null. What is null holds 0."""
        values, shared = self._values[name], self._isolated[name]
        result, valid = np.zeros(len(numbers), values.dtype), np.ones(len(numbers), bool)
        active = numbers < len(values)
        result[active] = values[numbers[active]]
        if shared is None:
            valid[~active] = False
        else:
            result[~active] = numbers[~active] if shared is SELF else shared
        for at in np.flatnonzero(np.isin(numbers, self._odd)) if len(self._odd) else ():
            value = self._exceptions[int(numbers[at])].get(name, shared)
            valid[at] = value is not None
            result[at] = 0 if value is None else numbers[at] if value is SELF else value
        if name in self._nulls:
            null = self._nulls[name]
            valid &= ~np.isnan(result) if null != null else result != null  # noqa: PLR0124
        result[~valid] = 0
        return result, valid

    def pieces_of(self, name: str) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """A column by internal number, some vertices at a time: values as they are held, and which are not null."""
        for at in range(0, len(self), _PIECE):
            end = min(at + _PIECE, len(self))
            chosen = np.arange(at, end, dtype=np.uint64) if self._subset is None else self._subset[at:end]
            yield self._held(name, chosen)

    def _users(self, numbers: np.ndarray, users: pa.Array | None = None, valid: np.ndarray | None = None) -> pa.Array:
        """The ids of these vertices; out of `users` if all ids are at hand."""
        ids = self._ids
        valid = None if valid is None or valid.all() else valid
        if users is None and ids.kind != "string":
            return plain_array(ids.values.at(numbers), valid)
        if users is None and len(numbers) <= _FEW:
            known = np.ones(len(numbers), bool) if valid is None else valid
            found = [ids.of(int(number)) if some else None for number, some in zip(numbers, known, strict=True)]
            return pa.array(found, ids.arrow_type)
        return (ids.all() if users is None else users).take(plain_array(numbers, valid))

    def to_dict(self) -> dict[Any, Any]:
        """vertex -> value (or a tuple of values)."""
        table = self.table
        ids, *columns = (column.to_pylist() for column in table.columns)
        return dict(zip(ids, columns[0] if len(columns) == 1 else zip(*columns, strict=True), strict=True))

    def to_networkx(self, graph: Any = None) -> Any:
        """A NetworkX graph whose nodes carry the values as attributes: the one given, or else one made of the graph
        that they were computed on."""
        return annotate(self._network() if graph is None else graph, self.batches())

    def vector(self, name: str | None = None, *, order: str = "id", fill: Any = None) -> Vector:
        """A column as one array, in the order of the rows; `vertex` is the ids. `fill` stands for null, for which
        real numbers have NaN. With `order="number"` it comes as it is held, most arcs first: without a copy, if every
        vertex has arcs."""
        name = name or next(iter(self._values))
        if name != "vertex":
            self._require(name)
        if order not in ("id", "number"):
            raise UsageError(f"order must be id or number, not {order!r}")
        if self._ids.kind == "string" and (name == "vertex" or name in self._references):
            raise UsageError(f"column {name!r} holds strings, of which no array can be shared: take it from the table")
        if order == "number" and self._as_held(name):
            return Vector(name, self._values[name])
        chosen = self._by_id(self._subset, None) if order == "id" and self._subset is not None else self._subset
        found = np.empty(len(self), self._piece(name, np.zeros(0, np.uint64))[0].dtype)
        for at in range(0, len(self), _PIECE):
            if chosen is not None:
                numbers = chosen[at : at + _PIECE]
            elif order == "id":
                numbers = self._ids.order.read(at, at + _PIECE)
            else:
                numbers = np.arange(at, min(at + _PIECE, len(self)), dtype=np.uint64)
            values, valid = self._piece(name, numbers)
            if not valid.all():
                values[~valid] = self._for_null(name, values.dtype, fill)
            found[at : at + len(values)] = values
        return Vector(name, found)

    def _as_held(self, name: str) -> bool:
        values = self._values.get(name)
        changed = name in self._references or name in self._nulls or len(self._odd) or self._subset is not None
        return values is not None and not changed and len(values) == len(self) and name not in self._types

    def _piece(self, name: str, numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The values of these vertices as they are shown, and which of them are not null."""
        if name == "vertex":
            return self._ids.values.at(numbers), np.ones(len(numbers), bool)
        values, valid = self._held(name, numbers)
        if name in self._references:
            return self._ids.values.at(values), valid
        return values.astype(self._types.get(name, values.dtype), copy=False), valid

    @staticmethod
    def _for_null(name: str, dtype: np.dtype, fill: Any) -> Any:
        if fill is not None:
            return fill
        if dtype.kind == "f":
            return np.nan
        raise UsageError(f"column {name!r} has nulls, which an array of {dtype} has not: say fill=-1, or another value")

    def _require(self, name: str) -> None:
        if name not in self._values:
            near = meant(name, self._values)
            raise UsageError(f"the result has no column {name!r}{near or ';'} it has {', '.join(self._values)}")

    def plot(
        self, path: str | os.PathLike[str] | None = None, column: str | None = None, *, overwrite: bool = False
    ) -> Any:
        """How the values are distributed, as .png, .svg or .pdf; without a path, the matplotlib figure."""
        from penstock.plots.kinds import Subject, picture
        from penstock.plots.style import check_ending, save

        if path is not None:
            check_ending(path)
        name = self.stats.get("algorithm", "result")
        graph = self.graph if self.graph is not None and self.graph.is_open else None
        found = picture("values", Subject(name, graph, self), column=column)
        return found if path is None else save(found, path, overwrite=overwrite)

    # ---- the largest

    def top(self, k: int = 10, by: str | None = None) -> pa.Table:
        """The k vertices of the largest value; ties go to the smaller internal number, which has more arcs. NaN and
        null come last, in this order."""
        name = by or next(iter(self._values))
        self._require(name)
        if name in self._references:
            others = [f"by={other!r}" for other in self._values if other not in self._references]
            hint = f": choose {' or '.join(others)}" if others else ""
            raise UsageError(f"column {name!r} holds vertices, of which none is the largest{hint}")
        if k < 0:
            raise UsageError(f"top takes a number of rows, not {k}")
        best = np.zeros(0, np.uint64)
        for piece in self._pieces(k):
            numbers = np.concatenate([best, piece])
            best = numbers[_largest(*self._held(name, numbers), k)]
        return pa.Table.from_batches([self._rows(best, None)])

    def _pieces(self, k: int) -> Iterator[np.ndarray]:
        """The numbers of all vertices that may be among the k largest of something, ascending."""
        if self._subset is not None:
            yield from (self._subset[at : at + _PIECE] for at in range(0, len(self._subset), _PIECE))
            return
        active = max((len(values) for values in self._values.values()), default=0)
        for at in range(0, active, _PIECE):
            yield np.arange(at, min(at + _PIECE, active), dtype=np.uint64)
        # All but the exceptions are alike: k of them are enough.
        end = min(len(self), active + k + len(self._odd))
        yield np.arange(active, max(active, end), dtype=np.uint64)
        yield self._odd[self._odd >= end]


def _largest(values: np.ndarray, valid: np.ndarray, k: int) -> np.ndarray:
    """Positions of the k largest values, largest first; of equal ones the first. NaN is less than every number, and
    what is not valid comes after NaN."""
    known = np.flatnonzero(valid)
    chosen = known[_largest_known(values[known], k)]
    return np.concatenate([chosen, np.flatnonzero(~valid)[: k - len(chosen)]])


def _largest_known(values: np.ndarray, k: int) -> np.ndarray:
    # Negation overflows in integers and does not exist for bool; the complement turns the order of both around.
    falling = -values if values.dtype.kind == "f" else ~values
    if k < len(falling):
        if k == 0:
            return np.zeros(0, np.int64)
        bound = np.partition(falling, k - 1)[k - 1]
        if bound != bound:  # noqa: PLR0124  NaN: everything else is larger
            better, equal = ~np.isnan(falling), np.isnan(falling)
        else:
            better, equal = falling < bound, falling == bound
        sure = np.flatnonzero(better)
        chosen = np.sort(np.concatenate([sure, np.flatnonzero(equal)[: k - len(sure)]]))
    else:
        chosen = np.arange(len(falling))
    return chosen[np.argsort(falling[chosen], kind="stable")]


__all__ = ["BATCH", "SELF", "Result"]
