"""PageRank and WCC from disk beside their bounds, all in one run.

    engine   the program a user runs, its pages streamed from disk under a quarter of their bytes
    touch    the same pages through the same stream and cache, each merely read through once
    memory   the same kernels over the same pages, all of them in the cache
    raw      direct reads into one hot buffer a thread, nobody looking at the data

The share is the rate of `engine` by the smaller of those of `touch` and `memory`, taken in turn. Where reading and
computing each keep the cores busy, they cannot overlap: the table says how many cores each of them took.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from common import child, evict, median, save, table

PASSES = """
import os, threading
import numpy as np
import penstock as pk
from kernels import touch
from penstock.algorithms import pagerank, wcc
from penstock.config import settings
from penstock.engine.engine import Engine
from penstock.engine.plan import number_dtype
from penstock.engine.program import iterations
from penstock.memory.buffers import allocate
from penstock.memory.ledger import Ledger
from penstock.memory.pages import PageFeed

path, limit, passes, task, dtype = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4], sys.argv[5]
store = pk.open(path).store
name = "in" if task == "pagerank" else "out"
direction = store.direction(name)
pages, size = len(direction), store.page_size
program = pagerank.program(dtype, stop="fixed") if task == "pagerank" else wcc.program(number_dtype(store))
plenty = 3 * pages * size + (1 << 30)

def steps(engine):
    return [step["seconds"] for step in engine.stats.supersteps]

def run(engine, count):
    before = len(engine.stats.supersteps)
    if task == "pagerank":
        engine.run(program, until=iterations(count))
        return steps(engine)[before + 1 :]  # the first fills the cache and loads kernels
    began = time.perf_counter()
    engine.run(program)
    return [time.perf_counter() - began]

def fresh(budget, count):
    with Engine(store, settings(memory_limit=budget, tier="disk", progress=False)) as engine:
        if task == "pagerank":
            run(engine, 1)
        found, cpu = clocked(lambda: run(engine, count), count)
        return found, cpu, engine.read_counts()[0], engine.plans[-1].window_bytes

def clocked(call, count):
    # What it returns, and the seconds of all cores that a pass took.
    began = time.process_time()
    found = call()
    return found, (time.process_time() - began) / (count if task == "pagerank" else 1)

def touched(budget, count):
    found = []
    # One pass keeps nothing, as in the engine.
    keep = None if task == "pagerank" else 0
    with PageFeed(direction, Ledger(budget), settings(memory_limit=budget), cache=keep) as feed:
        def go():
            for k in range(count):
                began = time.perf_counter()
                feed.run(np.arange(pages), lambda worker, page, block, _: touch(block.neighbours))
                found.append(time.perf_counter() - began)
        count = count if task == "pagerank" else 1
        _, cpu = clocked(go, count)
    return found[1:] if task == "pagerank" else found[:1], cpu

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
    began = time.perf_counter()
    [t.start() for t in threads]; [t.join() for t in threads]
    return [time.perf_counter() - began]

whole = Engine(store, settings(memory_limit=plenty, tier="disk", progress=False))
whole.streamed((name,), (), "resident")  # a cache for all pages, which a single pass would not make
run(whole, 2)
found = {"engine": [], "touch": [], "memory": [], "raw": []}
read = 0
for k in range(3):
    seconds, engine_cpu, read, window = fresh(limit, passes)
    found["engine"] += seconds
    seconds, touch_cpu = touched(limit - window, passes)
    found["touch"] += seconds
    seconds, memory_cpu = clocked(lambda: run(whole, 1 + passes), 1 + passes)
    found["memory"] += seconds
    found["raw"] += raw()
