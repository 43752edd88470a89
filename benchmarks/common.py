"""What benchmarks share: children that are timed and weighed, tables, and results that are kept."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from penstock.observe.stats import machine

RESULTS = Path(__file__).parent / "results"

_REPORT = """
import json as _json
def _status(name, path):
    with open(path) as file:
        return next(int(line.split()[1]) for line in file if line.startswith(name))
print(_json.dumps({"seconds": seconds, "peak": _status("VmHWM", "/proc/self/status") << 10,
                   "read_bytes": _status("read_bytes", "/proc/self/io"), **extra}))
"""


def child(code: str, *arguments: str) -> dict[str, Any]:
    """Run code in a process of its own. It sets `seconds`, without start-up, and may fill the dict `extra`."""
    script = "import sys, time\nextra = {}\n" + textwrap.dedent(code) + _REPORT
    here = str(Path(__file__).parent)
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([here, os.environ.get("PYTHONPATH", "")])}
    done = subprocess.run(
        [sys.executable, "-c", script, *arguments], stdout=subprocess.PIPE, text=True, check=True, env=environment
    )
    return dict(json.loads(done.stdout.splitlines()[-1]))


def evict(paths: Sequence[Path]) -> None:
    """Drop files from the page cache."""
    for path in paths:
        descriptor = os.open(path, os.O_RDONLY)
        os.fdatasync(descriptor)
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(descriptor)


def median(values: Sequence[float]) -> float:
    return statistics.median(values)


def table(title: str, header: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    from rich.console import Console
    from rich.table import Table

    drawn = Table(title=title, title_justify="left")
    for k, name in enumerate(header):
        drawn.add_column(name, justify="left" if k == 0 else "right")
    for row in rows:
        drawn.add_row(*(str(cell) for cell in row))
    Console(width=min(140, Console().width if sys.stdout.isatty() else 140)).print(drawn)


def save(name: str, figures: dict[str, Any]) -> Path:
    """Keep a run: machine, how busy it was in the last 1, 5 and 15 minutes, versions, date, figures."""
    from datetime import UTC, datetime

    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{name}.json"
    record = {"benchmark": name, "date": datetime.now(UTC).isoformat(timespec="seconds"), "machine": machine()}
    record["load_average"] = [round(load, 1) for load in os.getloadavg()]
    path.write_text(json.dumps(record | figures, indent=1) + "\n")
    return path
