"""Writes the pages of docs/reference/ from the code: names and their docstrings, algorithms, commands, settings.

python docs/reference.py
"""

from __future__ import annotations

import inspect
import itertools
import re
from collections.abc import Iterable, Iterator
from dataclasses import MISSING, Field, fields, is_dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent / "reference"
GROUPS: dict[str, tuple[str, ...]] = {
    "Graphs in and out": (
        "ingest", "generate", "open", "from_edges", "from_networkx", "Graph", "check", "export", "to_arrow",
        "to_networkx", "to_numpy", "to_scipy",
    ),
    "Answers": ("run", "pagerank", "explain", "verify", "plot", "recording", "config", "Result", "Edges"),
    "Programs of your own": (
        "Combine", "Row", "Sweep", "Pair", "Monoid", "SUM", "MIN", "MAX", "OR", "ANY", "FIRST", "ARGMIN", "NUMBER",
        "pair", "pair_value", "pair_number",
    ),
    "Key-value work": ("MapReduce", "KeyValue", "KeyMultiValue", "mapreduce", "jobs", "gimv", "matrix"),
}  # fmt: skip
GENERATED = "<!-- Written by docs/reference.py: change the docstrings, then run `make docs`. -->"


SAID = {
    "Result": "What an algorithm found for each vertex, under your ids, in order of ids; `stats`: how the run went.",
    "Edges": "What an algorithm found whose answer is edges: source, target and columns, as a stream.",
}
"""Classes whose docstrings speak to who makes one, not to who has one."""


def sentence(thing: Any) -> str:
    """The first paragraph of a docstring, on one line."""
    if inspect.isclass(thing) and thing.__name__ in SAID:
        return SAID[thing.__name__]
    text = inspect.cleandoc(getattr(thing, "__doc__", None) or "").split("\n\n")[0]
    return " ".join(text.split(">>>")[0].split())


def signature(thing: Any) -> str:
    try:
        found = inspect.signature(thing)
    except (TypeError, ValueError):
        return "()"
    shown = [each.replace(annotation=each.empty) for each in found.parameters.values() if each.name != "self"]
    shown = [
        each.replace(default=Word(each.default.name)) if type(each.default).__name__ == "Semiring" else each
        for each in shown
    ]
    return re.sub(r"<[^<>]*>", "...", str(found.replace(parameters=shown, return_annotation=found.empty)))


class Word(str):
    """Shown as it is, without quotes."""

    __slots__ = ()
    __repr__ = str.__str__


def cell(text: Any) -> str:
    """Text in a table: one line, and a bar is no border."""
    return " ".join(str(text).split()).replace("|", "\\|")


def table(head: Iterable[str], rows: Iterable[Iterable[Any]]) -> list[str]:
    heads = list(head)
    lines = ["| " + " | ".join(each) + " |" for each in ([*heads], ["---"] * len(heads))]
    return [*lines, *("| " + " | ".join(cell(each) for each in row) + " |" for row in rows), ""]


def default(value: Any) -> str:
    return "needed" if value is inspect.Parameter.empty else f"`{value!r}`"


# ---- Python


def python() -> Iterator[str]:
    import penstock as pk

    yield from ("# Python", "", GENERATED, "")
    yield from (
        "`import penstock as pk`. Every algorithm is a function, too: `pk.bfs(graph, source=7)` is",
        '`pk.run("bfs", graph, source=7)`; see [Algorithms](algorithms.md). [Settings](settings.md) are keywords',
        "of every call.",
        "",
    )
    rest = sorted(set(pk.__all__) - {name for names in GROUPS.values() for name in names} - {"__version__"})
    for title, names in {**GROUPS, "Other": tuple(rest)}.items():
        if names:
            yield from (f"## {title}", "")
        plain: list[tuple[str, str]] = []
        for name in names:
            thing = getattr(pk, name)
            if inspect.ismodule(thing):
                yield from module(name, thing)
            elif inspect.isclass(thing):
                yield from members(name, thing)
            elif callable(thing) and inspect.isfunction(inspect.unwrap(thing)):
                yield from (f"### `pk.{name}{signature(thing)}`", "", sentence(thing), "")
                if name == "ingest":
                    yield from building()
            else:
                plain.append((f"`pk.{name}`", monoids().get(name, "")))
        if plain:
            yield from table(("name", "is"), plain)
    yield from ("`pk.__version__` is the version.", "")


