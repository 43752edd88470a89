"""Lines of text into arrays, by the kernels; and the sentence for the line that is wrong."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from penstock.ingest.source import Ids, storage_dtype
from penstock.ingest.text import tokens
from penstock.ingest.text.decimal import FIVES
from penstock.ingest.text.layout import INTEGER, NULLS, NUMBER, Layout

_SLOW_FIELDS = 256
_SPAN_BYTES = 14
"""Start, length, Arrow offset and the text itself."""


class BadRow(Exception):
    """Row `row` of a block cannot be read."""

    def __init__(self, row: int, reason: str, hint: str | None = None) -> None:
        super().__init__(reason)
        self.row, self.reason, self.hint = row, reason, hint


@dataclass
class Rows:
    """What a block holds. Integer ids are int64, or uint64 in a block with one above int64."""

    source: Ids
    target: Ids
    columns: dict[str, np.ndarray] = field(default_factory=dict)
    negative: int = 0
    big: int = 0
    """The first row with a negative id and with one above int64, plus one; 0: there is none."""

    def __len__(self) -> int:
        return len(self.source)


def _kind(kind: pa.DataType) -> int:
    if pa.types.is_boolean(kind):
        return tokens.BOOLEAN
    if pa.types.is_timestamp(kind):
        return tokens.SPAN
    if pa.types.is_floating(kind):
        return tokens.REAL
    return tokens.UNSIGNED if pa.types.is_uint64(kind) else tokens.INTEGER


def quote(token: bytes) -> str:
    """A field in a message: readable, not too long."""
    text = token.decode("utf-8", "backslashreplace")
    text = text if len(text) <= 40 else text[:37] + "..."
    return f"'{text}'" if not text.isprintable() or " " in text or not text else text


class RowParser:
    """Parses blocks of one layout; shared by the worker threads.

    `overhead` is the bytes needed per byte of text where lines are shortest, two per field.
    """

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        kinds = np.full(layout.fields, tokens.SKIP, np.uint8)
        slots = np.zeros(layout.fields, np.int64)
        counts = {"integers": 0, "reals": 0, "spans": 0}
        homes = {tokens.REAL: "reals", tokens.SPAN: "spans"}

        def place(at: int, kind: int) -> None:
            home = homes.get(kind, "integers")
            kinds[at], slots[at] = kind, counts[home]
            counts[home] += 1

        if layout.tag:
            kinds[0] = tokens.TAG
        identifier = tokens.SPAN if layout.string_ids else tokens.IDENTIFIER
        place(layout.source, identifier)
        if layout.target is not None:
            place(layout.target, identifier)
        for column in layout.columns.values():
            place(column.field, _kind(column.type))
        self.kinds, self.slots, self.counts = kinds, slots, counts
        self.marks = np.zeros((len(layout.comments), 2), np.uint8)
        for k, mark in enumerate(layout.comments):
            self.marks[k, : len(mark)] = list(mark.encode())
        self.delimiter = ord(layout.delimiter) if layout.delimiter else 0
        self.tag = ord(layout.tag) if layout.tag else 0
        row = 8 * (counts["integers"] + counts["reals"]) + _SPAN_BYTES * counts["spans"]
        self.overhead = 1 + row / (2 * layout.fields)
        self.pairs = layout.fields == 2 and not layout.string_ids and layout.source == 0 and layout.target == 1

    def parse(self, buffer: np.ndarray, begin: int, end: int) -> Rows:
        """The rows of the lines in buffer[begin:end], whose last byte is a newline. Raises BadRow."""
        limit = tokens.count_lines(buffer, begin, end)
        integers = np.empty((self.counts["integers"], limit), np.uint64)
        reals = np.empty((self.counts["reals"], limit), np.float64)
        starts = np.empty((self.counts["spans"], limit), np.uint32)
        lengths = np.empty((self.counts["spans"], limit), np.int32)
        room = _SLOW_FIELDS
        while True:
            state = np.zeros(tokens.STATE_SIZE, np.int64)
            slow = np.empty((room, 4), np.int64)
            where = (buffer, np.uint64(begin), np.uint64(end))
            rest = (
                self.delimiter, self.marks, self.kinds, self.slots, self.tag,
                integers, reals, reals.view(np.uint64), starts, lengths, slow, FIVES, state,
            )  # fmt: skip
            if self.pairs:
                tokens.parse_pairs(*where, *rest)
            else:
                tokens.parse_rows(*where, np.uint64(limit), *rest)
            if state[tokens.SLOW] <= room:
                break
            room = int(state[tokens.SLOW]) + _SLOW_FIELDS
        for row, at, start, stop in slow[: state[tokens.SLOW]].tolist():
            self._settle(row, at, buffer[start:stop].tobytes(), integers, reals, state)
        rows = int(state[tokens.ROWS])
        if state[tokens.CODE] != tokens.FINE:
            at = int(state[tokens.ERROR_AT])
            line = buffer[at:end].tobytes().split(b"\n", 1)[0].removesuffix(b"\r")
            raise BadRow(rows, *self._explain(line, int(state[tokens.CODE]), int(state[tokens.ERROR_FIELD])))
        return self._collect(buffer, rows, integers, reals, starts, lengths, state)

    def _collect(
        self,
        buffer: np.ndarray,
        rows: int,
        integers: np.ndarray,
        reals: np.ndarray,
        starts: np.ndarray,
        lengths: np.ndarray,
        state: np.ndarray,
    ) -> Rows:
        layout, slots = self.layout, self.slots
        negative, big = int(state[tokens.NEGATIVE]), int(state[tokens.BIG])
        ends = [layout.source] if layout.target is None else [layout.source, layout.target]
        ids: list[Ids] = []
        if layout.string_ids:
            for at in ends:
                slot = slots[at]
                ids.append(self._strings(buffer, starts[slot, :rows], lengths[slot, :rows], at))
        else:
            ids = [integers[slots[at], :rows].view(np.uint64 if big else np.int64) for at in ends]
            self._check_ids([np.asarray(values) for values in ids], negative, big)
        columns = {}
        for name, column in layout.columns.items():
            slot = slots[column.field]
            kind = _kind(column.type)
            if kind == tokens.REAL:
                columns[name] = self._reals(name, column.type, reals[slot, :rows])
            elif kind == tokens.SPAN:
                columns[name] = self._timestamps(name, column.type, buffer, starts[slot, :rows], lengths[slot, :rows])
            else:
                columns[name] = self._integers(name, column.type, integers[slot, :rows])
        return Rows(ids[0], ids[-1], columns, negative, big)

    def _check_ids(self, ids: list[np.ndarray], negative: int, big: int) -> None:
        layout = self.layout
        if negative and big:
            raise BadRow(max(negative, big) - 1, *MIXED)
        for low, limit in ((True, layout.lowest), (False, layout.highest)):
            if limit is None or (low and limit == 0 and not negative):
                continue
            for values in ids:
                if not len(values) or (values.min() >= limit if low else values.max() <= limit):
                    continue
                row = int(np.argmax(values < limit if low else values > limit))
                raise BadRow(row, f"id {values[row]} is outside {layout.bounds}")

    def _strings(self, buffer: np.ndarray, starts: np.ndarray, lengths: np.ndarray, at: int) -> pa.Array:
        rows = len(starts)
        if rows and not lengths.all():
            raise BadRow(int(np.argmin(lengths != 0)), f"the {self.layout.field_name(at)} id is empty")
        strings = _arrow_strings(buffer, starts, lengths)
        try:
            strings.validate(full=True)
        except pa.ArrowInvalid:
            for row in range(rows):
                text = _span(buffer, starts, lengths, row)
                try:
                    text.decode()
                except UnicodeDecodeError:
                    reason = f"the {self.layout.field_name(at)} id {quote(text)} is not UTF-8"
                    raise BadRow(row, reason, "convert the file to UTF-8") from None
        return strings

    def _integers(self, name: str, kind: pa.DataType, words: np.ndarray) -> np.ndarray:
        dtype = storage_dtype(kind)
        assert dtype is not None
        if dtype == np.uint64:
            return words
        values = words.view(np.int64)
        if dtype != np.int64 and len(values) and not pa.types.is_boolean(kind):
            bounds = np.iinfo(dtype)
            if values.min() < bounds.min or values.max() > bounds.max:
                row = int(np.argmax((values < bounds.min) | (values > bounds.max)))
                raise BadRow(row, f"column '{name}': {values[row]} does not fit {kind}", wider(name, "int64"))
        return values.astype(dtype, copy=False)

    def _reals(self, name: str, kind: pa.DataType, values: np.ndarray) -> np.ndarray:
        dtype = storage_dtype(kind)
        assert dtype is not None
        if dtype == np.float64:
            return values
        with np.errstate(over="ignore"):
            narrow = values.astype(dtype)
        lost = np.isinf(narrow) & np.isfinite(values)
        if lost.any():
            row = int(np.argmax(lost))
            raise BadRow(row, f"column '{name}': {values[row]} does not fit {kind}", wider(name, "float64"))
        return narrow

    def _timestamps(
        self, name: str, kind: pa.DataType, buffer: np.ndarray, starts: np.ndarray, lengths: np.ndarray
    ) -> np.ndarray:
        strings = _arrow_strings(buffer, starts, lengths)
        try:
            return cast_timestamps(strings, kind)
        except (pa.ArrowInvalid, UnicodeDecodeError):
            pass
        values = np.empty(len(strings), np.int64)
        for row in range(len(strings)):  # some value is odd: which one?
            token = _span(buffer, starts, lengths, row)
            if token.lower() in NULLS:
                values[row] = self._fill(row, name)
                continue
            try:
                values[row] = cast_timestamps(strings.slice(row, 1), kind)[0]
            except (pa.ArrowInvalid, UnicodeDecodeError):
                reason = f"column '{name}': {quote(token)} is not a {kind}, as 2024-01-31T12:00:00"
                raise BadRow(row, reason) from None
        return values

    def _fill(self, row: int, name: str) -> float:
        if name not in self.layout.fill:
            raise BadRow(row, f"column '{name}' is empty or NaN here", f"give fill={{'{name}': VALUE}}")
        return self.layout.fill[name]

    def _settle(
        self, row: int, at: int, token: bytes, integers: np.ndarray, reals: np.ndarray, state: np.ndarray
    ) -> None:
        """A field the kernel left to us."""
        layout, kind, slot = self.layout, self.kinds[at], self.slots[at]
        token = token.strip()
        if kind == tokens.IDENTIFIER:
            value = int(token) if INTEGER.fullmatch(token) else None
            if value is None or not -(2**63) <= value < 2**64:
                raise BadRow(row, *self._bad_id(token))
            integers[slot, row] = value % 2**64
            for key, odd in ((tokens.NEGATIVE, value < 0), (tokens.BIG, value >= 2**63)):
                if odd and not 0 < state[key] <= row + 1:
                    state[key] = row + 1
            return
        name = layout.field_name(at)
        if token.lower() in NULLS:
            filled = self._fill(row, name)
            if kind == tokens.REAL:
                reals[slot, row] = filled
            else:
                integers[slot, row] = int(filled) % 2**64
        elif kind == tokens.REAL and NUMBER.fullmatch(token):
            reals[slot, row] = float(token)
        elif kind in (tokens.INTEGER, tokens.UNSIGNED) and INTEGER.fullmatch(token):
            low, high = (0, 2**64) if kind == tokens.UNSIGNED else (-(2**63), 2**63)
            if not low <= int(token) < high:
                kind_name = "uint64" if kind == tokens.UNSIGNED else "int64"
                raise BadRow(row, f"column '{name}': {quote(token)} does not fit {kind_name}", wider(name, "float64"))
            integers[slot, row] = int(token) % 2**64
        else:
            raise BadRow(row, *self._bad_value(name, token))

    def _bad_id(self, token: bytes) -> tuple[str, str | None]:
        if token.lower() in NULLS:
            return f"an id is missing: {quote(token)}", None
        if INTEGER.fullmatch(token):
            return f"id {quote(token)} does not fit 64 bits", "use ids='string'"
        return f"{quote(token)} is not an integer id", "use ids='string' if the ids are names"

    def _bad_value(self, name: str, token: bytes) -> tuple[str, str | None]:
        kind = self.layout.columns[name].type
        hint = wider(name, "float64") if NUMBER.fullmatch(token) and pa.types.is_integer(kind) else None
        return f"column '{name}': {quote(token)} is not {_article(kind)}", hint

    def _explain(self, line: bytes, code: int, at: int) -> tuple[str, str | None]:
        layout = self.layout
        if code == tokens.NUL_BYTE or b"\0" in line:
            return "holds a NUL byte: is this a text file?", None
        if code == tokens.BAD_QUOTE:
            return "a quoted field does not end on its line", "fields that span lines are not read"
        fields = layout.split(line)
        if code in (tokens.TOO_FEW, tokens.TOO_MANY):
            words = f"has {len(fields)} field{'s' * (len(fields) != 1)} where {layout.fields} are expected"
            missing = [layout.field_name(k) for k in range(len(fields), layout.fields)]
            return words + (f": {missing[0]} is missing" if missing else ""), None
        token = fields[at] if at < len(fields) else b""
        if code == tokens.BAD_TAG:
            return f"begins with {quote(token)}, not with '{layout.tag}'", None
        if at in (layout.source, layout.target) and not layout.string_ids:
            return self._bad_id(token)
        return f"{layout.field_name(at)}: {quote(token)} cannot be read", None


MIXED = (
    "negative ids and ids above 9223372036854775807 cannot be in one graph",
    "use ids='string'",
)


def wider(name: str, kind: str) -> str:
    """How to get a column read as a wider type."""
    return f"give types={{'{name}': '{kind}'}}"


def _article(kind: pa.DataType) -> str:
    if pa.types.is_boolean(kind):
        return "true or false"
    return "a number" if pa.types.is_floating(kind) else f"an integer ({kind})"


def _span(buffer: np.ndarray, starts: np.ndarray, lengths: np.ndarray, row: int) -> bytes:
    start = int(starts[row])
    return buffer[start : start + abs(int(lengths[row]))].tobytes()


def _arrow_strings(buffer: np.ndarray, starts: np.ndarray, lengths: np.ndarray) -> pa.Array:
    offsets = np.empty(len(starts) + 1, np.int32)
    out = np.empty(int(np.abs(lengths).sum(dtype=np.int64)), np.uint8)
    used = tokens.gather(buffer, starts, lengths, offsets, out)
    return pa.StringArray.from_buffers(len(starts), pa.py_buffer(offsets), pa.py_buffer(out[:used]))


def cast_timestamps(strings: pa.Array, kind: pa.DataType) -> np.ndarray:
    """ISO 8601 text as int64 in the type's unit. Raises ArrowInvalid."""
    return np.asarray(strings.cast(kind).cast(pa.int64()))


def checked_fill(layout_columns: Mapping[str, pa.DataType], fill: Mapping[str, float]) -> dict[str, float]:
    """The `fill=` option, in storage form."""
    from penstock.errors import UsageError

    values: dict[str, float] = {}
    for name, value in fill.items():
        if name not in layout_columns:
            raise UsageError(
                f"fill: there is no column {name!r}; the columns are {', '.join(layout_columns) or 'none'}"
            )
        kind = layout_columns[name]
        try:
            scalar = pa.scalar(value) if not isinstance(value, str) else pa.scalar(value).cast(kind)
            stored = scalar.cast(kind)
            if pa.types.is_timestamp(kind):
                stored = stored.cast(pa.int64())
            result = stored.as_py()
        except (pa.ArrowException, TypeError, ValueError):
            raise UsageError(f"fill: {value!r} is no value for column {name!r} of type {kind}") from None
        if isinstance(result, float) and math.isnan(result):
            raise UsageError(f"fill: NaN is what fill= is to replace in column {name!r}")
        values[name] = result
    return values


__all__ = ["MIXED", "BadRow", "RowParser", "Rows", "cast_timestamps", "checked_fill", "quote"]
