"""A key for what functions do, for caches of what is compiled from them."""

from __future__ import annotations

import hashlib
import types
from collections.abc import Mapping
from typing import Any

import numpy as np

from penstock.version import VERSION


def fingerprint(*things: Any) -> str:
    """A key for what these values and functions do: it changes with a function's code, and with what that refers to,
    and is the same in every process."""
    digest = hashlib.sha256()
    seen: set[int] = set()

    def add(thing: Any) -> None:
        if isinstance(thing, types.FunctionType):
            if id(thing) in seen:
                return
            seen.add(id(thing))
            # What is cached imports the function's module: the same function elsewhere is another one.
            digest.update(f"{thing.__module__}.{thing.__name__}".encode())
            code(thing.__code__)
            for cell in thing.__closure__ or ():
                add(cell.cell_contents)
            add(thing.__defaults__)
            for name in sorted(names_in(thing.__code__)):
                if name in thing.__globals__:
                    digest.update(name.encode())
                    add(thing.__globals__[name])
        elif isinstance(thing, types.CodeType):
            code(thing)
        elif isinstance(thing, types.ModuleType | type):
            digest.update(thing.__name__.encode())
        elif isinstance(thing, tuple | list):
            digest.update(b"(")
            for item in thing:
                add(item)
            digest.update(b")")
        elif isinstance(thing, Mapping):
            add(list(thing.items()))  # in its own order, which is that of the fields
        elif hasattr(thing, "__dataclass_fields__") and not isinstance(thing, type):
            add([getattr(thing, name) for name in sorted(thing.__dataclass_fields__)])
        elif isinstance(thing, np.ndarray):
            digest.update(f"{thing.dtype}{thing.shape}".encode() + thing.tobytes())
        elif callable(thing) and hasattr(thing, "py_func"):
            add(thing.py_func)
        elif isinstance(thing, str | bytes | int | float | complex | bool | type(None) | np.generic | np.dtype):
            digest.update(f"{type(thing).__name__}:{thing!r}".encode())
        else:
            digest.update(f"{type(thing).__module__}.{type(thing).__qualname__}".encode())

    def code(value: types.CodeType) -> None:
        digest.update(value.co_code)
        digest.update(" ".join(value.co_names).encode())
        add([item for item in value.co_consts if not isinstance(item, str) or len(item) < 200])

    digest.update(VERSION.encode())
    add(things)
    return digest.hexdigest()


def names_in(code: types.CodeType) -> set[str]:
    """The names that code refers to, and the code inside it."""
    found = set(code.co_names)
    for item in code.co_consts:
        if isinstance(item, types.CodeType):
            found |= names_in(item)
    return found


__all__ = ["fingerprint", "names_in"]
