"""Which kind of function is which, and what is said of those that are none."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from penstock.errors import ProgramError, UsageError
from penstock.mapreduce.functions import chunk, compiled, emit, pairs_of, python, resolve
from penstock.mapreduce.session import MapReduce


@pytest.fixture
def mr() -> Iterator[MapReduce]:
    with MapReduce(memory_limit="64MB", threads=2) as made:
        yield made


def by_columns(keys, values):
    return keys, values


def emitting(key, value, out):
    emit(out, key, value)


def plain(key, value):
    return key, value


def with_emit(key, value, emit):
    emit(key, value)


def test_the_kind_is_found_out() -> None:
    assert resolve(by_columns).kind == "chunk"
    assert resolve(emitting).kind == "compiled"
    assert resolve(emitting).emits
    assert resolve(plain).kind == "python"
    assert not resolve(plain).emits
    assert resolve(with_emit).emits
    assert resolve(divmod).kind == "python"


def test_the_kind_is_declared() -> None:
    assert resolve(chunk(lambda a, b: (a, b))).kind == "chunk"
    made = resolve(compiled(key="int32", value=float)(lambda a, b: (a, b)))
    assert (made.kind, made.key, made.value) == ("compiled", "int32", "float64")
    assert resolve(python(lambda keys, values: None)).kind == "python"
    assert resolve(by_columns, "python").kind == "python"
    assert resolve(chunk(parallel=True)(lambda a, b: (a, b))).parallel


def test_a_declared_value_may_be_nothing() -> None:
    assert resolve(compiled(value=None)(lambda a, b: (a, b))).value == np.dtype([])
    assert resolve(compiled(lambda a, b: (a, b))).value is None


@pytest.mark.parametrize(
    ("function", "kind", "words"),
    [
        (7, "auto", "takes a function"),
        (plain, "fast", "no kind of function"),
        (lambda a: a, "auto", "takes 2 arguments, or 3 with emit, not 1"),
        (lambda a, b, c: a, "chunk", "takes 2 arguments, not 3"),
    ],
)
def test_what_is_no_function_is_refused(function: object, kind: str, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        resolve(function, kind)


def test_emit_works_uncompiled() -> None:
    out: list = []
    emitting(1, 2, out)
    assert out == [(1, 2)]


def test_what_is_no_pair_is_refused() -> None:
    function = resolve(plain)
    assert list(pairs_of((1, 2), function)) == [(1, 2)]
    assert list(pairs_of([(1, 2), (3, 4)], function)) == [(1, 2), (3, 4)]
    assert list(pairs_of(None, function)) == []
    for wrong in (7, "ab", (1, 2, 3)):
        with pytest.raises(ProgramError, match=r"plain \(.*test_functions.py:\d+\).* is no pair"):
            pairs_of(wrong, function)


def unknown_attribute(key, value, out):
    twice = key
    emit(out, twice, value.nonesuch)


def emits_text(key, value, out):
    emit(out, key, "text")


def returns_one(key, value):
    return key


@pytest.mark.parametrize(
    ("function", "line", "words"),
    [
        (unknown_attribute, 2, "nonesuch"),
        (emits_text, 1, "emit takes numbers"),
        (returns_one, 0, "must return a pair"),
    ],
)
def test_errors_name_the_users_line(mr: MapReduce, function, line: int, words: str) -> None:
    at = function.__code__.co_firstlineno + line
    with pytest.raises(ProgramError, match=rf"test_functions.py:{at}: {function.__name__} does not compile: .*{words}"):
        mr.keyvalue([1, 2], [3, 4]).map(function, kind="compiled")


def test_compiled_functions_take_fixed_width_only(mr: MapReduce) -> None:
    with pytest.raises(UsageError, match="fixed width"):
        mr.keyvalue(["a"], [1]).map(emitting)


def test_what_a_function_refers_to_may_change(mr: MapReduce) -> None:
    kv = mr.keyvalue([1, 2], [3, 4])
    found = []
    for step in (10, 20):

        def shifted(key, value, out, step=step):
            emit(out, key + step, value)

        found.append([key for key, _ in kv.map(shifted)])
    assert found == [[11, 12], [21, 22]]
