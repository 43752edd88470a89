"""The options of a command out of the parameters of an algorithm: `max_iter: Annotated[int, "..."] = 100` becomes
`--max-iter`."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, get_args, get_origin

import typer

from penstock.errors import InputError, UsageError
from penstock.options import kind_of

PANEL = "Options of the algorithm"


def parameters(known: Mapping[str, inspect.Parameter]) -> dict[str, inspect.Parameter]:
    """The same parameters, as Typer wants them."""
    return {name: _parameter(name, parameter) for name, parameter in known.items()}


def group(made: Mapping[str, inspect.Parameter]) -> Callable[..., dict[str, Any]]:
    """These parameters as a group of options for `with_options`."""

    def values(**given: Any) -> dict[str, Any]:
        return given

    values.__signature__ = inspect.Signature(list(made.values()))  # type: ignore[attr-defined]
    return values


def takes_ids(parameter: inspect.Parameter) -> bool:
    """Whether a parameter names vertices. Their type is the store's, so it is none that could be written down."""
    return kind_of(parameter)[0] is Any


def _parameter(name: str, parameter: inspect.Parameter) -> inspect.Parameter:
    kind, optional = kind_of(parameter)
    help = next(iter(getattr(parameter.annotation, "__metadata__", ())), "")
    word = name.replace("_", "-")
    flags, metavar = f"--{word}", None
    if kind is Any:
        kind, metavar = list[str], "ID[,ID]|@FILE"
    elif kind is bool:
        flags = f"--{word}/--no-{word}"
    elif get_origin(kind) is Literal:
        kind, metavar = str, "|".join(map(str, get_args(kind)))
    elif get_origin(kind) is list:
        metavar = f"{name.upper()}[,...]"
    option = typer.Option(
        flags, help=help, metavar=metavar, rich_help_panel=PANEL, show_default=parameter.default is not None
    )
    given: Any = kind | None if optional else kind
    return inspect.Parameter(
        name, inspect.Parameter.KEYWORD_ONLY, default=parameter.default, annotation=Annotated[given, option]
    )


def chosen(known: Mapping[str, inspect.Parameter], values: Mapping[str, Any], id_kind: str) -> dict[str, Any]:
    """What was given, as the algorithm wants it: ids in the store's type; what was left out is left out."""
    found: dict[str, Any] = {}
    for name, value in values.items():
        parameter = known[name]
        if value is None or value == parameter.default:
            continue
        if takes_ids(parameter):
            found[name] = read_ids(f"--{name.replace('_', '-')}", value, id_kind)
        elif isinstance(value, list):
            found[name] = [word for each in value for word in each.split(",") if word]
        else:
            found[name] = value
    return found


def read_ids(option: str, words: Sequence[str], kind: str) -> Any:
    """`["1,2", "@more.txt"]`: the ids, or the id if it is one; in a file each has a line."""
    found: list[Any] = []
    for word in words:
        if word.startswith("@"):
            found += _from_file(Path(word[1:]), kind)
            continue
        for text in word.split(","):
            try:
                found.append(text if kind == "string" else int(text))
            except ValueError:
                raise UsageError(f"{option} {text!r} is no id of this graph, whose ids are integers") from None
    return found[0] if len(found) == 1 else found


def _from_file(path: Path, kind: str) -> list[Any]:
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "is no text in UTF-8"
        hint = "@ stands before the name of a file of ids; an id that begins with @ has to be in one"
        raise InputError(f"{reason}", path=path, hint=hint) from None
    if kind == "string":
        return lines
    found = []
    for number, line in enumerate(lines, 1):
        if line.strip():
            try:
                found.append(int(line))
            except ValueError:
                raise InputError(f"{line.strip()!r} is no integer id", path=path, line=number) from None
    return found


__all__ = ["chosen", "group", "parameters", "read_ids", "takes_ids"]
