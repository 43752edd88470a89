"""`penstock run` and `penstock export`: what goes to stdout, what to files, what is refused at once."""

from __future__ import annotations

import inspect
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import pyarrow.parquet as pq
import pytest

import penstock
from penstock.algorithms.registry import ALGORITHMS, options_of
from penstock.edges import Edges
from penstock.interfaces.cli.parameters import chosen, parameters, takes_ids
from penstock.interfaces.cli.run import ENDINGS

from .conftest import Call


def test_top_ten_on_stdout(cli: Call, made: Path) -> None:
    done = cli("run", "pagerank", made)
    assert done.exit_code == 0, done.stderr
    rows = [line.split() for line in done.stdout.splitlines() if line.split()[:1] and line.split()[0].isdigit()]
    best = penstock.pagerank(made).top(10)
    assert [int(row[1]) for row in rows] == best["vertex"].to_pylist()
    assert [float(row[2]) for row in rows] == pytest.approx(best["rank"].to_pylist(), rel=1e-5)
    for word in ("pagerank: ", "iterations", "arcs/s", "in memory", "peak memory"):
        assert word in done.stderr
    assert done.stderr.count("\n") == 2


def test_from_disk(cli: Call, made: Path) -> None:
    done = cli("run", "pagerank", made, "--tier", "disk", "--memory-limit", "1.3MB", "--threads", 1)
    assert done.exit_code == 0, done.stderr
    for word in ("from disk", "read", " of 1.3 MB used"):
        assert word in done.stderr


def test_top_k(cli: Call, made: Path) -> None:
    shown = cli("run", "pagerank", made, "--top", 3, "-q")
    assert " 3 " in shown.stdout
    assert " 4 " not in shown.stdout
    assert shown.stderr == ""


def test_a_total_without_rows_is_shown(cli: Call, made: Path) -> None:
    total = penstock.run("triangles", made).stats["triangles"]
    assert cli("run", "triangles", made, "--no-per-vertex", "-q").stdout == f"{total}\n"
    for words in ((), ("--no-per-vertex", "-o", "none.csv")):
        assert f"triangles: {total:,} triangles, " in cli("run", "triangles", made, *words).stderr


@pytest.mark.parametrize("ending", ENDINGS)
def test_every_ending_is_written(cli: Call, made: Path, ending: str) -> None:
    done = cli("run", "pagerank", made, "-o", f"ranks{ending}")
    assert done.exit_code == 0, done.stderr
    assert done.stdout == ""
    assert Path(f"ranks{ending}").stat().st_size > 1000


def test_parquet_holds_all_ranks(cli: Call, made: Path) -> None:
    done = cli("run", "pagerank", made, "-o", "r.parquet", "--damping", 0.5, "--max-iter", 7, "--tol", 0)
    assert done.exit_code == 0, done.stderr
    assert pq.read_table("r.parquet").equals(penstock.pagerank(made, damping=0.5, max_iter=7, tol=0).table)
    assert "7 iterations, not converged" in done.stderr


def test_json_on_stdout_is_nothing_but_json(cli: Call, made: Path) -> None:
    done = cli("run", "pagerank", made, "--json", "-", "--memory-limit", "100MB", "--threads", 1)
    assert done.exit_code == 0
    run = json.loads(done.stdout)
    assert run["algorithm"] == "pagerank"
    assert run["iterations"] == len(run["supersteps"])
    assert run["plans"][0]["tier"] == "memory"
    assert run["settings"]["memory_limit"] == 100_000_000
    assert run["settings"]["threads"] == 1
    assert {"open", "prepare", "load", "run", "write"} <= set(run["phases"])
    for name in ("arcs_per_second", "bytes_per_second", "bytes_read", "cache_hits", "peak_memory", "ledger_peak"):
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
        (["--max-iter", "0"], 2, "--max-iter"),
        (["--memory-limit", "30kB"], 3, "set memory_limit to at least"),
        (["--source", "1"], 2, "--source"),
        (["--tier", "tape"], 2, "tape"),
        (["--device", "abacus"], 2, "abacus"),
        (["--device", "gpu:one"], 2, "gpu:one"),
        (["--gpu-memory-limit", "much"], 2, "gpu_memory_limit: 'much' is not a size"),
        (["--gpu-strategy", "T"], 2, "gpu_strategy: 'T' is none of P, S"),
        (["--gpu-streams", "0"], 2, "--gpu-streams"),
        (["--gpu-devices", "0"], 2, "--gpu-devices"),
        (["--trace", "there.csv"], 2, "there.csv exists"),
        (["--report", "page.pdf"], 2, "page.pdf does not end in .html"),
        (["--report", "x.html", "--json", "x.html"], 2, "both write x.html"),
        (["--checkpoint", "c", "--checkpoint-every", "often"], 2, "often"),
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


