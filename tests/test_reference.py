"""The reference names everything that there is: names, algorithms and their options, commands and theirs, settings."""

from __future__ import annotations

import re
from dataclasses import fields
from typing import Any

import pytest
import typer
from typer.core import TyperGroup

import penstock as pk
from pages import ROOT
from penstock.algorithms.registry import ALGORITHMS, options_of
from penstock.config import Settings
from penstock.interfaces.cli.app import app
from penstock.interfaces.cli.mr.app import command as job_command

AGAIN = "run `make docs` and commit docs/reference"


def page(name: str) -> str:
    return (ROOT / "docs" / "reference" / f"{name}.md").read_text(encoding="utf-8")


def test_every_public_name() -> None:
    text = page("python")
    assert [name for name in pk.__all__ if not re.search(rf"`pk\.{name}\b", text)] == [], AGAIN
    for module in ("gimv", "jobs", "mapreduce", "matrix"):
        found = getattr(pk, module)
        names = getattr(found, "JOBS", None) or found.__all__
        assert [name for name in names if f"`pk.{module}.{name}" not in text] == [], AGAIN


@pytest.mark.parametrize("name", ALGORITHMS)
def test_every_algorithm_with_its_options(name: str) -> None:
    section = re.split(r"^## ", page("algorithms"), flags=re.M)
    mine = next((each for each in section if each.startswith(f"{name}\n")), "")
    assert [key for key in options_of(name) if f"| `{key}` |" not in mine] == [], AGAIN
    assert len(mine.splitlines()) > 5


def options_in(command: Any) -> set[str]:
    return {name for each in command.params for name in each.opts if name.startswith("--") and name != "--help"}


def test_every_command_with_its_options() -> None:
    root: Any = typer.main.get_command(app)
    sections = {each.split("\n")[0]: each for each in re.split(r"^## ", page("commands"), flags=re.M)}
    for name, command in root.commands.items():
        mine = sections[f"penstock {name}"]
        found = [(name, command)]
        if isinstance(command, TyperGroup):
            context = typer.Context(command)
            names = [each for each in command.list_commands(context) if each != "gimv"]
            found = [
                (each, job_command(each.replace("-", "_")) if name == "mr" else resolved(command, context, each))
                for each in names
            ]
            assert [each for each in names if f"| `{each}` |" not in mine] == [], AGAIN
        for each, one in found:
            missing = [option for option in options_in(one) if not re.search(rf"`[^`]*{option}[`/]", mine)]
            assert missing == [], f"{name} {each}: {AGAIN}"


def resolved(group: Any, context: Any, name: str) -> Any:
    return group.resolve_command(context, [name])[1]


def test_every_setting() -> None:
    text = page("settings")
    assert [each.name for each in fields(Settings) if f"| `{each.name}` |" not in text] == [], AGAIN
