"""The same call twice on a GPU: with all arcs in its memory, then streamed through a tenth of what they take."""

import tempfile
from pathlib import Path

import numpy as np

import penstock as pk
from penstock.errors import UsageError

with tempfile.TemporaryDirectory() as folder:
    # Many arcs for each vertex: the vertices' state has its place in the tenth, too.
    graph = pk.generate("kron", Path(folder) / "kron.pen", scale=14, edge_factor=64, undirected=True, page_size="16KiB")

    def ranks(**where: object) -> pk.Result:
        return pk.pagerank(graph, dtype="float32", stop="fixed", max_iter=5, **where)

    try:
        whole = ranks(device="gpu")
        pages = whole.stats["gpu"]["plans"][0]["pages_bytes"]
        part = ranks(device="gpu", gpu_memory_limit=pages // 10)
        for figures in (whole.stats["gpu"], part.stats["gpu"]):
            where = "stay there" if figures["resident"] else f"come from the {figures['source']}"
            print(f"in {figures['memory_limit']:,} bytes of {figures['name']}, {pages:,} bytes of pages {where}")
    except UsageError as why:
        print(f"on the CPU: {why}")
        whole, part = ranks(device="cpu"), ranks(device="cpu", tier="disk")

    first, second = (found.table.column("rank").to_numpy() for found in (whole, part))
    print("the same ranks:", np.allclose(first, second))
    graph.close()
