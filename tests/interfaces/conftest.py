"""The command line called in this process, and a small store to call it on."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from penstock.interfaces.cli.app import app

Call = Callable[..., Any]


@pytest.fixture
def cli(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Call:
    """`cli("info", path)`: exit_code, stdout and stderr of a command, run in an empty folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "160")

    def call(*words: object, input: str | bytes | None = None) -> Any:
        return CliRunner().invoke(app, [str(word) for word in words], input=input)

    return call


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A weighted graph at 4 KiB pages, so that it has many, and large ones. Not to be changed."""
    path = tmp_path_factory.mktemp("made") / "kron.pen"
    words = ["generate", "kron", "--scale", "10", "--undirected", "--weights", "1:9", "--page-size", "4KiB", "-q", "-o"]
    result = CliRunner().invoke(app, [*words, str(path)])
    assert result.exit_code == 0, result.output
    return path


@pytest.fixture
def store(made: Path, tmp_path: Path) -> Path:
    """A copy that may be damaged."""
    return Path(shutil.copytree(made, tmp_path / "kron.pen"))
