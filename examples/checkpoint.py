"""A run that stops half-way goes on from its checkpoint, and gives the same result as one that never stopped."""

import tempfile
from pathlib import Path

import penstock as pk

with tempfile.TemporaryDirectory() as name:
    folder = Path(name)
    with pk.generate("kron", folder / "kron.pen", scale=10, undirected=True, seed=5) as graph:
        saved = {"checkpoint": folder / "saved", "checkpoint_every": "2"}  # every two supersteps

        def stop(event):
            if (folder / "saved" / "current.json").exists():
                raise KeyboardInterrupt  # as if somebody had pressed Ctrl-C

        try:
            pk.pagerank(graph, **saved, progress=stop)
        except KeyboardInterrupt:
            print("stopped, with the state of some superstep saved")

        resumed = pk.pagerank(graph, **saved)
        print("went on from superstep", resumed.stats["resumed_at"], "of", resumed.stats["iterations"])
        print("the same ranks:", resumed.table.equals(pk.pagerank(graph).table))
