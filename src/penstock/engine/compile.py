"""From a program's Python functions to kernels: named tuples around arrays, a key for the cache, errors that point at
the user's line."""

from __future__ import annotations

import functools
import inspect
import re
import types
from collections import namedtuple
from collections.abc import Callable, Iterable
from types import SimpleNamespace
from typing import Any

import numpy as np

from penstock.engine.program import GIVEN, Combine, Program
from penstock.errors import ProgramError
from penstock.memory.device import CompileError, inlined, is_replaced, template_kernel
from penstock.memory.fingerprint import fingerprint, names_in

FAST = {"reassoc", "nsz", "contract", "arcp", "afn"}
"""Sums may be reordered, but infinities and NaN keep their meaning: distances use them."""
_MADE_UP = {"number": "n", "lane": "j", "seed": "seed"}

# ---- adapters: a handful of generated lines between arrays and named tuples


def _made(name: str, source: str, **names: Any) -> Any:
    # Cached kernels name the module of every function in them.
    space = {"__name__": __name__, **names}
    exec(source, space)
    return space[name]


def _tuple_class(name: str, fields: Iterable[str]) -> Any:
    return namedtuple(name, list(fields), rename=True)


def vertex_class(program: Program) -> Any:
    """The named tuple a function sees as `v`."""
    return _tuple_class("Vertex", [*program.state, *program.reads])


def params_class(program: Program) -> Any:
    """The named tuple a function sees as `p`."""
    return _tuple_class("Params", [*program.params, *GIVEN])


def state_class(program: Program) -> Any:
    """The named tuple of whole arrays that a function of a sweep sees as `state`."""
    return _tuple_class("State", program.state)


def edge_class(program: Program) -> Any:
    """The named tuple a function sees as `e`."""
    return _tuple_class("Edge", [*program.columns, *edge_fields(program)])


def edge_fields(program: Program) -> dict[str, np.dtype]:
    """The fields of an arc that a program keeps: only the combine form does."""
    return program.edge_fields() if isinstance(program, Combine) else {}


def adapters(program: Program, *, flagged: bool) -> SimpleNamespace:
    """`load`, `store`, `unpack`, `arc_values`, `store_arc`, `whole`, `awake` for this program. `flagged`: its functions
    return a flag after the fields. The arrays of an arc's fields come after those of its columns."""
    lanes = getattr(program, "lanes", 1) > 1
    at = "i, j" if lanes else "i"
    fields, stored = list(program.state), program.stored_reads()
    values = [f"s[{k}][{at}]" for k in range(len(fields))]
    values += [f"r[{stored.index(name)}][i]" if name in stored else _MADE_UP[name] for name in program.reads]
    load = f"def load(s, r, i, n, j, seed=0):\n    return Vertex({', '.join(values)})\n"
    single = len(fields) == 1 and not flagged
    lines = [f"    s[{k}][{at}] = new{'' if single else f'[{k}]'}\n" for k in range(len(fields))]
    store = "def store(s, i, j, new):\n" + "".join(lines)
    names = [*program.params, *GIVEN]
    passed = [f"t[{k}]" + (" + later" if name == "step" else "") for k, name in enumerate(names)]
    unpack = f"def unpack(t, later=0):\n    return Params({', '.join(passed)})\n"
    own, kept = len(program.columns), len(edge_fields(program))
    columns = [f"c[{k}][a]" for k in range(own + kept)]
    values_of = f"def arc_values(c, a):\n    return {f'Edge({chr(44).join(columns)})' if columns else '()'}\n"
    lines = [f"    c[{own + k}][a] = new[{k + 1}]\n" for k in range(kept)]
    store_arc = "def store_arc(c, a, new):\n" + "".join(lines) + f"    return new{'[0]' if kept else ''}\n"
    arrays = ", ".join(f"s[{k}]" for k in range(len(fields)))
    whole = f"def whole(s):\n    return State({arrays})\n"
    awake = f"def awake(new):\n    return {f'new[{len(fields)}]' if flagged else 'True'}\n"
    return SimpleNamespace(
        load=inlined(_made("load", load, Vertex=vertex_class(program))),
        store=inlined(_made("store", store)),
        unpack=inlined(_made("unpack", unpack, Params=params_class(program))),
        arc_values=inlined(_made("arc_values", values_of, Edge=edge_class(program))),
        store_arc=inlined(_made("store_arc", store_arc)),
        whole=inlined(_made("whole", whole, State=state_class(program))),
        awake=inlined(_made("awake", awake)),
    )


@functools.cache
def usable(function: Callable[..., Any]) -> Any:
    """A user's function as kernels can call it."""
    # Those of a program on the fly (tests, notebooks) are compiled like those of a module.
    for name in names_in(function.__code__):
        inner = function.__globals__.get(name)
        if isinstance(inner, types.FunctionType) and inner is not function and not is_replaced(inner):
            usable(inner)
    return inlined(function, fastmath=FAST)


def make_kernel(template: Callable[..., Any], parts: SimpleNamespace, program: Program, *about: Any) -> Any:
    """A kernel from a template and the functions in `parts`; what it is made of is its key."""
    key = fingerprint(template.__qualname__, program.makeup(), *about)
    made = template_kernel(template(parts), key, fastmath=FAST)
    return Guarded(made, program)


class Guarded:
    """A kernel that says where in a program's source it did not compile."""

    __slots__ = ("kernel", "program")

    def __init__(self, kernel: Any, program: Program) -> None:
        self.kernel, self.program = kernel, program

    def __call__(self, *args: Any) -> Any:
        try:
            return self.kernel(*args)
        except CompileError as error:
            raise explained(error, self.program) from error


def explained(error: Exception, program: Program) -> ProgramError:
    """The user's file and line, and the first sentence that says what is wrong there."""
    functions = {
        value.__code__.co_filename: value for value in vars(program).values() if isinstance(value, types.FunctionType)
    }
    text = re.sub(r"\x1b\[[0-9;]*m", "", str(error))
    places = [
        (match[1], int(match[2]))
        for match in re.finditer(r'File "([^"]+)", line (\d+)', text)
        if match[1] in functions or any(file.endswith(match[1]) for file in functions)
    ]
    reasons = [
        line.strip()
        for line in text.splitlines()
        if line.strip() and not line.startswith((" ", "During", "Failed in", "File", "<source"))
    ]
    reason = next(
        (line for line in reasons if not line.endswith("pipeline (step: nopython frontend)")), "it is not valid"
    )
    if not places:
        return ProgramError(f"program {program.name} does not compile: {reason}")
    file, line = places[-1]
    name = _function_at(program, file, line)
    return ProgramError(f"{file}:{line}: {name} of program {program.name} does not compile: {reason}")


def _function_at(program: Program, file: str, line: int) -> str:
    for name, value in vars(program).items():
        if isinstance(value, types.FunctionType) and value.__code__.co_filename.endswith(file):
            lines, first = inspect.getsourcelines(value)
            if first <= line < first + len(lines):
                return name
    return "a function"
