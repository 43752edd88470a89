"""Result: rows in order of ids, the largest, files."""

from __future__ import annotations

import errno
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from graphs import make_graph
from penstock import result as module
from penstock.errors import DiskFull, TargetExists, UsageError
from penstock.graph import Graph
from penstock.result import SELF, Result

NAN = float("nan")


def star(path: Path, ids: Any = (30, -5, 12, 7), lonely: Any = (1, 99)) -> Graph:
    """The first id has edges to the others, the second two more arcs than the rest: numbers follow this order."""
    hub, *rest = ids
    source = [hub] * (2 * len(rest))
    target = [v for k, v in enumerate(rest) for _ in range(1 + (len(rest) > k + 1))]
    return make_graph(path, source[: len(target)], target, vertices=[*ids, *lonely])


def result_of(graph: Graph, values: Any, isolated: Any = 0, dtype: Any = float, name: str = "value") -> Result:
    return Result(graph.store.ids, {name: np.array(values, dtype)}, {name: isolated}, {"seconds": 1})


def by_id(graph: Graph, values: list[Any], isolated: Any) -> dict[Any, Any]:
    users = graph.users().to_pylist()
    return {user: values[k] if k < len(values) else isolated for k, user in enumerate(users)}


@pytest.mark.parametrize("strings", [False, True])
def test_rows_in_order_of_ids(tmp_path: Path, strings: bool) -> None:
    graph = star(tmp_path, ("é", "b", "B", "a"), ("z", "A")) if strings else star(tmp_path)
    assert graph.store.active == 4
    result = result_of(graph, [0.4, 0.3, 0.2, 0.1], 0.05)
    expected = by_id(graph, [0.4, 0.3, 0.2, 0.1], 0.05)
    order = sorted(expected, key=lambda v: v.encode() if strings else v)
    assert len(result) == 6
    for size in (1, 4, 100):
        batches = list(result.batches(size))
        assert [v for batch in batches for v in batch.column("vertex").to_pylist()] == order
        assert max(map(len, batches)) == min(size, 6)
    assert list(result.to_dict().items()) == [(v, expected[v]) for v in order]
    assert result.table.to_pydict() == {"vertex": order, "value": [expected[v] for v in order]}
    assert result.to_pandas()["value"].tolist() == [expected[v] for v in order]
    assert pa.table(result).equals(result.table)
    with pytest.raises(UsageError, match="at least one row"):
        result.batches(0)


def test_polars(tmp_path: Path) -> None:
    polars = pytest.importorskip("polars")
    result = result_of(star(tmp_path), [4, 3, 2, 1], 0, np.int64)
    frame = result.to_polars()
    assert isinstance(frame, polars.DataFrame)
    assert dict(frame.rows()) == result.to_dict()


def test_several_values(tmp_path: Path) -> None:
    graph = star(tmp_path)
    values = {"a": np.array([1, 2, 3, 4]), "b": np.array([0.5, 1.5, 2.5, 3.5])}
    result = Result(graph.store.ids, values, {"a": 0, "b": None}, {})
    users = graph.users().to_pylist()
    assert result.to_dict()[users[1]] == (2, 1.5)
    assert result.to_dict()[99] == (0, None)
    assert result.top(1, by="b").to_pydict() == {"vertex": [users[3]], "a": [4], "b": [3.5]}
    assert "a, b of 6 vertices" in repr(result)


@pytest.mark.parametrize("piece", [1, 3, 1 << 20])
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64, np.uint32, np.uint64, np.int8, bool])
def test_top_is_the_stable_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dtype: Any, piece: int) -> None:
    monkeypatch.setattr(module, "_PIECE", piece)
    rng = np.random.default_rng(1)
    graph = make_graph(tmp_path, range(40), [*range(1, 40), 0], vertices=range(50))
    for _ in range(5):
        values = rng.integers(0, 2 if dtype is bool else 6, 40).astype(dtype)
        if dtype in (np.int64, np.uint64, np.int8):
            values[3], values[4] = np.iinfo(dtype).min, np.iinfo(dtype).max
        shared = dtype(rng.integers(0, 2))
        result = Result(graph.store.ids, {"v": values}, {"v": shared}, {})
        everything = [*values.tolist(), *[shared.item() if hasattr(shared, "item") else shared] * 10]
        numbers = sorted(range(50), key=lambda k: (-everything[k], k))
        users = graph.users().to_pylist()
        for k in (0, 1, 7, 40, 45, 50, 1000):
            found = result.top(k)
            assert found["vertex"].to_pylist() == [users[number] for number in numbers[:k]]
            assert found["v"].to_pylist() == [everything[number] for number in numbers[:k]]
            assert found.schema == result.schema


@pytest.mark.parametrize("isolated", [0.5, NAN, None])
def test_nan_comes_last(tmp_path: Path, isolated: float | None) -> None:
    graph = star(tmp_path)
    users = graph.users().to_pylist()
    result = result_of(graph, [NAN, 0.1, NAN, math.inf], isolated)
    order = [3, 4, 5, 1, 0, 2] if isolated == 0.5 else [3, 1, 0, 2, 4, 5]
    for k in range(7):
        assert result.top(k)["vertex"].to_pylist() == [users[number] for number in order[:k]]
    assert result.table["value"].null_count == (2 if isolated is None else 0)


