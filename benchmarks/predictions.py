"""What `explain` predicts beside what runs take: PageRank and WCC over graphs and budgets.

Run it on an idle machine, after `penstock doctor --measure` in the same folder; nothing else calibrates the model:

    cd bench-data && penstock doctor --measure && cd ..
    python benchmarks/run.py predictions --folder bench-data --keep

The error is that of load and run together, kernels loaded: (predicted - measured) / measured.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from common import median, save, table

import penstock as pk

ITERATIONS = 10
SKEWED = {"a": 0.80, "b": 0.05, "c": 0.05, "d": 0.10}
"""A Kronecker graph with heavier hubs and more vertices that are alone."""
BUDGETS = ("memory", "half", "little", "tiny")
OPTIONS: dict[str, dict[str, Any]] = {"pagerank": {"stop": "fixed", "max_iter": ITERATIONS}, "wcc": {}}


def graphs(folder: Path, scale: int) -> dict[str, Path]:
    """Kronecker graphs of three scales, a uniform one and a skewed one."""
    kinds: dict[str, tuple[str, dict[str, Any]]] = {
        f"k{each}": ("kron", {"scale": each}) for each in (scale - 2, scale - 1, scale)
    }
    kinds[f"u{scale - 1}"] = ("uniform", {"vertices": 1 << (scale - 1), "edges": 16 << (scale - 1)})
    kinds[f"s{scale - 1}"] = ("kron", {"scale": scale - 1, **SKEWED})
    for name, (kind, options) in kinds.items():
        if not (folder / f"{name}.pen").exists():
            pk.generate(kind, folder / f"{name}.pen", undirected=True, **options)
    return {name: folder / f"{name}.pen" for name in kinds}


def budgets(algorithm: str, graph: Any) -> dict[str, int]:
    """Room for everything, a cache of half the pages, of a tenth, and hardly more than the least."""
    told = pk.explain(algorithm, graph, memory_limit="100GB", tier="disk", **OPTIONS[algorithm]).stages[0].plan
    assert told is not None
    least = told.state_bytes + told.fixed_bytes + (4 << 20)
    pages = told.topology_bytes
    # A ring of 32 pages, or a quarter of what is free, is not for the cache.
    cached = {share: least + min(int(pages * share) + (32 << 20), int(pages * share * 4 / 3)) for share in (0.5, 0.1)}
    tiny = told.smallest + (told.state_bytes // 3 if algorithm == "pagerank" else 1 << 20)
    return {"memory": 3 * (least + pages), "half": cached[0.5], "little": cached[0.1], "tiny": tiny}


def busy(stats: dict[str, Any]) -> float:
    return sum(stats["phases"].get(name, 0.0) for name in ("load", "run"))


def case(algorithm: str, graph: Any, limit: int, rounds: int) -> dict[str, Any]:
    """One line of the table."""
    options = OPTIONS[algorithm] | {"memory_limit": limit, "progress": False}
    pk.run(algorithm, graph, **options | ({"max_iter": 1} if algorithm == "pagerank" else {}))  # loads kernels
    told = pk.explain(algorithm, graph, **options)
    assert told.measured, "run penstock doctor --measure in the folder of the graphs first"
    stage = told.stages[0]
    assert stage.plan is not None
    assert stage.prediction is not None
    predicted = sum(stage.prediction.phases.get(name, 0.0) for name in ("load", "run"))
    runs = [pk.run(algorithm, graph, **options).stats for _ in range(rounds)]
    measured = median([busy(stats) for stats in runs])
    return {
        "tier": stage.plan.tier,
        "ranges": stage.plan.ranges,
        "memory_limit": limit,
        "predicted": predicted,
        "measured": measured,
        "error": (predicted - measured) / measured,
        "phases": {"predicted": stage.prediction.phases, "measured": runs[-1]["phases"]},
        "bytes_read": {"predicted": stage.prediction.bytes_read, "measured": runs[-1]["bytes_read"]},
        "bound": stage.prediction.bound,
    }


def main(folder: Path, scale: int, rounds: int) -> None:
    found: dict[str, dict[str, Any]] = {}
    for name, path in graphs(folder, scale).items():
        with pk.open(path) as graph:
            for algorithm in OPTIONS:
                for budget, limit in budgets(algorithm, graph).items():
                    found[f"{algorithm} {name} {budget}"] = case(algorithm, graph, limit, rounds)
    rows = [
        (
            name, each["tier"], each["ranges"], f"{each['memory_limit'] / 1e6:.0f}", f"{each['predicted'] * 1e3:.0f}",
            f"{each['measured'] * 1e3:.0f}", f"{each['error']:+.0%}",
            f"{each['bytes_read']['predicted'] / 1e6:.0f} / {each['bytes_read']['measured'] / 1e6:.0f}", each["bound"],
        )
        for name, each in found.items()
    ]  # fmt: skip
    header = ("", "arcs", "ranges", "MB", "predicted ms", "measured ms", "error", "MB read, of these", "bound")
    table(f"Load and run, {ITERATIONS} iterations of PageRank or one of WCC; median of {rounds}", header, rows)
    errors = [abs(each["error"]) for each in found.values()]
    print(f"absolute error: median {median(errors):.0%}, worst {max(errors):.0%}")
    figures = {"cases": found, "median_error": median(errors), "worst_error": max(errors)}
    print(f"kept in {save('predictions', figures)}")
