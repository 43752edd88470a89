"""Budgets bound the process: its peak resident size stays under the limit plus the start-up cost."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import child
import penstock as pk

LIMIT = 64 << 20
SCALE = 19  # 8.4 million edges: 67 MB as pairs of 32 bits, 134 MB as pairs of 64, 120 MB as text


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Compiled kernels are in the cache, and the graph lies in every form."""
    folder = tmp_path_factory.mktemp("budget")
    child.weigh(f"import penstock as pk; pk.generate('kron', {str(folder / 'a.pen')!r}, scale=8, undirected=True)")
    pk.generate("kron", folder / "k.pen", scale=SCALE, undirected=True, seed=5)
    pk.export(folder / "k.pen", folder / "k.parquet")
    pk.export(folder / "k.pen", folder / "k.txt.gz")
    return folder


def build(folder: Path, call: str) -> int:
    peak = child.weigh(f"import penstock as pk; {call}; ")["VmHWM"]
    assert pk.check(folder / "x.pen") == []
    assert pk.open(folder / "x.pen").edges == pk.open(folder / "k.pen").edges
    return peak


OPTIONS = f"undirected=True, memory_limit={LIMIT}, overwrite=True"


def test_generate(folder: Path) -> None:
    call = f"pk.generate('kron', {str(folder / 'x.pen')!r}, scale={SCALE}, seed=5, {OPTIONS})"
    assert build(folder, call) < LIMIT + child.START_UP


@pytest.mark.parametrize("name", ["k.parquet", "k.txt.gz"])
def test_ingest(folder: Path, name: str) -> None:
    call = f"pk.ingest({str(folder / name)!r}, {str(folder / 'x.pen')!r}, {OPTIONS})"
    assert build(folder, call) < LIMIT + child.START_UP


def test_pagerank_reads_each_page_at_most_once_per_iteration(folder: Path) -> None:
    """A quarter of the pages as budget; what the kernel says was read agrees with what we say."""
    store = pk.open(folder / "k.pen").store
    pages = len(store.direction("in")) * store.page_size
    limit = pages // 4
    paths = [store.direction("in").path("pages", 0)]
    for path in paths:
        _evict(path)
    result = child.weigh(
        f"import penstock as pk; r = pk.pagerank({str(folder / 'k.pen')!r}, tol=0, max_iter=5, memory_limit={limit}); "
        "assert r.stats['iterations'] == 5"
    )
    assert result["VmHWM"] < limit + child.START_UP
    # Metadata, ids and Python itself are read as well; pages alone must not be read twice.
    assert result["read_bytes"] < 5 * pages + (64 << 20)
    assert result["read_bytes"] > 5 * (pages - limit)


def _evict(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fdatasync(descriptor)
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
    finally:
        os.close(descriptor)
