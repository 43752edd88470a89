"""What a new user types: help with examples, names that are nearly right, how much is said, a run that is none."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest

from penstock.interfaces.cli.app import ORDER
from penstock.interfaces.cli.config import meanings, strangers
from penstock.interfaces.cli.examples import EXAMPLES, OF_RUN

from .conftest import Call

LINES = [line for each in (*EXAMPLES.values(), *OF_RUN.values()) for line, _ in each]
GROUPS = ("generate", "run", "explain")


def test_every_command_has_examples() -> None:
    assert set(EXAMPLES) == {"", *ORDER} - {"mr"}
    for each in (*EXAMPLES.values(), *OF_RUN.values()):
        for line, what in each:
            assert len(f" {line}  # {what}" if what else f" {line}") <= 79, "it would be broken at 80 columns"


@pytest.mark.parametrize("name", [name for name in ORDER if name != "mr"])
def test_help_ends_with_them(cli: Call, name: str) -> None:
    shown = cli(name, "--help")
    assert shown.exit_code == 0
    tail = shown.stdout[shown.stdout.rindex("Example") :]
    assert all(line in tail for line, _ in EXAMPLES[name])


def test_the_options_of_examples_exist(cli: Call) -> None:
    helps: dict[tuple[str, ...], str] = {}
    for line in LINES:
        words = shlex.split(line.split("| ")[-1])
        words = words[words.index("penstock") + 1 :]
        command = tuple(words[: 2 if words[0] in GROUPS else 1])
        if command not in helps:
            shown = cli(*command, "--help")
            assert shown.exit_code == 0, line
            helps[command] = shown.stdout
        for option in (word for word in words if re.fullmatch(r"--?[a-z][a-z-]*", word)):
            assert re.search(rf"{option}[ /]", helps[command]), f"{line}: no {option}"


def test_a_file_of_edges_in_one_command(cli: Call, tmp_path: Path) -> None:
    Path("edges.txt").write_text("# a graph\n" + "".join(f"{i % 7}\t{3 * i % 11}\n" for i in range(1, 21)))
    done = cli("run", "pagerank", "edges.txt", "--top", 3)
    assert done.exit_code == 0, done.stderr
    assert " 3 " in done.stdout
    assert "edges.txt: 11 vertices, 20 edges, read for this time only (penstock ingest" in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["edges.txt"]
    assert "19 edges" in cli("run", "pagerank", "edges.txt", "--undirected").stderr
    assert "no column 'weight'" in cli("run", "sssp", "edges.txt", "--source", 1).stderr
    assert "do you mean edges.txt?" in cli("run", "pagerank", "edgse.txt").stderr
    assert "do you mean edges.txt?" in cli("ingest", "edgse.txt", "-o", "x.pen").stderr


def test_undirected_is_for_edges(cli: Call, made: Path) -> None:
    refused = cli("run", "pagerank", made, "--undirected")
    assert refused.exit_code == 2
    assert "is a store, and undirected" in refused.stderr


def test_dry_run(cli: Call, made: Path, tmp_path: Path) -> None:
    done = cli("run", "pagerank", made, "--dry-run", "-o", "ranks.csv", "--memory-limit", "100MB")
    assert done.exit_code == 0, done.stderr
    assert done.stdout == cli("explain", "pagerank", made, "--memory-limit", "100MB").stdout
    assert not list(tmp_path.iterdir())
    assert cli("run", "pagerank", made, "--dry-run", "--memory-limit", "30kB").exit_code == 3


def test_verbose(cli: Call, made: Path) -> None:
    done = cli("run", "pagerank", made, "-v", "--top", 1)
    for word in ("smallest memory_limit", "time: open", "pagerank: combine over out arcs, tier memory", "residual: "):
        assert word in done.stderr
    assert "smallest memory_limit" not in done.stdout
    assert "time: " in cli("generate", "ring", "-n", 5, "-o", "r.pen", "-v").stderr
    refused = cli("run", "pagerank", made, "-v", "-q")
    assert (refused.exit_code, refused.stderr.count("\n")) == (2, 1)


def test_config(cli: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PENSTOCK_MEMORY_LIMIT", "2GB")
    monkeypatch.setenv("PENSTOCK_THRAEDS", "1")
    done = cli("config")
    row = next(line for line in done.stdout.splitlines() if line.startswith("memory_limit"))
    assert re.search(r"2\.0 GB +PENSTOCK_MEMORY_LIMIT +Bound", row)
    assert done.stderr == "PENSTOCK_THRAEDS is set, but there is no such setting, do you mean PENSTOCK_THREADS?\n"
    told = json.loads(cli("config", "--json").stdout)
    assert told["memory_limit"] == {
        "value": 2_000_000_000, "from": "PENSTOCK_MEMORY_LIMIT", "meaning": meanings()["memory_limit"]
    }  # fmt: skip
    assert told["tier"]["from"] == "default"
    assert all(each["meaning"] for each in told.values())
    monkeypatch.setenv("PENSTOCK_MEMORY_LIMIT", "much")
    wrong = cli("config")
    assert (wrong.exit_code, wrong.stderr) == (
        2, "penstock: PENSTOCK_MEMORY_LIMIT: 'much' is not a size: write 512MB, 2GiB or a number of bytes\n"
    )  # fmt: skip
    assert strangers({"PENSTOCK_DEVICE": "cpu", "HOME": "/"}) == []


def test_bench(cli: Call, made: Path) -> None:
    done = cli("bench", made, "-n", 2, "--verify", "--json", "-q")
    assert (done.exit_code, done.stderr) == (0, "")
    told = json.loads(done.stdout)
    assert told["machine"]
    assert [each["algorithm"] for each in told["results"]] == ["pagerank", "bfs", "wcc"]
    for each in told["results"]:
        assert len(each["seconds"]) == 2
        assert each["rate"] > 0
        assert each["problems"] == []
    shown = cli("bench", "--scale", 6, "--algorithms", "degree", "-n", 1)
    assert shown.exit_code == 0, shown.stderr
    assert "degree" in shown.stdout
    for words, reason in (
        (["--algorithms", "pagernk"], "do you mean pagerank?"),
        (["--algorithms", "induced"], "induced needs vertices"),
        (["--algorithms", ","], "names none"),
        (["nowhere.pen"], "does not exist"),
    ):
        refused = cli("bench", *words)
        assert refused.exit_code == 2
        assert reason in refused.stderr


def test_no_color(cli: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm-256color")
    colour = re.compile(r"\x1b\[[0-9;]*(3[0-7]|9[0-7])m")
    assert colour.search(cli("doctor", "--no-measure").stdout)
    monkeypatch.setenv("NO_COLOR", "1")
    assert not colour.search(cli("doctor", "--no-measure").stdout)
