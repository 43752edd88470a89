"""`penstock explain ALGORITHM`: what a run would do and take; with --analyze, beside what it did and took."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from penstock.algorithms.registry import ALGORITHMS, options_of
from penstock.interfaces.cli.examples import epilog
from penstock.interfaces.cli.opening import opened
from penstock.interfaces.cli.options import Given, Limits, Undirected, limits, placement, spill, with_options
from penstock.interfaces.cli.run import Algorithms

if TYPE_CHECKING:
    from penstock.engine.explain import Explanation, Tree
    from penstock.graph import Graph

REFUSED = 3
"""The exit code of what does not fit, as for a run."""


class Explained(Algorithms):
    """The same algorithms and options as those of `run`."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        name, made, rest = super().resolve_command(ctx, args)
        return name, made and command(name), rest


app = typer.Typer(
    cls=Explained,
    no_args_is_help=True,
    help="Show what running an algorithm would do and how long it would take.",
    epilog=epilog("explain"),
)


@app.callback()
def _group() -> None:
    pass


def command(name: str) -> Any:
    """The command of one algorithm."""
    from penstock.interfaces.cli.parameters import chosen, group, parameters

    known = options_of(name)

    @with_options(options=group(parameters(known)), limits=limits, placement=placement, spill=spill)
    def call(
        store: Given,
        options: dict[str, Any],
        limits: Limits,
        placement: dict[str, Any],
        spill: dict[str, Any],
        analyze: Annotated[bool, typer.Option("--analyze", help="Run it, and show what happened beside it.")] = False,
        as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a tree.")] = False,
        undirected: Undirected = None,
    ) -> None:
        settings = limits.settings | placement | spill
        with opened(
            store, settings, algorithm=name, options=options, undirected=undirected, quiet=limits.quiet
        ) as graph:
            given = chosen(known, options, graph.store.ids.kind)
            fits = foretell(name, graph, given, settings, analyze=analyze, as_json=as_json, called=store)
        if not fits:
            raise typer.Exit(REFUSED)

    alone = typer.Typer(add_completion=False, rich_markup_mode="rich")
    text = f"What a run would do and take. {name} finds {ALGORITHMS[name]}."
    words = {"help_option_names": ["-h", "--help"]}
    alone.command(name, help=text, epilog=epilog("explain"), context_settings=words)(call)
    return typer.main.get_command(alone)


def foretell(
    name: str,
    graph: Graph,
    options: dict[str, Any],
    settings: dict[str, Any],
    *,
    analyze: bool = False,
    as_json: bool = False,
    to_stderr: bool = False,
    called: Path,
) -> bool:
    """Say what a run would do and take, and return whether it fits. `called`: what the graph is called in the command,
    which a temporary store is not."""
    from penstock import api

    found = replace(api.explain(name, graph, analyze=analyze, **options, **settings), store=str(called))
    if as_json:
        from penstock.observe.plain import plain

        typer.echo(json.dumps(plain(found.as_dict()), indent=2))
    else:
        show(found, to_stderr=to_stderr)
    return found.fits


def show(found: Explanation, *, to_stderr: bool = False) -> None:
    """Draw the tree."""
    from rich.console import Console
    from rich.markup import escape
    from rich.tree import Tree as Drawn

    def grow(branch: Drawn, below: list[Tree]) -> None:
        for line, more in below:
            grow(branch.add(escape(line)), more)

    head, below = found.tree()
    drawn = Drawn(f"[bold]{escape(head)}[/]", guide_style="dim")
    grow(drawn, below)
    Console(highlight=False, stderr=to_stderr).print(drawn)


__all__ = ["REFUSED", "app", "foretell", "show"]
