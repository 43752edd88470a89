"""Pictures: how degrees are distributed, and how PageRank goes with the degree."""

import tempfile
from pathlib import Path

import penstock as pk

with tempfile.TemporaryDirectory() as name:
    folder = Path(name)
    with pk.generate("kron", folder / "kron.pen", scale=10, undirected=True) as graph:
        degree = pk.plot("degree", graph, folder / "degree.png")
        both = pk.plot("correlation", graph, folder / "both.svg", x="degree", y="pagerank")
        for picture in (degree, both):
            print(f"{picture.name}: {picture.stat().st_size // 1000} kB")
