"""`penstock generate`: every kind, its parameters, the shared options, and the ways it refuses."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import penstock
from penstock.interfaces.cli.generate import app as generate_app

from .conftest import Call

KINDS = {
    "kron": ["--scale", "6", "--edge-factor", "4"],
    "uniform": ["--vertices", "20", "--edges", "30"],
    "grid": ["--rows", "3", "--columns", "4"],
    "chain": ["--vertices", "5"],
    "ring": ["--vertices", "5"],
    "star": ["--vertices", "5"],
    "complete": ["--vertices", "5"],
    "tree": ["--height", "2", "--branching", "3"],
}
SHAPES = {
    "kron": (64, 256),
    "uniform": (20, 30),
    "grid": (12, 17),
    "chain": (5, 4),
    "ring": (5, 5),
    "star": (5, 4),
    "complete": (5, 10),
    "tree": (13, 12),
}


def facts(cli: Call, store: object) -> dict[str, Any]:
    result = cli("info", store, "--json")
    assert result.exit_code == 0, result.stderr
    found: dict[str, Any] = json.loads(result.stdout)
    return found


def test_every_generator_has_a_command() -> None:
    from penstock.ingest.generate.registry import GENERATORS

    assert set(KINDS) == set(GENERATORS)
    assert len(generate_app.registered_commands) == len(GENERATORS)


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind(cli: Call, kind: str) -> None:
    result = cli("generate", kind, *KINDS[kind], "-o", "x.pen")
    assert result.exit_code == 0, result.stderr
    assert result.stdout == ""
    vertices, edges = SHAPES[kind]
    assert f"{vertices} vertices, {edges} edges" in result.stderr
    assert "peak memory" in result.stderr
    found = facts(cli, "x.pen")
    assert (found["vertices"], found["edges"]) == SHAPES[kind]
    assert found["directed"] == (kind in ("kron", "uniform"))


def test_directed_families_draw_directed_edges(cli: Call) -> None:
    assert cli("generate", "complete", "-n", 5, "--directed", "-o", "x.pen").exit_code == 0
    assert facts(cli, "x.pen") | {"directed": True, "edges": 20} == facts(cli, "x.pen")


def test_symmetrised_kronecker_has_no_loops_and_no_duplicates(cli: Call) -> None:
    assert cli("generate", "kron", "--scale", 8, "--undirected", "-o", "x.pen").exit_code == 0
    found = facts(cli, "x.pen")
    assert found["edges"] < 16 * 256
    assert found["arcs"] == 2 * found["edges"]


def test_seed_and_corner_probabilities_matter(cli: Call, tmp_path: Path) -> None:
    def edges(*more: object) -> list[tuple[int, int]]:
        done = cli("generate", "kron", "--scale", 6, "-o", "x.pen", "--overwrite", "-q", *more)
        assert done.exit_code == 0, done.stderr
        with penstock.open(tmp_path / "x.pen") as graph:
            table = graph.edge_reader().read_all()
            return sorted(zip(table["source"].to_pylist(), table["target"].to_pylist(), strict=True))

    plain = edges()
    assert edges() == plain
    for change in (["--seed", 2], ["--a", 0.3, "--b", 0.3, "--c", 0.3, "--d", 0.1], ["--no-scramble"]):
        assert edges(*change) != plain


def test_build_options_arrive(cli: Call, tmp_path: Path) -> None:
    words = ["--order", "input", "--no-incoming", "--drop-isolated", "--page-size", "8KiB", "--encoding", "logical6"]
    stripes = ["--stripe", tmp_path / "a", "--stripe", tmp_path / "b"]
    done = cli("generate", "kron", "--scale", 8, "--weights", "0.0:1.0", "-o", "x.pen", *words, *stripes)
    assert done.exit_code == 0, done.stderr
    found = facts(cli, "x.pen")
    assert found["order"] == "input"
    assert list(found["directions"]) == ["out"]
    assert found["isolated"] == 0
    assert found["page_size"] == 8192
    assert found["encoding"] == "logical6"
    assert found["columns"]["weight"]["type"] == "float"
    assert len(found["stripes"]) == 2


def test_duplicates_merge_and_loops_drop(cli: Call, tmp_path: Path) -> None:
    Path("e.txt").write_text("1 2 5\n1 2 7\n3 3 1\n2 1 1\n")
    words = ["--duplicates", "merge", "--merge", "weight=sum", "--self-loops", "drop"]
    assert cli("ingest", "e.txt", "-o", "x.pen", *words).exit_code == 0
    with penstock.open(tmp_path / "x.pen") as graph:
        table = graph.edge_reader().read_all().sort_by("source")
    assert table["weight"].to_pylist() == [12, 1]


def test_quiet_says_nothing(cli: Call) -> None:
    done = cli("generate", "ring", "-n", 5, "-o", "x.pen", "-q")
    assert (done.exit_code, done.stdout, done.stderr) == (0, "", "")


def test_an_existing_target_stays(cli: Call) -> None:
    assert cli("generate", "ring", "-n", 5, "-o", "x.pen", "-q").exit_code == 0
    refused = cli("generate", "ring", "-n", 6, "-o", "x.pen")
    assert refused.exit_code == 2
    assert "x.pen exists" in refused.stderr
    assert "--overwrite" in refused.stderr
    assert facts(cli, "x.pen")["vertices"] == 5
    assert cli("generate", "ring", "-n", 6, "-o", "x.pen", "--overwrite").exit_code == 0
    assert facts(cli, "x.pen")["vertices"] == 6


def test_too_small_a_budget_names_the_smallest(cli: Call, tmp_path: Path) -> None:
    refused = cli("generate", "kron", "--scale", 8, "-o", "x.pen", "--memory-limit", "1MB")
    assert refused.exit_code == 3
    assert "set memory_limit to at least" in refused.stderr
    smallest = refused.stderr.rpartition("at least ")[2].strip().replace(" ", "")
    assert cli("generate", "kron", "--scale", 8, "-o", "x.pen", "--memory-limit", smallest).exit_code == 0
    assert [path.name for path in tmp_path.iterdir()] == ["x.pen"]


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["kron", "--scale", 99], "scale must be at most"),
        (["kron", "--scale", 4, "--weights", "9:1"], "weights"),
        (["kron", "--scale", 4, "--memory-limit", "lots"], "memory_limit"),
        (["kron", "--scale", 4, "--order", "random"], "--order"),
        (["kron", "--scale", 4, "--threads", 0], "--threads"),
        (["kron", "--scale", 4, "--page-size", 5000], "page_size"),
        (["kron", "--scale", 4, "--merge", "sum", "--merge", "w=min"], "--merge"),
        (["kron", "--scale", 4, "--merge", "middle"], "merge must be"),
        (["kron"], "--scale"),
        (["ring", "--vertices", 1], "vertices"),
        (["moebius"], "moebius"),
    ],
)
def test_bad_usage(cli: Call, tmp_path: Path, words: list[object], reason: str) -> None:
    refused = cli("generate", *words, "-o", "x.pen")
    assert refused.exit_code == 2
    assert refused.stderr.startswith("penstock: ")
    assert refused.stderr.count("\n") == 1
    assert reason in refused.stderr
    assert not list(tmp_path.iterdir())
