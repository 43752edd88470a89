"""A graph whose pages are larger than the memory allowed: the arcs stream from disk past the ranks, which stay."""

import tempfile
from pathlib import Path

import penstock as pk
from penstock.errors import DoesNotFit

with tempfile.TemporaryDirectory() as folder:
    graph = pk.generate("kron", Path(folder) / "kron.pen", scale=15, undirected=True, page_size="16KiB")
    run = pk.pagerank(graph, memory_limit="2MB", stop="fixed", max_iter=5, dtype="float32")
    plan = run.stats["plans"][0]
    print(f"{graph.arcs:,} arcs in pages of {plan['topology_bytes']:,} bytes, read from {plan['tier']}")
    print(f"{run.stats['bytes_read']:,} bytes read in {run.stats['iterations']} iterations, inside 2 MB")

    try:
        pk.pagerank(graph, memory_limit="20kB")
    except DoesNotFit as refused:
        print("and inside 20 kB:", refused)
    graph.close()
