"""What the documentation shows works: every block of every page runs, and every example."""

from __future__ import annotations

import ast
import re
import runpy
from pathlib import Path
from typing import Any

import pytest

import penstock as pk
from pages import COMMANDS, ROOT, SHOWN, Reader, blocks_of, commands_of, excuse, prepare, read

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
EXAMPLES = sorted(path for path in (ROOT / "examples").glob("*.py") if path.stem != "demo")
ON_A_GPU = {"docs/gpu.md"}
"""Pages whose blocks all want one."""
SAID = {
    "bigger_than_memory": "883,780 arcs in pages of 3,866,624 bytes, read from disk",
    "checkpoint": "the same ranks: True",
    "gimv_components": "mapreduce: {1: 1, 2: 1, 3: 1, 10: 10, 11: 10, 12: 10, 20: 20}",
    "gpu": "the same ranks: True",
    "kmeans": "200 points around [5.0, 5.1]",
    "networkx_backend": "member 33 has rank 0.0970; NetworkX says 0.0970",
    "pandas_frame": "cat     0.326      1",
    "parquet_folder": "4 people, 5 calls, columns: seconds",
    "plot": "both.svg: ",
    "program_template": "{0: 0, 1: 1, 2: 2, 3: 3, 4: 1}",
    "recommendation": "bob may like chess, as ann does",
    "report": "of which nothing comes from the network",
    "shortest_path": "from 0 to 13 in 5 steps: 0 -> ",
    "snap_file": "page 3: 33.2% of the time",
    "widest_path": "disk {0: inf, 1: 5.0, 2: 3.0, 3: 3.0}",
    "word_count": "the built-in job agrees: True",
}
"""A part of what each example prints."""


@pytest.fixture(scope="session")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return prepare(tmp_path_factory.mktemp("prepared"))


def name(page: Path) -> str:
    return str(page.relative_to(ROOT))


@pytest.mark.parametrize(
    "page",
    [pytest.param(page, marks=[pytest.mark.gpu] if name(page) in ON_A_GPU else []) for page in PAGES],
    ids=lambda page: name(page).removeprefix("docs/").removesuffix(".md"),
)
def test_the_blocks_of_a_page_run(page: Path, prepared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names: dict[str, Any] = {}
    if page.name == "README.md":  # what a reader has who comes to it
        import networkx as nx
        import pandas as pd

        names = {"frame": pd.read_parquet(prepared / "edges.parquet"), "graph": nx.DiGraph([(1, 2), (2, 3), (3, 1)])}
    read(page, prepared, tmp_path, monkeypatch, **names)


def blocks_run(page: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The Python of a page that wants no files."""
    Reader(page, tmp_path).read()
    assert capsys.readouterr().out


def test_the_examples_of_help_run(prepared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from penstock.interfaces.cli.examples import EXAMPLES as OF_COMMANDS
    from penstock.interfaces.cli.examples import OF_RUN

    lines = [line for each in (*OF_COMMANDS.values(), *OF_RUN.values()) for line, _ in each]
    folder = tmp_path / "folder"
    (tmp_path / "help.md").write_text("\n".join(["```bash", *dict.fromkeys(lines), "```", ""]))
    read(tmp_path / "help.md", prepared, folder, monkeypatch)


def test_a_reader_notices(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for text, wrong in (
        ("```python\nprint(1 + 1)  # 3\n```\n", "print"),
        ("```bash\npenstock info nothing.pen\n```\n", "nothing.pen"),
        ("```\nweb.pen/\n  meta.json\n```\n", "is the block `text`"),
        ("```ruby\nputs 1\n```\n", "nothing runs 'ruby'"),
        ("```bash\nmake nothing\n```\n", "no such target"),
        ("```python\nx = 1\n", "not closed"),
    ):
        page = tmp_path / "page.md"
        page.write_text(text)
        with pytest.raises(AssertionError, match=wrong):
            Reader(page, tmp_path).read()


def test_few_commands_are_excused() -> None:
    typed = [
        line for page in PAGES for block in blocks_of(page) if block.language in COMMANDS for line in commands_of(block)
    ]
    run = [line for line in typed if line.startswith("penstock ") and not excuse(line)]
    assert len(run) > 20


def test_what_could_run_is_not_only_shown() -> None:
    shown = [block.text for page in PAGES for block in blocks_of(page) if block.language in SHOWN]
    assert not [text for text in shown if re.search(r"^(\$ )?penstock |import penstock|\bpk\.", text, re.M)]


def test_the_quick_start_names_every_example() -> None:
    pages = (ROOT / "docs" / "index.md").read_text() + (ROOT / "docs" / "programs.md").read_text()
    assert [path.name for path in EXAMPLES if f"/examples/{path.name})" not in pages] == []


def links(page: Path) -> list[str]:
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.S)
    return [link for link in re.findall(r"\]\(([^)\s#]+)[^)]*\)", text) if "://" not in link]


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_links_lead_somewhere(page: Path) -> None:
    broken = [link for link in links(page) if not (page.parent / link).exists()]
    assert not broken
    records = set(re.findall(r"benchmarks/results/[a-z][\w.-]*\.json", page.read_text(encoding="utf-8")))
    assert not [record for record in sorted(records) if not (ROOT / record).is_file()]


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_runs(
    example: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(example), run_name="__main__")
    assert SAID[example.stem] in capsys.readouterr().out
    assert not [path.name for path in tmp_path.iterdir()], "an example leaves nothing behind"


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_is_short(example: Path) -> None:
    text = example.read_text()
    assert ast.get_docstring(ast.parse(text)), "it says what it shows"
    assert example.stem == "program_template" or text.count("\n") < 40


def widest(edges: list[tuple[int, int, float]], source: int) -> dict[int, float]:
    """By trying every edge until nothing changes."""
    vertices = {end for u, v, _ in edges for end in (u, v)}
    width = {v: float("inf") if v == source else 0.0 for v in vertices}
    changed = True
    while changed:
        changed = False
        for u, v, w in edges:
            if min(width[u], w) > width[v]:
                width[v], changed = min(width[u], w), True
    return width


@pytest.mark.parametrize(
    "place", [{"tier": "memory"}, {"tier": "disk"}, {"tier": "disk", "state_ranges": 3}, {"device": "reference"}]
)
def test_a_users_program_runs_in_every_place(place: dict[str, Any], tmp_path: Path) -> None:
    import numpy as np

    program = runpy.run_path(str(ROOT / "examples" / "widest_path.py"))["WIDEST"]
    rng = np.random.default_rng(5)
    ends, weight = rng.integers(0, 300, (2, 3000)), rng.random(3000)
    graph = pk.ingest(
        {"source": ends[0], "target": ends[1], "weight": weight}, tmp_path / "g.pen", page_size=4096, columns=["weight"]
    )
    source = int(ends[0][0])
    edges = list(zip(ends[0].tolist(), ends[1].tolist(), weight.tolist(), strict=True))
    assert pk.run(program, graph, source=source, **place).to_dict() == widest(edges, source)
