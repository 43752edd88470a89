"""What the documentation shows works: its Python blocks and the examples run, from disk as in memory."""

from __future__ import annotations

import re
import runpy
from pathlib import Path
from typing import Any

import pytest

import penstock as pk

ROOT = Path(__file__).parents[1]
PAGES = sorted((ROOT / "docs").glob("*.md"))
EXAMPLES = sorted(path for path in (ROOT / "examples").glob("*.py") if path.stem != "demo")


@pytest.mark.parametrize(
    "page",
    [pytest.param(page, marks=[pytest.mark.gpu] if page.stem == "gpu" else []) for page in PAGES],
    ids=lambda page: page.stem,
)
def test_the_blocks_of_a_page_run(page: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    blocks_run(page, tmp_path, capsys)


def blocks_run(page: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Run them all as one script: it prints what is promised behind each `print`."""
    blocks = re.findall(r"```python\n(.*?)```", page.read_text(), re.S)
    assert blocks
    script = tmp_path / "page.py"
    script.write_text("\n".join(blocks))
    runpy.run_path(str(script))
    shown = capsys.readouterr().out.splitlines()
    promised = re.findall(r"^print\(.*\)  # (.*)$", script.read_text(), re.M)
    assert shown == promised


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_runs(example: Path, capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(example), run_name="__main__")
    assert capsys.readouterr().out


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
