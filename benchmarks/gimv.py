"""PageRank by GIM-V, in two MapReduce stages and fused, beside PySpark DataFrames and DuckDB SQL, per iteration.

All rank the same Kronecker graph on two threads in float64, ten iterations from 1/n, rank of vertices without outgoing
edges dropped. What is timed is an iteration in its steady state: sessions are up, edges are in memory, the first
iterations, in which things are compiled and placed, are left out. The peers get their best form: edges are cached
and, in Spark, partitioned by source, so that an iteration shuffles once; what a vertex sends is divided by its degree
before the join; lineage is cut by localCheckpoint; as many shuffle partitions as threads. Spark joins in two ways, by
shuffle and by broadcast, and the faster one counts. The ranks of all are compared.

Needs the group `peers` of pyproject.toml and a Java runtime; what is missing is left out, and said.

`python benchmarks/run.py gimv`, or `python benchmarks/gimv.py --graph-scale 18 --rounds 3`.
"""

from __future__ import annotations

import argparse
import importlib.util
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
from common import child, median, save, table

SCALE, ITERATIONS, WARM, THREADS = 18, 10, 4, 2

MAKE = """
folder, scale = sys.argv[1], int(sys.argv[2])
import pyarrow as pa
from pyarrow import parquet
import penstock as pk
began = time.perf_counter()
graph = pk.generate("kron", folder + "/gimv.pen", scale=scale, edge_factor=16, seed=1, overwrite=True)
edges = pa.Table.from_batches(list(graph.edge_batches())).rename_columns(["src", "dst"])
parquet.write_table(edges, folder + "/gimv.parquet")
seconds = time.perf_counter() - began
extra = {"vertices": graph.vertices, "edges": graph.edges}
"""

PENSTOCK = """
import numpy as np
import penstock as pk
from penstock.algorithms.gimv import pagerank
folder, vertices, iterations, warm, threads, method = sys.argv[1], *map(int, sys.argv[2:6]), sys.argv[6]
graph = pk.open(folder + "/gimv.pen")
pagerank(graph, method=method, stop="fixed", max_iter=3, threads=threads)
began = time.perf_counter()
found = pagerank(graph, method=method, stop="fixed", max_iter=iterations, threads=threads)
seconds = time.perf_counter() - began
steps = found.stats["supersteps"][warm:]
extra = {"iterations": {method: [step["seconds"] for step in steps]}}
if method == "mapreduce":
    extra["stages"] = {
        name: [step[name] for step in steps] for name in ("stage1", "collate", "stage2")
    }
np.save(f"{folder}/ranks.{method}.npy", found.table["rank"].to_numpy())
"""

DUCKDB = """
import duckdb
folder, n, iterations, warm, threads = sys.argv[1], *map(int, sys.argv[2:6])
connection = duckdb.connect()
connection.execute(f"SET threads={threads}; SET enable_progress_bar=false")
began = time.perf_counter()
connection.execute(f"CREATE TABLE e AS SELECT src, dst FROM read_parquet('{folder}/gimv.parquet')")
connection.execute(
    f"CREATE TABLE v AS SELECT r.id, d.degree FROM (SELECT range AS id FROM range({n})) r "
    "LEFT JOIN (SELECT src, count(*) AS degree FROM e GROUP BY src) d ON d.src = r.id"
)
connection.execute(f"CREATE TABLE r AS SELECT id, 1::DOUBLE / {n} AS rank, 1::DOUBLE / {n} / degree AS share FROM v")
times = []
for step in range(iterations):
    start = time.perf_counter()
    connection.execute(
        "CREATE OR REPLACE TABLE s AS SELECT id, rank, rank / degree AS share FROM ("
        f"SELECT v.id, v.degree, (0.15::DOUBLE / {n}) + 0.85::DOUBLE * coalesce(t.total, 0) AS rank FROM v LEFT JOIN "
        "(SELECT e.dst, sum(r.share) AS total FROM e JOIN r ON e.src = r.id GROUP BY e.dst) t ON t.dst = v.id)"
    )
    connection.execute("DROP TABLE r; ALTER TABLE s RENAME TO r")
    times.append(time.perf_counter() - start)
seconds = time.perf_counter() - began
import numpy as np
np.save(folder + "/ranks.duckdb.npy", connection.execute("SELECT rank FROM r ORDER BY id").fetchnumpy()["rank"])
extra = {"iterations": {"duckdb": times[warm:]}, "version": duckdb.__version__}
"""