def test_every_setting_of_a_run_has_a_flag() -> None:
    from dataclasses import fields

    from penstock.config import Settings
    from penstock.interfaces.cli import options

    given = {"gpu_memory_limit": "1GB", "gpu_streams": 2, "gpu_devices": 3, "gpu_strategy": "S", "device": "gpu:1"}
    assert options.placement(**given) == given  # type: ignore[arg-type]
    flags = {name for group in (options.limits, options.placement, options.spill) for name in _parameters(group)}
    others = {"direct_io", "verify_checksums", "state_ranges"}
    """Which tests and measurements set, by a variable or in Python."""
    assert {field.name for field in fields(Settings)} - others == flags - {"quiet", "verbose"}


def _parameters(group: Any) -> list[str]:
    return list(inspect.signature(group).parameters)


def test_overwrite(cli: Call, made: Path) -> None:
    Path("r.csv").write_text("mine")
    assert cli("run", "pagerank", made, "-o", "r.csv", "--overwrite").exit_code == 0
    assert Path("r.csv").read_text().startswith('"vertex"') or Path("r.csv").read_text().startswith("vertex")


def test_no_such_algorithm(cli: Call, made: Path) -> None:
    refused = cli("run", "divination", made)
    assert refused.exit_code == 2
    assert "divination" in refused.stderr
    assert ", ".join(ALGORITHMS) in refused.stderr
    assert "do you mean pagerank?" in cli("run", "pagernak", made).stderr


def test_the_list_needs_no_compiler() -> None:
    probe = "import sys; from penstock.interfaces.cli import main\ntry: main()\n"
    probe += "finally: print(*sorted({m.partition('.')[0] for m in sys.modules}), file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", probe, "run", "--help"], capture_output=True, text=True, check=True)
    assert not {"numba", "llvmlite", "pyarrow", "numpy"} & set(done.stderr.split())
    assert all(f" {name} " in done.stdout for name in ALGORITHMS)


@pytest.mark.parametrize("name", ALGORITHMS)
def test_every_algorithm_has_a_command(cli: Call, name: str) -> None:
    text = cli("run", name, "--help").stdout
    for option in [*options_of(name), "memory_limit", "tier", "checkpoint_every", "trace"]:
        assert f"--{option.replace('_', '-')}" in text


def test_sources(cli: Call, made: Path) -> None:
    ids = penstock.pagerank(made).top(3)["vertex"].to_pylist()
    Path("ids.txt").write_text("\n".join(map(str, ids[1:])) + "\n\n")
    for words, source in (
        (["--source", ids[0]], ids[0]),
        (["--source", f"{ids[0]},{ids[1]}", "--source", ids[2]], ids),
        (["--source", ids[0], "--source", "@ids.txt"], ids),
    ):
        done = cli("run", "bfs", made, *words, "-o", "r.parquet", "--overwrite")
        assert done.exit_code == 0, done.stderr
        assert "levels" in done.stderr
        assert pq.read_table("r.parquet").equals(penstock.run("bfs", made, source=source).table)


def test_names_as_sources(cli: Call) -> None:
    Path("e.csv").write_text("source,target\nann,bob\nbob,@cy\n")
    assert cli("ingest", "e.csv", "-o", "e.pen").exit_code == 0
    Path("ids.txt").write_text("@cy\n")
    done = cli("run", "bfs", "e.pen", "--source", "ann", "-q")
    assert [line.split()[1:] for line in done.stdout.splitlines()[3:6]] == [
        ["@cy", "2", "bob"], ["bob", "1", "ann"], ["ann", "0", "ann"]
    ]  # fmt: skip
    done = cli("run", "bfs", "e.pen", "--source", "@ids.txt", "-o", "r.csv")
    assert done.exit_code == 0, done.stderr
    assert Path("r.csv").read_text().replace('"', "").split() == ["vertex,level,parent", "@cy,0,@cy", "ann,,", "bob,,"]


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        (None, "--source"),
        ("ann", "--source 'ann' is no id"),
        ("1,", "--source '' is no id"),
        ("123456789", "123456789"),
        ("@none.txt", "none.txt: No such file"),
        ("@odd.txt", "odd.txt, line 2: 'x' is no integer id"),
    ],
)
def test_sources_that_are_none(cli: Call, made: Path, source: str | None, reason: str) -> None:
    Path("odd.txt").write_text("1\nx\n")
    refused = cli("run", "bfs", made, *([] if source is None else ["--source", source]))
    assert (refused.exit_code, reason in refused.stderr) == (2, True), refused.stderr


