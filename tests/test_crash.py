"""A run that is killed leaves no store that opens, and the next run cleans up after it."""

from __future__ import annotations

import random
import time
from pathlib import Path

import pytest

import child
import penstock as pk
from penstock.errors import StoreError

CALLS = {
    "generate": "pk.generate('kron', {target!r}, scale=17, undirected=True, memory_limit='48MB')",
    "ingest": "pk.ingest({source!r}, {target!r}, undirected=True, memory_limit='48MB')",
}


@pytest.mark.parametrize("what", CALLS)
def test_sigkill_at_twenty_moments(tmp_path: Path, what: str) -> None:
    source = tmp_path / "edges.parquet"
    pk.generate("kron", tmp_path / "made.pen", scale=17)
    pk.export(tmp_path / "made.pen", source)
    work = tmp_path / "work"
    work.mkdir()
    target = work / "x.pen"
    code = (
        f"import penstock as pk; print('go', flush=True); {CALLS[what].format(source=str(source), target=str(target))}"
    )
    began = time.perf_counter()
    assert child.start(code).wait() == 0
    whole = time.perf_counter() - began
    pk.export(target, tmp_path / "right.parquet")
    unfinished = 0
    for moment in range(20):
        _remove(target)
        run = child.start(code)
        time.sleep(random.Random(moment).uniform(0.3, 1.0) * whole)
        run.kill()
        run.wait()
        try:
            graph = pk.open(target)
        except StoreError:
            unfinished += 1
        else:  # it was done before we came: then it is complete
            assert pk.check(graph) == []
    assert unfinished >= 5
    _remove(target)
    assert child.start(code).wait() == 0
    assert pk.check(target) == []
    assert {path.name for path in work.iterdir()} == {"x.pen"}


def _remove(store: Path) -> None:
    from penstock.store.draft import remove_store

    remove_store(store)
