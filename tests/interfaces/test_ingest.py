"""`penstock ingest`: files and stdin in, one sentence for what cannot be read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import penstock

from .conftest import Call


def edges(path: str = "x.pen") -> list[dict[str, Any]]:
    with penstock.open(path) as graph:
        rows = graph.edge_reader().read_all().to_pylist()
    return sorted(rows, key=lambda row: (row["source"], row["target"]))


def test_text_in(cli: Call) -> None:
    Path("a.txt").write_text("# comment\n10 20 0.5\n20 30 1.5\n")
    done = cli("ingest", "a.txt", "-o", "x.pen")
    assert done.exit_code == 0, done.stderr
    assert done.stdout == ""
    assert "3 vertices, 2 edges" in done.stderr
    assert edges() == [{"source": 10, "target": 20, "weight": 0.5}, {"source": 20, "target": 30, "weight": 1.5}]


def test_several_files_are_one_graph(cli: Call) -> None:
    Path("a.txt").write_text("1 2\n")
    Path("b.txt").write_text("2 3\n")
    assert cli("ingest", "a.txt", "b.txt", "-o", "x.pen").exit_code == 0
    assert len(edges()) == 2


def test_columns_by_name(cli: Call) -> None:
    Path("a.csv").write_text("w,from_id,to_id,x\n1,10,20,7\n2,20,30,\n")
    words = ["--source", "from_id", "--target", "to_id", "--columns", "w,x", "--fill", "x=9", "--type", "w=int8"]
    done = cli("ingest", "a.csv", "-o", "x.pen", *words)
    assert done.exit_code == 0, done.stderr
    assert edges() == [{"source": 10, "target": 20, "w": 1, "x": 7}, {"source": 20, "target": 30, "w": 2, "x": 9}]
    with penstock.open("x.pen") as graph:
        assert graph.columns["w"] == "int8"


def test_columns_of_text_are_not_dropped_without_a_word(cli: Call) -> None:
    Path("a.csv").write_text("source,target,note,w,label\n1,2,x,3,y\n")
    done = cli("ingest", "a.csv", "-o", "x.pen")
    assert "\ncolumns without numbers, not kept: note, label\n" in done.stderr
    assert "not kept" not in cli("ingest", "a.csv", "-o", "x.pen", "--overwrite", "--columns", "w").stderr
    assert edges() == [{"source": 1, "target": 2, "w": 3}]


def test_columns_by_number(cli: Call) -> None:
    Path("a.txt").write_text("5;1;2\n6;2;3\n")
    done = cli("ingest", "a.txt", "-o", "x.pen", "--source", "2", "--target", "1", "--columns", "", "--delimiter", ";")
    assert done.exit_code == 0, done.stderr
    assert edges() == [{"source": 2, "target": 1}, {"source": 3, "target": 2}]


def test_ids_header_and_comment(cli: Call) -> None:
    Path("a.txt").write_text("a b\n! skipped\n1 2\n")
    done = cli("ingest", "a.txt", "-o", "x.pen", "--no-header", "--ids", "string", "--comment", "!")
    assert done.exit_code == 0, done.stderr
    assert edges() == [{"source": "1", "target": "2"}, {"source": "a", "target": "b"}]


def test_vertex_table(cli: Call) -> None:
    Path("a.txt").write_text("1 2\n2 3\n")
    Path("v.csv").write_text("id,age\n1,30\n2,40\n9,50\n")
    refused = cli("ingest", "a.txt", "-o", "x.pen", "--vertices", "v.csv")
    assert refused.exit_code == 2
    assert "vertex 3" in refused.stderr
    done = cli("ingest", "a.txt", "-o", "x.pen", "--vertices", "v.csv", "--vertex-fill", "age=-1")
    assert done.exit_code == 0, done.stderr
    with penstock.open("x.pen") as graph:
        assert [graph.vertex(v)["age"] for v in (1, 3, 9)] == [30, -1, 50]
        assert graph.vertices == 4


def test_parquet_in(cli: Call) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(pa.table({"0": [1, 2], "1": [2, 3]}), "a.parquet")
    done = cli("ingest", "a.parquet", "-o", "x.pen", "--undirected")
    assert done.exit_code == 0, done.stderr
    with penstock.open("x.pen") as graph:
        assert (graph.edges, graph.arcs) == (2, 4)


def test_stdin(cli: Call, tmp_path: Path) -> None:
    assert cli("ingest", "-", "-o", "x.pen", input="1 2\n2 3\n").exit_code == 0
    assert edges() == [{"source": 1, "target": 2}, {"source": 2, "target": 3}]
    assert [path.name for path in tmp_path.iterdir()] == ["x.pen"]


def test_stdin_is_named_in_errors(cli: Call, tmp_path: Path) -> None:
    refused = cli("ingest", "-", "-o", "x.pen", input="1 2\n2 q\n")
    assert refused.exit_code == 2
    assert "standard input, line 2: " in refused.stderr
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("words", "reason"), [(["-", "a.txt"], "only input"), (["-", "--format", "metis"], "edge list")]
)
def test_stdin_refused(cli: Call, words: list[str], reason: str) -> None:
    refused = cli("ingest", *words, "-o", "x.pen", input="1 2\n")
    assert refused.exit_code == 2
    assert reason in refused.stderr


def test_a_malformed_line_is_named_and_nothing_is_left(cli: Call, tmp_path: Path) -> None:
    Path("a.txt").write_text("1 2\n2 3\nthree 4\n")
    refused = cli("ingest", "a.txt", "-o", "x.pen")
    assert refused.exit_code == 2
    assert refused.stderr.startswith("penstock: a.txt, line 3: ")
    assert refused.stderr.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["a.txt"]


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["missing.txt"], "missing.txt"),
        (["a.txt", "--format", "gexf"], "gexf"),
        (["a.txt", "--fill", "weight"], "--fill"),
        (["a.txt", "--vertex-fill", "x=many"], "not a number"),
        (["a.txt", "--no-such-option"], "--no-such-option"),
        ([], "INPUT"),
    ],
)
def test_bad_usage(cli: Call, tmp_path: Path, words: list[str], reason: str) -> None:
    Path("a.txt").write_text("1 2\n")
    refused = cli("ingest", *words, "-o", "x.pen")
    assert refused.exit_code == 2
    assert refused.stderr.startswith("penstock: ")
    assert reason in refused.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["a.txt"]


def test_a_used_up_quota_is_exit_3(cli: Call, tmp_path: Path) -> None:
    refused = cli("ingest", "-", "-o", "x.pen", "--max-temp-directory-size", "1kB", input="1 2\n" * 1000)
    assert refused.exit_code == 3
    assert "max_temp_directory_size" in refused.stderr
    assert not list(tmp_path.iterdir())


def test_an_existing_target_is_found_before_stdin_is_read(cli: Call, tmp_path: Path) -> None:
    assert cli("ingest", "-", "-o", "a.pen", input="1 2\n").exit_code == 0
    again = cli("ingest", "-", "-o", "a.pen", "--max-temp-directory-size", "1B", input="3 4\n")
    assert again.exit_code == 2  # and not 3, which is what spooling would say
    assert "a.pen exists: choose another name or pass --overwrite\n" in again.stderr


def test_fill_reaches_tables_in_the_type_of_the_column(cli: Call, tmp_path: Path) -> None:
    kinds = {"w": pa.float64(), "n": pa.int32(), "ok": pa.bool_(), "day": pa.timestamp("us")}
    columns = {name: pa.nulls(2, kind) for name, kind in kinds.items()}
    pq.write_table(pa.table({"src": [1, 2], "dst": [2, 3], **columns}), tmp_path / "gaps.parquet")
    fills = ("--fill", "w=7.5", "--fill", "n=3", "--fill", "ok=true", "--fill", "day=2020-01-02")
    done = cli("ingest", "gaps.parquet", "-o", "a.pen", *fills)
    assert done.exit_code == 0, done.stderr
    assert cli("export", "a.pen", "-o", "a.parquet").exit_code == 0
    row = pq.read_table(tmp_path / "a.parquet").to_pylist()[0]
    assert (row["w"], row["n"], row["ok"], str(row["day"])) == (7.5, 3, True, "2020-01-02 00:00:00")
    wrong = cli("ingest", "gaps.parquet", "-o", "b.pen", "--fill", "w=abc")
    assert (wrong.exit_code, "'abc' is no double" in wrong.stderr) == (2, True)


@pytest.mark.parametrize(
    ("table", "reason"),
    [
        ("id,age\nx,30\n", "are strings, but those of the edges are integers"),
        ("id,age\n1,30\n2,31\n1,40\n", "lists vertex 1 more than once"),
    ],
)
def test_bad_vertex_tables(cli: Call, tmp_path: Path, table: str, reason: str) -> None:
    (tmp_path / "v.csv").write_text(table)
    (tmp_path / "e.txt").write_text("1 2\n")
    result = cli("ingest", "e.txt", "--vertices", "v.csv", "--vertex-fill", "age=0", "-o", "a.pen")
    assert result.exit_code == 2
    assert result.stderr.startswith("penstock: v.csv: ")
    assert reason in result.stderr
    assert {path.name for path in tmp_path.iterdir()} == {"v.csv", "e.txt"}


def test_a_store_is_no_input(cli: Call, made: Path) -> None:
    result = cli("ingest", made, "-o", "b.pen")
    assert (result.exit_code, "is a store already" in result.stderr) == (2, True)
