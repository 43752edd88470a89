from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from penstock import errors
from penstock.config import parse_size
from penstock.errors import DiskFull, DoesNotFit, InputError, PenstockError, StoreError, UsageError, VertexNotFound

CLASSES = [c for c in vars(errors).values() if isinstance(c, type) and issubclass(c, PenstockError)]
EXAMPLES = [
    UsageError("no"),
    InputError("3 fields, not 2", path=Path("a.txt"), line=7, hint="say --columns"),
    StoreError("no store"),
    VertexNotFound("there is no vertex 7"),
    DoesNotFit("PageRank", needed=1_540_000_000, limit=10**9),
    DiskFull("no space left in /tmp"),
]


def test_exit_codes() -> None:
    codes = {c.__name__: c.exit_code for c in CLASSES}
    assert codes == {
        "PenstockError": 2,
        "UsageError": 2,
        "ProgramError": 2,
        "InputError": 2,
        "StoreError": 2,
        "TargetExists": 2,
        "TargetLocked": 2,
        "DamagedStore": 1,
        "VertexNotFound": 2,
        "DoesNotFit": 3,
        "DeviceFull": 3,
        "DiskFull": 3,
    }


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (EXAMPLES[0], ValueError),
        (EXAMPLES[1], ValueError),
        (EXAMPLES[3], KeyError),
        (EXAMPLES[4], MemoryError),
        (EXAMPLES[5], OSError),
    ],
)
def test_python_programmers_may_catch_the_usual_classes(error: PenstockError, kind: type[Exception]) -> None:
    assert isinstance(error, kind)


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (InputError("bad"), "bad"),
        (InputError("bad", path="x.mtx"), "x.mtx: bad"),
        (InputError("bad", path="x.mtx", line=3), "x.mtx, line 3: bad"),
        (InputError("bad", line=3), "line 3: bad"),
        (InputError("bad", path="x.mtx", line=3, hint="mend it"), "x.mtx, line 3: bad (mend it)"),
    ],
)
def test_input_errors_say_where(error: InputError, text: str) -> None:
    assert str(error) == text


def test_a_missing_vertex_is_said_without_quotes() -> None:
    assert str(VertexNotFound("there is no vertex 7")) == "there is no vertex 7"


def test_the_size_to_set_is_enough() -> None:
    error = DoesNotFit("PageRank", needed=1_540_000_000, limit=1_499_000_000)
    assert str(error) == "PageRank needs 1.6 GB, but memory_limit is 1.4 GB: set memory_limit to at least 1.6 GB"
    assert parse_size(str(error).rpartition("at least ")[2]) >= error.needed


def test_another_setting_can_be_too_small() -> None:
    error = DoesNotFit("the sort", needed=2000, limit=1000, setting="gpu_memory_limit")
    assert "set gpu_memory_limit to at least 2.0 kB" in str(error)


@pytest.mark.parametrize("error", EXAMPLES, ids=lambda e: type(e).__name__)
def test_errors_travel_between_processes(error: PenstockError) -> None:
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is type(error)
    assert str(again) == str(error)
    assert vars(again) == vars(error)