def building() -> Iterator[str]:
    from penstock.ingest.build.options import BuildOptions

    yield from ("Options of building, which `generate` and `from_edges` have as well:", "")
    yield from table(("option", "default", "meaning"), field_docs(BuildOptions))
    yield from (
        "Options of reading: `source`, `target` and `columns` choose columns by name or number, `fill` says what",
        "stands for missing values, `vertices` is a table of vertices, `format` is for names that do not tell. Formats",
        "have more of them: see [`penstock ingest`](commands.md#penstock-ingest).",
        "",
    )


def monoids() -> dict[str, str]:
    return {
        "SUM": "contributions added up",
        "MIN": "the smallest one",
        "MAX": "the largest one",
        "OR": "bits that any of them has",
        "ANY": "one of them, whichever: all are as good",
        "FIRST": "that of the lowest-numbered sender, for `message=pk.NUMBER`",
        "ARGMIN": "the least `pk.pair(value, number)`",
        "NUMBER": "the kind of a message that is a vertex's number",
    }


def members(name: str, kind: type) -> Iterator[str]:
    yield from (f"### `pk.{name}`", "", sentence(kind), "")
    rows = []
    for member in dir(kind):
        found = inspect.getattr_static(kind, member)
        if member.startswith("_"):
            continue
        if isinstance(found, property):
            rows.append((f"`.{member}`", sentence(found.fget)))
        elif isinstance(found, classmethod | staticmethod) or inspect.isfunction(found):
            call = getattr(kind, member)
            rows.append((f"`.{member}{signature(call)}`", sentence(call)))
    documented = [row for row in rows if row[1]]
    described = field_docs(kind)
    if described:  # a program is made of its fields; what else it can do is the engine's business
        yield from table(("field", "default", "is"), described)
    elif documented:
        yield from table(("member", "is"), documented)


def field_docs(kind: type) -> list[tuple[str, str, str]]:
    """The fields of a dataclass, with the line that stands below each in the source."""
    import ast
    import textwrap

    if not is_dataclass(kind):
        return []
    below: dict[str, str] = {}
    for each in reversed(kind.__mro__[:-1]):
        body = ast.parse(textwrap.dedent(inspect.getsource(each))).body[0].body  # type: ignore[attr-defined]
        for one, following in itertools.pairwise(body):
            said = isinstance(following, ast.Expr) and isinstance(following.value, ast.Constant)
            if isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name):
                below[one.target.id] = " ".join(str(following.value.value).split()) if said else ""  # type: ignore[attr-defined]
    return [(f"`{each.name}`", shown_default(each), below.get(each.name, "")) for each in fields(kind)]


def shown_default(field: Field[Any]) -> str:
    if field.default is MISSING:
        return "needed" if field.default_factory is MISSING else "none"
    return (
        f"`{getattr(field.default, 'name', None) or getattr(field.default, '__name__', None) or repr(field.default)}`"
    )


def module(name: str, found: Any) -> Iterator[str]:
    yield from (f"### `pk.{name}`", "", sentence(found), "")
    names = [
        each for each in (*found.__all__, *getattr(found, "JOBS", ())) if each not in ("JOBS", "Job", "options_of")
    ]
    rows = []
    for each in names:
        thing = getattr(found, each)
        shown = signature(thing) if inspect.isfunction(thing) else ""
        described = sentence(thing) if callable(thing) else f"the semiring {thing.name}"
        rows.append((f"`pk.{name}.{each}{shown}`", described))
    yield from table(("name", "does"), rows)


# ---- algorithms


def algorithms() -> Iterator[str]:
    import importlib

    from penstock.algorithms.registry import ALGORITHMS, options_of

    yield from ("# Algorithms", "", GENERATED, "")
    yield from (
        'Each is `pk.NAME(graph, ...)`, `pk.run("NAME", graph, ...)` and `penstock run NAME GRAPH`, where `max_iter=5`',
        "is `--max-iter 5`. [Settings](settings.md) may be given to each.",
        "",
    )
    for name, finds in ALGORITHMS.items():
        yield from (f"## {name}", "", f"{finds[0].upper()}{finds[1:]}.", "")
        text = inspect.cleandoc(importlib.import_module(f"penstock.algorithms.{name}").__doc__ or "")
        contract = text.split("\n\n", 1)[1] if "\n\n" in text else ""
        if contract:
            yield from ("```text", contract, "```", "")
        rows = [
            (f"`{key}`", default(option.default), (getattr(option.annotation, "__metadata__", None) or [""])[0])
            for key, option in options_of(name).items()
        ]
        yield from table(("option", "default", "meaning"), rows) if rows else ("It has no options.", "")


# ---- commands


