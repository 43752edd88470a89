"""Pairs as lines of text, for people: every so many, in the form they ask for."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from penstock.errors import UsageError
from penstock.mapreduce.columns import Column, to_list
from penstock.mapreduce.multivalue import KeyMultiValue
from penstock.store.whole import whole_file

if TYPE_CHECKING:
    from penstock.mapreduce.data import Data

Form = Callable[[Any], str]


def show(
    data: Data,
    file: Any = None,
    *,
    stride: int = 1,
    key: Any = None,
    value: Any = None,
    separator: str = " ",
    overwrite: bool = False,
) -> int:
    """Print every `stride`-th entry of this rank; how many lines that made."""
    if stride < 1:
        raise UsageError(f"stride: {stride} is not a whole number of at least 1")
    forms = _form(key, "key"), _form(value, "value")
    with _opened(file, data, overwrite) as sink:
        if isinstance(data, KeyMultiValue):
            return _groups(data, sink, stride, forms, separator)
        lines = 0
        for row, pair in enumerate(data):  # type: ignore[arg-type, var-annotated]
            if row % stride == 0:
                shown = [(form, each) for form, each in zip(forms, pair, strict=True) if form and each is not None]
                sink.write(separator.join(form(each) for form, each in shown) + "\n")
                lines += 1
        return lines


def _groups(kmv: KeyMultiValue, sink: TextIO, stride: int, forms: tuple[Form | None, ...], separator: str) -> int:
    """A key, then its values; those of one key may be more than memory holds, so they are written as they come."""
    lines, row, shown = 0, -1, False
    for key, values, continues in kmv.blocks():
        if not continues:
            sink.write("\n" if shown else "")
            row += 1
            shown = row % stride == 0
            lines += shown
            if shown and forms[0] is not None:
                sink.write(forms[0](key))
        if shown and forms[1] is not None:
            _write_values(sink, values, forms[1], separator, bare=continues is False and forms[0] is None)
    sink.write("\n" if shown else "")
    return lines


def _write_values(sink: TextIO, values: Column, form: Form, separator: str, bare: bool) -> None:
    text = separator.join(form(each) for each in to_list(values))
    sink.write(text if bare else separator + text)


def _form(wanted: Any, what: str) -> Form | None:
    """How to write one value: None as it is, False not at all, a format such as ".3f", or a function."""
    if wanted is False:
        return None
    if wanted is None or wanted is True:
        return _plain
    if callable(wanted):
        return lambda each: str(wanted(each))
    if isinstance(wanted, str):

        def formatted(each: Any) -> str:
            try:
                return format(each, wanted)
            except (ValueError, TypeError):
                raise UsageError(f"the format {wanted!r} does not fit the {what} {each!r:.40}") from None

        return formatted
    raise UsageError(f"{what}: {wanted!r} is neither a format, nor a function, nor False")


def _plain(each: Any) -> str:
    if each is None:
        return ""
    if isinstance(each, bytes):
        return each.decode("utf-8", "backslashreplace")
    if isinstance(each, str):
        return each.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
    return " ".join(map(str, each)) if isinstance(each, tuple) else str(each)


@contextlib.contextmanager
def _opened(file: Any, data: Data, overwrite: bool) -> Iterator[TextIO]:
    """Each rank has a file of its own: `NAME.0`, `NAME.1`, ...; a single one has NAME."""
    if file is None:
        yield sys.stdout
    elif hasattr(file, "write"):
        yield file
    else:
        target = Path(os.fspath(file))
        if data.mr.communicator.size > 1:
            target = target.with_name(f"{target.name}.{data.mr.rank}")
        with whole_file(target, overwrite=overwrite) as partial, partial.open("w", encoding="utf-8") as sink:
            yield sink


__all__ = ["show"]
