"""A folder of Parquet files, as Spark and DuckDB write them, to a store; ranks back to Parquet."""

import tempfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

import penstock as pk

with tempfile.TemporaryDirectory() as name:
    folder = Path(name)
    (folder / "calls").mkdir()
    for day, (caller, called) in enumerate([([1, 2, 3], [2, 3, 1]), ([1, 4], [3, 3])]):
        table = pa.table({"caller": caller, "called": called, "seconds": [60] * len(caller)})
        pq.write_table(table, folder / "calls" / f"day-{day}.parquet")

    options = {"source": "caller", "target": "called", "columns": ["seconds"], "memory_limit": "256MB"}
    with pk.ingest(folder / "calls", folder / "calls.pen", **options) as graph:
        print(f"{graph.vertices} people, {graph.edges} calls, columns: {', '.join(graph.columns)}")
        pk.pagerank(graph).write(folder / "ranks.parquet")

    ranks = pq.read_table(folder / "ranks.parquet").sort_by([("rank", "descending")])
    print("most called:", ranks["vertex"][0], "with rank", round(ranks["rank"][0].as_py(), 3))
