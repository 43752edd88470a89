"""What a run did: one HTML page that opens anywhere, and a timeline for ui.perfetto.dev."""

import json
import tempfile
from pathlib import Path

import penstock as pk
from penstock.observe.trace import write_trace

with tempfile.TemporaryDirectory() as name:
    folder = Path(name)
    with pk.generate("kron", folder / "kron.pen", scale=10, undirected=True) as graph:
        with pk.recording() as events:
            ranks = pk.pagerank(graph, tier="disk")
        page = ranks.report(folder / "run.html")
        write_trace(folder / "run.trace", events)
        slices = json.loads((folder / "run.trace").read_text())["traceEvents"]
        print(f"{page.name}: {page.stat().st_size // 1000} kB, of which nothing comes from the network")
        print(
            f"run.trace: {len(slices)} events; in superstep 1, {ranks.stats['supersteps'][0]['seconds'] * 1e3:.1f} ms"
        )