PYSPARK = """
import numpy as np
import pyspark
from pyspark.sql import SparkSession, functions as F
folder, n, iterations, warm, threads = sys.argv[1], *map(int, sys.argv[2:6])
session = (
    SparkSession.builder.master(f"local[{threads}]")
    .config("spark.ui.enabled", "false").config("spark.ui.showConsoleProgress", "false")
    .config("spark.driver.memory", "2g").config("spark.local.dir", folder + "/spark")
    .config("spark.sql.warehouse.dir", folder + "/spark")
    .config("spark.sql.shuffle.partitions", threads).config("spark.sql.adaptive.enabled", "false")
    .getOrCreate()
)
session.sparkContext.setLogLevel("ERROR")
began = time.perf_counter()
edges = session.read.parquet(folder + "/gimv.parquet").repartition(threads, "src").cache()
degrees = edges.groupBy(F.col("src").alias("id")).agg(F.count("*").alias("degree"))
vertices = session.range(n).join(degrees, "id", "left").repartition(threads, "id").cache()
assert vertices.count() == n
first = F.lit(1.0 / n)
extra = {"iterations": {}, "version": pyspark.__version__}
for form in ("shuffle", "broadcast"):
    ranks = vertices.select("id", first.alias("rank"), (first / F.col("degree")).alias("share")).localCheckpoint()
    times = []
    for step in range(iterations):
        start = time.perf_counter()
        sent = ranks.select(F.col("id").alias("src"), "share")
        if form == "broadcast":
            sent = F.broadcast(sent)
        totals = edges.join(sent, "src").groupBy(F.col("dst").alias("id")).agg(F.sum("share").alias("total"))
        rank = F.lit(0.15 / n) + F.lit(0.85) * F.coalesce(F.col("total"), F.lit(0.0))
        both = vertices.join(totals, "id", "left")
        ranks = both.select("id", rank.alias("rank"), (rank / F.col("degree")).alias("share")).localCheckpoint()
        times.append(time.perf_counter() - start)
    extra["iterations"]["pyspark " + form] = times[warm:]
seconds = time.perf_counter() - began
rows = ranks.orderBy("id").select("rank").collect()
np.save(folder + "/ranks.pyspark.npy", np.array([row[0] for row in rows]))
session.stop()
"""

CODE = {"mapreduce": PENSTOCK, "fused": PENSTOCK, "duckdb": DUCKDB, "pyspark": PYSPARK}
NAMES = {
    "mapreduce": "Penstock, two stages",
    "fused": "Penstock, fused",
    "duckdb": "DuckDB SQL",
    "pyspark shuffle": "PySpark DataFrames, join by shuffle",
    "pyspark broadcast": "PySpark DataFrames, join by broadcast",
}


def missing(name: str) -> str | None:
    """What a contestant lacks here."""
    if name in ("duckdb", "pyspark") and importlib.util.find_spec(name) is None:
        return f"{name} is not installed: pip install --group peers"
    if name == "pyspark" and shutil.which("java") is None:
        return "there is no Java runtime"
    return None


