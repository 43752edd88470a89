"""The source behind every format with one edge per line: blocks in, chunks out, counts and id kinds checked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, TypeVar

from penstock.errors import InputError, UsageError
from penstock.ingest.source import EdgeChunk, EdgeSource
from penstock.ingest.text.blocks import Block, parse_blocks
from penstock.ingest.text.layout import Layout
from penstock.ingest.text.rows import MIXED, BadRow, RowParser, Rows
from penstock.ingest.text.textfile import TextFile

T = TypeVar("T")


@dataclass
class _Part:
    chunk: EdgeChunk
    rows: int
    negative: int
    big: int


class LineSource(EdgeSource):
    """Edges from files whose lines all have one layout."""

    unit: ClassVar[str] = "bytes"
    expansion: float = 1
    """How much more memory `convert` needs than the rows themselves."""
    advice: ClassVar[str | None] = None
    """What to do about a bad line, where the format leaves no choice by options."""
    has_options: ClassVar[bool] = False
    """Whether `ids=`, `types=` and `fill=` exist, so that an error may advise them."""

    def __init__(
        self,
        starts: Sequence[tuple[TextFile, int]],
        layout: Layout,
        *,
        declared: int | None = None,
        noun: str = "edges",
        columns: Sequence[str] | None = None,
        allow_empty: bool = False,
        block_size: int | None = None,
    ) -> None:
        self.starts, self.layout = list(starts), layout
        self.declared, self.noun, self.allow_empty, self.block_size = declared, noun, allow_empty, block_size
        self.path = self.starts[0][0].path
        self.name = str(self.path) if len(self.starts) == 1 else f"{self.path} and {len(self.starts) - 1} more"
        self.string_ids = layout.string_ids
        self.columns = chosen({name: column.type for name, column in layout.columns.items()}, columns, self.name)
        self.size = sum(file.size for file, _ in self.starts)
        self.estimated_edges = declared

    def convert(self, rows: Rows) -> EdgeChunk:
        """What a format makes of parsed rows, in the worker; may raise BadRow."""
        return EdgeChunk(rows.source, rows.target, rows.columns)

    def wrong(self, file: TextFile, offset: int, bad: BadRow) -> InputError:
        """A row of the block at `offset` as an error with its line."""
        number, _ = file.line_of_row(offset, bad.row, self.layout.is_row)
        hint = bad.hint if self.has_options else self.advice
        return InputError(bad.reason, path=file.path, line=number or None, hint=hint)

    def chunks(self, *, threads: int, memory: int) -> Iterator[EdgeChunk]:
        parser = RowParser(self.layout)

        def work(block: Block) -> _Part:
            try:
                rows = parser.parse(block.array, block.begin, block.end)
                return _Part(self.convert(rows), len(rows), rows.negative, rows.big)
            except BadRow as bad:
                raise self.wrong(block.file, block.offset, bad) from None

        total, negative, big = 0, 0, 0
        passed, current = 0, self.starts[0][0]
        overhead = parser.overhead * self.expansion
        for part in parse_blocks(
            self.starts, work, threads=threads, memory=memory, overhead=overhead, size=self.block_size
        ):
            found = part.value
            if (negative and found.big) or (big and found.negative):
                raise self.wrong(part.file, part.offset, BadRow(max(found.negative, found.big) - 1, *MIXED))
            negative, big = negative or found.negative, big or found.big
            if self.declared is not None and total + found.rows > self.declared:
                reason = f"there are more {self.noun} than the {self.declared} declared"
                raise self.wrong(part.file, part.offset, BadRow(self.declared - total, reason))
            total += found.rows
            if part.file is not current:
                passed, current = passed + current.size, part.file
            self.position = passed + part.position
            if found.rows:
                chunk = found.chunk
                yield EdgeChunk(chunk.source, chunk.target, {name: chunk.columns[name] for name in self.columns})
        self.position = self.size or 0
        if self.declared is not None and total < self.declared:
            raise InputError(f"declares {self.declared} {self.noun} but holds {total}", path=self.path)
        if not total and not self.allow_empty:
            raise no_edges(self.name)


def chosen(columns: Mapping[str, T], choice: Sequence[str] | None, where: str) -> dict[str, T]:
    """The columns asked for; all of them if nothing is said."""
    choice = [choice] if isinstance(choice, str) else choice
    for name in choice or ():
        if name not in columns:
            raise UsageError(f"{where}: there is no column {name!r}; the columns are {', '.join(columns) or 'none'}")
    return dict(columns) if choice is None else {name: columns[name] for name in choice}


def no_edges(name: str) -> InputError:
    """The error for a file without a single edge."""
    return InputError("holds no edges", path=name, hint="give allow_empty=True for a graph without edges")


__all__ = ["LineSource", "chosen", "no_edges"]
