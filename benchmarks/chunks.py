"""What the size of chunks, and how many may be in memory, do to a job that spills.

The job: pairs of a uint64 key and a uint64 value, five times the memory limit of them, are made, collated (sorted and
grouped by key) and summed by key. `chunk_size` is what is worked on at a time, `chunks` how many may be in memory at
once; a dash stands for what Penstock finds from the budget itself. Every run is a process of its own.

`python benchmarks/run.py chunks`, or `python benchmarks/chunks.py --pairs 10000000 --rounds 3`.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from common import child, median, save, table

PAIRS, THREADS = 10_000_000, 2
SIZES = (None, 1 << 16, 1 << 18, 1 << 20, 2 << 20, 4 << 20)
COUNTS = (None, 1, 4, 16)

CODE = """
import numpy as np
from penstock.mapreduce.session import MapReduce
folder, pairs, limit, threads = sys.argv[1], *map(int, sys.argv[2:5])
size, count = (int(given) if given else None for given in sys.argv[5:7])
def batches(pairs):
    random = np.random.default_rng(1)
    for at in range(0, pairs, 1 << 18):
        keys = random.integers(0, max(1, pairs // 4), min(1 << 18, pairs - at), dtype=np.uint64)
        yield keys, keys >> np.uint64(1)
def run(pairs, limit, **options):
    with MapReduce(memory_limit=limit, threads=threads, temp_directory=folder, device="cpu", **options) as mr:
        with mr.keyvalue(batches(pairs), key=np.uint64, value=np.uint64) as given, given.collate() as groups:
            with groups.reduce("sum") as sums:
                total = sum(int(chunk.values.sum()) for chunk in sums.chunks())
        return total, mr.chunk_bytes, mr.stats()
run(200_000, 1 << 20)
began = time.perf_counter()
total, chunk_bytes, stats = run(pairs, limit, chunk_size=size, chunks=count)
seconds = time.perf_counter() - began
names = ("spill_written", "spill_read", "chunks_spilled", "memory_peak")
extra = {"total": total, "chunk_bytes": chunk_bytes} | {name: stats[name] for name in names}
"""


def run(folder: Path, pairs: int, rounds: int) -> dict[str, Any]:
    limit = 16 * pairs // 5
    kinds = [(size, None) for size in SIZES] + [(None, count) for count in COUNTS if count is not None]
    kinds += [(1 << 18, count) for count in COUNTS if count is not None]
    kinds = [(size, count) for size, count in kinds if size is None or size <= limit // 16]
    runs: dict[tuple[int | None, int | None], list[dict[str, Any]]] = {kind: [] for kind in kinds}
    for _ in range(rounds):
        for (size, count), done in runs.items():
            given = [str(number) if number else "" for number in (size, count)]
            done.append(child(CODE, str(folder), str(pairs), str(limit), str(THREADS), *given))
    assert len({one["total"] for done in runs.values() for one in done}) == 1
    return report(runs, pairs, limit, rounds)


def report(
    runs: dict[tuple[int | None, int | None], list[dict[str, Any]]], pairs: int, limit: int, rounds: int
) -> dict[str, Any]:
    seconds = {kind: median([one["seconds"] for one in done]) for kind, done in runs.items()}
    rows, figures = [], []
    for (size, count), done in runs.items():
        time, last = seconds[size, count], done[-1]
        ratio = time / seconds[None, None]
        peak = max(one["peak"] for one in done)
        rows.append(
            (
                f"{size >> 10} KiB" if size else f"- ({last['chunk_bytes'] >> 10} KiB)", count or "-", f"{time:.2f}",
                f"{ratio:.2f}", f"{last['spill_written'] / 1e6:.0f}", f"{last['spill_read'] / 1e6:.0f}",
                f"{last['chunks_spilled']:,}", f"{last['memory_peak'] / 1e6:.0f}", f"{peak / 1e6:.0f}",
            )
        )  # fmt: skip
        figures.append(
            {
                "chunk_size": size, "chunks": count, "chunk_bytes": last["chunk_bytes"],
                "seconds": [round(one["seconds"], 3) for one in done], "median_seconds": time, "time_ratio": ratio,
                "peak_bytes": peak, **{name: last[name] for name in ("spill_written", "spill_read", "chunks_spilled",
                "memory_peak")},
            }
        )  # fmt: skip
    title = (
        f"Chunks: {pairs:,} pairs of 16 bytes collated and summed by key under {limit / 1e6:.0f} MB, {THREADS} "
        f"threads; median of {rounds}"
    )
    header = (
        "chunk_size", "chunks", "seconds", "by the first", "MB spilled", "MB read", "chunks spilled", "ledger MB",
        "peak MB",
    )  # fmt: skip
    table(title, header, rows)
    return {"pairs": pairs, "memory_limit": limit, "threads": THREADS, "rounds": rounds, "figures": figures}


def main(folder: Path, scale: int, rounds: int) -> None:
    """10 million pairs from scale 20 on, as the others' graphs are large from there; a million below."""
    print(f"kept in {save('chunks', run(folder, PAIRS if scale >= 20 else PAIRS // 10, rounds))}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=PAIRS)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--folder", type=Path, default=Path("bench-data"))
    parser.add_argument("--no-save", action="store_true")
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    found = run(given.folder, given.pairs, given.rounds)
    if not given.no_save:
        print(f"kept in {save('chunks', found)}")
