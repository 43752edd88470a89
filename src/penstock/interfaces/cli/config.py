"""`penstock config`: the settings in force, and where each comes from."""

from __future__ import annotations

import ast
import inspect
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Annotated, Any

import typer

from penstock.config import Settings, format_size, settings
from penstock.errors import meant
from penstock.interfaces.cli.summary import tell

PREFIX = "PENSTOCK_"
_SIZES = ("memory_limit", "max_temp_directory_size", "gpu_memory_limit")
_TESTS = ("state_ranges",)


@dataclass(frozen=True)
class Setting:
    """One line."""

    name: str
    value: Any
    comes_from: str
    meaning: str


def config(
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """Show the settings and where each comes from.

    Each has a variable (PENSTOCK_MEMORY_LIMIT=2GB), a keyword in Python and, for a run, an option; the later wins.
    """
    found = in_force()
    if as_json:
        shown = {each.name: {"value": each.value, "from": each.comes_from, "meaning": each.meaning} for each in found}
        typer.echo(json.dumps(shown, indent=2, default=str))
    else:
        _show(found)
    tell(*strangers(os.environ))


def in_force() -> list[Setting]:
    """The settings of this process."""
    now, said = settings(), meanings()
    return [
        Setting(name, getattr(now, name), f"{PREFIX}{name.upper()}" if _given(name) else "default", said.get(name, ""))
        for name in (field.name for field in fields(Settings))
        if name not in _TESTS or _given(name)
    ]


def _given(name: str) -> bool:
    return bool(os.environ.get(f"{PREFIX}{name.upper()}"))


def strangers(variables: Mapping[str, str]) -> list[str]:
    """A sentence for each variable that looks like a setting and is none: a misspelt one changes nothing."""
    known = {f"{PREFIX}{field.name.upper()}" for field in fields(Settings)}
    wrong = sorted(name for name in variables if name.startswith(PREFIX) and name not in known)
    return [f"{name} is set, but there is no such setting{meant(name, known)}" for name in wrong]


def meanings() -> dict[str, str]:
    """What is written below each field of Settings: its first sentence."""
    body = ast.parse(inspect.getsource(Settings)).body[0]
    assert isinstance(body, ast.ClassDef)
    said = {}
    for field, text in zip(body.body, body.body[1:], strict=False):
        if isinstance(field, ast.AnnAssign) and isinstance(text, ast.Expr) and isinstance(text.value, ast.Constant):
            assert isinstance(field.target, ast.Name)
            said[field.target.id] = " ".join(str(text.value.value).split()).replace("`", "")
    return said


def _text(setting: Setting) -> str:
    value = setting.value
    if value is None:
        return "none" if setting.name == "checkpoint" else "auto"
    if setting.name in _SIZES:
        return format_size(value)
    return str(value).lower() if isinstance(value, bool) else str(value)


def _show(found: list[Setting]) -> None:
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for title in ("setting", "value", "from"):
        table.add_column(title, no_wrap=True)
    table.add_column("meaning", style="dim", overflow="fold")
    for each in found:
        style = "" if each.comes_from == "default" else "bold"
        table.add_row(each.name, escape(_text(each)), each.comes_from, escape(each.meaning), style=style)
    console = Console(highlight=False)
    console.print(table, width=None if console.is_terminal else 10_000, soft_wrap=not console.is_terminal)


__all__ = ["Setting", "config", "in_force", "meanings", "strangers"]
