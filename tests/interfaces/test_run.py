"""`penstock run pagerank` and `penstock export`: what goes to stdout, what to files, what is refused at once."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import penstock
from penstock.interfaces.cli.run import ENDINGS

from .conftest import Call


def test_top_ten_on_stdout(cli: Call, made: Path) -> None:
    done = cli("run", "pagerank", made)
    assert done.exit_code == 0, done.stderr
    rows = [line.split() for line in done.stdout.splitlines() if line.split()[:1] and line.split()[0].isdigit()]
    best = penstock.pagerank(made).top(10)
    assert [int(row[1]) for row in rows] == best["vertex"].to_pylist()
    assert [float(row[2]) for row in rows] == pytest.approx(best["rank"].to_pylist(), rel=1e-5)
    for word in ("iterations", "arcs/s", "from disk", "peak memory"):
        assert word in done.stderr


def test_top_k(cli: Call, made: Path) -> None:
    shown = cli("run", "pagerank", made, "--top", 3, "-q")
    assert " 3 " in shown.stdout
    assert " 4 " not in shown.stdout
    assert shown.stderr == ""


@pytest.mark.parametrize("ending", ENDINGS)
def test_every_ending_is_written(cli: Call, made: Path, ending: str) -> None:
    done = cli("run", "pagerank", made, "-o", f"ranks{ending}")
    assert done.exit_code == 0, done.stderr
    assert done.stdout == ""
    assert Path(f"ranks{ending}").stat().st_size > 1000


def test_parquet_holds_all_ranks(cli: Call, made: Path) -> None:
    import pyarrow.parquet as pq

    done = cli("run", "pagerank", made, "-o", "r.parquet", "--damping", 0.5, "--max-iter", 7, "--tol", 0)
    assert done.exit_code == 0, done.stderr
    assert pq.read_table("r.parquet").equals(penstock.pagerank(made, damping=0.5, max_iter=7, tol=0).table)
    assert "7 iterations, not converged" in done.stderr


def test_json_on_stdout_is_nothing_but_json(cli: Call, made: Path) -> None:
    done = cli("run", "pagerank", made, "--json", "-", "--memory-limit", "100MB", "--threads", 1)
    assert done.exit_code == 0
    run = json.loads(done.stdout)
    assert run["algorithm"] == "pagerank"
    assert run["iterations"] == len(run["iteration_seconds"])
    assert run["settings"]["memory_limit"] == 100_000_000
    assert run["settings"]["threads"] == 1
    assert {"open", "run", "write"} <= set(run["phases"])
    for name in ("arcs_per_second", "bytes_read", "cache_hits", "peak_memory", "page_bytes"):
        assert run[name] >= 0


def test_json_to_a_file(cli: Call, made: Path) -> None:
    assert cli("run", "pagerank", made, "--json", "run.json", "-o", "r.csv").exit_code == 0
    assert json.loads(Path("run.json").read_text())["output"] == "r.csv"


@pytest.mark.parametrize(
    ("words", "code", "reason"),
    [
        (["-o", "r.xlsx"], 2, ".parquet"),
        (["-o", "nowhere/r.csv"], 2, "nowhere"),
        (["-o", "there.csv"], 2, "there.csv exists"),
        (["--json", "there.csv"], 2, "there.csv exists"),
        (["--json", "-", "--top", "3"], 2, "stdout"),
        (["--damping", "2"], 2, "damping"),
        (["--dtype", "float16"], 2, "dtype"),
        (["--max-iter", "0"], 2, "max_iter"),
        (["--memory-limit", "30kB"], 3, "set memory_limit to at least"),
        (["--source", "1"], 2, "--source"),
    ],
)
def test_refused(cli: Call, made: Path, tmp_path: Path, words: list[str], code: int, reason: str) -> None:
    Path("there.csv").write_text("mine")
    refused = cli("run", "pagerank", made, *words)
    assert refused.exit_code == code
    assert refused.stderr.startswith("penstock: ")
    assert reason in refused.stderr
    assert refused.stdout == ""
    assert [path.name for path in tmp_path.iterdir()] == ["there.csv"]
    assert Path("there.csv").read_text() == "mine"


def test_overwrite(cli: Call, made: Path) -> None:
    Path("r.csv").write_text("mine")
    assert cli("run", "pagerank", made, "-o", "r.csv", "--overwrite").exit_code == 0
    assert Path("r.csv").read_text().startswith('"vertex"') or Path("r.csv").read_text().startswith("vertex")


def test_no_such_algorithm(cli: Call, made: Path) -> None:
    refused = cli("run", "divination", made)
    assert refused.exit_code == 2
    assert "divination" in refused.stderr


def test_export_and_back(cli: Call, made: Path) -> None:
    done = cli("export", made, "-o", "e.csv")
    assert done.exit_code == 0, done.stderr
    assert "edges" in done.stderr
    assert cli("export", made, "-o", "e.csv").exit_code == 2
    assert cli("export", made, "-o", "e.csv", "--overwrite", "--columns", "").exit_code == 0
    assert Path("e.csv").read_text().splitlines()[0].replace('"', "") == "source,target"
    assert cli("export", made, "-o", "e.parquet").exit_code == 0
    assert cli("ingest", "e.parquet", "-o", "again.pen", "--undirected").exit_code == 0
    with penstock.open(made) as before, penstock.open("again.pen") as after:
        tables = [
            graph.edge_reader().read_all().sort_by([("source", "ascending"), ("target", "ascending")]).combine_chunks()
            for graph in (before, after)
        ]
    assert tables[0].equals(tables[1])


def test_export_numbers_and_vertices(cli: Call, made: Path) -> None:
    refused = cli("export", made, "-o", "e.mtx")
    assert refused.exit_code == 2
    assert "--renumber" in refused.stderr
    assert cli("export", made, "-o", "e.mtx", "--renumber").exit_code == 0
    assert Path("e.mtx").read_text().startswith("%%MatrixMarket")
    assert cli("export", made, "-o", "v.csv", "--vertices").exit_code == 0
    assert len(Path("v.csv").read_text().splitlines()) == 1025
    assert cli("export", made, "-o", "e.xyz").exit_code == 2


def test_ranks_and_statistics_do_not_share_a_file(cli: Call, store: Path) -> None:
    result = cli("run", "pagerank", store, "-o", "same.json", "--json", "./same.json")
    assert result.exit_code == 2
    assert result.stderr == "penstock: -o and --json both write same.json: give them two names\n"
    assert not Path("same.json").exists()
