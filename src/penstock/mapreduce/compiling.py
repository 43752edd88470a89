"""From a user's function of one pair to kernels over columns, and errors that point at the user's line."""

from __future__ import annotations

import re
import types
from collections.abc import Callable
from typing import Any

from penstock.errors import ProgramError
from penstock.mapreduce.functions import Function, emit
from penstock.memory.device import CompileError, inlined, is_replaced, template_kernel
from penstock.memory.fingerprint import fingerprint, names_in

_KEPT = 256
_kernels: dict[str, Any] = {}


class Guarded:
    """A kernel that says where in the user's source it did not compile."""

    __slots__ = ("function", "kernel")

    def __init__(self, kernel: Any, function: Function) -> None:
        self.kernel, self.function = kernel, function

    def __call__(self, *args: Any) -> Any:
        try:
            return self.kernel(*args)
        except CompileError as error:
            raise explained(error, self.function) from error


def kernel_of(template: Callable[..., Any], function: Function, adapter: Callable[..., Any] | None = None) -> Guarded:
    """The kernel that `template` makes around the function, seen through `adapter` if it only returns what it makes.

    What the function refers to is looked at each time: it may have changed since.
    """
    key = fingerprint(template.__qualname__, function.call, None if adapter is None else adapter.__qualname__)
    found = _kernels.get(key)
    if found is None:
        called = _usable(_copy(function))
        if adapter is not None:
            called = inlined(adapter(called))
        found = template_kernel(template(called), key)
        if len(_kernels) >= _KEPT:
            _kernels.clear()  # functions made in a loop
        _kernels[key] = found
    return Guarded(found, function)


def _copy(function: Function) -> types.FunctionType:
    """A function of its own: a compiler keeps what it saw of one object for good."""
    call = function.call
    if not isinstance(call, types.FunctionType):
        raise ProgramError(f"{function.name}: only a Python function can be compiled, not {type(call).__name__}")
    copy = types.FunctionType(call.__code__, call.__globals__, call.__name__, call.__defaults__, call.__closure__)
    copy.__module__, copy.__qualname__ = call.__module__, call.__qualname__
    return copy


def _usable(function: types.FunctionType) -> Any:
    """A function that kernels can call, and all it calls with it."""
    for name in names_in(function.__code__):
        _use(function.__globals__.get(name), function)
    for cell in function.__closure__ or ():
        _use(cell.cell_contents, function)
    return inlined(function)


_used: set[types.FunctionType] = set()


def _use(inner: Any, outer: Any) -> None:
    ours = not isinstance(inner, types.FunctionType) or inner in (outer, emit) or is_replaced(inner)
    if not ours and inner not in _used:
        _used.add(inner)
        _usable(inner)


def explained(error: Exception, function: Function) -> ProgramError:
    """The user's file and line, and the innermost sentence that says what is wrong there."""
    text = re.sub(r"\x1b\[[0-9;]*m", "", str(error))
    code = getattr(function.call, "__code__", None)
    file = "" if code is None else code.co_filename
    places = [
        int(match[2])
        for match in re.finditer(r'File "([^"]+)", line (\d+)', text)
        if file and (match[1] == file or file.endswith(match[1].lstrip("./")))
    ]
    name = getattr(function.call, "__name__", "the function")
    line = places[-1] if places else 0 if code is None else code.co_firstlineno
    where = f"{file}:{line}" if code is not None else name
    return ProgramError(f"{where}: {name} does not compile: {_reason(text, bool(places))}")


def _reason(text: str, placed: bool) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    ours = [line.removeprefix("NumbaError: ") for line in lines if line.startswith("NumbaError: ")]
    if ours:
        return ours[-1]
    begins = [k for k, line in enumerate(lines) if line.endswith("pipeline (step: nopython frontend)")]
    reason = (
        lines[begins[-1] + 1] if begins and begins[-1] + 1 < len(lines) else lines[0] if lines else "it is not valid"
    )
    calls = [line.removeprefix(">>> ") for line in lines if line.startswith(">>> ")]
    if "No implementation of function" in reason and calls:
        if "getitem" in calls[-1] and not placed:
            return "it must return a pair, (key, value)"
        return f"{calls[-1]} is not possible"
    return reason


__all__ = ["explained", "kernel_of"]
