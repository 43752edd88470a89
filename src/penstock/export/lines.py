"""Columns to lines of text: integers, numbers and strings side by side in one buffer, a batch at a time.

First the width of every line is added up, then each column is written where its field ends. Numbers read back bit
for bit: shortest digits that do, and never without a point, so that a float stays a float. float32 is written with
the digits of a double, because readers parse it as one.
"""

# Numba knows no membership in a tuple of mixed integers.
# ruff: noqa: PLR1714, SIM109

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.errors import UsageError
from penstock.memory.device import kernel

_PLAIN, _REAL, _QUOTED = 0, 1, 2
_QUOTE, _MINUS, _DOT, _ZERO, _NEWLINE, _RETURN = (ord(mark) for mark in '"-.0\n\r')
_BLANK, _TAB = ord(" "), ord("\t")
_PAIRS = np.frombuffer("".join(f"{pair:02}" for pair in range(100)).encode(), np.uint8)
_MARKS = np.frombuffer(b"#%/'", np.uint8)
"""What begins a comment, or a quotation, for some reader."""


@kernel()
def width_of(value):
    """Digits of an unsigned number."""
    count, limit, last = np.uint64(1), np.uint64(10), np.uint64(10**19)
    while value >= limit:
        count += np.uint64(1)
        if limit == last:
            break
        limit *= np.uint64(10)
    return count


@kernel()
def put(text, end, value):
    """Write an unsigned number that ends before `end`, two digits at a time; returns where it begins."""
    one, hundred = np.uint64(1), np.uint64(100)
    while value >= hundred:
        rest = value // hundred
        pair = (value - rest * hundred) << one
        end -= np.uint64(2)
        text[end] = _PAIRS[pair]
        text[end + one] = _PAIRS[pair + one]
        value = rest
    pair = value << one
    end -= one
    text[end] = _PAIRS[pair + one]
    if value >= np.uint64(10):
        end -= one
        text[end] = _PAIRS[pair]
    return end


@kernel()
def _integer_widths(values, widths):
    for i in range(values.size):
        value = values[i]
        if value < 0:
            widths[i] += width_of(np.uint64(0) - np.uint64(value)) + np.uint64(1)
        else:
            widths[i] += width_of(np.uint64(value))


@kernel()
def _write_integers(values, text, at, terminator):
    one = np.uint64(1)
    for i in range(values.size):
        value, place = values[i], at[i] - one
        text[place] = terminator
        size = np.uint64(value)
        if value < 0:
            place = put(text, place, np.uint64(0) - size) - one
            text[place] = _MINUS
        else:
            place = put(text, place, size)
        at[i] = place


@kernel()
def _is_whole(data, begin, end):
    """Whether the digits of a number lack point and exponent, and are digits at all."""
    whole = True
    for k in range(begin, end):
        whole &= data[k] == _MINUS or (data[k] >= 48 and data[k] <= 57)
    return whole


@kernel()
def _needs_quotes(data, begin, end, delimiter, marks):
    if begin == end:
        return True
    for k in range(marks.size):
        if data[begin] == marks[k]:
            return True
    for k in range(begin, end):
        c = data[k]
        if c == delimiter or c == _QUOTE or c == _BLANK or c == _TAB:
            return True
    return False


@kernel()
def _text_widths(offsets, data, kind, delimiter, marks, widths):
    """Adds the widths; returns the first row with a line break, or the number of rows."""
    for i in range(widths.size):
        begin, end = np.uint64(offsets[i]), np.uint64(offsets[i + 1])
        widths[i] += end - begin
        if kind == _REAL and _is_whole(data, begin, end):
            widths[i] += np.uint64(2)
        if kind == _QUOTED:
            for k in range(begin, end):
                if data[k] == _NEWLINE or data[k] == _RETURN:
                    return i
            if _needs_quotes(data, begin, end, delimiter, marks):
                widths[i] += np.uint64(2)
                for k in range(begin, end):
                    if data[k] == _QUOTE:
                        widths[i] += np.uint64(1)
    return widths.size