seconds = 0
cores = {"engine": engine_cpu, "touch": touch_cpu, "memory": memory_cpu}
extra = {**found, "cpu": cores, "arcs": direction.arcs, "bytes_read": read, "pages": pages * size}
"""

WHOLE = """
import penstock as pk
path, limit, name, options = sys.argv[1], int(sys.argv[2]), sys.argv[3], eval(sys.argv[4])
result = pk.run(name, path, memory_limit=limit, tier="disk", progress=False, **options)
stats = result.stats
seconds = stats["phases"]["run"]
extra = {"bytes_read": stats["bytes_read"], "supersteps": len(stats["supersteps"])}
"""


def run(folder: Path, scale: int, rounds: int, task: str, dtype: str) -> dict[str, Any]:
    import penstock as pk

    path = folder / f"k{scale}.pen"
    if not path.exists():
        pk.generate("kron", path, scale=scale, undirected=True)
    store = pk.open(path).store
    direction = store.direction("in")
    files = [direction.path("pages", k) for k in range(len(store.roots))]
    limit, passes = len(direction) * store.page_size // 4, 6
    found = []
    for _ in range(rounds):
        evict(files)
        found.append(child(PASSES, str(path), str(limit), str(passes), task, dtype))
    kinds = ("engine", "touch", "memory", "raw")
    seconds = {kind: median([median(f[kind]) for f in found]) for kind in kinds}
    shares = [max(median(f["touch"]), median(f["memory"])) / median(f["engine"]) for f in found]
    arcs, size = found[0]["arcs"], found[0]["pages"]
    cpu = {kind: median([f["cpu"][kind] for f in found]) for kind in ("engine", "touch", "memory")}
    rows = [
        (
            kind, f"{s * 1e3:.0f}", f"{arcs / s / 1e6:.0f}", f"{size / s / 1e9:.2f}",
            f"{cpu[kind] / s:.2f}" if kind in cpu else "",
        )
        for kind, s in seconds.items()
    ]  # fmt: skip
    title = f"{task} from disk, Kronecker {scale}, {dtype}, memory_limit {limit / 1e6:.0f} MB = a quarter of the pages"
    table(title, ("", "ms per pass", "M arcs/s", "GB/s of pages", "cores busy"), rows)
    print(f"share of min(touch, memory): {median(shares):.2f} (by round: {', '.join(f'{s:.2f}' for s in shares)})")
    times = passes + 1 if task == "pagerank" else 1
    print(f"pages read in {times} passes: {found[0]['bytes_read'] / size:.2f} x the pages")
    return {
        "scale": scale, "task": task, "dtype": dtype, "memory_limit": limit, "page_bytes": size, "arcs": arcs,
        "seconds_per_pass": seconds, "cpu_seconds_per_pass": cpu, "share": median(shares), "shares": shares,
        "bytes_read": found[0]["bytes_read"],
    }  # fmt: skip


def large(path: Path, rounds: int) -> dict[str, Any]:
    """A directed graph of scale 24 under 1 GB: 20 iterations of PageRank in float32, and WCC in one pass."""
    import penstock as pk

    if not path.exists():
        pk.generate("kron", path, scale=24)
    store = pk.open(path).store
    arcs = store.direction("in").arcs
    files = [store.direction(name).path("pages", k) for name in ("in", "out") for k in range(len(store.roots))]
    options = "dict(dtype='float32', stop='fixed', max_iter=20)"
    tasks = {"pagerank": (options, 20), "wcc": ("{}", 1)}
    found, rows = {}, []
    for name, (chosen, passes) in tasks.items():
        child(WHOLE, str(path), str(10**9), name, chosen)
        runs = []
        for _ in range(rounds):
            evict(files)
            runs.append(child(WHOLE, str(path), str(10**9), name, chosen))
        seconds = median([r["seconds"] for r in runs])
        found[name] = {
            "seconds": seconds, "arcs_per_second": arcs * passes / seconds, "peak_bytes": max(r["peak"] for r in runs),
            "read_bytes": runs[0]["read_bytes"], "all_seconds": [r["seconds"] for r in runs],
        }  # fmt: skip
        peak = found[name]["peak_bytes"]
        rows.append((name, f"{seconds:.2f}", f"{arcs * passes / seconds / 1e6:.0f}", f"{peak / 1e6:.0f}"))
    table(f"{path.stem}, directed, {arcs:,} arcs, memory_limit 1 GB", ("", "seconds", "M arcs/s", "peak MB"), rows)
    return found


def main(folder: Path, scale: int, rounds: int) -> None:
    figures: dict[str, Any] = {
        f"{task} {dtype}": run(folder, scale, rounds, task, dtype)
        for task, dtype in (("pagerank", "float64"), ("pagerank", "float32"), ("wcc", "uint32"))
    }
    if scale >= 22:
        figures["scale 24"] = large(folder / "k24-directed.pen", rounds)
    print(f"kept in {save('disk', figures)}")
