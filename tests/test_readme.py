"""PageRank of what people have, as the README shows it: each in one line, and as one command."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import networkx as nx
import pandas as pd
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from penstock.algorithms.registry import ALGORITHMS
from penstock.interfaces.cli.app import app

README = (Path(__file__).parents[1] / "README.md").read_text()
EDGES = [(i % 7, 3 * i % 11) for i in range(1, 21)]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("edges.txt").write_text("# a SNAP file\n" + "".join(f"{u}\t{v}\n" for u, v in EDGES))
    Path("parts").mkdir()
    for at in (0, 10):
        pd.DataFrame(EDGES[at : at + 10], columns=["from", "to"]).to_parquet(f"parts/{at}.parquet")
    return tmp_path


def test_one_line_each(folder: Path) -> None:
    block = next(block for block in re.findall(r"```python\n(.*?)```", README, re.S) if '"edges.txt"' in block)
    expected = nx.pagerank(nx.MultiDiGraph(EDGES))
    names: dict[str, Any] = {"frame": pd.DataFrame(EDGES, columns=["a", "b"]), "graph": nx.MultiDiGraph(EDGES)}
    lines = [line for line in block.splitlines() if line]
    for line in lines:
        exec(line, names)
    assert sum("pk.pagerank(" in line for line in lines) == 4
    assert nx.get_node_attributes(names["graph"], "rank") == pytest.approx(expected, abs=1e-5)
    written = pq.read_table("ranked.parquet").to_pydict()
    assert dict(zip(written["vertex"], written["rank"], strict=True)) == pytest.approx(expected, abs=1e-5)
    found: Any = eval(lines[2].split("  #")[0], names)
    assert dict(found.itertuples(index=False)) == pytest.approx(expected, abs=1e-5)


def test_all_algorithms_are_counted_and_named() -> None:
    families = README.partition("## What it computes")[2].partition("\nResults")[0]
    assert set(re.findall(r"`(\w+)`", families)) == set(ALGORITHMS)
    assert (len(ALGORITHMS), "runs twenty algorithms" in README) == (20, True)


def test_one_command_each(folder: Path) -> None:
    commands = set(re.findall(r"penstock run pagerank (edges\.txt|parts)", README))
    assert commands == {"edges.txt", "parts"}
    best = max(nx.pagerank(nx.MultiDiGraph(EDGES)).values())
    for given in sorted(commands):
        done = CliRunner().invoke(app, ["run", "pagerank", given, "--top", "1"])
        assert done.exit_code == 0, done.stderr
        assert float(done.stdout.split()[-1]) == pytest.approx(best, abs=1e-5)