def test_parameters_become_options() -> None:
    def algorithm(
        *,
        source: Annotated[Any, "Where."],
        others: Annotated[Sequence[Any] | None, "More."] = None,
        weight: Annotated[str, "Which."] = "weight",
        columns: Annotated[list[str], "Which."] = ["a"],  # noqa: B006
        delta: Annotated[float | None, "How wide."] = None,
        k: Annotated[int, "How many."] = 3,
        parents: Annotated[bool, "Whether."] = False,
        kind: Annotated[Literal["l1", "max"], "What."] = "l1",
    ) -> None: ...

    known = inspect.signature(algorithm, eval_str=True).parameters
    assert [name for name, parameter in known.items() if takes_ids(parameter)] == ["source", "others"]
    words = {name: made.annotation.__metadata__[0].default for name, made in parameters(known).items()}
    assert [words[name] for name in ("k", "parents")] == ["--k", "--parents/--no-parents"]
    given = {"source": ["1,2"], "others": None, "columns": ["x,y", "z"], "delta": 0.5, "k": 3, "kind": "max"}
    expected = {"source": [1, 2], "columns": ["x", "y", "z"], "delta": 0.5, "kind": "max"}
    assert chosen(known, given, "int64") == expected


def test_vertices_without_order_are_shown_by_id(cli: Call, made: Path) -> None:
    done = cli("run", "wcc", made, "--top", 4, "-q")
    assert done.exit_code == 0, done.stderr
    expected = penstock.run("wcc", made).table.slice(0, 4)["vertex"].to_pylist()
    assert [int(line.split()[1]) for line in done.stdout.splitlines()[3:7]] == expected


def test_edges_are_shown_and_written(cli: Call, made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stats = penstock.pagerank(made, max_iter=1).stats

    def edges(name: str, graph: penstock.Graph, **options: Any) -> Edges:
        return Edges(lambda: graph.edge_batches(["weight"], size=3), graph.edge_schema(["weight"]), stats)

    monkeypatch.setattr("penstock.api.run", edges)
    done = cli("run", "pagerank", made, "--top", 5, "-o", "e.csv", "-q")
    assert done.exit_code == 0, done.stderr
    assert done.stdout.split()[:3] == ["source", "target", "weight"]
    assert [line.split()[0] for line in done.stdout.splitlines()[3:8]] == list("12345")
    assert len(Path("e.csv").read_text().splitlines()) == penstock.open(made).edges + 1


@pytest.mark.parametrize("tier", ["memory", "disk"])
def test_trace(cli: Call, made: Path, tier: str) -> None:
    done = cli("run", "pagerank", made, "--trace", "t.json", "--tier", tier, "--max-iter", 2, "-q", "--threads", 2)
    assert done.exit_code == 0, done.stderr
    trace = json.loads(Path("t.json").read_text())
    rows = trace["traceEvents"]
    lanes = {row["args"]["name"] for row in rows if row["name"] == "thread_name"}
    assert {"engine", "phases", "worker 0", "worker 1"} <= lanes
    assert {"reader 0", "reader 1"} & lanes  # which of them comes first to a small graph's pages is luck
    assert [row["name"] for row in rows if row.get("cat") == "engine"] == ["superstep 1", "superstep 2"]
    assert trace["otherData"]["iterations"] == 2


def test_report_while_it_runs_and_later(cli: Call, made: Path) -> None:
    words = ["--tier", "disk", "--max-iter", 2, "--json", "run.json", "--trace", "run.trace", "--report", "run.html"]
    done = cli("run", "pagerank", made, *words, "-q")
    assert done.exit_code == 0, done.stderr
    now = Path("run.html").read_text()
    assert "pagerank" in now
    assert "--report" not in now  # it has a timeline, and need not say how to have one
    done = cli("report", "run.json", "--trace", "run.trace", "-o", "later.html")
    assert done.exit_code == 0, done.stderr
    later = Path("later.html").read_text()
    assert all(f'data-chart="{chart}"' in later for chart in ("timeline", "memory-host", "residual", "matrix"))
    assert 'data-chart="values"' in now
    done = cli("report", "run.json", "-o", "later.html")
    assert (done.exit_code, "later.html exists" in done.stderr) == (2, True)
    done = cli("report", "run.trace", "-o", "other.html")
    assert (done.exit_code, "not the figures of a run" in done.stderr) == (2, True)
    done = cli("report", "run.json", "--trace", "run.json", "-o", "other.html")
    assert (done.exit_code, "no trace" in done.stderr) == (2, True)
    assert not Path("other.html").exists()


def test_completion_knows_the_algorithms() -> None:
    for words, expected in (("penstock run pager", "pagerank"), ("penstock run pagerank x.pen --damp", "--damping")):
        count = str(len(words.split()) - 1)
        env = os.environ | {"_PENSTOCK_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": count}
        done = subprocess.run([sys.executable, "-m", "penstock"], env=env, capture_output=True, text=True, check=False)
        assert done.stdout.split() == [expected]


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
