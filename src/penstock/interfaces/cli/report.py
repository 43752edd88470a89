"""`penstock report RUN.json`: the page that `run --report` writes, made later from what a run wrote."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from penstock.errors import InputError, UsageError
from penstock.interfaces.cli.options import Overwrite


def report(
    figures: Annotated[Path, typer.Argument(metavar="RUN.json", help="What `run --json` wrote.", show_default=False)],
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILE", help="The page to write: .html", show_default=False)
    ],
    trace: Annotated[
        Path | None,
        typer.Option("--trace", metavar="FILE", help="What `run --trace` wrote, for a timeline.", show_default=False),
    ] = None,
    overwrite: Overwrite = False,
) -> None:
    """Make a page about a run from its figures, and its trace if there is one.

    The graph is shown as it lies at the path in the figures; of the result only the run itself knows.
    """
    from penstock.observe.traced import read_trace
    from penstock.profile.report import write_report
    from penstock.store.whole import check_target

    if output.suffix.lower() not in (".html", ".htm"):
        raise UsageError(f"{output} does not end in .html, which a report is")
    check_target(output, overwrite)
    found = _figures(figures)
    write_report(output, found, events=None if trace is None else read_trace(trace), overwrite=overwrite)


def _figures(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", path=path) from None
    except ValueError:
        found = None
    if not isinstance(found, dict) or not {"algorithm", "phases"} <= set(found):
        raise InputError("these are not the figures of a run: give the file that run --json wrote", path=path)
    return found


__all__ = ["report"]
