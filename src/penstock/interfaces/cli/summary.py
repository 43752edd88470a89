"""What is said on stderr when the work is done."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.config import format_size

if TYPE_CHECKING:
    from penstock.ingest.build.builder import BuildReport


def build_summary(report: BuildReport) -> list[str]:
    """Two lines: what there is now, and what it took."""
    from penstock.observe.bar import format_rate, format_seconds
    from penstock.observe.stats import peak_rss

    size = disk_bytes(report.path)
    # Of a graph smaller than one page the ratio says nothing.
    each = f" ({size / report.arcs:.1f} bytes per arc)" if report.arcs > 100_000 else ""
    kept = number(report.edges_read, "edge")
    if report.edges != report.edges_read:
        kept = f"{report.edges:,} of {kept}"
    seconds = sum(report.stats.phases.values())
    spilled = int(report.stats.counters.get("spill_written", 0))
    return [
        f"{report.path}: {number(report.vertices, 'vertex', 'vertices')}, {kept}, {number(report.arcs, 'arc')}",
        f"{format_size(size)}{each} in {format_seconds(seconds)}, "
        f"{format_rate(report.edges_read / max(seconds, 1e-9), 'edges')}; "
        f"peak memory {format_size(peak_rss())}, {'no spill' if not spilled else f'{format_size(spilled)} spilled'}",
    ]


def run_summary(stats: Mapping[str, Any]) -> str:
    """One line: how far, how fast, with how much."""
    from penstock.observe.bar import format_rate, format_seconds

    if "iterations" not in stats:
        return "nothing to do: the graph has no vertices"
    count, converged = stats["iterations"], stats["converged"]
    words = [
        number(count, "iteration") + ("" if converged else ", not converged"),
        format_seconds(sum(stats["iteration_seconds"])),
        format_rate(stats["arcs_per_second"], "arcs"),
        f"{format_rate(stats['bytes_per_second'], 'bytes')} from disk",
        f"peak memory {format_size(stats['peak_memory'])}",
    ]
    return ", ".join(words)


def number(count: int, one: str, more: str | None = None) -> str:
    """`1 vertex`, `2,000 vertices`."""
    return f"{count:,} {one if count == 1 else more or one + 's'}"


def disk_bytes(store: Path) -> int:
    """Bytes of a store's files, stripes in other folders included."""
    from penstock.store.draft import stripe_folders

    return sum(
        file.stat().st_size for root in {store, *stripe_folders(store)} for file in root.rglob("*") if file.is_file()
    )


def tell(*lines: str, quiet: bool = False) -> None:
    """Lines on stderr."""
    if not quiet:
        print(*lines, sep="\n", file=sys.stderr, flush=True)


__all__ = ["build_summary", "disk_bytes", "number", "run_summary", "tell"]
