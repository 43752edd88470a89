from __future__ import annotations

import json
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from importlib import metadata
from pathlib import Path

import numpy as np
import pytest

from penstock.observe import stats as module
from penstock.observe.stats import Stats, machine, peak_rss


def test_phases_add_up_and_keep_their_order() -> None:
    stats = Stats()
    for name in ("sort", "write", "sort"):
        with stats.phase(name):
            time.sleep(0.01)
    assert list(stats.phases) == ["sort", "write"]
    assert stats.phases["sort"] >= 0.02
    assert stats.phases["write"] >= 0.01
    assert stats.seconds >= 0.03


def test_a_phase_that_fails_counts() -> None:
    stats = Stats()
    with pytest.raises(ZeroDivisionError), stats.phase("sort"):
        raise ZeroDivisionError
    assert stats.phases["sort"] > 0


def test_phases_nest() -> None:
    stats = Stats()
    with stats.phase("ingest"), stats.phase("sort"):
        time.sleep(0.01)
    assert stats.phases["ingest"] >= stats.phases["sort"] >= 0.01


def test_counters_from_many_threads() -> None:
    stats = Stats()
    with ThreadPoolExecutor(8) as pool:
        for _ in range(8):
            pool.submit(lambda: [stats.add("pages") for _ in range(1000)])
    stats.add("bytes_read", np.uint64(5))
    stats.add("bytes_read", 2)
    assert stats.counters == {"pages": 8000, "bytes_read": 7}


def test_peak_memory_grows_with_what_is_touched() -> None:
    code = (
        "from penstock.observe.stats import peak_rss\n"
        "before = peak_rss(); block = bytearray(b'x') * 100_000_000; del block\n"
        "print(before, peak_rss())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    before, after = map(int, done.stdout.split())
    assert 95_000_000 < after - before < 150_000_000


def test_peak_memory_without_proc(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(self: Path, *args: object, **kwargs: object) -> str:
        raise FileNotFoundError

    usual = peak_rss()
    monkeypatch.setattr(Path, "read_text", missing)
    assert peak_rss() >= usual * 0.9


def test_everything_is_json() -> None:
    stats = Stats()
    with stats.phase("sort"):
        pass
    stats.add("arcs", np.int64(12))
    stats.note(
        residual=np.float32(0.5), plan={"direction": "in", 1: (np.uint8(3),)}, seed=7, path=Path("a.pen"), none=None
    )
    again = json.loads(json.dumps(stats.as_dict(), allow_nan=False))
    assert again["penstock"] == metadata.version("penstock")
    assert again["phases"].keys() == {"sort"}
    assert again["counters"] == {"arcs": 12}
    assert again["peak_memory"] > 10_000_000
    assert (again["residual"], again["seed"], again["none"]) == (0.5, 7, None)
    assert again["plan"] == {"direction": "in", "1": [3]}
    assert again["path"] == "a.pen"
    assert datetime.fromisoformat(again["date"]).tzinfo is not None
    assert again["machine"]["numpy"] == np.__version__


def test_the_machine_is_described_without_loading_numba() -> None:
    code = (
        "import sys; from penstock.observe.stats import Stats; print(Stats().as_dict()['machine']['numba']); "
        "assert not {'numba', 'numpy'} & sys.modules.keys()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == metadata.version("numba")


def test_a_package_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> str:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "version", missing)
    assert module._version("numba") is None
    monkeypatch.setattr(module, "_machine", module._machine.__wrapped__)
    assert machine()["numba"] is None


def test_supersteps_keep_their_order_and_are_json() -> None:
    stats = Stats()
    assert "supersteps" not in stats.as_dict()
    stats.iteration(seconds=0.5, direction="push", frontier=np.int64(1))
    stats.iteration(seconds=0.25, direction="pull", frontier=np.int64(12))
    assert stats.supersteps == [
        {"superstep": 1, "seconds": 0.5, "direction": "push", "frontier": 1},
        {"superstep": 2, "seconds": 0.25, "direction": "pull", "frontier": 12},
    ]
    again = json.loads(json.dumps(stats.as_dict()))
    assert again["supersteps"] == stats.supersteps
    assert "supersteps_left_out" not in again


@pytest.mark.parametrize(("count", "left_out"), [(9_999, 0), (10_000, 0), (10_001, 1), (25_000, 15_000)])
def test_of_many_supersteps_the_first_and_the_last_are_kept(count: int, left_out: int) -> None:
    stats = Stats()
    for k in range(1, count + 1):
        stats.iteration(change=k)
    told = stats.as_dict()
    assert told.get("supersteps_left_out", 0) == left_out
    numbers = [each["superstep"] for each in told["supersteps"]]
    assert numbers == [each["change"] for each in told["supersteps"]]
    assert numbers == [k for k in range(1, count + 1) if k <= 5000 or k > count - 5000]