def commands() -> Iterator[str]:
    import typer
    from typer.core import TyperGroup

    from penstock.interfaces.cli.app import app
    from penstock.interfaces.cli.mr.app import command

    root: Any = typer.main.get_command(app)
    yield from ("# Commands", "", GENERATED, "")
    yield from (
        "Results go to stdout or to files, everything else to stderr. `--debug` anywhere shows where an error came",
        "from; `penstock --install-completion` completes commands in your shell.",
        "",
    )
    yield from exits()
    for name in root.list_commands(None):
        found = root.commands[name]
        title = found.help or ""
        yield from (f"## penstock {name}", "", plain(title), "")
        if name == "mr":
            names = [each for each in found.list_commands(None) if each != "gimv"]
            yield from shared_options({each: command(each.replace("-", "_")) for each in names})
            yield from ("### penstock mr gimv", "", *subcommands(found.get_command(None, "gimv")))
        elif isinstance(found, TyperGroup):
            yield from subcommands(found)
        else:
            yield from options(found)


def exits() -> list[str]:
    rows = [
        ("0", "done"), ("1", "a check failed, or the store is damaged"), ("2", "bad usage or bad input"),
        ("3", "does not fit in memory, or the disk is full"), ("70", "a bug; `--debug` shows where"),
        ("129, 130, 143", "terminal closed, interrupted, terminated"),
    ]  # fmt: skip
    return table(("exit code", "meaning"), rows)


def subcommands(group: Any) -> Iterator[str]:
    import typer

    context = typer.Context(group)
    names = group.list_commands(context)
    return shared_options({each: group.resolve_command(context, [each])[1] for each in names})


def shared_options(named: dict[str, Any]) -> Iterator[str]:
    """What the commands of a group have in common is told once."""
    shared = [{spelled(option) for option in options_in(each)} for each in named.values()]
    common = set.intersection(*shared) if len(shared) > 1 else set()
    rows = []
    for name, found in named.items():
        own = [spelled(option) for option in options_in(found) if spelled(option) not in common]
        rows.append((f"`{name}`", plain((found.help or "").split("\n\n")[0]), " ".join(f"`{each}`" for each in own)))
    yield from table(("name", "does", "options of its own"), rows)
    first = next(iter(named.values()))
    yield from table(
        ("option of all", "meaning"),
        [(f"`{spelled(each)}`", plain(each.help or "")) for each in options_in(first) if spelled(each) in common],
    )


def options_in(command: Any) -> list[Any]:
    return [each for each in command.params if each.param_type_name == "option" and each.name != "help"]


def spelled(option: Any) -> str:
    return "/".join([*option.opts, *option.secondary_opts])


def options(command: Any) -> list[str]:
    rows = []
    for each in command.params:
        if each.name == "help":
            continue
        if each.param_type_name == "argument":
            named = (each.metavar or each.name.upper()).replace("|", "` or `")
            rows.append((f"`{named}`", plain(each.help or "")))
        else:
            rows.append((f"`{spelled(each)}`", plain(each.help or "")))
    return table(("option", "meaning"), rows)


def plain(text: str) -> str:
    """Without the markup of the terminal."""
    return " ".join(re.sub(r"\[/?[a-z ]*\]", "", text.split("\b", 1)[0]).split()).replace("<", "&lt;")


# ---- settings


def settings() -> Iterator[str]:
    from penstock.config import Settings
    from penstock.interfaces.cli.config import meanings

    yield from ("# Settings", "", GENERATED, "")
    yield from (
        "What a run may use. Given, weakest first, as a variable (`PENSTOCK_MEMORY_LIMIT=2GB`), for a block",
        '(`with pk.config(memory_limit="2GB"):`), for one call (`memory_limit="2GB"`) or command (`--memory-limit',
        "2GB`). Sizes are numbers of bytes, `512MB` (powers of 1000) or `2GiB` (powers of 1024). `penstock config`",
        "shows what is in force and where it comes from.",
        "",
    )
    found = meanings()
    first = {"memory_limit": "80 % of the RAM or of the container's limit", "threads": "the cores one may use"}
    rows = [
        (f"`{each.name}`", first.get(each.name, f"`{each.default}`"), found[each.name]) for each in fields(Settings)
    ]
    yield from table(("setting", "default", "meaning"), rows)


PAGES = {"python": python, "algorithms": algorithms, "commands": commands, "settings": settings}


def render(name: str) -> str:
    """The text of one page."""
    return "\n".join(PAGES[name]()).rstrip() + "\n"


def main() -> None:
    HERE.mkdir(exist_ok=True)
    for name in PAGES:
        text, path = render(name), HERE / f"{name}.md"
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
