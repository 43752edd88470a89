"""`penstock mr`: every job is a command; results to files and tables, figures as JSON, errors as one sentence."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

import penstock as pk
from penstock.apps.jobs import JOBS

from .conftest import Call

EDGES = "0 1\n1 2\n2 0\n2 3\n3 0\n4 5\n"
TEXT = "b a b\nc \u00e9 a b\n"


@pytest.fixture
def inputs(cli: Call) -> None:
    """Small files of every kind, in the folder where commands run."""
    Path("edges.txt").write_text(EDGES)
    Path("text.txt").write_text(TEXT)
    Path("other.txt").write_bytes(b"b \xff\n")
    Path("log.tsv").write_text("/x\tann\n/x\tbob\n/x\tann\n/y\tann\n")
    np.save("points.npy", np.array([[0.0, 0], [0, 1], [9, 9], [9, 8]]))


def rows(path: str = "out.parquet") -> list[tuple[Any, ...]]:
    return list(zip(*pq.read_table(path).to_pydict().values(), strict=True))


COMMANDS: dict[str, tuple[list[str], list[tuple[Any, ...]]]] = {
    "word-count": (["text.txt", "other.txt"], [("\\xff", 1), ("a", 2), ("b", 4), ("c", 1), ("\u00e9", 1)]),
    "inverted-index": (
        ["text.txt", "other.txt"],
        [
            ("\\xff", "other.txt", 1), ("a", "text.txt", 2), ("b", "other.txt", 1), ("b", "text.txt", 3),
            ("c", "text.txt", 1), ("\u00e9", "text.txt", 1),
        ],
    ),
    "page-views": (["log.tsv", "--distinct"], [("/x", 2), ("/y", 1)]),
    "histogram": (["edges.txt"], [(line, 1) for line in sorted(EDGES.splitlines())]),
    "kmeans": (["points.npy", "--k", "2", "--seed", "3"], [(0, 0.0, 0.5, 2), (1, 9.0, 8.5, 2)]),
    "degree": (["edges.txt"], [(0, 3), (1, 2), (2, 3), (3, 2), (4, 1), (5, 1)]),
    "triangles": (["edges.txt"], [(0, 1, 2), (0, 2, 3)]),
    "independent-set": (["edges.txt", "--seed", "1"], []),
    "components": (["edges.txt"], [(0, 0), (1, 0), (2, 0), (3, 0), (4, 4), (5, 4)]),
    "rmat": (["--levels", "4", "--nonzeros", "2"], []),
    "similarity": (["edges.txt", "--threshold", "0.5"], [(2, 3, pytest.approx(0.5**0.5))]),
    "shortest-paths": (["edges.txt"], []),
}  # fmt: skip


def test_every_job_is_a_command(cli: Call) -> None:
    assert {name.replace("_", "-") for name in JOBS} <= set(COMMANDS)
    listed = cli("mr", "--help").stdout
    assert all(name in listed for name in (*COMMANDS, "gimv"))
    assert "penstock mr rmat --levels" in cli("mr", "rmat", "--help").stdout


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_writes_what_its_job_finds(cli: Call, inputs: None, name: str) -> None:
    words, want = COMMANDS[name]
    done = cli("mr", name, *words, "-o", "out.parquet", "--memory-limit", "32MB", "--force-out-of-core", "--json", "-")
    assert done.exit_code == 0, done.stderr
    figures = json.loads(done.stdout)
    assert figures["job"] == name
    assert figures["rows"] == len(rows())
    assert figures["memory_peak"] <= figures["memory_limit"] == 32_000_000
    assert figures["spill_written"] > 0
    found = sorted(rows())
    if want:
        assert found == sorted(want)
    if name == "independent-set":
        assert {vertex for vertex, _ in found} & {4, 5}
    if name == "rmat":
        assert len(set(found)) == 32
    if name == "shortest-paths":
        assert {(0, 3, 3.0), (4, 5, 1.0), (5, 5, 0.0)} <= set(found)
    assert not [path for path in Path().iterdir() if "spill" in path.name]


@pytest.mark.parametrize("name", ["kmeans", "independent-set", "rmat"])
@pytest.mark.parametrize("seed", ["-5", str(2**64)])
def test_a_seed_is_64_bits(cli: Call, inputs: None, name: str, seed: str) -> None:
    done = cli("mr", name, *COMMANDS[name][0], "--seed", seed)
    assert (done.exit_code, done.stderr.count("\n")) == (2, 1)
    assert "seed must be at" in done.stderr


def test_the_largest_are_shown(cli: Call, inputs: None) -> None:
    done = cli("mr", "wordcount", "text.txt", "--top", 2)
    assert [line.split()[1:] for line in done.stdout.splitlines() if line.split()[:1] in (["1"], ["2"], ["3"])] == [
        ["b", "3"], ["a", "2"],
    ]  # fmt: skip
    assert "word-count: 4 rows in " in done.stderr
    assert "in memory" in done.stderr
    assert cli("mr", "word_count", "text.txt", "-q").stderr == ""


def test_tables_have_columns(cli: Call, inputs: None) -> None:
    cli("mr", "word-count", "text.txt", "-o", "counts.csv")
    done = cli("mr", "histogram", "counts.csv", "--column", "count", "-o", "out.parquet")
    assert done.exit_code == 0, done.stderr
    assert rows() == sorted(Counter(Counter(TEXT.split()).values()).items())
    for words, sentence in [
        (["counts.csv"], "needs --column"),
        (["counts.csv", "--column", "cuont"], "has no column 'cuont', only word, count"),
        (["text.txt", "--column", "x"], "lines of text have none"),
    ]:
        done = cli("mr", "histogram", *words)
        assert (done.exit_code, done.stderr.count("\n")) == (2, 1)
        assert sentence in done.stderr


@pytest.mark.parametrize(
    ("words", "code", "sentence"),
    [
        (["wordcuont", "text.txt"], 2, "there is no job 'wordcuont'; there are word-count"),
        (["word-count", "none.txt"], 2, "none.txt: there is no such file"),
        (["word-count", "text.txt", "-o", "out.xls"], 2, "does not end in one of"),
        (["word-count", "text.txt", "-o", "text.txt"], 2, "exists"),
        (["kmeans", "text.txt", "--k", "2"], 2, "no NumPy array"),
        (["kmeans", "points.npy", "--k", "9"], 2, "from 1 to the number of points, 4, not 9"),
        (["degree", "edges.txt", "--count", "in"], 2, "out or both, not 'in'"),
        (["rmat", "--levels", "40"], 2, "from 0 to 32"),
        (["shortest-paths", "edges.txt", "--method", "magic"], 2, "squaring, floyd-warshall, direct"),
        (["shortest-paths", "edges.txt", "--weight", "km"], 2, "km"),
        (["word-count", "text.txt", "--memory-limit", "1kB"], 2, "1 MiB at least"),
        (["word-count", "text.txt", "--device", "gpu:one"], 2, "'gpu:one' is none of auto, cpu, gpu"),
        (["word-count", "text.txt", "--gpu-memory-limit", "much"], 2, "'much' is not a size"),
        (
            ["degree", "edges.txt", "--force-out-of-core", "--max-temp-directory-size", "8"],
            3,
            "set max_temp_directory_size to at least",
        ),
    ],
)
def test_what_is_wrong_is_one_sentence(cli: Call, inputs: None, words: list[str], code: int, sentence: str) -> None:
    done = cli("mr", *words)
    assert done.exit_code == code, done.stderr
    assert sentence in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("method", ["mapreduce", "fused"])
def test_gimv(cli: Call, made: Path, method: str) -> None:
    done = cli("mr", "gimv", "components", made, "--method", method, "-o", "out.parquet", "--json", "run.json")
    assert done.exit_code == 0, done.stderr
    assert pq.read_table("out.parquet").equals(pk.wcc(made).table)
    figures = json.loads(Path("run.json").read_text())
    assert ("mapreduce" in figures) == (method == "mapreduce")
    assert "components: " in done.stderr


@pytest.mark.parametrize("method", ["mapreduce", "fused"])
def test_gimv_takes_the_settings_of_a_run(cli: Call, made: Path, method: str) -> None:
    words = ["--device", "cpu", "--gpu-memory-limit", "1GB", "--tier", "disk", "--json", "run.json", "-q"]
    assert cli("mr", "gimv", "components", made, "--method", method, *words).exit_code == 0
    used = json.loads(Path("run.json").read_text())["settings"]
    assert (used["device"], used["gpu_memory_limit"], used["tier"]) == ("cpu", 1_000_000_000, "disk")
    done = cli("mr", "gimv", "components", made, "--method", method, "--device", "gpu:one")
    assert (done.exit_code, done.stderr.count("\n")) == (2, 1)
    assert "'gpu:one' is none of auto, cpu, gpu" in done.stderr


@pytest.mark.parametrize("method", ["mapreduce", "fused"])
def test_gimv_keeps_a_timeline_and_a_page(cli: Call, made: Path, method: str, tmp_path: Path) -> None:
    trace, page = tmp_path / "run.trace", tmp_path / "run.html"
    done = cli("mr", "gimv", "components", made, "--method", method, "--trace", trace, "--report", page)
    assert done.exit_code == 0, done.stderr
    assert json.loads(trace.read_text())["traceEvents"]
    assert "components" in page.read_text()


def test_there_is_no_page_about_other_jobs(cli: Call) -> None:
    done = cli("mr", "rmat", "--levels", 3, "--report", "run.html")
    assert done.exit_code == 2
    assert "--report" in done.stderr


def test_gimv_says_what_is_wrong(cli: Call, made: Path) -> None:
    done = cli("mr", "gimv", "rwr", made, "--source", "nobody")
    assert done.exit_code == 2
    assert "no id of this graph" in done.stderr
    done = cli("mr", "gimv", "pagerank", made, "--method", "spark")
    assert "fused or mapreduce" in done.stderr
    done = cli("mr", "gimv", "rwr", made, "--source", 3, "--top", 1, "--force-out-of-core")
    assert done.exit_code == 0, done.stderr
    assert "spilled" in done.stderr
