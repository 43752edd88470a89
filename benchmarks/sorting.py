"""Sorting pairs of a uint64 key and a uint64 payload: in core, and file to file, in core and out of core.

The yardstick in core is `numpy.argsort(keys)`, of the default kind, and two gathers. Out of core the budget is a
quarter of the data. DuckDB and Polars sort the same pairs from a Parquet file into a Parquet file (not compressed)
under the same budget as the out-of-core sort, on as many threads. Polars has no limit to set: its peak stands for
itself. Every measurement is a process of its own; input is not in the page cache when it starts.

`python benchmarks/run.py sorting`, or `python benchmarks/sorting.py --pairs 100000000 --rounds 3`.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

from common import child, evict, median, save, table

PAIRS = 100_000_000
THREADS = 2

MAKE = """
import numpy as np
folder, count = sys.argv[1], int(sys.argv[2])
import pyarrow as pa
from pyarrow import parquet
random = np.random.default_rng(1)
schema = pa.schema([("key", pa.uint64()), ("value", pa.uint64())])
began = time.perf_counter()
with open(folder + "/pairs.bin", "wb") as raw, parquet.ParquetWriter(
    folder + "/pairs.parquet", schema, compression="none", use_dictionary=False
) as out:
    for at in range(0, count, 1 << 20):
        some = np.empty((min(1 << 20, count - at), 2), np.uint64)
        some[:, 0] = random.integers(0, 1 << 64, len(some), dtype=np.uint64)
        some[:, 1] = np.arange(at, at + len(some))
        some.tofile(raw)
        out.write_table(pa.table([some[:, 0].copy(), some[:, 1].copy()], schema=schema))
seconds = time.perf_counter() - began
"""

NUMPY = """
import numpy as np
folder, target, limit, threads = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
pairs = np.fromfile(folder + "/pairs.bin", np.uint64).reshape(-1, 2)
keys, values = pairs[:, 0].copy(), pairs[:, 1].copy()
del pairs
began = time.perf_counter()
order = np.argsort(keys)
sorted_keys, sorted_values = keys[order], values[order]
seconds = time.perf_counter() - began
from numpy._core._multiarray_umath import __cpu_features__ as features
extra = {"argsort": [name for name in ("AVX512_SKX", "AVX2") if features.get(name)][:1]}
"""

IN_CORE = """
import numpy as np
from penstock.memory.buffers import allocate
from penstock.sorting.radix import sort_pairs
folder, target, limit, threads = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
pairs = np.fromfile(folder + "/pairs.bin", np.uint64).reshape(-1, 2)
columns = [allocate(8 * len(pairs)).view(np.uint64) for _ in range(4)]
few = [column[:100_000].copy() for column in columns]
few[0][:] = pairs[:100_000, 0]
sort_pairs(*few, threads)
columns[0][:], columns[1][:] = pairs.T
del pairs
began = time.perf_counter()
found, carried, *_ = sort_pairs(*columns, threads)
seconds = time.perf_counter() - began
assert (found[1:] >= found[:-1]).all()
"""

FILE = """
import numpy as np
from pathlib import Path
from penstock.sorting.files import sort_file
folder, target, limit, threads = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
few = Path(target + ".few")
np.random.default_rng(0).integers(0, 1 << 64, (200_000, 2), dtype=np.uint64).tofile(few)
for memory in (1 << 30, 1 << 20):
    sort_file(few, target, memory=memory, threads=threads, overwrite=True)
few.unlink()
began = time.perf_counter()
done = sort_file(folder + "/pairs.bin", target, memory=limit, threads=threads, overwrite=True)
seconds = time.perf_counter() - began
extra = {"in_core": done.in_core, "spilled": done.spilled}
previous = 0
with open(target, "rb") as file:
    while len(some := np.fromfile(file, np.uint64, 2 << 20)):
        keys = some[::2]
        assert previous <= keys[0] and (keys[1:] >= keys[:-1]).all()
        previous = keys[-1]
"""

DUCKDB = """
import duckdb
folder, target, limit, threads = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
connection = duckdb.connect()
connection.execute(
    f"SET memory_limit='{limit}B'; SET threads={threads}; SET temp_directory='{target}.tmp';"
    "SET preserve_insertion_order=false"
)
began = time.perf_counter()
connection.execute(
    f"COPY (SELECT key, value FROM read_parquet('{folder}/pairs.parquet') ORDER BY key) "
    f"TO '{target}' (FORMAT parquet, COMPRESSION uncompressed)"
)
with open(target, "rb") as file:
    import os
    os.fsync(file.fileno())
