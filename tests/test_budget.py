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


def _evict(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fdatasync(descriptor)
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
    finally:
        os.close(descriptor)
