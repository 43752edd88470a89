"""Algorithms on edges as people have them: a text file, a frame, a folder of Parquet, a NetworkX graph."""

from __future__ import annotations

import gc
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pandas as pd
import pytest

import penstock as pk
from penstock import given
from penstock.config import settings
from penstock.errors import InputError, StoreError, UsageError

EDGES = [(i % 7, 3 * i % 11) for i in range(1, 21)]


def forms(folder: Path) -> dict[str, Any]:
    """The same twenty edges, each way."""
    snap = folder / "edges.txt"
    snap.write_text("# FromNodeId\tToNodeId\n" + "".join(f"{u}\t{v}\n" for u, v in EDGES))
    frame = pd.DataFrame(EDGES, columns=["src", "dst"])
    frame["note"] = "no number, and no matter to PageRank"
    (folder / "parts").mkdir()
    for at in (0, 10):
        frame[at : at + 10].to_parquet(folder / "parts" / f"{at}.parquet")
    return {
        "file": str(snap),
        "frame": frame,
        "folder": folder / "parts",
        "pairs": EDGES,
        "arrays": tuple(np.array(EDGES).T),
        "networkx": nx.MultiDiGraph(EDGES),
    }


def test_pagerank_of_each_in_one_line(tmp_path: Path) -> None:
    expected = nx.pagerank(nx.MultiDiGraph(EDGES), tol=1e-10)
    for name, form in forms(tmp_path).items():
        found = pk.pagerank(form, tol=1e-10)
        assert found.to_dict() == pytest.approx(expected, abs=1e-9), name
    undirected = pk.pagerank(tmp_path / "edges.txt", undirected=True, tol=1e-10)
    assert undirected.to_dict() == pytest.approx(nx.pagerank(nx.Graph(EDGES), tol=1e-10), abs=1e-9)


def test_only_the_columns_that_matter_are_read() -> None:
    frame = pd.DataFrame({"a": ["x", "y"], "b": ["y", "z"], "note": ["?", "!"], "km": [2.0, 3.5]})
    assert pk.sssp(frame, source="x", weight="km", device="reference").to_dict() == {"x": 0.0, "y": 2.0, "z": 5.5}
    with pytest.raises(InputError, match="no column 'kmh', do you mean km"):
        pk.sssp(frame, source="x", weight="kmh")
    around = pk.egonet(frame[["a", "b", "km"]], source="x", device="reference")
    assert around.to_networkx().edges["x", "y"] == {"km": 2.0}


def test_the_store_lives_as_long_as_the_result(tmp_path: Path) -> None:
    with pk.config(temp_directory=tmp_path / "spill"):
        result = pk.pagerank(EDGES)
    gc.collect()
    assert len(list((tmp_path / "spill").iterdir())) == 1
    assert len(result.table) == len({v for edge in EDGES for v in edge})
    assert sorted(result.to_networkx().edges()) == sorted(nx.MultiDiGraph(EDGES).edges())
    del result
    gc.collect()
    assert not list((tmp_path / "spill").iterdir())


def test_a_large_file_gets_its_store_beside_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = forms(tmp_path)["file"]
    monkeypatch.setattr(given, "LARGE", 1)
    with given.temporary(path, settings(), {}) as graph:
        assert graph.path.parent.parent == tmp_path
        assert graph.store.page_size == 1 << 20
        folder = graph.path.parent
    del graph
    gc.collect()
    assert not folder.exists()


def test_a_program_of_the_users_own() -> None:
    def init(v: Any, p: Any) -> Any:
        return 1.0

    def update(v: Any, total: Any, p: Any) -> Any:
        return total

    program = pk.Combine(
        name="sum", state={"x": "float64"}, columns=("w",), init=init, message="float64", emit=lambda v, p: v.x,
        edge=lambda m, e, p: m * e.w, combine=pk.SUM, update=update,
    )  # fmt: skip
    frame = pd.DataFrame({"src": [1, 2], "dst": [3, 3], "w": [0.5, 2.0], "note": ["", ""]})
    found = pk.run(program, frame, max_iter=1, device="reference")
    assert found.to_dict() == {1: 0.0, 2: 0.0, 3: 2.5}


def test_from_edges() -> None:
    frame = pd.DataFrame({"payer": [1, 2], "payee": [2, 3], "amount": [4.0, 5.0]})
    for graph in (
        pk.from_edges(frame, source="payer", target="payee"),
        pk.from_edges([1, 2], [2, 3]),
        pk.from_edges(source=[1, 2], target=[2, 3]),
        pk.from_edges([(1, 2), (2, 3)]),
    ):
        with graph:
            assert (graph.vertices, graph.edges, graph.neighbors(2)) == (3, 2, [3])
    with pytest.raises(UsageError, match="weight= is for arrays"):
        pk.from_edges(frame, weight="amount")


@pytest.mark.parametrize(
    ("what", "options", "error", "reason"),
    [
        (3, {}, InputError, "int is nothing edges can be read from"),
        ("nowhere.pen", {}, StoreError, "nowhere.pen does not exist"),
        (EDGES, {"dampign": 0.5}, UsageError, "no option 'dampign', do you mean damping?"),
        (np.zeros((2, 9)), {}, InputError, r"2 x 9 \(its rows are the ends: give them as a tuple"),
    ],
)
def test_refused(what: Any, options: dict[str, Any], error: type[Exception], reason: str) -> None:
    with pytest.raises(error, match=reason):
        pk.pagerank(what, **options)


def test_a_store_knows_its_direction(tmp_path: Path) -> None:
    pk.ingest(EDGES, tmp_path / "web.pen")
    with pytest.raises(UsageError, match="no option 'undirected'"):
        pk.pagerank(tmp_path / "web.pen", undirected=True)
    with pytest.raises(StoreError, match=r"wbe\.pen does not exist, do you mean .*web\.pen\?"):
        pk.pagerank(tmp_path / "wbe.pen")


def test_explain_of_a_frame() -> None:
    assert pk.explain("pagerank", pd.DataFrame(EDGES, columns=["u", "v"])).fits