seconds = time.perf_counter() - began
extra = {"version": duckdb.__version__}
"""

POLARS = """
import os
folder, target, limit, threads = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
os.environ["POLARS_MAX_THREADS"] = str(threads)
os.environ["POLARS_TEMP_DIR"] = os.path.dirname(target)
import polars
began = time.perf_counter()
frame = polars.scan_parquet(folder + "/pairs.parquet").sort("key")
frame.sink_parquet(target, compression="uncompressed", engine="streaming")
with open(target, "rb") as file:
    os.fsync(file.fileno())
seconds = time.perf_counter() - began
extra = {"version": polars.__version__}
"""

PLENTY = 1 << 40
NAMES = {
    "numpy": "numpy argsort + 2 gathers",
    "core": "Penstock, in core",
    "file": "Penstock, file to file, in core",
    "quarter": "Penstock, file to file, 1/4 budget",
    "duckdb": "DuckDB, Parquet to Parquet, 1/4 budget",
    "polars": "Polars, Parquet to Parquet, streaming",
}
CODE = {"numpy": NUMPY, "core": IN_CORE, "file": FILE, "quarter": FILE, "duckdb": DUCKDB, "polars": POLARS}


def measure(name: str, folder: Path, limit: int) -> dict[str, Any]:
    """One run. What fails says how, and is no figure."""
    evict([folder / "pairs.bin", folder / "pairs.parquet"])
    target = folder / f"sorted.{name}"
    memory = PLENTY if name == "file" else limit
    try:
        return child(CODE[name], str(folder), str(target), str(memory), str(THREADS))
    except subprocess.CalledProcessError as error:
        return {"failed": f"exit status {error.returncode}"}
    finally:
        target.unlink(missing_ok=True)
        shutil.rmtree(f"{target}.tmp", ignore_errors=True)


def run(folder: Path, pairs: int, rounds: int, names: list[str]) -> dict[str, Any]:
    child(MAKE, str(folder), str(pairs))
    os.sync()
    limit = 16 * pairs // 4
    results: dict[str, list[dict[str, Any]]] = {name: [] for name in names}
    for _ in range(rounds):
        for name, runs in results.items():
            if not runs or "failed" not in runs[-1]:
                runs.append(measure(name, folder, limit))
    for name in ("pairs.bin", "pairs.parquet"):
        (folder / name).unlink()
    return report(results, pairs, limit, rounds)


def report(results: dict[str, list[dict[str, Any]]], pairs: int, limit: int, rounds: int) -> dict[str, Any]:
    seconds = {
        name: median([one["seconds"] for one in runs]) for name, runs in results.items() if "failed" not in runs[-1]
    }
    beside = {"core": "numpy", "quarter": "file", "duckdb": "quarter", "polars": "quarter"}
    rows, figures = [], {}
    for name, runs in results.items():
        other = beside.get(name, "")
        if name not in seconds:
            rows.append((NAMES[name], "failed", "", "", runs[-1]["failed"]))
            figures[name] = runs[-1]
            continue
        ratio = seconds[name] / seconds[other] if other in seconds else None
        note = "" if ratio is None else f"{ratio:.2f} x {NAMES[other]}"
        if name == "core" and ratio:
            note = f"{1 / ratio:.1f} times as fast as {NAMES[other]}"
        peak = max(one["peak"] for one in runs)
        rows.append(
            (NAMES[name], f"{seconds[name]:.2f}", f"{pairs / seconds[name] / 1e6:.1f}", f"{peak / 1e6:.0f}", note)
        )
        figures[name] = {
            "seconds": [round(one["seconds"], 3) for one in runs],
            "median_seconds": seconds[name],
            "peak_bytes": peak,
            "time_ratio": ratio,
            "beside": other or None,
            **{key: runs[-1][key] for key in ("in_core", "spilled", "version", "argsort") if key in runs[-1]},
        }
    title = (
        f"{pairs:,} pairs of 16 bytes, {THREADS} threads; the quarter is {limit / 1e6:.0f} MB, "
        f"start-up cost on top; median of {rounds}"
    )
    table(title, ("", "seconds", "M pairs/s", "peak MB", "time beside"), rows)
    return {"pairs": pairs, "threads": THREADS, "limit_bytes": limit, "rounds": rounds, "figures": figures}


def main(folder: Path, scale: int, rounds: int) -> None:
    """100 million pairs from scale 20 on, as the others' graphs are large from there; a million below."""
    pairs = PAIRS if scale >= 20 else 1_000_000
    print(f"kept in {save('sorting', run(folder, pairs, rounds, list(NAMES)))}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=PAIRS)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--folder", type=Path, default=Path("bench-data"))
    parser.add_argument("--only", nargs="*", default=list(NAMES), choices=list(NAMES))
    parser.add_argument("--no-save", action="store_true")
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    found = run(given.folder, given.pairs, given.rounds, given.only)
    if not given.no_save:
        print(f"kept in {save('sorting', found)}")
