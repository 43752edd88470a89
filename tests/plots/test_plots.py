"""Pictures: each kind is drawn of a graph, of a result and of a file of one, and shows what it says."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import penstock as pk
from penstock.errors import InputError, TargetExists, UsageError
from penstock.plots.joint import joint
from penstock.plots.kinds import KINDS
from penstock.plots.style import short

pytest.importorskip("matplotlib")

EDGES = [(1, 2), (1, 3), (1, 4), (2, 1), (5, 6), (7, 7)]


@pytest.fixture(scope="module")
def graph() -> pk.Graph:
    return pk.from_edges(EDGES)


def axes_of(figure: Any) -> Any:
    return figure.axes[0]


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "values"])
def test_every_kind_of_a_graph(graph: pk.Graph, kind: str, tmp_path: Path) -> None:
    path = tmp_path / f"{kind}.png"
    assert pk.plot(kind, graph, path, device="reference") == path
    assert path.read_bytes()[:4] == b"\x89PNG"


def test_degrees_are_those_of_the_graph(graph: pk.Graph) -> None:
    axes = axes_of(pk.plot("degree", graph))
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["out-degree", "in-degree"]
    out, into = (dict(zip(*line.get_data(), strict=True)) for line in axes.get_lines())
    assert out == {1: 3, 3: 1}
    assert into == {1: 6}
    assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log")
    total = axes_of(pk.plot("degree", graph, direction="total")).get_lines()[0].get_data()
    assert dict(zip(*total, strict=True)) == {1: 4, 2: 2, 4: 1}
    assert "not shown: 3 vertices of degree 0" in axes.texts[0].get_text()


def test_components(graph: pk.Graph) -> None:
    axes = axes_of(pk.plot("components", graph, device="reference"))
    assert dict(zip(*axes.get_lines()[0].get_data(), strict=True)) == {1: 1, 2: 1, 4: 1}
    assert "3 components; the largest has 57.1 % of the vertices" in axes.texts[0].get_text()


def test_a_result_and_its_file_show_the_same(graph: pk.Graph, tmp_path: Path) -> None:
    result = pk.wcc(graph, device="reference")
    drawn = [axes_of(result.plot()), *(axes_of(pk.plot("components", result.write(tmp_path / f"c{end}"))) for end in
             (".parquet", ".csv", ".json", ".arrow"))]  # fmt: skip
    assert len({str([line.get_data() for line in axes.get_lines()]) for axes in drawn}) == 1
    levels = pk.bfs(graph, source=1, device="reference")
    shown = [axes_of(levels.plot()), axes_of(pk.plot("values", levels.write(tmp_path / "l.parquet"), column="level"))]
    assert all([bar.get_height() for bar in axes.patches] == [1, 3] for axes in shown)
    assert all("3 without a value" in axes.texts[0].get_text() for axes in shown)
    assert levels.plot(tmp_path / "levels.svg").read_text().startswith("<?xml")


def test_clusters_in_a_file_are_labels(tmp_path: Path) -> None:
    pairs = [(i, j) for k in (0, 4) for i in range(k, k + 4) for j in range(i) if j >= k]
    clusters = pk.scan(pk.from_edges([*pairs, (3, 4), (7, 8)], undirected=True), mu=3, device="reference")
    assert clusters.references == {"cluster"}
    drawn = [axes_of(pk.plot("components", each)) for each in (clusters, clusters.write(tmp_path / "c.parquet"))]
    assert [dict(zip(*axes.get_lines()[0].get_data(), strict=True)) for axes in drawn] == [{4: 1, 5: 1}] * 2


def test_correlations() -> None:
    rng = np.random.default_rng(3)
    x = 10.0 ** rng.normal(size=4000)
    y, known = 3 * x**2, np.ones(4000, bool)
    y[:7], known[7:10] = 0, False
    told = joint(lambda: iter([(x, known)]), lambda: iter([(y, np.ones(4000, bool))]))
    assert told.correlation == pytest.approx(1)
    assert (told.counts.sum(), told.vertices, told.left_out) == (3990, 4000, 10)
    middles, medians = told.medians
    assert np.log10(medians) == pytest.approx(np.log10(3 * middles**2), abs=0.2)
    few = joint(lambda: iter([(np.arange(9), np.ones(9, bool))]), lambda: iter([(x[:9], np.ones(9, bool))]))
    assert (few.x.log, few.y.log, few.left_out) == (False, True, 0)
    assert few.counts.sum(axis=1).tolist() == [1] * 9
    nothing = joint(lambda: iter([]), lambda: iter([]))
    assert np.isnan(nothing.correlation)
    assert nothing.vertices == 0


def test_the_matrix_is_the_matrix(graph: pk.Graph) -> None:
    image = axes_of(pk.plot("adjacency", graph)).get_images()[0]
    assert image.get_array().sum() == len(EDGES)
    assert image.get_array().shape == (7, 7)


def test_graphs_without_edges_are_drawn(tmp_path: Path) -> None:
    empty = pk.from_edges([], allow_empty=True)
    for kind in ("degree", "rank", "correlation", "adjacency"):
        pk.plot(kind, empty, tmp_path / f"{kind}.svg", device="reference")


def test_the_same_picture_is_the_same_file(graph: pk.Graph, tmp_path: Path) -> None:
    first, second = (pk.plot("degree", graph, tmp_path / f"{at}.svg").read_bytes() for at in (1, 2))
    assert first == second


@pytest.mark.parametrize(
    ("kind", "options", "reason"),
    [
        ("dgree", {}, "no plot 'dgree', do you mean degree?"),
        ("values", {}, "values are those of a result"),
        ("degree", {"direction": "up"}, "direction must be one of both, out, in, total"),
        ("degree", {"colour": "red"}, "plot has no option 'colour'"),
        ("correlation", {"x": "degree", "y": "degree"}, "both degree"),
        ("correlation", {"y": "radiu"}, "no algorithm 'radiu', do you mean radius?"),
    ],
)
def test_refused(graph: pk.Graph, kind: str, options: dict[str, Any], reason: str) -> None:
    with pytest.raises(UsageError, match=reason):
        pk.plot(kind, graph, **options)


def test_files_that_will_not_do(graph: pk.Graph, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"x\.jpg does not end in one of \.png, \.svg, \.pdf"):
        pk.plot("degree", graph, "x.jpg")
    path = tmp_path / "ranks.csv"
    path.write_text("vertex,name\n1,a\n")
    with pytest.raises(InputError, match="column name is string"):
        pk.plot("values", path)
    with pytest.raises(UsageError, match="holds values, no graph: give the store"):
        pk.plot("degree", path)
    with pytest.raises(UsageError, match="no column 'nmae', do you mean name"):
        pk.plot("components", path, column="nmae")
    (tmp_path / "there.png").write_text("mine")
    with pytest.raises(TargetExists):
        pk.plot("degree", graph, tmp_path / "there.png")
    with pytest.raises(TargetExists):
        pk.degree(graph, device="reference").plot(tmp_path / "there.png")
    assert pk.plot("degree", graph, tmp_path / "there.png", overwrite=True).read_bytes()[:4] == b"\x89PNG"


def test_without_matplotlib_one_sentence_says_what_to_install(graph: pk.Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(UsageError, match="plots need matplotlib: pip install matplotlib"):
        pk.plot("degree", graph)


@pytest.mark.parametrize(
    ("value", "text"), [(0, "0"), (1, "1"), (1500, "1.5 k"), (2e6, "2 M"), (0.05, "0.05"), (1e-5, "$10^{-5}$")]
)
def test_numbers_on_axes(value: float, text: str) -> None:
    assert short(value) == text