def run(folder: Path, scale: int, rounds: int, names: list[str]) -> dict[str, Any]:
    made = child(MAKE, str(folder), str(scale))
    given = [str(folder), str(made["vertices"]), str(ITERATIONS), str(WARM), str(THREADS)]
    failed = {name: reason for name in names if (reason := missing(name))}
    runs: dict[str, list[dict[str, Any]]] = {name: [] for name in names if name not in failed}
    for _ in range(rounds):
        for name, done in runs.items():
            try:
                if name not in failed:
                    done.append(child(CODE[name], *given, name))
            except subprocess.CalledProcessError as error:
                failed[name] = f"exit status {error.returncode}"
    apart = _differences(folder, [name for name in runs if name not in failed])
    return report(runs, failed, apart, made, scale, rounds)


def _differences(folder: Path, names: list[str]) -> dict[str, float]:
    """By how much of itself a rank differs at most from that of the first."""
    ranks = {name: np.load(folder / f"ranks.{name}.npy") for name in names}
    return {name: float(np.max(np.abs(found / ranks[names[0]] - 1))) for name, found in ranks.items()}


def report(
    runs: dict[str, list[dict[str, Any]]], failed: dict[str, str], apart: dict[str, float], made: dict[str, Any],
    scale: int, rounds: int,
) -> dict[str, Any]:  # fmt: skip
    seconds: dict[str, list[float]] = {}
    for done in runs.values():
        for one in done:
            for form, times in one["iterations"].items():
                seconds.setdefault(form, []).append(median(times))
    medians = {form: median(times) for form, times in seconds.items()}
    spark = min((time for form, time in medians.items() if form.startswith("pyspark")), default=None)
    rows, figures = [], {}
    for form, time in medians.items():
        name = form.split()[0]
        ratio = spark / time if spark else None
        peak = max(one["peak"] for one in runs[name])
        rows.append(
            (
                NAMES[form], f"{time * 1e3:.1f}", f"{made['edges'] / time / 1e6:.0f}",
                "" if ratio is None else f"{ratio:.1f}", f"{apart.get(name, float('nan')):.1e}",
            )
        )  # fmt: skip
        figures[form] = {
            "iteration_seconds": seconds[form],
            "median_iteration_seconds": time,
            "times_as_fast_as_pyspark": ratio,
            "largest_relative_difference": apart.get(name),
            # Spark works in another process, a Java one: this would be the wrong figure.
            "peak_bytes": None if name == "pyspark" else peak,
            **{key: runs[name][-1][key] for key in ("version",) if key in runs[name][-1]},
        }
        if name == "mapreduce":
            stages = [one["stages"] for one in runs[name]]
            figures[form]["stage_seconds"] = {key: median([median(one[key]) for one in stages]) for key in stages[0]}
    for name, reason in failed.items():
        rows.append((name, "failed", "", "", reason))
        figures[name] = {"failed": reason}
    title = (
        f"PageRank, Kronecker {scale}: {made['vertices']:,} vertices, {made['edges']:,} edges, {THREADS} threads; "
        f"an iteration, median of the last {ITERATIONS - WARM} of {ITERATIONS}, median of {rounds}"
    )
    header = ("", "ms per iteration", "M edges/s", "times as fast as PySpark", "ranks differ by")
    table(title, header, rows)
    return {
        "scale": scale, "edge_factor": 16, "vertices": made["vertices"], "edges": made["edges"], "threads": THREADS,
        "iterations": ITERATIONS, "warm": WARM, "rounds": rounds, "figures": figures,
    }  # fmt: skip


def main(folder: Path, scale: int, rounds: int) -> None:
    """Scale 18; a smaller one if the others' graphs are smaller."""
    print(f"kept in {save('gimv', run(folder, min(SCALE, scale), rounds, list(CODE)))}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--graph-scale", type=int, default=SCALE)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--folder", type=Path, default=Path("bench-data"))
    parser.add_argument("--only", nargs="*", default=list(CODE), choices=list(CODE))
    parser.add_argument("--no-save", action="store_true")
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    found = run(given.folder, given.graph_scale, given.rounds, given.only)
    if not given.no_save:
        print(f"kept in {save('gimv', found)}")
