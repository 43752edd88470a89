"""What kind of value an option takes, by its annotation, and whether one that was given is such a value."""

from __future__ import annotations

import inspect
import types
from collections.abc import Sequence
from numbers import Integral, Real
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from penstock.errors import UsageError

_PLAIN = (bool, int, float, str)


def kind_of(parameter: inspect.Parameter) -> tuple[Any, bool]:
    """(the type of the values, whether None is one): bool, int, float, str, a Literal, `list[str]`, or Any for ids."""
    kind = parameter.annotation
    if get_origin(kind) is Annotated:
        kind = get_args(kind)[0]
    optional = parameter.default is None
    if get_origin(kind) in (Union, types.UnionType):
        left = [each for each in get_args(kind) if each is not types.NoneType]
        optional |= len(left) < len(get_args(kind))
        kind = left[0] if len(left) == 1 else Any
    if get_origin(kind) in (list, tuple, Sequence) and get_args(kind)[0] is str:
        return list[str], optional
    return (kind if kind in _PLAIN or get_origin(kind) is Literal else Any), optional


def taken(parameter: inspect.Parameter, value: Any) -> Any:
    """The value as an option of this kind has it, or one sentence about why it is none. Ids are the store's matter."""
    kind, optional = kind_of(parameter)
    if value is None and optional:
        return None
    if kind is int:
        return whole(parameter.name, value, largest=2**63 - 1)
    if kind is float:
        return real(parameter.name, value)
    if kind is str and not isinstance(value, str):
        raise UsageError(f"{parameter.name} must be text, not {value!r}")
    if kind is bool and not isinstance(value, bool):
        return _truth(parameter.name, value)
    return value


def _truth(name: str, value: Any) -> bool:
    """What is no bool of Python may be one of NumPy, which is not loaded for the sake of `penstock --help`."""
    import numpy as np

    if not isinstance(value, np.bool_):
        raise UsageError(f"{name} must be True or False, not {value!r}")
    return bool(value)


def whole(name: str, value: Any, smallest: int | None = None, largest: int | None = None) -> int:
    """`value` as an int, or one sentence about why not."""
    is_one = isinstance(value, Integral) or (isinstance(value, Real) and float(value).is_integer())
    if isinstance(value, bool) or not is_one:
        raise UsageError(f"{name} must be a whole number, not {value!r}")
    number = int(value)
    if smallest is not None and number < smallest:
        raise UsageError(f"{name} must be at least {smallest}, not {value}")
    if largest is not None and number > largest:
        raise UsageError(f"{name} must be at most {largest}, not {value}")
    return number


def real(name: str, value: Any) -> float:
    """`value` as a float, likewise; which of them make sense, infinity say, is for those who use it to tell."""
    if isinstance(value, bool) or not isinstance(value, Real):
        raise UsageError(f"{name} must be a number, not {value!r}")
    return float(value)


__all__ = ["kind_of", "real", "taken", "whole"]
