"""What a line of a file holds: delimiter, comments, which fields are ids and which are columns."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from penstock.errors import UsageError

COMMENTS = ("#", "%", "//")
NULLS = frozenset({b"", b"na", b"n/a", b"nan", b"null", b"none", b"\\n", b"-nan", b"<na>"})
INTEGER = re.compile(rb"[+-]?[0-9]+")
NUMBER = re.compile(rb"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?|[+-]?inf(inity)?", re.IGNORECASE)
TRUTH = {b"true": 1, b"t": 1, b"1": 1, b"false": 0, b"f": 0, b"0": 0}


@dataclass(frozen=True)
class Column:
    """An edge (or vertex) column: the field it stands in and its type."""

    field: int
    type: pa.DataType


@dataclass(frozen=True)
class Layout:
    """One line of the file, field by field."""

    fields: int
    source: int = 0
    target: int | None = 1
    columns: Mapping[str, Column] = field(default_factory=dict)
    delimiter: str | None = None
    """None: runs of blanks and tabs."""
    comments: tuple[str, ...] = ()
    string_ids: bool = False
    fill: Mapping[str, float] = field(default_factory=dict)
    tag: str | None = None
    """The letter the first field must be."""
    lowest: int | None = None
    highest: int | None = None
    """The ids the format allows."""
    bounds: str = "ids of this format"
    """What to call the allowed ids when one is outside."""

    def is_row(self, line: bytes) -> bool:
        """Neither blank nor a comment."""
        text = line.strip(b" \r" if self.delimiter == "\t" else b" \t\r")
        return bool(text) and not text.startswith(tuple(mark.encode() for mark in self.comments))

    def split(self, line: bytes) -> list[bytes]:
        """The fields of a line as the kernels see them."""
        return split_line(line, self.delimiter, self.comments)

    def field_name(self, index: int) -> str:
        """What messages call a field."""
        if index == self.source:
            return "source" if self.target is not None else "id"
        if index == self.target:
            return "target"
        for name, column in self.columns.items():
            if column.field == index:
                return name
        return f"field {index + 1}"


def comment_marks(comment: str | Sequence[str] | None) -> tuple[str, ...]:
    """The `comment=` option as a tuple of prefixes."""
    marks = () if not comment else (comment,) if isinstance(comment, str) else tuple(comment)
    for mark in marks:
        if not 1 <= len(mark) <= 2 or not mark.isascii() or mark.isspace():
            raise UsageError(f"comment={mark!r}: a comment begins with one or two ASCII characters")
    return marks


def delimiter_mark(delimiter: str) -> str | None:
    """The `delimiter=` option: one ASCII character, or None for runs of blanks."""
    if delimiter in ("whitespace", " ", ""):
        return None
    named = {"comma": ",", "tab": "\t", "\\t": "\t", "semicolon": ";", "pipe": "|"}.get(delimiter, delimiter)
    if len(named) != 1 or not named.isascii() or named.isalnum() or named in '\n\r"-+.':
        raise UsageError(f"delimiter={delimiter!r}: give one ASCII character such as ',', '\\t', ';' or '|'")
    return named


def split_line(line: bytes, delimiter: str | None, comments: Sequence[str] = ()) -> list[bytes]:
    """The fields of a line, unquoted; used for the first lines and for the one that is wrong."""
    fields: list[bytes] = []
    blanks = b" \r" if delimiter == "\t" else b" \t\r"
    marks = tuple(mark.encode() for mark in comments)
    mark = delimiter.encode() if delimiter else None
    at, line = 0, line.rstrip(b"\r\n")
    while True:
        while at < len(line) and line[at : at + 1] in (b" ", b"\t", b"\r") and line[at : at + 1] != mark:
            at += 1
        if mark is None and (at >= len(line) or (fields and marks and line.startswith(marks, at))):
            return fields
        if line[at : at + 1] == b'"':
            quoted = re.compile(rb'"((?:[^"]|"")*)"?').match(line, at)
            assert quoted is not None
            text, at = quoted[1].replace(b'""', b'"'), quoted.end()
        else:
            text = b""
        if mark is None:
            stop = at
            while stop < len(line) and line[stop] not in b" \t\r":
                stop += 1
        else:
            stop = line.find(mark, at)
            stop = len(line) if stop < 0 else stop
        fields.append(text + line[at:stop].strip(blanks))
        at = stop + 1
        if stop >= len(line):
            return fields


def column_type(name: str, spec: str | pa.DataType) -> pa.DataType:
    """The `types=` option: an Arrow type or its name."""
    from penstock.ingest.source import storage_dtype

    names = {"float32": pa.float32(), "float64": pa.float64(), "float": pa.float64(), "double": pa.float64()}
    names |= {"int": pa.int64(), "integer": pa.int64(), "long": pa.int64(), "real": pa.float64(), "bool": pa.bool_()}
    names |= {"boolean": pa.bool_(), "timestamp": pa.timestamp("us"), "datetime": pa.timestamp("us")}
    try:
        if isinstance(spec, str):
            unit = re.fullmatch(r"timestamp\[(s|ms|us|ns)(?:, *tz=(.+))?\]", spec)
            kind = pa.timestamp(unit[1], unit[2]) if unit else names.get(spec) or pa.type_for_alias(spec)
        else:
            kind = pa.from_numpy_dtype(spec) if not isinstance(spec, pa.DataType) else spec
    except (ValueError, TypeError, pa.ArrowException):
        raise UsageError(f"types: {spec!r} of column {name!r} is not a type; write int64, float32, bool, ...") from None
    plain = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)
    if storage_dtype(kind) is None or not (plain or pa.types.is_timestamp(kind)):
        raise UsageError(f"types: column {name!r} cannot be {kind}: use integers, floats, bool or timestamps")
    return kind


__all__ = [
    "COMMENTS",
    "INTEGER",
    "NULLS",
    "NUMBER",
    "TRUTH",
    "Column",
    "Layout",
    "column_type",
    "comment_marks",
    "delimiter_mark",
    "split_line",
]
