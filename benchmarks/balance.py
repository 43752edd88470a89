"""How evenly the records of GIM-V's first stage lie on many nodes: longest processing time first beside round robin.

The graph is the papers' skewed Kronecker graph, with chances 0.80, 0.05, 0.05, 0.10, as generated (`unscrambled`: the
vertices of high degree have low ids) and with its ids scrambled. A record is a matrix element, its key its column: the
stage-1 shuffle brings the records of a key to one part. They are shuffled here into as many parts as there would be
nodes, by LPT and by round robin (the key modulo the number of parts), and the records of each part are counted. The
measure is the papers': (max - mean) / mean, in per cent. No splitter that leaves the records of one key together gets
below what the largest key alone makes it, which stands beside.

`python benchmarks/run.py balance`, or `python benchmarks/balance.py --graph-scale 20`.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np
from common import save, table

SCALE, EDGE_FACTOR, THREADS, LIMIT = 20, 16, 2, "1GB"
QUADRANTS = {"a": 0.80, "b": 0.05, "c": 0.05}
PARTS = (4, 8, 16, 32)


def round_robin(keys: np.ndarray, parts: int) -> np.ndarray:
    return keys % np.uint64(parts)


def run(folder: Path, scale: int) -> dict[str, Any]:
    from penstock.ingest.generate.registry import generator
    from penstock.mapreduce.balance import imbalance
    from penstock.mapreduce.session import MapReduce

    rows, figures = [], []
    for scramble in (False, True):
        with MapReduce(memory_limit=LIMIT, threads=THREADS, temp_directory=folder, device="cpu") as mr:
            source = generator("kron", scale=scale, edge_factor=EDGE_FACTOR, seed=1, scramble=scramble, **QUADRANTS)
            degrees, writer = np.zeros(1 << scale, np.int64), mr.writer(np.uint64, np.uint64)
            for chunk in source.chunks(threads=THREADS, memory=64 << 20):
                column, row = np.asarray(chunk.source, np.uint64), np.asarray(chunk.target, np.uint64)
                degrees += np.bincount(column.astype(np.int64), minlength=len(degrees))
                writer.add_chunk(column, row)
            records = writer.done()
            for parts in PARTS:
                found, seconds = {}, {}
                for name, splitter in (("lpt", "lpt"), ("round robin", round_robin)):
                    began = time.perf_counter()
                    with records.aggregate(splitter, parts=parts) as moved:
                        seconds[name] = time.perf_counter() - began
                        assert sum(moved.records or ()) == len(records)
                        found[name] = imbalance(moved.records)
                least = max(0.0, (degrees.max() * parts / len(records) - 1) * 100)
                ids = "scrambled" if scramble else "unscrambled"
                rows.append(
                    (ids, parts, f"{found['lpt']:.2f} %", f"{found['round robin']:.2f} %", f"{least:.2f} %",
                     f"{seconds['lpt']:.2f}", f"{seconds['round robin']:.2f}")
                )  # fmt: skip
                figures.append(
                    {"ids": ids, "parts": parts, "imbalance_percent": found, "largest_key_percent": least,
                     "shuffle_seconds": seconds}
                )  # fmt: skip
    worse = [each for each in figures if each["imbalance_percent"]["lpt"] > each["imbalance_percent"]["round robin"]]
    title = (
        f"Records per part after the stage-1 shuffle, (max - mean) / mean; Kronecker {scale} with 0.80, 0.05, "
        f"0.05, 0.10, {EDGE_FACTOR << scale:,} records"
    )
    header = ("ids", "parts", "LPT", "round robin", "largest key", "LPT seconds", "round robin seconds")
    table(title, header, rows)
    print(f"LPT is at least as even in {len(figures) - len(worse)} of {len(figures)} cases")
    return {
        "scale": scale, "edge_factor": EDGE_FACTOR, "quadrants": [0.80, 0.05, 0.05, 0.10], "threads": THREADS,
        "measure": "(max - mean) / mean, in per cent, of the records of each part", "figures": figures,
    }  # fmt: skip


def main(folder: Path, scale: int, rounds: int) -> None:
    """Scale 20, or less if the others' graphs are smaller. What is counted is the same in every round."""
    print(f"kept in {save('balance', run(folder, min(SCALE, scale)))}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--graph-scale", type=int, default=SCALE)
    parser.add_argument("--folder", type=Path, default=Path("bench-data"))
    parser.add_argument("--no-save", action="store_true")
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    found = run(given.folder, given.graph_scale)
    if not given.no_save:
        print(f"kept in {save('balance', found)}")
