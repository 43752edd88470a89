"""One peer on one graph and task, in a process of its own: load, run, check, print one line of JSON.

python peers_worker.py PEER TASK FOLDER SCALE ORDER REPEATS CAP THREADS
"""

from __future__ import annotations

import importlib
import json
import sys
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import peers_check as check
from peers_graph import Arrays, arrays, sources, store

BC_SOURCES = 4


def calls(peer: Any, task: str, drawn: np.ndarray, repeats: int) -> list[tuple[Any, ...]]:
    """The arguments of each timed run: traversals start elsewhere every time."""
    if task in ("bfs", "sssp"):
        return [(int(source),) for source in drawn[:repeats]]
    if task == "bc":
        chosen = peer.sources(BC_SOURCES) if hasattr(peer, "sources") else drawn[:BC_SOURCES]
        return [(chosen,)] * repeats
    return [()] * repeats


def examine(folder: Path, scale: int, graph: Arrays, peer: Any, task: str, answer: Any, given: tuple[Any, ...]) -> None:
    """Raise Wrong unless this is the answer."""
    found = peer.values(task, answer)

    def kept(name: str, make: Callable[[Arrays], np.ndarray]) -> np.ndarray:
        return check.reference(folder, scale, graph, name, make)

    if task == "bfs" and "parent" in found:
        check.parents(graph, given[0], found["parent"])
    elif task == "bfs":
        check.distances(graph, given[0], found["depth"], weighted=False)
    elif task == "sssp":
        check.distances(graph, given[0], found, weighted=True)
    elif task == "wcc":
        check.same_partition(found, kept("components", check.components))
    elif task == "pagerank":
        check.close(found, kept("pagerank", check.pagerank), 1e-3)
    elif task == "bc":
        users, linear = graph.users[given[0]], getattr(peer, "linear_scaling", False)
        name = "-".join(["bc-linear" if linear else "bc", *map(str, users)])
        expected = kept(name, lambda whole: check.betweenness(whole, whole.numbers(users), linear))
        check.close(found, expected, 1e-3)
    else:
        file = folder / f"k{scale}-triangles.npy"
        if not file.exists():
            check.keep(file, check.triangles(arrays(folder, scale, "input")))
        check.demand(found == int(np.load(file)[0]), f"{found} triangles are not {int(np.load(file)[0])}")


def measure(name: str, task: str, folder: Path, scale: int, order: str, repeats: int, cap: float, threads: int) -> Any:
    try:
        module = importlib.import_module(f"peers_{name}")
    except ModuleNotFoundError as error:
        return {"missing": f"{error.name} is not installed"}
    if not hasattr(module.Peer, task):
        return {"missing": "not offered"}
    graph = arrays(folder, scale, order)
    drawn = graph.numbers(sources(folder, scale, 16))
    more = (store(folder, scale, order),) if name == "penstock" else ()
    peer = module.Peer(graph, task, order == "degree", threads, *more)
    given = calls(peer, task, drawn, repeats)
    first = 0.0
    seconds: list[float] = []
    processor: list[float] = []  # far below threads * seconds where others had the machine
    for k, arguments in enumerate(given[:1] + given):
        if k and first + sum(seconds) + (seconds or [first])[-1] > cap:
            break
        began, busy = time.perf_counter(), time.process_time()
        answer = getattr(peer, task)(*arguments)
        took = time.perf_counter() - began
        if k == 0:  # it warms up, and counts only if it must
            first = took
        else:
            seconds.append(took)
            processor.append(time.process_time() - busy)
        if k == 0 or (k > 1 and task in ("bfs", "sssp")):
            examine(folder, scale, graph, peer, task, answer, arguments)
        del answer
    versions = {package: version(package) for package in module.PACKAGES}
    return {"seconds": seconds or [first], "first": first, "processor_seconds": processor, "versions": versions}


def main() -> None:
    name, task, folder, scale, order, repeats, cap, threads = sys.argv[1:]
    try:
        outcome = measure(name, task, Path(folder), int(scale), order, int(repeats), float(cap), int(threads))
    except check.Wrong as error:
        outcome = {"wrong": str(error)}
    with open("/proc/self/status") as file:
        outcome["peak"] = next(int(line.split()[1]) << 10 for line in file if line.startswith("VmHWM"))
    print(json.dumps(outcome))


if __name__ == "__main__":
    main()
