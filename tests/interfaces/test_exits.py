"""The ways out: help, version, sentences instead of tracebacks, signals that leave nothing behind."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from penstock.errors import DiskFull, UsageError
from penstock.interfaces.cli.exits import BUG, Terminated, exit_code, explain
from penstock.version import VERSION

from .conftest import Call

START = "import sys; sys.argv[0] = 'penstock'; from penstock.interfaces.cli import main; main()"


def start(folder: Path, *words: str) -> subprocess.Popen[str]:
    pipe = subprocess.PIPE
    return subprocess.Popen([sys.executable, "-c", START, *words], cwd=folder, stdout=pipe, stderr=pipe, text=True)


def test_version_and_help_load_nothing_heavy(tmp_path: Path) -> None:
    probe = "import sys; from penstock.interfaces.cli import main\ntry: main()\n"
    probe += "finally: print(sorted({m.partition('.')[0] for m in sys.modules}), file=sys.stderr)"
    for words, expected in ((["--version"], f"penstock {VERSION}\n"), (["--help"], "penstock run pagerank edges.txt")):
        done = subprocess.run([sys.executable, "-c", probe, *words], capture_output=True, text=True, check=True)
        assert expected in done.stdout
        assert not {"numba", "llvmlite", "pyarrow", "numpy"} & set(json.loads(done.stderr.replace("'", '"')))


def test_module_runs_as_a_program() -> None:
    done = subprocess.run([sys.executable, "-m", "penstock", "--version"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, f"penstock {VERSION}\n", "")


def test_help_opens_with_examples_and_lists_commands_in_order(cli: Call) -> None:
    text = cli("--help").stdout
    found = [text.index(word) for word in ("penstock run pagerank", "penstock ingest", "Options", "─ Graphs")]
    assert found == sorted(found)
    commands = text[found[-1] :]
    places = [
        commands.index(f" {name} ")
        for name in ("generate", "ingest", "info", "check", "export", "run", "plot", "doctor")
    ]
    assert places == sorted(places)


def test_completion(tmp_path: Path) -> None:
    env = os.environ | {"_PENSTOCK_COMPLETE": "complete_bash", "COMP_WORDS": "penstock gen", "COMP_CWORD": "1"}
    done = subprocess.run([sys.executable, "-m", "penstock"], env=env, capture_output=True, text=True, check=False)
    assert done.stdout.split() == ["generate"]


def test_unknown_words_are_usage_errors(cli: Call) -> None:
    for words in (["--nonsense"], ["nonsense"], ["info"], ["info", "a", "b"]):
        refused = cli(*words)
        assert refused.exit_code == 2
        assert refused.stderr.startswith("penstock: ")
        assert "--help" in refused.stderr
        assert "Traceback" not in refused.stderr


def test_debug_shows_where_and_may_stand_anywhere(cli: Call) -> None:
    for words in (["--debug", "info", "none.pen"], ["info", "none.pen", "--debug"]):
        refused = cli(*words)
        assert refused.exit_code == 2
        assert "Traceback" in refused.stderr
        assert refused.stderr.endswith("penstock: none.pen does not exist\n")


def test_a_bug_is_70_and_points_to_debug(cli: Call, made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("penstock.interfaces.cli.info.describe", lambda store: {}["nothing"])
    failed = cli("info", made)
    assert failed.exit_code == BUG
    assert failed.stderr.count("\n") == 1
    assert "KeyError" in failed.stderr
    assert "--debug" in failed.stderr


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (UsageError("no"), 2),
        (DiskFull("full"), 3),
        (OSError(errno.ENOSPC, "No space left on device"), 3),
        (PermissionError(errno.EACCES, "Permission denied", "/root/x"), 2),
        (MemoryError(), 3),
        (ZeroDivisionError("division by zero"), BUG),
    ],
)
def test_codes(error: Exception, code: int) -> None:
    found, sentence = explain(error)
    assert found == code
    assert sentence
    assert "\n" not in sentence


@pytest.mark.parametrize(("error", "code"), [(KeyboardInterrupt, 130), (Terminated, 143)])
def test_interrupts(error: type[BaseException], code: int, capsys: pytest.CaptureFixture[str]) -> None:
    def stopped() -> None:
        raise error

    assert exit_code(stopped, debug=True) == code
    assert "Traceback" not in capsys.readouterr().err


@pytest.mark.parametrize(("number", "code"), [(signal.SIGHUP, 129), (signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_leaves_nothing_behind(tmp_path: Path, number: signal.Signals, code: int) -> None:
    words = ["generate", "kron", "--scale", "22", "--undirected", "-o", "x.pen", "--memory-limit", "256MB"]
    before = signal.signal(number, signal.SIG_DFL)  # under nohup it comes ignored, which is to stay so
    process = start(tmp_path, *words)
    signal.signal(number, before)
    draft = tmp_path / ".x.pen.tmp"
    try:
        while process.poll() is None and not _spilling(draft):
            time.sleep(0.02)
        process.send_signal(number)
        out, err = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == code, err
    assert out == ""
    assert err == ("penstock: interrupted\n" if number == signal.SIGINT else "penstock: terminated\n")
    assert not list(tmp_path.iterdir())


def _spilling(draft: Path) -> bool:
    """The build is in the middle of it: files that grow."""
    with contextlib.suppress(FileNotFoundError):
        return sum(file.stat().st_size for file in draft.rglob("*")) > 1 << 20
    return False


def test_a_closed_pipe_is_no_traceback(made: Path) -> None:
    line = f"{sys.executable} -m penstock info {made} --json | head -c 1"
    done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, check=False)
    assert done.stdout == "{"
    assert "Traceback" not in done.stderr


def test_doctor(cli: Call) -> None:
    found = {item["what"]: item for item in json.loads(cli("doctor", "--no-measure", "--json").stdout)}
    for name in ("penstock", "numba", "pyarrow", "threading layer", "memory", "huge pages", "direct I/O", "free disk"):
        assert found[name]["state"] in ("ok", "warn")
    assert found["threading layer"]["text"].split(",")[0] in ("tbb", "omp", "workqueue")
    table = cli("doctor", "--no-measure")
    assert table.exit_code == 0
    assert "threading layer" in table.stdout


def test_doctor_says_what_is_missing(cli: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("penstock.interfaces.cli.doctor.PACKAGES", ("numpy", "no-such-package"))
    done = cli("doctor", "--no-measure")
    assert done.exit_code == 1
    assert "not installed" in done.stdout


@pytest.mark.parametrize("words", [(), ("generate",), ("run",)])
def test_no_command_shows_help_and_says_why(cli: Call, words: tuple[str, ...]) -> None:
    result = cli(*words)
    assert result.exit_code == 2
    assert ("Commands" if words else "Graphs") in result.stdout
    assert result.stderr == f"penstock: nothing to do was named (see `{' '.join(('penstock', *words))} --help`)\n"
