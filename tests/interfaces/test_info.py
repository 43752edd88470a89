"""`penstock info` and `penstock check`."""

from __future__ import annotations

import json
from pathlib import Path

import penstock

from .conftest import Call


def test_json_agrees_with_the_graph(cli: Call, made: Path) -> None:
    found = json.loads(cli("info", made, "--json").stdout)
    with penstock.open(made) as graph:
        degrees = [graph.degree(vertex) for vertex in range(graph.vertices)]
        weights = graph.edge_reader().read_all()["weight"].to_pylist()
        assert found["vertices"] == graph.vertices == 1024
        assert found["edges"] == graph.edges
        assert found["arcs"] == graph.arcs == sum(degrees)
    assert found["isolated"] == degrees.count(0)
    out = found["directions"]["out"]
    assert out["degree"] == {"min": min(degrees), "mean": sum(degrees) / 1024, "max": max(degrees)}
    assert out["small_pages"] + out["large_pages"] == out["page_bytes"] // 4096
    assert out["small_pages"] > 1
    assert found["columns"] == {"weight": {"type": "uint8", "min": min(weights), "max": max(weights)}}
    assert found["vertex_columns"] == {"out_degree": "uint32", "in_degree": "uint32"}
    files = [path for path in made.rglob("*") if path.is_file()]
    assert found["bytes"] == sum(path.stat().st_size for path in files)
    assert (found["directed"], found["order"], found["ids"], found["encoding"]) == (False, "degree", "int64", "plain")


def test_table(cli: Call, made: Path) -> None:
    done = cli("info", made)
    assert done.exit_code == 0
    for word in ("1,024", "undirected", "4 KiB", "weight: uint8, 1 to 9", "out_degree", "[format 1"):
        assert word in done.stdout
    assert done.stderr == ""


def test_times_are_shown_as_times(cli: Call) -> None:
    Path("a.csv").write_text("source,target,when,ok\n1,2,2020-01-01T00:00:00,true\n2,3,2021-06-01T12:00:00,false\n")
    assert cli("ingest", "a.csv", "-o", "x.pen").exit_code == 0
    columns = json.loads(cli("info", "x.pen", "--json").stdout)["columns"]
    assert columns["when"]["min"].startswith("2020-01-01")
    assert columns["when"]["max"].startswith("2021-06-01")
    assert (columns["ok"]["min"], columns["ok"]["max"]) == (False, True)


def test_directed_store_shows_both_directions(cli: Call) -> None:
    assert cli("generate", "star", "-n", 5, "--directed", "-o", "x.pen").exit_code == 0
    found = json.loads(cli("info", "x.pen", "--json").stdout)["directions"]
    assert found["out"]["degree"]["max"] == 4
    assert found["in"]["degree"]["max"] == 1


def test_no_store(cli: Call) -> None:
    Path("file.txt").write_text("1 2\n")
    for command in ("info", "check"):
        missing = cli(command, "none.pen")
        assert missing.exit_code == 2
        assert missing.stderr == "penstock: none.pen does not exist\n"
    assert cli("info", "file.txt").exit_code == 2


def test_a_sound_store(cli: Call, made: Path) -> None:
    done = cli("check", made)
    assert done.exit_code == 0
    assert done.stdout == f"{made}: sound\n"


def test_a_flipped_byte_is_exit_1(cli: Call, store: Path) -> None:
    pages = store / "out" / "pages.0"
    data = bytearray(pages.read_bytes())
    data[5000] ^= 1
    pages.write_bytes(data)
    done = cli("check", store)
    assert done.exit_code == 1
    assert "page 1 is damaged" in done.stdout
    assert "1 problem" in done.stderr
    run = cli("run", "pagerank", store)
    assert run.exit_code == 1
    assert "page 1 is damaged" in run.stderr
    assert run.stdout == ""


def test_a_truncated_store_does_not_open(cli: Call, store: Path) -> None:
    pages = store / "out" / "pages.0"
    pages.write_bytes(pages.read_bytes()[:-1])
    refused = cli("info", store)
    assert refused.exit_code == 1
    assert "truncated" in refused.stderr
