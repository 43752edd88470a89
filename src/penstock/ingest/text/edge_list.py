"""Text edge lists: SNAP, CSV, TSV and their relatives, and GAP's `.el` and `.wel`.

What the options leave open is told by the first lines. Every line must then have the same fields.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa

from penstock.errors import InputError, UsageError
from penstock.ingest.text.layout import COMMENTS, NUMBER, Column, Layout, comment_marks, delimiter_mark
from penstock.ingest.text.lines import LineSource, no_edges
from penstock.ingest.text.sniff import (
    Line,
    column_names,
    find_columns,
    find_delimiter,
    find_ends,
    find_header,
    infer,
    sample,
)
from penstock.ingest.text.textfile import TextFile, expand, strip_compression

_COMPRESSION = 4
"""A guess at how many bytes of text one compressed byte stands for."""


class TextSource(LineSource):
    """One edge per line: two ids and any number of columns.

    delimiter: one character, or None to find out. comment: prefixes of lines to skip. header: whether the first line
    names the columns, or None to find out. source, target: the id columns, by name or position. columns: the edge
    columns, by name or position; None: all that are numbers, truth values or timestamps; (): none. types: column name
    to type, where the first lines mislead. fill: column name to the value that replaces a missing one. ids: `integer`,
    `string` or `auto`, which goes by the first line.
    """

    has_options: ClassVar[bool] = True

    def __init__(
        self,
        paths: str | Path | Sequence[str | Path],
        *,
        delimiter: str | None = None,
        comment: str | Sequence[str] | None = COMMENTS,
        header: bool | None = None,
        source: str | int | None = None,
        target: str | int | None = None,
        columns: Sequence[str | int] | None = None,
        types: Mapping[str, str | pa.DataType] | None = None,
        fill: Mapping[str, Any] | None = None,
        ids: str = "auto",
        allow_empty: bool = False,
        block_size: int | None = None,
    ) -> None:
        if ids not in ("auto", "integer", "string"):
            raise UsageError(f"ids={ids!r}: it is 'auto', 'integer' or 'string'")
        if isinstance(columns, str):
            columns = [columns]
        files = [TextFile(path) for path in expand(paths)]
        rough = Layout(2, comments=comment_marks(comment), delimiter=delimiter and delimiter_mark(delimiter))
        if delimiter is None:
            rough = replace(rough, delimiter=_sniffed_delimiter(files, rough))
        samples: list[list[Line]] = []
        for file in files:  # one file tells what all hold; of the others only whether they repeat the header
            samples.append(sample(file, rough, 1) if any(samples) else sample(file, rough))
        leader = next((k for k, lines in enumerate(samples) if lines), None)
        if leader is None:
            if not allow_empty:
                raise no_edges(str(files[0].path))
            super().__init__([(file, file.start) for file in files], rough, allow_empty=True)
            return
        where = str(files[leader].path)
        lines = samples[leader]
        named = find_header(lines, header, ids, (source, target))
        names = column_names(lines[0], named, where)
        if len(names) < 2:
            reason = f"has 1 field where a source and a target are expected: {lines[0].text[:40]!r}"
            hint = "give delimiter=" if delimiter is None else f"the delimiter is {delimiter!r}"
            raise InputError(reason, path=where, line=lines[0].number, hint=hint)
        ends = find_ends(names, named, source, target, where)
        data = [line for lines in samples for line in lines if not (named and line.text == samples[leader][0].text)]
        strings = ids == "string" or (ids == "auto" and _are_names(data, ends))
        chosen = find_columns(names, ends, [line.fields for line in data], columns, types or {}, fill or {}, where)
        layout = replace(rough, fields=len(names), source=ends[0], target=ends[1], columns=chosen, string_ids=strings)
        if fill:
            from penstock.ingest.text.rows import checked_fill

            kinds = {name: column.type for name, column in chosen.items()}
            layout = replace(layout, fill=checked_fill(kinds, fill))
        starts = [
            (file, _after_header(file, lines, samples[leader][0].text if named else None))
            for file, lines in zip(files, samples, strict=True)
        ]
        super().__init__(starts, layout, allow_empty=allow_empty, block_size=block_size)
        self.estimated_edges = _estimate(files, data)
        if columns is None:
            self.left_out = [name for at, name in enumerate(names) if at not in ends and name not in chosen]


def _sniffed_delimiter(files: Sequence[TextFile], rough: Layout) -> str | None:
    for file in files:
        lines = sample(file, rough)
        if lines:
            suffix = strip_compression(file.path).suffix.lower()
            return find_delimiter([line.text for line in lines], suffix, rough.comments)
    return None


def _are_names(data: Sequence[Line], ends: tuple[int, int]) -> bool:
    """The first line decides: a later word among numbers is a mistake in the file, not a name."""
    if not data or max(ends) >= len(data[0].fields):
        return False
    return not all(NUMBER.fullmatch(data[0].fields[end]) for end in ends)


def _after_header(file: TextFile, lines: Sequence[Line], header: bytes | None) -> int:
    if header is None or not lines or lines[0].text != header:
        return file.start
    for _, offset, text in file.lines(lines[0].offset):
        return offset + len(text) + 1
    return file.start


def _estimate(files: Sequence[TextFile], data: Sequence[Line]) -> int | None:
    used = sum(len(line.text) + 1 for line in data)
    size = sum(file.size * (_COMPRESSION if file.codec else 1) for file in files)
    return max(1, size * len(data) // used) if used else None


class GapSource(LineSource):
    """The GAP benchmark's text files: `u v` (`.el`) or `u v w` (`.wel`), ids from 0, nothing else."""

    advice: ClassVar[str | None] = "read it with format='text' if it is another kind of edge list"

    def __init__(
        self,
        path: str | Path,
        *,
        weighted: bool,
        columns: Sequence[str] | None = None,
        allow_empty: bool = False,
        block_size: int | None = None,
    ) -> None:
        file = TextFile(path)
        layout = Layout(3 if weighted else 2, lowest=0, bounds="GAP's ids, which begin at 0")
        lines = sample(file, layout)
        if weighted:
            kind = infer([line.fields[2] for line in lines if len(line.fields) > 2]) or pa.int64()
            kind = pa.float64() if pa.types.is_floating(kind) else pa.int64()
            layout = replace(layout, columns={"weight": Column(2, kind)})
        super().__init__([(file, file.start)], layout, columns=columns, allow_empty=allow_empty, block_size=block_size)
        self.estimated_edges = _estimate([file], lines)


__all__ = ["GapSource", "TextSource"]
