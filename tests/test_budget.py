"""Budgets bound the process: its peak resident size stays under the limit plus the start-up cost."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import child
import penstock as pk

LIMIT = 64 << 20
SCALE = 19  # 8.4 million edges: 67 MB as pairs of 32 bits, 134 MB as pairs of 64, 120 MB as text


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The graph in every form."""
    folder = tmp_path_factory.mktemp("budget")
    pk.generate("kron", folder / "k.pen", scale=SCALE, undirected=True, seed=5)
    pk.export(folder / "k.pen", folder / "k.parquet")
    pk.export(folder / "k.pen", folder / "k.txt.gz")
    return folder


def check(folder: Path, call: str, limit: int = LIMIT) -> dict[str, int]:
    """The first run may compile, the second finds its kernels in the cache."""
    for start_up in (child.COLD, child.WARM):
        weight = child.weigh(f"import penstock as pk; {call}", folder / "cache")
        assert weight["private_peak"] < limit + start_up
    return weight


def check_build(folder: Path, call: str) -> None:
    check(folder, call)
    assert pk.check(folder / "x.pen") == []
    assert pk.open(folder / "x.pen").edges == pk.open(folder / "k.pen").edges


OPTIONS = f"undirected=True, memory_limit={LIMIT}, overwrite=True"


def test_generate(folder: Path) -> None:
    call = f"pk.generate('kron', {str(folder / 'x.pen')!r}, scale={SCALE}, seed=5, {OPTIONS})"
    check_build(folder, call)


@pytest.mark.parametrize("name", ["k.parquet", "k.txt.gz"])
def test_ingest(folder: Path, name: str) -> None:
    call = f"pk.ingest({str(folder / name)!r}, {str(folder / 'x.pen')!r}, {OPTIONS})"
    check_build(folder, call)


def test_pagerank_reads_each_page_at_most_once_per_iteration(folder: Path) -> None:
    """A quarter of the pages as budget; what the kernel says was read agrees with what we say."""
    store = pk.open(folder / "k.pen").store
    pages = len(store.direction("in")) * store.page_size
    limit = pages // 4
    _evict(store.direction("in").path("pages", 0))
    rank = f"pk.pagerank({str(folder / 'k.pen')!r}, tol=0, max_iter=5, memory_limit={limit})"
    read = check(folder, f"r = {rank}; assert r.stats['iterations'] == 5", limit)["read_bytes"]
    # Metadata, ids and Python itself are read as well; pages alone must not be read twice.
    assert read < 5 * pages + (64 << 20)
    assert read > 5 * (pages - limit)


RUNS: dict[str, dict[str, Any]] = {
    "pagerank": {"tol": 0, "max_iter": 3},
    "bfs": {},
    "wcc": {},
    "cdlp": {"max_iter": 2},
    "scan": {"epsilon": 0.6},
}


def check_run(store: Path, name: str, limit: int) -> None:
    """From disk, under a budget; the answer is that of a run with all the memory it wants."""
    source = pk.degree(store).top(1, "degree")["vertex"].to_pylist()[0]
    options = RUNS[name] | ({"source": source} if name == "bfs" else {})
    target = store.parent / f"{name}.arrow"
    call = f"r = pk.run({name!r}, {str(store)!r}, tier='disk', memory_limit={limit}, **{options!r})"
    check(
        store.parent,
        f"{call}; assert r.stats['ledger_peak'] <= {limit}; r.write({str(target)!r}, overwrite=True)",
        limit,
    )
    found = pa.ipc.open_file(pa.memory_map(str(target))).read_all()
    right = pk.run(name, store, **options).table
    for column in right.column_names:
        if pa.types.is_floating(right[column].type):
            np.testing.assert_allclose(found[column].to_numpy(), right[column].to_numpy(), rtol=1e-12)
        else:
            assert found[column].equals(right[column])


@pytest.mark.parametrize("name", RUNS)
def test_run_from_disk(folder: Path, name: str) -> None:
    """The state in memory, the arcs on disk."""
    store = pk.open(folder / "k.pen").store
    limit = 24_000_000
    assert limit < len(store.direction("out")) * store.page_size / 2
    check_run(folder / "k.pen", name, limit)


@pytest.fixture(scope="module")
def wide(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Many vertices of few edges."""
    path = tmp_path_factory.mktemp("wide") / "u.pen"
    pk.generate("uniform", path, vertices=6_000_000, edges=7_000_000, undirected=True, seed=7)
    return path


@pytest.mark.slow
@pytest.mark.parametrize(("name", "limit"), [("pagerank", 48_000_000), ("bfs", 32_000_000), ("cdlp", 24_000_000)])
def test_run_with_state_larger_than_the_budget(wide: Path, name: str, limit: int) -> None:
    """Files hold the state, a window of it is in memory."""
    options = {"source": 0} if name == "bfs" else {"max_iter": 1}
    plan = pk.run(name, wide, memory_limit=limit, **options).stats["plans"][0]
    assert plan["ranges"] > 1
    assert plan["state_bytes"] > limit
    check_run(wide, name, limit)


def _evict(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fdatasync(descriptor)
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
    finally:
        os.close(descriptor)
