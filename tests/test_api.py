"""What `import penstock` offers: every algorithm as a function, checks of their results, names for programs."""

from __future__ import annotations

import inspect
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import penstock as pk
from penstock.algorithms.registry import ALGORITHMS, options_of
from penstock.errors import UsageError


@pytest.fixture(scope="module")
def graph() -> pk.Graph:
    return pk.from_edges([1, 2, 3, 1], [2, 3, 4, 9], undirected=True)


@pytest.mark.parametrize("name", ALGORITHMS)
def test_every_algorithm_is_a_function(name: str) -> None:
    function = getattr(pk, name)
    assert name in dir(pk)
    if name == "pagerank":  # written down, for those whose editor reads no registries
        return
    assert function.__name__ == name
    assert list(inspect.signature(function).parameters) == ["graph", *options_of(name), "settings"]
    assert all(option in function.__doc__ for option in options_of(name))


def test_functions_run(graph: pk.Graph) -> None:
    assert pk.bfs(graph, source=1, tier="disk").to_dict() == {1: (0, 1), 2: (1, 1), 3: (2, 2), 4: (3, 3), 9: (1, 1)}
    with pytest.raises(UsageError, match="bfs has no option 'sauce'"):
        pk.bfs(graph, sauce=1)


@pytest.mark.parametrize(
    ("name", "options", "reason"),
    [
        ("bfs", {"source": 1, "max_depth": -1}, "max_depth must be at least 0, not -1"),
        ("bfs", {"source": 1, "max_depth": 1.5}, "max_depth must be a whole number, not 1.5"),
        ("pagerank", {"damping": "a"}, "damping must be a number, not 'a'"),
        ("pagerank", {"max_iter": True}, "max_iter must be a whole number, not True"),
        ("scan", {"mu": 2**70}, "mu must be at most"),
        ("sssp", {"source": 1, "parents": "yes"}, "parents must be True or False, not 'yes'"),
        ("sssp", {"source": 1, "dtype": 64}, "dtype must be text, not 64"),
    ],
)
def test_options_of_another_kind(graph: pk.Graph, name: str, options: dict[str, Any], reason: str) -> None:
    with pytest.raises(UsageError, match=reason):
        pk.run(name, graph, **options)


def test_numbers_of_numpy_are_numbers(graph: pk.Graph) -> None:
    found = pk.bfs(graph, source=np.int64(1), max_depth=np.int32(1))
    assert found.to_dict() == pk.bfs(graph, source=1, max_depth=1.0).to_dict()
    assert found.stats["options"]["max_depth"] == 1
    assert pk.pagerank(graph, damping=np.float32(0.5), max_iter=2).stats["iterations"] == 2
    assert pk.pagerank(graph, stop="fixed", max_iter=np.float32(2)).stats["iterations"] == 2


def test_every_name_is_there() -> None:
    for name in pk.__all__:
        assert getattr(pk, name) is not None
    with pytest.raises(AttributeError, match="nonsense"):
        _ = pk.nonsense


def test_folders_do_not_take_the_names_of_functions() -> None:
    code = "import penstock, penstock.verify.ranking, penstock.export.files, penstock.ingest.open; "
    code += "assert all(map(callable, (penstock.verify, penstock.export, penstock.ingest)))"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_program_of_the_names(graph: pk.Graph) -> None:
    def init(v: Any, p: Any) -> Any:
        return v.number, True

    def update(v: Any, least: Any, p: Any) -> Any:
        return (least, True) if least < v.least else (v.least, False)

    program = pk.Combine(
        name="least", state={"least": "uint32"}, reads=("number",), init=init, message="uint32",
        emit=lambda v, p: v.least, combine=pk.MIN, update=update, frontier=True,
    )  # fmt: skip
    assert set(pk.run(program, graph, device="reference").table["least"].to_pylist()) == {0}


def test_verify(graph: pk.Graph, tmp_path: Path) -> None:
    result = pk.bfs(graph, source=1)
    file = result.write(tmp_path / "levels.csv")
    for form in (result, result.table, file, str(file)):
        assert pk.verify("bfs", graph, form, source=1) == []
        assert pk.verify("bfs", graph, form, source=2)
    assert pk.verify("pagerank", graph, pk.pagerank(graph, tier="disk"), tier="disk") == []


@pytest.mark.parametrize(
    ("name", "options", "reason"),
    [
        ("alchemy", {}, "there is no check of 'alchemy'"),
        ("bfs", {"source": 1, "sauce": 2}, "bfs has no option 'sauce'"),
    ],
)
def test_verify_refuses(graph: pk.Graph, name: str, options: dict[str, Any], reason: str) -> None:
    with pytest.raises(UsageError, match=reason):
        pk.verify(name, graph, pk.bfs(graph, source=1), **options)
