"""`penstock explain` and what `penstock doctor` measures."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from penstock import api
from penstock.engine import rates
from penstock.engine.rates import Rates

from .conftest import Call


@pytest.fixture(autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))


def test_a_tree(cli: Call, made: Path) -> None:
    done = cli("explain", "pagerank", made, "--stop", "fixed", "--max-iter", 4, "--memory-limit", "50MB")
    assert done.exit_code == 0, done.stderr
    for part in ("pagerank on", "passes: 4", "in memory", "doctor --measure"):
        assert part in done.stdout


def test_does_not_fit(cli: Call, made: Path) -> None:
    done = cli("explain", "pagerank", made, "--memory-limit", "30kB")
    assert done.exit_code == 3
    assert "does not fit" in done.stdout
    assert "set memory_limit to at least" in done.stdout


def test_json(cli: Call, made: Path) -> None:
    done = cli("explain", "bfs", made, "--source", 1, "--json")
    assert done.exit_code == 0, done.stderr
    assert json.loads(done.stdout)["stages"][0]["program"] == "bfs"
    refused = cli("explain", "pagerank", made, "--memory-limit", "30kB", "--json")
    assert refused.exit_code == 3
    assert json.loads(refused.stdout)["smallest_memory_limit"] > 30_000


def test_analyze(cli: Call, made: Path) -> None:
    done = cli("explain", "pagerank", made, "--analyze", "--stop", "fixed", "--max-iter", 3, "--tier", "disk", "-q")
    assert done.exit_code == 0, done.stderr
    assert "passes: 3, were 3" in done.stdout


@pytest.mark.parametrize("words", [("divination",), ("pagerank", "--depth", "3")])
def test_refused(cli: Call, made: Path, words: tuple[str, ...]) -> None:
    done = cli("explain", *words[:1], made, *words[1:])
    assert done.exit_code == 2
    assert done.stderr.startswith("penstock: ")


def test_doctor_measures_once(cli: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    called: list[dict[str, Any]] = []

    def measure(folder: Path, **options: Any) -> Rates:
        called.append(options)
        found = replace(Rates.default(options.get("threads", 2)), measured=True, date="today")
        rates.save(found, folder)
        return found

    monkeypatch.setattr(api, "measure", measure)
    missing = cli("doctor", "--no-measure", "--threads", 2)
    assert "not measured here" in missing.stdout
    assert not called
    assert "gather 8 bytes" in cli("doctor", "--threads", 2).stdout
    assert len(called) == 1
    held = {item["what"]: item for item in json.loads(cli("doctor", "--json", "--threads", 2).stdout)}
    assert held["rates"]["values"]["threads"] == 2
    assert len(called) == 1
    assert cli("doctor", "--measure", "--threads", 2).exit_code == 0
    assert len(called) == 2
