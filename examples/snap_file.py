"""A SNAP file to PageRank: no store is built for it, the edges are read for this one call."""

import tempfile
from pathlib import Path

import penstock as pk

EDGES = """# Who links to whom
# FromNodeId\tToNodeId
1\t2
2\t3
3\t1
4\t3
5\t3
"""

with tempfile.TemporaryDirectory() as folder:
    path = Path(folder) / "links.txt"
    path.write_text(EDGES)

    ranks = pk.pagerank(path)

print("A random surfer is most often at:")
for row in ranks.top(3).to_pylist():
    print(f"  page {row['vertex']}: {row['rank']:.1%} of the time")
