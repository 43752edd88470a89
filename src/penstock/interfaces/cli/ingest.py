"""`penstock ingest`: a store from files of edges."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from penstock.errors import InputError, TargetExists, UsageError
from penstock.interfaces.cli.options import Limits, Target, assignments, build, limits, names, spill, with_options
from penstock.interfaces.cli.summary import build_details, build_summary, tell

IdKind = StrEnum("IdKind", ["auto", "integer", "string"])
READ = "Reading"
STDIN = "standard input"
_PIECE = 1 << 20


def _option(*words: str, help: str, metavar: str | None = None) -> Any:
    return typer.Option(*words, rich_help_panel=READ, help=help, metavar=metavar, show_default=False)


def reading(
    format: Annotated[
        str | None,
        _option(
            "--format",
            metavar="NAME",
            help="text, el, wel, matrix-market, metis, dimacs, ldbc, parquet or arrow, if the name does not tell.",
        ),
    ] = None,
    source: Annotated[
        str | None,
        _option("--source", metavar="COLUMN", help="The column edges start from: a name, or a number from 0."),
    ] = None,
    target: Annotated[str | None, _option("--target", metavar="COLUMN", help="The column edges lead to.")] = None,
    columns: Annotated[
        list[str] | None,
        _option("--columns", metavar="A,B", help="Edge columns to keep, all if not given; --columns '' keeps none."),
    ] = None,
    delimiter: Annotated[
        str | None,
        _option("--delimiter", metavar="CHAR", help="comma, tab, semicolon, pipe, whitespace or a character."),
    ] = None,
    header: Annotated[
        bool | None, _option("--header/--no-header", help="Whether the first line holds names; guessed if not given.")
    ] = None,
    ids: Annotated[
        IdKind | None, _option("--ids", help="What ids are; guessed from the first lines if not given.")
    ] = None,
    type: Annotated[
        list[str] | None,
        _option("--type", metavar="COL=TYPE", help="The type of a text column: int64, float32, bool, ..."),
    ] = None,
    fill: Annotated[
        list[str] | None, _option("--fill", metavar="COL=VALUE", help="What stands in for missing values. Repeatable.")
    ] = None,
    allow_empty: Annotated[
        bool, _option("--allow-empty", help="Take input without edges for a graph without edges.")
    ] = False,
    allow_nan: Annotated[bool, _option("--allow-nan", help="Keep NaN in columns of Parquet and Arrow files.")] = False,
    comment: Annotated[
        list[str] | None,
        _option("--comment", metavar="MARK", help="Lines that begin so are skipped; #, % and // if not given."),
    ] = None,
    vertices: Annotated[
        Path | None,
        _option(
            "--vertices", metavar="FILE", help="A table of vertices (Parquet, Arrow, CSV): ids, then their columns."
        ),
    ] = None,
    vertex_fill: Annotated[
        list[str] | None,
        _option("--vertex-fill", metavar="COL=VALUE", help="Vertex columns of vertices that table does not list."),
    ] = None,
) -> dict[str, Any]:
    given = {
        "format": format,
        "source": source,
        "target": target,
        "columns": None if columns is None else names(columns),
        "delimiter": delimiter,
        "header": header,
        "ids": None if ids is None else str(ids),
        "types": assignments("--type", type) if type else None,
        "fill": assignments("--fill", fill) if fill else None,
        "allow_empty": allow_empty or None,
        "allow_nan": allow_nan or None,
        "comment": tuple(comment) if comment else None,
        "vertices": vertices,
        "vertex_fill": _numbers(assignments("--vertex-fill", vertex_fill)) if vertex_fill else None,
    }
    return {name: value for name, value in given.items() if value is not None}


@with_options(reading=reading, build=build, limits=limits, spill=spill)
def ingest(
    inputs: Annotated[
        list[str], typer.Argument(metavar="INPUT", help="Files, folders or patterns; - is an edge list on stdin.")
    ],
    output: Target,
    reading: dict[str, Any],
    build: dict[str, Any],
    limits: Limits,
    spill: dict[str, Any],
) -> None:
    """Build a store from edges: text, Parquet, Arrow.

    Text may be .txt .csv .tsv .el .wel .mtx .graph .gr .e, and compressed: .gz .zst .bz2 .xz .lz4.
    """
    from penstock import api

    options = {**reading, **build, **limits.settings, **spill}
    if "-" in inputs and not build["overwrite"] and output.exists():
        # Others find out soon; stdin may be an hour of somebody's work, gone once it is read.
        raise TargetExists(f"{output.absolute()} exists: choose another name or pass --overwrite (overwrite=True)")
    with _paths(inputs, output, reading.get("format"), limits, spill) as (paths, is_text):
        if is_text:
            options |= {end: _position(reading[end]) for end in ("source", "target") if end in reading}
            if "columns" in reading:
                options["columns"] = [_position(column) for column in reading["columns"]]
        report = api.build_store(paths if len(paths) > 1 else paths[0], output, **options)
    tell(*build_summary(report), *(build_details(report) if limits.verbose else ()), quiet=limits.quiet)


def _numbers(texts: dict[str, str]) -> dict[str, float]:
    values: dict[str, float] = {}
    for name, text in texts.items():
        try:
            values[name] = int(text) if text.lstrip("+-").isdecimal() else float(text)
        except ValueError:
            raise UsageError(f"--vertex-fill {name}={text}: {text!r} is not a number") from None
    return values


def _position(name: str) -> str | int:
    return int(name) if name.isdecimal() else name


@contextlib.contextmanager
def _paths(
    inputs: list[str], output: Path, format: str | None, limits: Limits, spill: dict[str, Any]
) -> Iterator[tuple[list[str], bool]]:
    """The files to read, and whether fields may be given by number; stdin is spooled: it is read twice."""
    from penstock.ingest.open import TABLE_ENDINGS, TABLE_FORMATS

    if "-" not in inputs:
        first = Path(inputs[0])
        table = format in TABLE_FORMATS or first.is_dir() or first.suffix.lower() in TABLE_ENDINGS
        yield inputs, not table
        return
    if len(inputs) > 1:
        raise UsageError("- (standard input) must be the only input")
    if format not in (None, "text"):
        raise UsageError(f"standard input is read as an edge list, not as {format}: write it to a file first")
    from penstock.config import settings
    from penstock.memory.spill import Spill

    chosen = settings(**limits.settings, **spill)
    with Spill(chosen.temp_directory or output.absolute().parent, quota=chosen.max_temp_directory_size) as spool:
        file = spool.create("stdin")
        while piece := sys.stdin.buffer.read(_PIECE):
            file.append(piece)
        file.settle()
        try:
            yield [str(file.path)], True
        except InputError as error:
            if error.path != str(file.path):
                raise
            raise InputError(error.reason, path=STDIN, line=error.line, hint=error.hint) from None