def test_top_with_string_ids(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    graph = star(tmp_path, ("é", "b", "B", "a"), ("z",))
    users = graph.users().to_pylist()
    result = result_of(graph, [1, 2, 3, 4], 9)
    for few in (256, 1):
        monkeypatch.setattr(module, "_FEW", few)
        assert result.top(3)["vertex"].to_pylist() == [users[4], users[3], users[2]]


def test_top_refuses_nonsense(tmp_path: Path) -> None:
    result = result_of(star(tmp_path), [1, 2, 3, 4])
    with pytest.raises(UsageError, match="no column 'x'; it has value"):
        result.top(by="x")
    with pytest.raises(UsageError, match="not -1"):
        result.top(-1)


# ---- nulls, references, exceptions, subsets, types

NONE = 2**32 - 1


def traversal(graph: Graph, **more: Any) -> Result:
    """Levels and parents of four active vertices, the last of them unreached, of isolated ones only where said."""
    level, parent = np.array([0, 1, 1, NONE], np.uint32), np.array([0, 0, 0, NONE], np.uint32)
    options: dict[str, Any] = {
        "nulls": {"level": NONE, "parent": NONE},
        "references": ["parent"],
        "types": {"level": "int64"},
        **more,
    }
    return Result(graph.store.ids, {"level": level, "parent": parent}, {"level": NONE, "parent": None}, {}, **options)


@pytest.mark.parametrize("few", [256, 1])
@pytest.mark.parametrize("ids", [(30, -5, 12, 7, 1, 99), ("é", "b", "B", "a", "z", "A"), (1 << 63, 5, 4, 3, 2, 1)])
def test_nulls_and_references(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ids: Any, few: int) -> None:
    monkeypatch.setattr(module, "_FEW", few)
    graph = star(tmp_path, ids[:4], ids[4:])
    users = graph.users().to_pylist()
    result = traversal(graph)
    expected = dict.fromkeys(users, (None, None)) | {
        users[0]: (0, users[0]),
        users[1]: (1, users[0]),
        users[2]: (1, users[0]),
    }
    assert result.to_dict() == expected
    assert result.schema.types == [graph.store.ids.arrow_type, pa.int64(), graph.store.ids.arrow_type]
    assert result.table.schema == result.schema
    best = result.top(4)
    assert best.schema == result.schema
    assert best["vertex"].to_pylist() == [users[1], users[2], users[0], users[3]]
    assert best["level"].to_pylist() == [1, 1, 0, None]
    assert best["parent"].to_pylist() == [users[0], users[0], users[0], None]


def test_isolated_vertices_that_differ(tmp_path: Path) -> None:
    graph = star(tmp_path, lonely=(1, 99, 50))
    users = graph.users().to_pylist()
    result = traversal(graph, exceptions={5: {"level": 0, "parent": 5}, 6: {"level": 7}})
    found = result.to_dict()
    assert [found[vertex] for vertex in users[4:]] == [(None, None), (0, users[5]), (7, None)]
    assert result.top(2)["vertex"].to_pylist() == [users[6], users[1]]
    assert result.top(7)["vertex"].to_pylist() == [users[k] for k in (6, 1, 2, 0, 5, 3, 4)]
    own = traversal(graph, exceptions={4: {"level": 0, "parent": SELF}, 5: {"level": None}})
    assert own.to_dict()[users[4]] == (0, users[4])
    assert own.to_dict()[users[5]] == (None, None)


def test_top_sees_an_exception_behind_many_alike(tmp_path: Path) -> None:
    graph = make_graph(tmp_path, [0], [1], vertices=range(100))
    options: dict[str, Any] = {"exceptions": {2: {"v": 0}, 90: {"v": 9}}}
    result = Result(graph.store.ids, {"v": np.array([1, 2])}, {"v": 5}, {}, **options)
    everything = [1, 2, 0, *[5] * 87, 9, *[5] * 9]
    users = graph.users().to_pylist()
    order = sorted(range(100), key=lambda number: (-everything[number], number))
    for k in (1, 2, 3, 50, 98, 99, 100):
        assert result.top(k)["vertex"].to_pylist() == [users[number] for number in order[:k]]


def test_everyone_refers_to_itself(tmp_path: Path) -> None:
    graph = star(tmp_path)
    users = graph.users().to_pylist()
    values = {"component": np.array([2, 2, 2, 2], np.uint32)}
    result = Result(graph.store.ids, values, {"component": SELF}, {}, references=["component"])
    assert result.to_dict() == dict.fromkeys(users[:4], users[2]) | {vertex: vertex for vertex in users[4:]}
    with pytest.raises(UsageError, match=r"column 'component' holds vertices, of which none is the largest$"):
        result.top()


def test_top_of_references_names_what_to_choose(tmp_path: Path) -> None:
    result = traversal(star(tmp_path))
    with pytest.raises(UsageError, match=r"none is the largest: choose by='level'$"):
        result.top(by="parent")


@pytest.mark.parametrize("null", [NAN, math.inf, -1.0])
def test_real_numbers_that_mean_null(tmp_path: Path, null: float) -> None:
    graph = star(tmp_path)
    users = graph.users().to_pylist()
    result = Result(graph.store.ids, {"d": np.array([2.0, null, 0.5, 3.0])}, {"d": null}, {}, nulls={"d": null})
    assert [result.to_dict()[vertex] for vertex in users] == [2.0, None, 0.5, 3.0, None, None]
    assert result.top(4)["d"].to_pylist() == [3.0, 2.0, 0.5, None]


@pytest.mark.parametrize("strings", [False, True])
@pytest.mark.parametrize("few", [256, 1])
def test_a_subset(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, few: int, strings: bool) -> None:
    monkeypatch.setattr(module, "_FEW", few)
    graph = star(tmp_path, ("é", "b", "B", "a"), ("z", "A")) if strings else star(tmp_path)
    users = graph.users().to_pylist()
    chosen = np.array([5, 0, 2, 1], np.uint32)
    result = traversal(graph, subset=chosen, exceptions={5: {"level": 0, "parent": 5}})
    rows = {users[0]: (0, users[0]), users[1]: (1, users[0]), users[2]: (1, users[0]), users[5]: (0, users[5])}
    order = sorted(rows, key=lambda vertex: vertex.encode() if strings else vertex)
    assert len(result) == 4
    assert list(result.to_dict().items()) == [(vertex, rows[vertex]) for vertex in order]
    assert [len(batch) for batch in result.batches(3)] == [3, 1]
    assert result.top(3)["vertex"].to_pylist() == [users[1], users[2], users[0]]
    assert "of 4 vertices" in repr(result)
    assert traversal(graph, subset=np.zeros(0, np.uint64)).to_dict() == {}


@pytest.mark.parametrize("ending", ["parquet", "csv", "tsv", "json", "arrow"])
def test_nulls_in_files(tmp_path: Path, ending: str) -> None:
    result = traversal(star(tmp_path))
    frame = READERS[f"r.{ending}"](result.write(tmp_path / f"r.{ending}"))
    expected = result.to_pandas()
    for name in ("vertex", "level", "parent"):
        assert frame[name].astype(float).tolist() == pytest.approx(expected[name].astype(float).tolist(), nan_ok=True)


def test_no_vertices(tmp_path: Path) -> None:
    graph = make_graph(tmp_path, [], [])
    result = result_of(graph, [])
    assert result.to_dict() == {}
    assert result.top(3).num_rows == 0
    assert pq.read_table(result.write(tmp_path / "r.parquet")).schema.names == ["vertex", "value"]
    only = result_of(make_graph(tmp_path, [], [], vertices=[4, 2]), [], 0.5)
    assert only.to_dict() == {2: 0.5, 4: 0.5}
    assert only.top(1).num_rows == 1


READERS: dict[str, Any] = {
    "r.parquet": pd.read_parquet,
    "r.csv": pd.read_csv,
    "r.tsv": lambda path: pd.read_csv(path, sep="\t"),
    "r.txt": lambda path: pd.read_csv(path, sep=" ", names=["vertex", "value"]),
    "r.json": lambda path: pd.read_json(path, lines=True, precise_float=True),
    "r.arrow": lambda path: pa.ipc.open_file(path).read_pandas(),
}


@pytest.mark.parametrize("name", READERS)
@pytest.mark.parametrize("strings", [False, True])
def test_files(tmp_path: Path, name: str, strings: bool) -> None:
    graph = star(tmp_path, ("é b", 'b"', "B,", "a"), ("z", "A")) if strings else star(tmp_path)
    result = result_of(graph, [0.1, 1 / 3, 1e-300, 5.0], 0.05)
    path = result.write(str(tmp_path / name))
    frame = READERS[name](path)
    assert dict(zip(frame["vertex"], frame["value"], strict=True)) == result.to_dict()
    assert list(frame["vertex"]) == list(result.to_dict())


def test_json_stays_json(tmp_path: Path) -> None:
    result = result_of(star(tmp_path), [NAN, math.inf, 1.0, -math.inf], None)

    def refuse(word: str) -> None:
        raise AssertionError(word)

    lines = result.write(tmp_path / "r.json").read_text().splitlines()
    values = [json.loads(line, parse_constant=refuse)["value"] for line in lines]
    assert sorted(values, key=str) == ["-inf", 1.0, None, None, None, "inf"]


def test_writing_is_complete_or_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    result = result_of(star(tmp_path), [1, 2, 3, 4])
    with pytest.raises(UsageError, match=r"does not end in one of \.parquet"):
        result.write(tmp_path / "r.doc")
    path = result.write(tmp_path / "r.csv")
    old = path.read_text()
    with pytest.raises(TargetExists):
        result.write(path)
    result.write(path, overwrite=True)

    def full(self: Result, size: int = 0) -> Any:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Result, "batches", full)
    with pytest.raises(DiskFull, match="no space left"):
        result.write(path, overwrite=True)
    assert path.read_text() == old
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["graph.pen", "r.csv"]
