"""Edges a second for generate and ingest, beside DuckDB sorting the same edges under the same limit.

DuckDB only sorts: `COPY (SELECT src, dst FROM file ORDER BY src, dst) TO out`. Penstock sorts twice, removes
duplicates and loops, renumbers by degree, adds the reverse of every edge, and writes checksummed pages.
Text is also parsed alone, beside pyarrow.csv on the same file.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from common import child, median, save, table

GENERATE = """
from penstock.api import generate_store
target, scale, limit = sys.argv[1:4]
generate_store("kron", target + ".warm.pen", scale=8, undirected=True, overwrite=True)
began = time.perf_counter()
options = {"edge_factor": 16, "undirected": True, "memory_limit": limit, "overwrite": True}
report = generate_store("kron", target, scale=int(scale), **options)
seconds = time.perf_counter() - began
extra = {"edges": report.edges_read, "phases": report.stats.as_dict()["phases"]}
"""

INGEST = """
from penstock.api import build_store
source, target, limit = sys.argv[1:4]
warm_up = {"source": [0, 1], "target": [1, 2]}
build_store(warm_up, target + ".warm.pen", undirected=True, overwrite=True)
began = time.perf_counter()
report = build_store(source, target, undirected=True, memory_limit=limit, overwrite=True)
seconds = time.perf_counter() - began
extra = {"edges": report.edges_read, "phases": report.stats.as_dict()["phases"]}
"""

DUCKDB = """
import duckdb
source, target, limit = sys.argv[1:4]
connection = duckdb.connect()
connection.execute(f"SET memory_limit='{limit}'; SET threads=2; SET temp_directory='{target}.tmp'")
read = f"read_parquet('{source}')" if source.endswith(".parquet") else \
    f"read_csv('{source}', delim=' ', header=false, columns={{'source': 'BIGINT', 'target': 'BIGINT'}})"
began = time.perf_counter()
connection.execute(f"COPY (SELECT source, target FROM {read} ORDER BY source, target) TO '{target}' (FORMAT parquet)")
seconds = time.perf_counter() - began
"""

PARSE = """
from penstock.ingest.text.formats import open_text
for warm in range(2):
    source = open_text(sys.argv[1])
    began = time.perf_counter()
    edges = sum(len(chunk) for chunk in source.chunks(threads=2, memory=128 << 20))
    seconds = time.perf_counter() - began
extra = {"edges": edges}
"""

PYARROW = """
import pyarrow as pa
from pyarrow import csv
pa.set_cpu_count(2)
read = csv.ReadOptions(autogenerate_column_names=True, block_size=8 << 20)
for warm in range(2):
    began = time.perf_counter()
    table = csv.read_csv(sys.argv[1], read_options=read, parse_options=csv.ParseOptions(delimiter=" "))
    seconds = time.perf_counter() - began
extra = {"edges": table.num_rows}
"""


def run(folder: Path, scale: int, limit: str, rounds: int) -> dict[str, Any]:
    store = folder / f"k{scale}.pen"
    files = {"parquet": folder / "edges.parquet", "text": folder / "edges.txt", "gzip": folder / "edges.txt.gz"}
    first = child(GENERATE, str(store), str(scale), limit)
    for file in files.values():
        if not file.exists():
            _export(store, file)
    edges = first["edges"]
    results: dict[str, list[dict[str, Any]]] = {}
    for _ in range(rounds):
        results.setdefault("generate", []).append(child(GENERATE, str(store), str(scale), limit))
        for name, file in files.items():
            results.setdefault(f"ingest {name}", []).append(child(INGEST, str(file), str(folder / "x.pen"), limit))
        for name in ("parquet", "text"):
            results.setdefault(f"duckdb {name}", []).append(
                child(DUCKDB, str(files[name]), str(folder / "o.parquet"), limit)
            )
        results.setdefault("parse text", []).append(child(PARSE, str(files["text"])))
        results.setdefault("pyarrow.csv", []).append(child(PYARROW, str(files["text"])))
    shutil.rmtree(folder / "x.pen", ignore_errors=True)
    kept = results["ingest parquet"][0]["edges"]
    size = files["text"].stat().st_size
    rows, figures = [], {}
    for name, runs in results.items():
        seconds = median([r["seconds"] for r in runs])
        count = edges if name == "generate" else kept
        peer = {"ingest parquet": "duckdb parquet", "ingest text": "duckdb text", "parse text": "pyarrow.csv"}.get(name)
        ratio = median([r["seconds"] for r in results[peer]]) / seconds if peer else None
        text = f"{size / seconds / 1e6:.0f} MB/s" if name in ("parse text", "pyarrow.csv") else ""
        peak = max(r["peak"] for r in runs) / 1e6
        rows.append(
            (
                name,
                f"{seconds:.2f}",
                f"{count / seconds / 1e6:.1f}",
                f"{peak:.0f}",
                text,
                f"{ratio:.2f}x {peer}" if ratio else "",
            )
        )
        figures[name] = {
            "seconds": [round(r["seconds"], 3) for r in runs],
            "edges_per_second": count / seconds,
            "peak_bytes": max(r["peak"] for r in runs),
            "ratio": ratio,
            "peer": peer,
            "phases": runs[-1].get("phases"),
        }
    title = f"Kronecker {scale}, edge factor 16, undirected, memory_limit {limit}, 2 threads, median of {rounds}"
    table(title, ("", "seconds", "M edges/s", "peak MB", "", "faster than"), rows)
    return {"scale": scale, "memory_limit": limit, "edges_generated": edges, "edges_ingested": kept, "figures": figures}


def _export(store: Path, target: Path) -> None:
    import penstock as pk

    pk.export(store, target, overwrite=True)


def main(folder: Path, scale: int, rounds: int) -> None:
    print(f"kept in {save('building', run(folder, scale, '512MB', rounds))}")
