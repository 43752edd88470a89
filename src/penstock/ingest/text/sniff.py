"""What the first lines of an edge list tell: delimiter, header, which fields are ids, what types the columns have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from penstock.errors import InputError, UsageError
from penstock.ingest.text.layout import INTEGER, NULLS, NUMBER, TRUTH, Column, Layout, column_type, split_line
from penstock.ingest.text.textfile import TextFile

_SAMPLE_BYTES = 1 << 16
_SAMPLE_LINES = 2000
_ENDS = [
    ("source", "target"), ("source", "destination"), ("src", "dst"), ("src", "dest"), ("from", "to"), ("u", "v"),
    ("start", "end"), ("tail", "head"), ("source_id", "target_id"), ("src_id", "dst_id"), ("from_id", "to_id"),
    ("fromnodeid", "tonodeid"), ("fromid", "toid"), ("node1", "node2"), ("node_1", "node_2"), ("id1", "id2"),
    ("id_1", "id_2"), ("from_node", "to_node"), ("source_node", "target_node"), ("sourceid", "targetid"),
    (":start_id", ":end_id"), ("vertex1", "vertex2"), ("follower", "followee"), ("i", "j"), ("row", "col"), ("x", "y"),
]  # fmt: skip


@dataclass(frozen=True)
class Line:
    """A data line, its number and offset, and the offset of the line after it."""

    number: int
    offset: int
    text: bytes
    fields: list[bytes]


def sample(file: TextFile, layout: Layout, most: int = _SAMPLE_LINES) -> list[Line]:
    """The first data lines of a file, at most so many."""
    lines: list[Line] = []
    used = 0
    for number, offset, text in file.lines(file.start):
        if layout.is_row(text):
            lines.append(Line(number, offset, text, layout.split(text)))
            used += len(text)
            if used > _SAMPLE_BYTES or len(lines) >= most:
                break
    return lines


def find_delimiter(texts: Sequence[bytes], suffix: str, comments: Sequence[str]) -> str | None:
    """The delimiter that makes most of the first lines alike, best with two integers in front; None: blanks."""
    texts = texts[:50]
    best: str | None = None
    best_score = (0.0, 0.0)
    rows_by_mark: dict[str | None, list[list[bytes]]] = {}
    for mark in (",", ";", "|", "\t", None):
        rows = rows_by_mark[mark] = [split_line(text, mark, comments) for text in texts]
        width = len(rows[0])
        if width < 2:
            continue
        alike = sum(len(row) == width for row in rows) / len(rows)
        whole = [len(row) > 1 and all(INTEGER.fullmatch(token) for token in row[:2]) for row in rows]
        data = whole[1:] or whole  # the first line may be a header
        score = (float(sum(data) >= 0.5 * len(data) and alike >= 0.5), alike + sum(whole) / len(whole))
        if score > best_score:
            best, best_score = mark, score
    # Tabs are blanks like others, unless they enclose an empty field or a field has a blank in it.
    if best == "\t" and suffix not in (".tsv", ".tab"):
        tabs = [[token for token in row if token] for row in rows_by_mark["\t"]]
        inner = any(b"" in row[:-1] and row[2:] for row in rows_by_mark["\t"])
        if tabs == rows_by_mark[None] and not inner:
            best = None
    return best


def find_header(lines: Sequence[Line], header: bool | None, ids: str, ends: tuple[object, object]) -> bool:
    """Whether the first line names the columns: by the names people use, or because it is words above numbers."""
    if header is not None:
        return header
    if any(isinstance(end, str) for end in ends):
        return True
    first = lines[0].fields
    if len(first) < 2 or any(NUMBER.fullmatch(token) or not token for token in first):
        return False
    names = [token.decode("utf-8", "replace").lower() for token in first]
    # `u v` alone is no sign: it may well be an edge between two vertices called u and v.
    if any(pair[0] in names and pair[1] in names and len(pair[0]) > 1 for pair in _ENDS):
        return True
    places = [end % len(first) if isinstance(end, int) else place for place, end in enumerate(ends)]
    data = [line.fields for line in lines[1:] if len(line.fields) == len(first)]
    if not data:
        return False
    numeric = [all(NUMBER.fullmatch(row[k]) for row in data) for k in range(len(first))]
    extra = any(is_number for k, is_number in enumerate(numeric) if k not in places)
    return extra or (ids != "string" and all(INTEGER.fullmatch(data[0][k]) for k in places))


def column_names(first: Line, header: bool, path: object) -> list[str]:
    """A name for every field."""
    count = len(first.fields)
    if not header:
        extra = ["weight"] if count == 3 else [f"c{k}" for k in range(2, count)]
        return ["source", "target", *extra][:count]
    try:
        names = [token.decode() for token in first.fields]
    except UnicodeDecodeError:
        raise InputError("a column name is not UTF-8", path=str(path), line=first.number) from None
    names = [name or f"c{k}" for k, name in enumerate(names)]
    for name in names:
        if names.count(name) > 1:
            raise InputError(f"two columns are called '{name}'", path=str(path), line=first.number)
    return names


def find_ends(names: Sequence[str], header: bool, source: object, target: object, where: str) -> tuple[int, int]:
    """The positions of the two id fields."""
    lowered = [name.lower() for name in names]
    found = (0, 1)
    if header:
        for pair in _ENDS:
            if pair[0] in lowered and pair[1] in lowered:
                found = (lowered.index(pair[0]), lowered.index(pair[1]))
                break
    ends = [position(names, end, where) if end is not None else None for end in (source, target)]
    first = ends[0] if ends[0] is not None else found[0] if ends[1] != found[0] else found[1]
    second = ends[1] if ends[1] is not None else found[1] if ends[0] != found[1] else found[0]
    if first == second:
        raise UsageError(f"{where}: source and target are the same column, {names[first]!r}")
    return first, second


def position(names: Sequence[str], choice: object, where: str) -> int:
    """A column given by name or position."""
    if isinstance(choice, str) and choice in names:
        return names.index(choice)
    if isinstance(choice, int) and not isinstance(choice, bool) and -len(names) <= choice < len(names):
        return choice % len(names)
    raise UsageError(f"{where}: there is no column {choice!r}; the columns are {', '.join(names)}")


def find_columns(
    names: Sequence[str],
    ends: tuple[int, int],
    rows: Sequence[list[bytes]],
    choice: Sequence[str | int] | None,
    types: Mapping[str, str | pa.DataType],
    fill: Mapping[str, object],
    where: str,
) -> dict[str, Column]:
    """The edge columns: those asked for, or all that hold numbers, truth values or timestamps."""
    wanted = range(len(names)) if choice is None else [position(names, item, where) for item in choice]
    for name in types:
        if name not in names:
            raise UsageError(f"{where}: types names column {name!r}; the columns are {', '.join(names)}")
    columns: dict[str, Column] = {}
    for at in wanted:
        name = names[at]
        if choice is None and at in ends:
            continue
        if name in types:
            kind = column_type(name, types[name])
        else:
            values = [row[at] for row in rows if at < len(row)]
            found = infer(values)
            if found is None and name in fill and all(value.lower() in NULLS for value in values):
                found = pa.float64()  # nothing but gaps so far, to be filled with numbers
            if found is None:
                if choice is None:
                    continue
                reason = f"column '{name}' holds no number, truth value or timestamp, which are what an edge can carry"
                raise InputError(reason, path=where, hint="leave it out of columns=, or give its type with types=")
            kind = found
        if at in ends:
            raise UsageError(f"{where}: column {name!r} is an id; it cannot be an edge column too")
        columns[name] = Column(at, kind)
    return columns


def infer(values: Sequence[bytes]) -> pa.DataType | None:
    """The narrowest type that takes all values; None if they are text or missing."""
    present = [value for value in values if value.lower() not in NULLS]
    if not present:
        return pa.float64() if any(value.lower() in (b"nan", b"-nan") for value in values) else None
    if all(INTEGER.fullmatch(value) for value in present):
        numbers = [int(value) for value in present]
        if min(numbers) >= -(2**63) and max(numbers) < 2**63:
            return pa.int64()
        return pa.uint64() if min(numbers) >= 0 and max(numbers) < 2**64 else pa.float64()
    if all(NUMBER.fullmatch(value) for value in present):
        return pa.float64()
    if all(value.lower() in TRUTH for value in present):
        return pa.bool_()
    return _infer_timestamp(present)


def _infer_timestamp(values: Sequence[bytes]) -> pa.DataType | None:
    from penstock.ingest.text.rows import cast_timestamps

    if not values[0][:4].isdigit():
        return None
    for zone in (None, "UTC"):
        for unit in ("us", "ns"):
            kind = pa.timestamp(unit, zone)
            try:
                cast_timestamps(pa.array([value.decode() for value in values]), kind)
            except (pa.ArrowInvalid, UnicodeDecodeError):
                continue
            return kind
    return None


__all__ = ["Line", "column_names", "find_columns", "find_delimiter", "find_ends", "find_header", "infer", "sample"]
