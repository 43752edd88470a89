"""Graph algorithms in memory, beside the libraries that are quick from Python.

    pip install python-graphblas networkit igraph scipy        # or the dependency group "peers"
    python benchmarks/peers.py                                 # Kronecker 22, triangles on Kronecker 20
    python benchmarks/peers.py --scale 16 --triangle-scale 14 --peers graphblas,scipy --tasks bfs,wcc
    python benchmarks/peers.py --peers none                    # Penstock again, beside the times that were kept

All run in one go on the same symmetrised Kronecker graphs (edge factor 16, weights 1..255), with the same number of
threads, each peer and task in a process of its own, on the vertices in input order and in degree order. Times start
with the graph in the peer's own form in memory and are the median of several runs; traversals start from another
source each time. Every answer is checked first (peers_check.py). A peer that is not installed is reported as missing.
Graphs and reference values stay in the folder for the next run, and times of other tasks and peers in the record.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from common import RESULTS, median, save, table
from peers_graph import ORDERS, arrays, sources

PEERS = ("graphblas", "networkit", "igraph", "scipy")
TASKS = {
    "pagerank": "PageRank, float32, 20 iterations",
    "bfs": "BFS",
    "wcc": "components",
    "sssp": "shortest paths, weights 1..255",
    "bc": "betweenness of 4 sources",
    "triangles": "triangles",
}
LOAD_SECONDS = 600
"""Granted to a peer beyond its cap, for loading and checking."""


def peer_times(peer: str, task: str, scale: int, order: str, options: argparse.Namespace) -> dict[str, Any]:
    """What one peer takes for one task, or why there is no time."""
    threads = str(options.threads)
    environment = os.environ | dict.fromkeys(("OMP_NUM_THREADS", "NUMBA_NUM_THREADS"), threads)
    worker = [sys.executable, str(Path(__file__).with_name("peers_worker.py")), peer, task, str(options.folder)]
    worker += [str(scale), order, str(options.repeats), str(options.cap), threads]
    try:
        done = subprocess.run(
            worker, stdout=subprocess.PIPE, text=True, env=environment, timeout=options.cap + LOAD_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        return {"missing": f"over {options.cap:.0f} s"}
    if done.returncode:
        return {"wrong": f"ended with {done.returncode}"}
    return dict(json.loads(done.stdout.splitlines()[-1]))


def measure(options: argparse.Namespace) -> dict[str, Any]:
    """Times by task, order and peer, over those kept from earlier runs on the same graphs."""
    figures = _kept(options)
    for task in options.tasks:
        scale = options.triangle_scale if task == "triangles" else options.scale
        for order in ORDERS:
            arrays(options.folder, scale, order)  # made before anything is timed
            entry = figures.setdefault(task, {}).setdefault(order, {})
            for peer in (*options.peers, "penstock"):
                print(f"{task}, {order} order: {peer}", end=" ", flush=True)
                entry[peer] = peer_times(peer, task, scale, order, options)
                print(_cell(entry[peer]), flush=True)
        _save(figures, options)
    return figures


def _save(figures: dict[str, Any], options: argparse.Namespace) -> Path:
    record = _graphs(options) | {"repeats": options.repeats, "load": os.getloadavg()}
    record["sources"] = sources(options.folder, options.scale, 16).tolist()
    return save("peers", record | {"figures": figures})


def _graphs(options: argparse.Namespace) -> dict[str, int]:
    return {"scale": options.scale, "triangle_scale": options.triangle_scale, "threads": options.threads}


def _kept(options: argparse.Namespace) -> dict[str, Any]:
    file = RESULTS / "peers.json"
    record = json.loads(file.read_text()) if file.exists() else {}
    same = all(record.get(name) == value for name, value in _graphs(options).items())
    return dict(record["figures"]) if same else {}


def _cell(outcome: dict[str, Any] | None) -> str:
    if outcome is None:
        return ""
    if "seconds" not in outcome:
        return "WRONG: " + outcome["wrong"] if "wrong" in outcome else str(outcome["missing"])
    seconds = median(outcome["seconds"])
    return f"{seconds * 1e3:.1f} ms" if seconds < 1 else f"{seconds:.2f} s"


def _fastest(entry: dict[str, Any]) -> tuple[float, str] | None:
    times = [(median(entry[peer]["seconds"]), peer) for peer in PEERS if "seconds" in entry.get(peer, {})]
    return min(times, default=None)


def show(figures: dict[str, Any], options: argparse.Namespace) -> None:
    """A row for each task and order; how many times faster Penstock, on its own order, is than the fastest peer."""
    header = ("", "order", *PEERS, "penstock", "fastest peer", "fastest peer / penstock")
    rows = []
    for task, orders in figures.items():
        ours = orders.get("degree", {}).get("penstock", {}).get("seconds")
        for order, entry in orders.items():
            best = _fastest(entry)
            ratio = f"{best[0] / median(ours):.2f}" if best and ours else "-"
            times = (_cell(entry.get(peer)) for peer in (*PEERS, "penstock"))
            rows.append((TASKS[task], order, *times, best[1] if best else "-", ratio))
    title = f"Kronecker {options.scale} symmetrised (triangles {options.triangle_scale}), {options.threads} threads"
    table(f"{title}; ratios to Penstock in degree order", header, rows)


def _names(given: str, known: Sequence[str]) -> list[str]:
    chosen = [name for name in given.split(",") if name not in ("", "none")]
    for name in chosen:
        if name not in known:
            raise argparse.ArgumentTypeError(f"{name} is none of {', '.join(known)}")
    return chosen


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scale", type=int, default=22)
    parser.add_argument("--triangle-scale", type=int, default=20)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--cap", type=float, default=120, help="seconds of runs granted to a peer for one task")
    parser.add_argument("--peers", type=lambda given: _names(given, PEERS), default=list(PEERS), help="or none")
    parser.add_argument("--tasks", type=lambda given: _names(given, list(TASKS)), default=list(TASKS))
    parser.add_argument("--folder", type=Path, default=Path("bench-data"), help="where graphs are and stay")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    figures = measure(options)
    show(figures, options)
    print(f"kept in {_save(figures, options)}")


if __name__ == "__main__":
    main()
