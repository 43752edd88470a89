"""The application: global options, the list of commands, and how it ends."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from penstock.interfaces.cli import (
    bench,
    config,
    doctor,
    explain,
    export,
    generate,
    info,
    ingest,
    mr,
    plot,
    report,
    run,
    verify,
)
from penstock.interfaces.cli.examples import epilog
from penstock.interfaces.cli.exits import exit_code
from penstock.version import VERSION

BUILD, USE, HERE = "Graphs", "Answers", "This machine"
ORDER = (
    "generate", "ingest", "info", "check", "export", "run", "explain", "verify", "plot", "report", "mr", "bench",
    "config", "doctor",
)  # fmt: skip
HELP = f"""Graphs that do not fit in memory: stored in pages, streamed from disk, inside the memory you allow.

\b
{epilog("")}
"""


class Root(TyperGroup):
    """The group of all commands. Every way out of it is an exit code."""

    def list_commands(self, ctx: Any) -> list[str]:
        # Typer would list groups after commands; people read them in the order of use.
        return sorted(self.commands, key=ORDER.index)

    def main(  # type: ignore[override]
        self, args: Sequence[str] | None = None, prog_name: str | None = None, **rest: Any
    ) -> Any:
        given = list(sys.argv[1:] if args is None else args)
        debug = "--debug" in given
        rest["standalone_mode"] = False
        call = super().main
        # --debug is for the moment after something went wrong: it may be added anywhere.
        given = [word for word in given if word != "--debug"]
        sys.exit(exit_code(lambda: call(given, prog_name or "penstock", **rest), debug=debug))


app = typer.Typer(
    name="penstock",
    cls=Root,
    help=HELP,
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"penstock {VERSION}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and leave.")
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show where an error came from.")] = False,
) -> None:
    pass


app.add_typer(generate.app, name="generate", rich_help_panel=BUILD)
app.add_typer(run.app, name="run", rich_help_panel=USE)
app.add_typer(explain.app, name="explain", rich_help_panel=USE)
app.add_typer(mr.app, name="mr", rich_help_panel=USE)
for name, function, panel in (
    ("ingest", ingest.ingest, BUILD),
    ("info", info.info, BUILD),
    ("check", info.check, BUILD),
    ("export", export.export, BUILD),
    ("verify", verify.verify, USE),
    ("plot", plot.plot, USE),
    ("report", report.report, USE),
    ("bench", bench.bench, HERE),
    ("config", config.config, HERE),
    ("doctor", doctor.doctor, HERE),
):
    # Typer keeps the ends of lines: they would be seen in a window of another width.
    told = "\n\n".join(" ".join(part.split()) for part in (function.__doc__ or "").split("\n\n"))
    app.command(name, help=told, epilog=epilog(name), rich_help_panel=panel)(function)

__all__ = ["app"]
