"""PageRank from disk beside its two bounds, all in one run.

    pagerank the call a user makes, in a process of its own
    stream   its kernel over pages streamed from disk, in turn with the others
    touch    the same pages through the same stream and cache, each merely read through once
    memory   the same kernel over the same pages lying in memory
    raw      direct reads into one hot buffer a thread, nobody looking at the data

The share is the rate of `stream` by the smaller of those of `touch` and `memory`, pass by pass in turn.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from common import child, evict, median, save, table

RANK = """
import penstock as pk
path, limit, iterations, dtype = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
result = pk.pagerank(path, tol=0, max_iter=iterations, memory_limit=limit, dtype=dtype)
stats = result.stats
seconds = stats["iteration_seconds"]
extra = {name: stats[name] for name in ("bytes_read", "page_bytes", "cache_hits", "ledger_peak")}
"""

BOUNDS = """
import os, threading
import numpy as np
from kernels import touch
from penstock.algorithms.pagerank import pull, gather_part
from penstock.config import settings
from penstock.graph import Graph
from penstock.memory.buffers import allocate
from penstock.memory.ledger import Ledger
from penstock.memory.pages import PageFeed
from penstock.store.encodings import decode

path, limit, iterations, dtype = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
store = Graph.open(path).store
direction = store.direction("in")
chosen = settings(memory_limit=limit)
active, pages, size = store.active, len(direction), store.page_size
everything = np.arange(pages)

rank = np.zeros(active, dtype)
contribution = np.ones(active, dtype)
real = np.dtype(dtype).type
def pull_page(block, large):
    if large:
        gather_part(block.neighbours, contribution)
    else:
        pull(block.offsets, block.neighbours, block.first_vertex, contribution, rank, real(0.1), real(0.85))

buffer = allocate(pages * size).reshape(pages, size)
for page in range(pages):
    buffer[page] = direction.read_page(page)
blocks = [decode(buffer[p], direction.records[p], direction.home, direction.scratch()) for p in range(pages)]
large = direction.records["kind"] == 1
def in_memory():
    numbers, lock = iter(range(pages)), threading.Lock()
    def work():
        while True:
            with lock:
                page = next(numbers, None)
            if page is None:
                return
            pull_page(blocks[page], large[page])
    threads = [threading.Thread(target=work) for _ in range(chosen.threads)]
    [t.start() for t in threads]; [t.join() for t in threads]
def raw():
    numbers, lock = iter(range(pages)), threading.Lock()
    def work():
        hot = allocate(max(size, 2 << 20))[:size]
        descriptor = os.open(direction.path("pages", 0), os.O_RDONLY | os.O_DIRECT)
        while True:
            with lock:
                page = next(numbers, None)
            if page is None:
                break
            os.preadv(descriptor, [hot], page * size)
        os.close(descriptor)
    threads = [threading.Thread(target=work) for _ in range(2)]
    [t.start() for t in threads]; [t.join() for t in threads]
# Every kind of pass in turn, so that whatever else the machine does falls on all of them.
state = active * (2 * np.dtype(dtype).itemsize + 4) + direction.records.nbytes
with PageFeed(direction, Ledger(limit - state), chosen) as feed:  # the budget that PageRank's state leaves
    passes = {
        "touch": lambda: feed.run(everything, lambda worker, page, block, _: touch(block.neighbours)),
        "stream": lambda: feed.run(everything, lambda worker, page, block, _: pull_page(block, large[page])),
        "memory": in_memory,
        "raw": raw,
    }
    found = {name: [] for name in passes}
    for k in range(iterations + 1):
        for name, work in passes.items():
            began = time.perf_counter()
            work()
            if k:  # the first fills the cache and loads kernels
                found[name].append(time.perf_counter() - began)
seconds = 0
extra = {**found, "arcs": direction.arcs}
"""


def run(folder: Path, scale: int, rounds: int, dtype: str) -> dict[str, Any]:
    import penstock as pk

    path = folder / f"k{scale}.pen"
    if not path.exists():
        pk.generate("kron", path, scale=scale, undirected=True)
    store = pk.open(path).store
    pages = [store.direction("in").path("pages", k) for k in range(len(store.roots))]
    size = len(store.direction("in")) * store.page_size
    limit, iterations = size // 4, 10
    arguments = (str(path), str(limit), str(iterations), dtype)
    child(RANK, str(path), str(limit), "1", dtype)  # compiled kernels into the cache
    ranks, bounds = [], []
    for _ in range(rounds):
        evict(pages)
        ranks.append(child(RANK, *arguments))
        evict(pages)
        bounds.append(child(BOUNDS, *arguments))
    arcs = bounds[0]["arcs"]
    # The first iteration fills the cache; every later one reads the rest.
    found = {"pagerank": median([median(r["seconds"][1:]) for r in ranks])}
    found |= {name: median([median(b[name]) for b in bounds]) for name in ("stream", "touch", "memory", "raw")}
    shares = [max(median(b["touch"]), median(b["memory"])) / median(b["stream"]) for b in bounds]
    share = median(shares)
    whole = max(found["touch"], found["memory"]) / found["pagerank"]
    read = ranks[0]["bytes_read"] / iterations
    rows = [
        (name, f"{seconds * 1e3:.0f}", f"{arcs / seconds / 1e6:.0f}", f"{size / seconds / 1e9:.2f}")
        for name, seconds in found.items()
    ]
    title = (
        f"PageRank from disk, Kronecker {scale}, {dtype}, memory_limit {limit / 1e6:.0f} MB = a quarter of "
        f"{size / 1e6:.0f} MB of pages; {read / size:.2f} of them read per iteration; "
        f"median of {rounds} x {iterations - 1}"
    )
    table(title, ("", "ms per pass", "M arcs/s", "GB/s of pages"), rows)
    peak = max(r["peak"] for r in ranks)
    print(f"share of min(touch, memory): {share:.2f} (by round: {', '.join(f'{s:.2f}' for s in shares)}),")
    print(f"of the whole call, timed apart: {whole:.2f}")
    print(f"read by the kernel's count: {ranks[0]['read_bytes'] / 1e6:.0f} MB in all,")
    print(f"pages by our count: {ranks[0]['bytes_read'] / 1e6:.0f} MB in")
    print(f"{iterations} iterations, at most {iterations * size / 1e6:.0f}; peak resident {peak / 1e6:.0f} MB")
    return {
        "scale": scale,
        "dtype": dtype,
        "memory_limit": limit,
        "page_bytes": size,
        "arcs": arcs,
        "seconds_per_pass": found,
        "share": share,
        "shares": shares,
        "share_of_the_call": whole,
        "bytes_read_per_iteration": read,
        "read_bytes": [r["read_bytes"] for r in ranks],
        "peak_bytes": peak,
    }


def main(folder: Path, scale: int, rounds: int) -> None:
    figures = {dtype: run(folder, scale, rounds, dtype) for dtype in ("float64", "float32")}
    print(f"kept in {save('disk', figures)}")
