"""What the figures should come to on an H200, beside what they come to."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from gpu_section import table


class Target(NamedTuple):
    """A figure of a section, and the least or the most that it should be."""

    what: str
    section: str
    path: tuple[str, ...]
    wanted: float
    unit: str = ""
    scale: float = 1.0
    most: bool = False


TARGETS = [
    Target("PageRank float32, resident", "resident", ("pagerank", "arcs_per_second"), 165, "G arcs/s", 1e-9),
    Target("BFS, resident, harmonic mean", "resident", ("bfs", "teps"), 60, "GTEPS", 1e-9),
    Target("WCC, resident, whole call", "resident", ("wcc", "call_seconds"), 50, "ms", 1e3, most=True),
    Target("SSSP with parents, resident, run", "resident", ("sssp", "run_seconds"), 107, "ms", 1e3, most=True),
    Target("streamed, of the pinned rate", "streamed", ("shares", "a tenth"), 0.90),
    Target("half cached, of the bound", "streamed", ("shares", "50 % cached, times the bound"), 1.15, "x", most=True),
    Target("from disk, of direct reads", "disk", ("engine", "share"), 0.85),
    Target("skewed, slower per arc", "shapes", ("skewed_slower_per_arc",), 2, "x", most=True),
    Target("uniform, of a bare gather", "shapes", ("uniform_share_of_gather",), 0.8),
    Target("sort out of core, of moving twice each way", "mapreduce", ("sort shares", "of_overlapped_bound"), 0.5),
    Target("sort out of core, times the CPU's rate", "mapreduce", ("sort shares", "times_the_cpu"), 10, "x"),
    Target("GPU tests that fail", "tests", ("tests", "failed"), 0, most=True),
]
_BIG = ("pagerank", "bfs", "sssp", "wcc")


def _at(figures: dict[str, Any], path: tuple[str, ...]) -> Any:
    found: Any = figures
    for name in path:
        found = found.get(name) if isinstance(found, dict) else None
    return found


def judged(sections: dict[str, Any]) -> list[dict[str, Any]]:
    """Every target whose section was run: wanted, found, met."""
    rows: list[dict[str, Any]] = []
    for target in TARGETS:
        if target.section not in sections:
            continue
        found = _at(sections[target.section]["figures"], target.path)
        value = None if found is None else found * target.scale
        compare: Callable[[float], bool] = (
            (lambda v, t=target: v <= t.wanted) if target.most else (lambda v, t=target: v >= t.wanted)  # type: ignore[misc]
        )
        sign = "at most" if target.most else "at least"
        rows.append({
            "what": target.what, "wanted": f"{sign} {target.wanted:g} {target.unit}".rstrip(), "found": value,
            "met": value is not None and compare(value),
        })  # fmt: skip
    if "big" in sections:
        figures = sections["big"]["figures"]
        done = [name for name in _BIG if _at(figures, (name, "verified"))]
        rows.append({
            "what": "big graph under its limit, verified", "wanted": f"at least {len(_BIG)} algorithms",
            "found": float(len(done)), "met": len(done) == len(_BIG),
        })  # fmt: skip
    return rows


def show(rows: list[dict[str, Any]]) -> None:
    table(
        "Targets, for an H200",
        ("", "wanted", "found", "met"),
        [
            (
                row["what"],
                row["wanted"],
                "" if row["found"] is None else f"{row['found']:.3g}",
                "yes" if row["met"] else "NO",
            )
            for row in rows
        ],
    )
