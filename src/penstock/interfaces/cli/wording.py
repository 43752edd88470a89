"""Errors speak of Python's keywords; who typed a command is told its options."""

from __future__ import annotations

import re
from collections.abc import Collection

from penstock.errors import InputError, PenstockError, TargetExists, UsageError

_RENAMED = {"types": "type", "stripes": "stripe"}
_KEYWORDS = (
    "allow_empty|allow_nan|column|columns|comment|compression|delimiter|duplicates|fill|format|header|ids|max_depth|max_iter|"
    "overwrite|renumber|source|stripes|target|types|undirected|vertex_fill|weight"
)
_SPELLINGS = (
    (rf"\b(?:{_KEYWORDS})=(?:True)? \((--[a-z-]+)\)", r"\1"),  # both are named: the option is enough
    (rf"(--[a-z-]+) \((?:{_KEYWORDS})=True\)", r"\1"),
    (rf"\b({_KEYWORDS})=\{{(['\"])(.*?)\2: (?:\w+|\.\.\.)\}}", r"--\1 '\3=VALUE'"),
    (rf"\b({_KEYWORDS})=(?:\(\)|\[\])", r"--\1 ''"),
    (rf"\b({_KEYWORDS})='(\w+)'", r"--\1 \2"),
    (rf"\b({_KEYWORDS})=(?:True\b|(?=[\s,;:)]|$))", r"--\1"),
    (r"(?<![-\w])(max_(?:iter|depth))\b", r"--\1"),  # options of algorithms that are no words
)


def as_options(text: str) -> str:
    """`use ids='string'` -> `use --ids string`."""
    for keyword, option in _SPELLINGS:
        text = re.sub(keyword, option, text)
    return re.sub(rf"--({_KEYWORDS})\b", lambda found: "--" + _option(found[1]), text)


def told(error: PenstockError) -> str:
    """What the error says, in the words of the command line. What it quotes from the input stays as it is."""
    if isinstance(error, InputError):
        whole = str(error)
        return whole if error.hint is None else whole.removesuffix(f"({error.hint})") + f"({as_options(error.hint)})"
    return as_options(str(error)) if isinstance(error, UsageError | TargetExists) else str(error)


def reachable(error: InputError, options: Collection[str]) -> InputError:
    """The error, for a command of these options: what else its hint names are options of ingest."""
    named = {_RENAMED.get(keyword, keyword) for keyword in re.findall(rf"\b({_KEYWORDS})=", error.hint or "")}
    if named <= set(options):
        return error
    hint = f"build a store with penstock ingest first: {error.hint}"
    return InputError(error.reason, path=error.path, line=error.line, hint=hint)


def _option(keyword: str) -> str:
    return _RENAMED.get(keyword, keyword).replace("_", "-")


__all__ = ["as_options", "reachable", "told"]