@kernel()
def _write_text(offsets, data, kind, delimiter, marks, text, at, terminator):
    one = np.uint64(1)
    for i in range(at.size):
        begin, end = np.uint64(offsets[i]), np.uint64(offsets[i + 1])
        place = at[i] - one
        text[place] = terminator
        if kind == _REAL and _is_whole(data, begin, end):
            place -= np.uint64(2)
            text[place] = _DOT
            text[place + one] = _ZERO
        quoted = kind == _QUOTED and _needs_quotes(data, begin, end, delimiter, marks)
        if quoted:
            place -= one
            text[place] = _QUOTE
        while end > begin:
            end -= one
            place -= one
            text[place] = data[end]
            if quoted and data[end] == _QUOTE:
                place -= one
                text[place] = _QUOTE
        if quoted:
            place -= one
            text[place] = _QUOTE
        at[i] = place


@kernel()
def _write_lead(lead, text, at):
    for i in range(at.size):
        for k in range(lead.size):
            text[at[i] - np.uint64(lead.size - k)] = lead[k]


def lines(columns: Sequence[pa.Array], names: Sequence[str], delimiter: str, lead: bytes = b"") -> np.ndarray:
    """The bytes of the rows of these columns; every line begins with `lead`."""
    rows, mark = len(columns[0]), np.uint8(ord(delimiter))
    fields = [_field(column, name) for column, name in zip(columns, names, strict=True)]
    widths = np.full(rows, len(fields) + len(lead), np.uint64)
    for field, column, name in zip(fields, columns, names, strict=True):
        if isinstance(field, np.ndarray):
            _integer_widths(field, widths)
            continue
        odd = _text_widths(*field, mark, _MARKS, widths)
        if odd < rows:
            raise UsageError(
                f"{name} {column[int(odd)].as_py()!r} has a line break, which a line of text cannot hold: "
                "export to .parquet or .arrow"
            )
    at = np.cumsum(widths, dtype=np.uint64)
    text = np.empty(int(at[-1]) if rows else 0, np.uint8)
    # From the last field to the first, each from its end: so no width is computed a second time.
    terminator = np.uint8(_NEWLINE)
    for field in reversed(fields):
        if isinstance(field, np.ndarray):
            _write_integers(field, text, at, terminator)
        else:
            _write_text(*field, mark, _MARKS, text, at, terminator)
        terminator = mark
    if lead:
        _write_lead(np.frombuffer(lead, np.uint8), text, at)
    return text


def _field(column: pa.Array, name: str) -> np.ndarray | tuple[np.ndarray, np.ndarray, int]:
    """Integers as they are; all else as (offsets, bytes, how to write it)."""
    kind = column.type
    if pa.types.is_integer(kind):
        wide = np.uint64 if pa.types.is_unsigned_integer(kind) else np.int64
        return np.asarray(column).astype(wide, copy=False)
    if pa.types.is_duration(kind):
        return np.asarray(column.view(pa.int64()))
    if pa.types.is_large_string(kind):
        return (*_buffers(column), _QUOTED)
    if pa.types.is_floating(kind):
        return (*_buffers(column.cast(pa.float64()).cast(pa.large_string())), _REAL)
    return (*_buffers(_iso(column, name)), _PLAIN)


def _iso(column: pa.Array, name: str) -> pa.Array:
    """Truth values and points in time. Arrow writes a blank where ISO 8601 has a T."""
    if pa.types.is_timestamp(column.type) and column.type.tz:
        column = column.view(pa.timestamp(column.type.unit, "UTC"))
    text = column.cast(pa.large_string())
    if pa.types.is_boolean(column.type):
        return text
    odd = pc.index(pc.starts_with(text, "<"), True).as_py()
    if odd >= 0:
        raise UsageError(f"a value of column {name!r} is no {column.type}: {text[odd].as_py()}; export to .parquet")
    return pc.replace_substring(text, " ", "T", max_replacements=1)


def _buffers(column: pa.Array) -> tuple[np.ndarray, np.ndarray]:
    _, offsets, data = column.buffers()
    ends = np.frombuffer(offsets, np.int64)[column.offset : column.offset + len(column) + 1]
    return ends, np.frombuffer(data or b"", np.uint8)


def header(names: Sequence[str], delimiter: str) -> bytes:
    """The line of column names."""
    marks = {delimiter, '"', "\n", "\r", " ", "\t"}
    quoted = ('"' + name.replace('"', '""') + '"' if marks & set(name) or not name else name for name in names)
    return (delimiter.join(quoted) + "\n").encode()


__all__ = ["header", "lines", "put", "width_of"]
