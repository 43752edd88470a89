"""A run that is killed leaves no store that opens, and the next run cleans up after it."""

from __future__ import annotations

import math
import random
import subprocess
import time
from pathlib import Path

import pytest

import child
import penstock as pk
from penstock.errors import StoreError

# So little memory that arcs are sorted in several files and merged, as they are of a graph of any size.
CALLS = {
    "generate": "pk.generate('kron', {target!r}, scale=16, undirected=True, memory_limit='32MB')",
    "ingest": "pk.ingest({source!r}, {target!r}, undirected=True, memory_limit='32MB')",
}
# What is imported late is imported before the clock starts: then more of the moments are moments of work.
START = "import penstock as pk, penstock.ingest.build.builder, penstock.memory.device; print('go', flush=True); "


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("source")
    pk.generate("kron", folder / "made.pen", scale=16)
    pk.export(folder / "made.pen", folder / "edges.parquet")
    return folder / "edges.parquet"


@pytest.mark.parametrize(("what", "moments"), [("ingest", 20), ("generate", 8)])
def test_sigkill_at_many_moments(tmp_path: Path, source: Path, what: str, moments: int) -> None:
    work = tmp_path / "work"
    work.mkdir()
    target = work / "x.pen"
    code = START + CALLS[what].format(source=str(source), target=str(target))
    whole = _seconds(code, None)
    unfinished = 0
    for moment in range(moments):
        _remove(target)
        # The first run compiled and the machine changes pace: a run that ends before we come says how long one takes.
        whole = min(whole, _seconds(code, random.Random(moment).uniform(0.0, 1.0) * whole))
        try:
            graph = pk.open(target)
        except StoreError:
            unfinished += 1
        else:  # it was done before we came: then it is complete
            assert pk.check(graph) == []
    assert unfinished >= moments // 4
    _remove(target)
    assert child.start(code).wait() == 0
    assert pk.check(target) == []
    assert {path.name for path in work.iterdir()} == {"x.pen"}


def _seconds(code: str, kill_after: float | None) -> float:
    """Seconds that a run took from its first word, endless if it was killed before its end."""
    with child.start(code, stdout=subprocess.PIPE) as run:
        assert run.stdout is not None
        assert run.stdout.readline() == "go\n"
        began = time.perf_counter()
        try:
            assert run.wait(kill_after) == 0
        except subprocess.TimeoutExpired:
            run.kill()
            return math.inf
        return time.perf_counter() - began


def _remove(store: Path) -> None:
    from penstock.store.draft import remove_store

    remove_store(store)
