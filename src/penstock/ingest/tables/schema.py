"""Which columns of a table are the ends of an edge, which travel with it, and whether their types will do."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Self

import numpy as np
import pyarrow as pa
import pyarrow.types as pt

from penstock.errors import InputError, UsageError, meant
from penstock.ingest.source import storage_dtype

KNOWN_ENDS = (
    ("source", "target"),
    ("src", "dst"),
    ("from", "to"),
    ("source", "destination"),
    ("u", "v"),
    ("start", "end"),
)
"""Names of the two ends, tried in this order, in any case; a table with none of them gives its first two columns."""

# pandas keeps a frame's index in such a column; nobody means it as an edge attribute.
_INDEX = re.compile(r"__index_level_\d+__")


@dataclass(frozen=True)
class TableOptions:
    """How to read a table."""

    source: str | None = None
    target: str | None = None
    columns: Sequence[str] | None = None
    """Columns to keep besides the ends; None: all."""
    fill: Mapping[str, Any] = field(default_factory=dict)
    """Column to the value that stands in for null and NaN."""
    allow_nan: bool = False
    allow_empty: bool = False

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Self:
        """Options from keywords; None means the default, unknown names are refused."""
        known = {f.name for f in fields(cls)}
        for name in values:
            if name not in known:
                raise UsageError(f"there is no option {name!r} for tables; they take {', '.join(sorted(known))}")
        return cls(**{name: value for name, value in values.items() if value is not None})


@dataclass(frozen=True)
class Layout:
    """The roles of a table's columns."""

    source: str
    target: str
    columns: dict[str, pa.DataType]
    id_dtype: np.dtype | None
    """None: the ids are strings."""
    fill: dict[str, pa.Scalar]
    allow_nan: bool

    @property
    def names(self) -> list[str]:
        return list(dict.fromkeys([self.source, self.target, *self.columns]))


def layout(schema: pa.Schema, options: TableOptions, name: str) -> Layout:
    """The roles of the columns of `schema`, or one sentence on what is missing."""
    source, target = _ends(schema, options, name)
    if options.columns is None:
        extras = [c for c in dict.fromkeys(schema.names) if c not in (source, target) and not _INDEX.fullmatch(c)]
    else:
        extras = [options.columns] if isinstance(options.columns, str) else list(dict.fromkeys(options.columns))
    for column in (source, target, *extras):
        require(column, schema.names, name)
        if schema.names.count(column) > 1:
            raise InputError(f"there are {schema.names.count(column)} columns named {column!r}: rename them", path=name)
    columns = {column: _column_type(schema, column, options, name) for column in extras}
    return Layout(
        source,
        target,
        columns,
        _id_dtype(schema, source, target, name),
        fill_scalars(options.fill, columns, name),
        options.allow_nan,
    )


def require(column: str, names: Sequence[str], where: str) -> None:
    if column not in names:
        there = ", ".join(map(repr, names)) or "none"
        near = meant(column, names)
        raise InputError(f"there is no column {column!r}{near or ';'} the columns are {there}", path=where)


def fill_scalars(fill: Mapping[str, Any], columns: Mapping[str, pa.DataType], name: str) -> dict[str, pa.Scalar]:
    """The fill values in the types of their columns."""
    scalars = {}
    for column, value in fill.items():
        if column not in columns:
            there = ", ".join(map(repr, columns)) or "none"
            raise UsageError(f"{name}: fill names the column {column!r}, but the columns taken are {there}")
        try:
            # The command line has only words.
            words = isinstance(value, str) and not pa.types.is_string(columns[column])
            scalar = pa.scalar(value).cast(columns[column]) if words else pa.scalar(value, columns[column])
        except (pa.ArrowException, TypeError, ValueError, OverflowError):
            raise UsageError(f"{name}: fill value {value!r} is no {columns[column]}, the type of {column!r}") from None
        if not scalar.is_valid:
            raise UsageError(f"{name}: fill value of column {column!r} is null itself")
        scalars[column] = scalar
    return scalars


def value_type(kind: pa.DataType) -> pa.DataType:
    """What the values are, under dictionaries, runs and extension types."""
    while True:
        if pt.is_dictionary(kind) or pt.is_run_end_encoded(kind):
            kind = kind.value_type
        elif isinstance(kind, pa.BaseExtensionType):
            kind = kind.storage_type
        else:
            return kind


def is_string(kind: pa.DataType) -> bool:
    return pt.is_string(kind) or pt.is_large_string(kind) or pt.is_string_view(kind)


def _ends(schema: pa.Schema, options: TableOptions, name: str) -> tuple[str, str]:
    if (options.source is None) != (options.target is None):
        raise UsageError("give both source= and target=, or neither")
    if options.source is not None and options.target is not None:
        if options.source == options.target:
            raise UsageError(f"source and target are both {options.source!r}: an edge needs two columns")
        return options.source, options.target
    folded = {column.casefold(): column for column in reversed(schema.names)}
    for source, target in KNOWN_ENDS:
        if source in folded and target in folded:
            return folded[source], folded[target]
    usable = [column for column in schema.names if not _INDEX.fullmatch(column)]
    if len(usable) < 2:
        there = ", ".join(map(repr, schema.names)) or "none"
        raise InputError(f"an edge needs two columns, source and target; the columns are {there}", path=name)
    return usable[0], usable[1]


def _column_type(schema: pa.Schema, column: str, options: TableOptions, name: str) -> pa.DataType:
    kind = value_type(schema.field(column).type)
    if storage_dtype(kind) is None:
        advice = (
            "pass columns= with the columns to keep, or columns=() for none"
            if options.columns is None
            else "leave it out of columns=, or cast it to a number first"
        )
        raise InputError(
            f"column {column!r} is of type {kind}, and edge columns are integers, floats, bools, dates or timestamps",
            path=name,
            hint=advice,
        )
    return kind


def _id_dtype(schema: pa.Schema, source: str, target: str, name: str) -> np.dtype | None:
    kinds = []
    for column in (source, target):
        kind = value_type(schema.field(column).type)
        whole_decimal = pt.is_decimal(kind) and kind.scale <= 0
        if not (is_string(kind) or pt.is_integer(kind) or pt.is_floating(kind) or whole_decimal or pt.is_null(kind)):
            raise InputError(f"column {column!r} is of type {kind}, ids must be integers or strings", path=name)
        kinds.append(kind)
    if is_string(kinds[0]) != is_string(kinds[1]):
        words = [f"{column!r} is {kind}" for column, kind in zip((source, target), kinds, strict=True)]
        raise InputError(f"ids are of two kinds: column {' and '.join(words)}: cast both to one", path=name)
    if is_string(kinds[0]):
        return None
    if any(pt.is_uint64(kind) for kind in kinds):
        return np.dtype(np.uint64)
    return np.dtype(np.uint32 if all(pt.is_unsigned_integer(kind) for kind in kinds) else np.int64)


__all__ = ["Layout", "TableOptions", "fill_scalars", "is_string", "layout", "require", "value_type"]
