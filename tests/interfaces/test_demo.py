"""examples/demo.py runs, says what it promises, and cleans up."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

DEMO = Path(__file__).parents[2] / "examples" / "demo.py"


@pytest.mark.slow
def test_demo(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, DEMO], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    times = float(done.stdout.partition("Its pages are ")[2].partition(": ")[2].partition(" times")[0])
    assert times >= 3
    assert "per iteration" in done.stdout
    assert "random surfer" in done.stdout
    assert not list(tmp_path.iterdir())
