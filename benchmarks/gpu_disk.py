"""Pages from disk to the GPU, beside direct reads of the same file in the same run."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

from common import evict, median
from gpu_graphs import about, call, devoted, kronecker, middle, page_bytes
from gpu_section import Section, table

from penstock.errors import DoesNotFit
from penstock.graph import Graph
from penstock.memory.buffers import HUGE, allocate

_READ = 4 << 30


def run(section: Section) -> None:
    graph = kronecker(section, section.sizes.scale, weights=True)
    section.keep("graph", about(graph, section))
    if section.tiny:
        _poor_host()
    else:
        section.step("warm up", _engine, section, graph, 1)
        section.figures.pop("warm up", None)
    section.step("raw", _raw, section, graph)
    if "raw" in section.figures:
        section.step("engine", _rounds, section, graph)
    _show(section)


def _poor_host() -> None:
    """No budget that a run accepts is too small for a tiny graph's pages: have their reading take more."""
    from penstock.memory.pool import Pool

    Pool.reading_bytes = lambda self, workers: 1 << 50  # type: ignore[method-assign]


def drop(graph: Graph) -> str:
    """Empty the kernel's page cache: all of it where that is allowed, else of the graph's files."""
    os.sync()
    with contextlib.suppress(OSError):
        Path("/proc/sys/vm/drop_caches").write_text("3")
        return "dropped all"
    evict([path for path in graph.path.rglob("*") if path.is_file()])
    return "dropped the graph's files"


def _read(path: str, size: int, threads: int) -> float:
    """Bytes per second of direct reads of this size into one hot buffer a thread, of as much as a few passes read."""
    total = min(os.stat(path).st_size, _READ) // size * size
    numbers, lock = iter(range(0, total, size)), threading.Lock()
    failed: list[BaseException] = []

    def work() -> None:
        hot = allocate(max(size, HUGE))[:size]
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_DIRECT", 0))
        try:
            while True:
                with lock:
                    at = next(numbers, None)
                if at is None:
                    return
                if os.preadv(descriptor, [hot], at) != size:
                    raise OSError(f"{path} ended early")
        except BaseException as error:
            failed.append(error)
        finally:
            os.close(descriptor)

    team = [threading.Thread(target=work) for _ in range(threads)]
    began = time.perf_counter()
    for thread in team:
        thread.start()
    for thread in team:
        thread.join()
    seconds = time.perf_counter() - began
    if failed:
        raise failed[0]
    return total / seconds


def _raw(section: Section, graph: Graph) -> dict[str, Any]:
    path = str(graph.store.direction("out").path("pages", 0))
    found = {}
    for threads in section.sizes.disk_threads:
        for size in (graph.store.page_size, 4 * graph.store.page_size):
            drop(graph)
            found[f"{threads} x {size}"] = _read(path, size, threads)
    best = max(found, key=lambda name: found[name])
    return {"rates": found, "best": best, "bytes_per_second": found[best], "cache": drop(graph)}


def _rounds(section: Section, graph: Graph) -> dict[str, Any]:
    """PageRank and bare reads in turn. Disks of machines that are lent have moods: each run is compared with the reads
    before and after it, and the median counts."""
    threads, size = map(int, section.figures["raw"]["best"].split(" x "))
    path = str(graph.store.direction("out").path("pages", 0))

    def bare() -> float:
        drop(graph)
        return _read(path, size, threads)

    around, runs = [bare()], []
    for _ in range(max(1, section.sizes.repeats)):
        runs.append(_engine(section, graph, section.sizes.disk_passes))
        around.append(bare())
    shares = [2 * run["bytes_per_second"] / (a + b) for run, (a, b) in zip(runs, pairwise(around), strict=True)]
    return {**middle(runs, "seconds"), "raw": around, "shares": shares, "share": median(shares)}


def _engine(section: Section, graph: Graph, passes: int) -> dict[str, Any]:
    """PageRank with a tenth of the pages' bytes on the device and a third on the host."""
    pages = page_bytes(graph)
    limit = (devoted(graph, 0.1) or 0) if section.tiny else pages // 10
    host = pages // 3
    for _ in range(8):
        drop(graph)
        try:
            result, found = call(
                "pagerank", graph, dtype="float32", stop="fixed", max_iter=passes, gpu_memory_limit=limit,
                memory_limit=host,
            )  # fmt: skip
            break
        except DoesNotFit as error:
            host = max(host * 5 // 4, error.needed)
    else:
        raise RuntimeError(f"PageRank does not run under memory_limit={host}")
    if not found.get("bytes_read"):
        raise RuntimeError(f"with memory_limit={host} no page was read from disk: the host holds them all")
    seconds = found["superstep_seconds"]
    return {
        **found, "passes": passes, "memory_limit": host, "gpu_memory_limit": limit, "seconds": seconds / passes,
        "bytes_per_second": found["bytes_read"] / seconds, "load_seconds": result.stats["phases"].get("load"),
    }  # fmt: skip


def _show(section: Section) -> None:
    found = section.figures
    rows = []
    if raw := found.get("raw"):
        rows.append((f"direct reads, {raw['best']}", f"{raw['bytes_per_second'] / 1e9:.2f}", ""))
    if engine := found.get("engine"):
        rows.append(("PageRank", f"{engine['bytes_per_second'] / 1e9:.2f}", f"{engine['share']:.2f}"))
        around = ", ".join(f"{rate / 1e9:.2f}" for rate in engine["raw"])
        rows.append(("direct reads, before, between and after", around, ""))
    table(f"{found['graph']['graph']} from disk", ("", "GB/s", "share"), rows)
