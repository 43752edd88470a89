"""`penstock verify`."""

from __future__ import annotations

import inspect
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import penstock
from penstock.interfaces.cli.verify import options
from penstock.verify import CHECKERS

from .conftest import Call


def written(store: Path, path: Path) -> Path:
    """The ranks of the store."""
    with penstock.open(store) as graph:
        return penstock.pagerank(graph).write(path)


@pytest.fixture
def ranks(made: Path, tmp_path: Path) -> Path:
    return written(made, tmp_path / "ranks.parquet")


def spoil(path: Path) -> Path:
    """One rank is another's."""
    table = pq.read_table(path)
    values = table["rank"].to_pylist()
    values[5] += 0.01
    pq.write_table(table.set_column(1, "rank", pa.array(values)), path)
    return path


@pytest.mark.parametrize("ending", ["parquet", "csv", "tsv", "json", "arrow"])
def test_a_run_is_sound(cli: Call, made: Path, tmp_path: Path, ending: str) -> None:
    done = cli("verify", "pagerank", made, written(made, tmp_path / f"r.{ending}"))
    assert done.exit_code == 0
    assert done.stdout == "sound\n"
    assert done.stderr.startswith("pagerank: 1,024 rows against ")


def test_a_spoiled_one_is_exit_1(cli: Call, made: Path, ranks: Path) -> None:
    done = cli("verify", "pagerank", made, spoil(ranks))
    assert done.exit_code == 1
    first, second = done.stdout.splitlines()
    assert first.startswith("the ranks sum to 1.01")
    assert second.startswith("one more step changes")
    assert "2 rules broken" in done.stderr
    assert cli("verify", "pagerank", made, ranks, "-q").stderr == ""


def test_options_of_the_run(cli: Call, made: Path, ranks: Path) -> None:
    assert cli("verify", "pagerank", made, ranks, "--damping", "0.9").exit_code == 1
    assert cli("verify", "pagerank", made, ranks, "--damping", "0.85", "--tol", "1e-6").exit_code == 0
    refused = cli("verify", "pagerank", made, ranks, "--max-depth", "3")
    assert refused.exit_code == 2
    assert refused.stderr == "penstock: --max-depth means nothing to the check of pagerank\n"


def test_every_option_of_a_check_can_be_given() -> None:
    known = {name for check in CHECKERS.values() for name in inspect.signature(check).parameters}
    no_matter = {"parents", "delta"}  # a column says whether there are parents, and delta changes no distance
    assert known - {"graph", "table"} - no_matter == set(inspect.signature(options).parameters)


def test_options_of_scan(cli: Call, made: Path) -> None:
    assert cli("run", "scan", made, "-o", "clusters.parquet", "--epsilon", "0.3", "--mu", "3", "-q").exit_code == 0
    assert cli("verify", "scan", made, "clusters.parquet").exit_code == 1
    assert cli("verify", "scan", made, "clusters.parquet", "--epsilon", "0.3", "--mu", "3").exit_code == 0


def test_json(cli: Call, made: Path, ranks: Path) -> None:
    facts = json.loads(cli("verify", "pagerank", made, ranks, "--json", "--tol", "1e-6").stdout)
    assert facts["sound"]
    assert facts["problems"] == []
    assert facts["rows"] == facts["vertices"] == 1024
    assert facts["options"] == {"tol": 1e-6}
    done = cli("verify", "pagerank", made, spoil(ranks), "--json")
    assert done.exit_code == 1
    assert len(json.loads(done.stdout)["problems"]) == 2


def test_sources(cli: Call) -> None:
    Path("edges.txt").write_text("1 2\n2 3\n4 3\n")
    assert cli("ingest", "edges.txt", "-o", "x.pen", "-q").exit_code == 0
    Path("levels.csv").write_text("vertex,level,parent\n1,0,1\n2,1,1\n3,1,4\n4,0,4\n")
    assert cli("verify", "bfs", "x.pen", "levels.csv", "--source", "1,4").exit_code == 0
    Path("ids.txt").write_text("4\n1\n")
    for words in (("--source", "@ids.txt"), ("--source", "1", "--source", "4")):  # as for run
        assert cli("verify", "bfs", "x.pen", "levels.csv", *words).exit_code == 0
    odd = cli("verify", "bfs", "x.pen", "levels.csv", "--source", "ann")
    assert odd.stderr == "penstock: --source 'ann' is no id of this graph, whose ids are integers\n"
    one = cli("verify", "bfs", "x.pen", "levels.csv", "--source", "1")
    assert one.exit_code == 1
    assert "vertex 4 has level 0 but is no source" in one.stdout
    none = cli("verify", "bfs", "x.pen", "levels.csv")
    assert none.exit_code == 2
    assert none.stderr == "penstock: name the source the result was computed from with --source\n"
    assert cli("verify", "bfs", "x.pen", "levels.csv", "--source", "77").exit_code == 2


def test_bad_words(cli: Call, made: Path, ranks: Path) -> None:
    unknown = cli("verify", "colours", made, ranks)
    assert unknown.exit_code == 2
    assert "there is no check of 'colours'; there are pagerank, ppr, bfs" in unknown.stderr
    assert cli("verify", "pagerank", made, "none.csv").stderr == "penstock: none.csv: there is no such file\n"
    assert cli("verify", "pagerank", "none.pen", ranks).stderr == "penstock: none.pen does not exist\n"
