"""Row programs: all messages of a vertex in the order of its arcs, wherever they are collected."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import penstock as pk
from engine.hub import hub
from penstock.engine.compile import usable
from penstock.engine.mode import mode
from penstock.engine.monoid import MAX, SUM
from penstock.engine.program import Row
from penstock.errors import UsageError
from penstock.memory.device import kernel
from places import at, everywhere


def init(v, p):
    return np.int64(v.number) * 7 % 31 + np.int64(v.seed), np.int64(0)


def emit(v, p):
    return v.x + p.step


def weighed(message, e, p):
    return message * 3 + e.weight


def in_order(v, messages, p):
    """Depends on the order of the messages, and reorders them."""
    total = np.int64(len(messages))
    for i in range(len(messages)):
        total = (total * 31 + messages[i]) % 1009
    for i in range(len(messages)):
        messages[i] = 0
    return (v.x + total + np.int64(v.in_degree)) % 251, v.steps + 1


def change(v, new, p):
    return abs(new[0] - v.x)


def program(**options: Any) -> Row:
    return Row(
        **{
            "name": "in order",
            "state": {"x": "int64", "steps": "int64"},
            "reads": ("number", "seed", "in_degree"),
            "init": init,
            "message": "int64",
            "emit": emit,
            "row": in_order,
            "change": change,
            **options,
        }
    )


OPTIONS: dict[str, dict[str, Any]] = {
    "plain": {},
    "largest change": {"change_by": MAX},
    "weighed": {"columns": ("weight",), "edge": weighed},
}
QUICK = {("out", "plain"), ("in", "largest change"), ("both", "weighed")}
"""Each program takes seconds to compile: each way and each option once shows what all of them would."""


@pytest.mark.parametrize("undirected", [False, True])
@pytest.mark.parametrize(
    ("along", "options"),
    [
        pytest.param(along, options, marks=() if (along, options) in QUICK else pytest.mark.slow)
        for along in ("out", "in", "both")
        for options in OPTIONS
    ],
)
def test_every_place_gives_the_same(tmp_path: Path, undirected: bool, along: str, options: str) -> None:
    graph = hub(tmp_path / "g.pen", undirected)
    alone = graph.store.ids.of(graph.vertices - 1)
    chosen = program(along=along, **OPTIONS[options])
    found = everywhere(lambda **settings: pk.run(chosen, graph, max_iter=3, source=[alone, 0], **settings))
    first = found.pop("reference")
    assert first.stats["iterations"] == 3
    for place, result in found.items():
        assert result.table.equals(first.table), place
        assert result.stats["residual"] == first.stats["residual"], place


def test_windows_of_one_hub(tmp_path: Path) -> None:
    """A row that takes all the room there is, and pages shared by two windows."""
    hub = {
        "source": np.r_[np.zeros(3000, int), 1 + np.arange(2999)],
        "target": np.r_[1 + np.arange(3000), 2 + np.arange(2999)],
    }
    for order in ("degree", "input"):
        graph = pk.ingest(hub, tmp_path / f"{order}.pen", undirected=True, order=order, page_size=4096)
        answer = pk.run(program(), graph, max_iter=3, tier="memory").table
        least = at("smallest", lambda graph=graph, **chosen: pk.run(program(), graph, max_iter=3, **chosen))
        assert least.table.equals(answer)
        for ranges in (2, 7):
            result = pk.run(program(), graph, max_iter=3, tier="disk", state_ranges=ranges, threads=2)
            assert result.table.equals(answer)


def test_one_pass_per_superstep(tmp_path: Path) -> None:
    """However many windows there are, each reads its own pages only."""
    graph = pk.generate("kron", tmp_path / "g.pen", scale=11, seed=2, undirected=True, page_size=4096)
    direction = graph.store.direction("out")
    result = pk.run(program(), graph, max_iter=2, tier="disk", memory_limit="1500kB", threads=1)
    plan = result.stats["plans"][0]
    assert plan["rows_bytes"] < direction.arcs * 8
    pages = len(direction) * graph.store.page_size
    assert result.stats["bytes_read"] <= 2 * (pages + 200 * graph.store.page_size)


def test_it_runs_once_without_an_end(tmp_path: Path) -> None:
    graph = pk.generate("ring", tmp_path / "g.pen", vertices=50, page_size=4096)
    with pytest.raises(UsageError, match="incoming"):
        pk.run(
            program(), pk.ingest({"source": [1], "target": [2]}, tmp_path / "o.pen", incoming=False, page_size=4096),
            max_iter=1,
        )  # fmt: skip
    assert set(pk.run(program(), graph, max_iter=1).table.column("steps").to_pylist()) == {1}
    with pytest.raises(UsageError, match="row function"):
        Row(name="none", state={"x": "int64"}, init=init, message="int64", emit=emit)
    assert program().change_by is SUM


# ---- the most frequent


_mode = usable(mode)


@kernel()
def compiled(values):
    return _mode(values)


def commonest(values: np.ndarray) -> int:
    counts = Counter(values.tolist())
    most = max(counts.values())
    return int(min(value for value in counts if counts[value] == most))


@given(values=st.lists(st.integers(0, 12), min_size=1, max_size=90), shift=st.sampled_from([0, 1 << 20, 1 << 31]))
def test_mode(values: list[int], shift: int) -> None:
    array = np.array(values, np.uint32) + np.uint32(shift)
    answer = commonest(array)
    assert mode(array.copy()) == answer
    assert compiled(array.copy()) == answer


@pytest.mark.parametrize("kind", [np.uint32, np.uint64, np.int64])
@pytest.mark.parametrize("n", [17, 1000, 1 << 15, (1 << 15) + 1, 200_000])
@pytest.mark.parametrize("different", [1, 2, 50, 1 << 30])
def test_mode_of_many(kind: Any, n: int, different: int) -> None:
    random = np.random.default_rng(n + different).integers(0, different, n).astype(kind)
    for values in (random, np.sort(random), np.sort(random)[::-1].copy(), np.arange(n).astype(kind)):
        assert compiled(values.copy()) == commonest(values)
