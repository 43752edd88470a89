"""What a program may say, and what is said of one that makes no sense."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import penstock as pk
from graphs import make_graph
from penstock.engine.program import NUMBER, Bucketed, Combine, Pair, Row, Sweep
from penstock.errors import ProgramError, UsageError
from penstock.graph import Graph


def init(v, p):
    return v.number


def emit(v, p):
    return v.x


def update(v, total, p):
    return total


def unknown_field(v, total, p):
    return v.y


def text(v, p):
    return "no number"


GOOD: dict[str, Any] = {
    "name": "mine", "state": {"x": "int64"}, "reads": ("number",), "init": init, "message": "int64", "emit": emit,
    "update": update,
}  # fmt: skip


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Graph:
    edges = {"source": np.array([0, 1, 2, 0]), "target": np.array([1, 2, 0, 2])}
    return pk.ingest(edges, tmp_path_factory.mktemp("program") / "g.pen", order="input", page_size=4096)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"state": {}}, "has no state"),
        ({"state": {"x": "U8"}}, "'x' is a number or a bool"),
        ({"state": {"_x": "int64"}}, "'_x' cannot be the name"),
        ({"state": {"class": "int64"}}, "'class' cannot be the name"),
        ({"reads": ("a b",)}, "'a b' cannot be the name"),
        ({"reads": ("x",)}, "names 'x' twice"),
        ({"params": {"step": 1}}, "the engine itself gives the parameter 'step'"),
        ({"along": "up"}, "along is 'out', 'in' or 'both', not 'up'"),
        ({"message": None}, "needs a message type"),
        ({"update": None}, "needs a message type and an update function"),
        ({"emit": None}, "needs an emit function, or NUMBER"),
        ({"lanes": 0}, "has 0 lanes"),
        ({"bucketed": Bucketed("x")}, "needs a frontier and a field 'x'"),
    ],
)
def test_nonsense_is_refused(changed: dict[str, Any], message: str) -> None:
    assert Combine(**GOOD)
    with pytest.raises(UsageError, match=message):
        Combine(**{**GOOD, **changed})


def test_other_forms_say_what_they_need() -> None:
    with pytest.raises(UsageError, match="arc function"):
        Sweep("mine", {"x": "int64"}, init)
    with pytest.raises(UsageError, match="row function"):
        Row("mine", {"x": "int64"}, init, message="int64", emit=emit)
    with pytest.raises(UsageError, match="update function"):
        Pair("mine", {"x": "int64"}, init)


def test_numbers_need_no_emit() -> None:
    program = Combine(**{**GOOD, "message": NUMBER, "emit": None})
    assert program.numbered
    assert program.contribution_dtype(np.dtype(np.uint32)) == np.uint32
    assert Combine(**GOOD).contribution_dtype(np.dtype(np.uint32)) == np.int64


@pytest.mark.parametrize("name", ["update", "emit"])
def test_the_line_that_does_not_compile_is_named(graph: Graph, name: str) -> None:
    function = {"update": unknown_field, "emit": unknown_field_of_sender}[name]
    line = function.__code__.co_firstlineno + 1
    with pytest.raises(ProgramError) as caught:
        pk.run(Combine(**{**GOOD, name: function}), graph, max_iter=1, device="cpu")
    said = str(caught.value)
    assert f"{Path(__file__).name}:{line}: {name} of program mine does not compile" in said
    assert "\n" not in said


def unknown_field_of_sender(v, p):
    return v.z


def test_a_message_that_is_no_number(graph: Graph) -> None:
    with pytest.raises(ProgramError, match="program mine does not compile"):
        pk.run(Combine(**{**GOOD, "emit": text}), graph, max_iter=1, device="cpu")


@pytest.mark.parametrize("device", ["cpu", "reference"])
def test_parameters_keep_their_types(graph: Graph, device: str) -> None:
    def told(v, total, p):
        return p.whole // 2 + p.real * 100 + (1000 if p.flag else 0) + 10000 * p.vertices

    params = {"whole": 3, "real": 0.5, "flag": False}
    program = Combine(**{**GOOD, "state": {"x": "float64"}, "message": "float64", "update": told, "params": params})

    def found(**given: Any) -> list[float]:
        result: list[float] = pk.run(program, graph, max_iter=1, device=device, **given).table.column("x").to_pylist()
        return result

    assert found() == [30051] * 3
    assert found(whole=5.0, real=1, flag=1) == [31102] * 3
    with pytest.raises(UsageError, match="has no parameter 'speed'; it has whole, real, flag"):
        found(speed=1)


def test_what_never_ends_is_refused(graph: Graph) -> None:
    with pytest.raises(UsageError, match="say when to stop"):
        pk.run(Combine(**GOOD), graph)
    with pytest.raises(UsageError, match="neither the name of an algorithm nor a program"):
        pk.run(GOOD, graph)  # type: ignore[arg-type]


def is_seed(v):
    return v.seed > 0


def seeds_in_update(v, total, p):
    return 100 if is_seed(v) else 1


def test_a_seed_that_a_called_function_asks_for_is_kept(tmp_path: Path) -> None:
    graph = make_graph(tmp_path, [0, 1], [1, 2])
    program = pk.Combine(
        name="seeds", state={"x": "int64"}, reads=("seed",), init=lambda v, p: 0, message="int64",
        emit=lambda v, p: v.x, combine=pk.SUM, update=seeds_in_update,
    )  # fmt: skip
    for device in ("cpu", "reference"):
        assert pk.run(program, graph, source=0, max_iter=1, device=device).to_dict() == {0: 100, 1: 1, 2: 1}


def test_a_tally_needs_no_frontier() -> None:
    with pytest.raises(UsageError, match="tally"):
        pk.Combine(
            name="t", state={"x": "int64"}, init=lambda v, p: (0, True), message="int64", emit=lambda v, p: v.x,
            update=lambda v, t, p: (t, True), frontier=True, tally=lambda v, p: 1.0,
        )  # fmt: skip
