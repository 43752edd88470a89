"""`penstock explain ALGORITHM`: what a run would do and take; with --analyze, beside what it did and took."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer

from penstock.algorithms.registry import ALGORITHMS, options_of
from penstock.interfaces.cli.options import Limits, Store, limits, placement, spill, with_options
from penstock.interfaces.cli.run import Algorithms

if TYPE_CHECKING:
    from penstock.engine.explain import Explanation, Tree

REFUSED = 3
"""The exit code of what does not fit, as for a run."""


class Explained(Algorithms):
    """The same algorithms and options as those of `run`."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        name, made, rest = super().resolve_command(ctx, args)
        return name, made and command(name), rest


app = typer.Typer(
    cls=Explained, no_args_is_help=True, help="Show what running an algorithm would do and how long it would take."
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
        store: Store,
        options: dict[str, Any],
        limits: Limits,
        placement: dict[str, Any],
        spill: dict[str, Any],
        analyze: Annotated[bool, typer.Option("--analyze", help="Run it, and show what happened beside it.")] = False,
        as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a tree.")] = False,
    ) -> None:
        from penstock import api

        with api.open_graph(store) as graph:
            given = chosen(known, options, graph.store.ids.kind)
            settings = limits.settings | placement | spill
            found = api.explain(name, graph, analyze=analyze, **given, **settings)
        if as_json:
            from penstock.observe.plain import plain

            typer.echo(json.dumps(plain(found.as_dict()), indent=2))
        else:
            show(found)
        if not found.fits:
            raise typer.Exit(REFUSED)

    alone = typer.Typer(add_completion=False, rich_markup_mode="rich")
    text = f"What a run would do and take. {name} finds {ALGORITHMS[name]}."
    alone.command(name, help=text, context_settings={"help_option_names": ["-h", "--help"]})(call)
    return typer.main.get_command(alone)


def show(found: Explanation) -> None:
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
    Console(highlight=False).print(drawn)


__all__ = ["app", "show"]
