"""What is said on stderr when the work is done."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.config import format_size

if TYPE_CHECKING:
    from penstock.ingest.build.builder import BuildReport


_SOURCES = {"host": "host memory"}


def build_summary(report: BuildReport) -> list[str]:
    """Two lines: what there is now, and what it took. Between them what was not kept, if there is any."""
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
        *([f"columns without numbers, not kept: {', '.join(report.left_out)}"] if report.left_out else ()),
        f"{format_size(size)}{each} in {format_seconds(seconds)}, "
        f"{format_rate(report.edges_read / max(seconds, 1e-9), 'edges')}; "
        f"peak memory {format_size(peak_rss())}, {'no spill' if not spilled else f'{format_size(spilled)} spilled'}",
    ]


def run_summary(stats: Mapping[str, Any]) -> list[str]:
    """Two lines: how far and how fast; where the arcs were, and with how much memory."""
    from penstock.observe.bar import format_rate, format_seconds

    phases = stats.get("phases", {})
    run, load = phases.get("run", stats["seconds"]), phases.get("load", 0.0)
    first = [f"{stats['algorithm']}: {_progress(stats)}", format_seconds(run)]
    if load >= 0.05:
        first[-1] += f" and {format_seconds(load)} to load"
    if rate := stats.get("arcs_per_second"):
        first.append(format_rate(rate, "arcs"))
    if (resumed := stats.get("resumed_at")) is not None:
        first.append(f"resumed at superstep {resumed:,}")
    plans, read = stats.get("plans") or [{}], stats.get("bytes_read", 0)
    second = ["in memory" if all(plan.get("tier") == "memory" for plan in plans) else "from disk"]
    if (device := stats.get("gpu")) and device["source"]:
        where = "resident" if device["resident"] else f"streamed from {_SOURCES.get(device['source'], 'disk')}"
        several = f"{device['gpus']} GPUs, " if device.get("gpus", 1) > 1 else ""
        second = [f"on {several}{device['name']}, {where}", f"{format_size(device['bytes_copied'])} copied"]
        if energy := device.get("energy"):
            second.append(f"{energy['joules']:.3g} J, {energy['watts']:.0f} W")
    if read:
        second.append(f"{format_size(read)} read, {format_rate(read / max(load or run, 1e-9), 'bytes')}")
    if hits := stats.get("cache_hits"):
        second.append(f"{number(hits, 'page')} from the cache")
    second += _parts([there or plan for plan, there in _placed(stats)])
    if stats.get("ledger_peak"):
        second.append(f"{format_size(stats['ledger_peak'])} of {format_size(stats['memory_limit'])} used")
    second.append(f"peak memory {format_size(stats['peak_memory'])}")
    return [", ".join(first), ", ".join(second)]


def remarks(stats: Mapping[str, Any], *, verbose: bool = False) -> list[str]:
    """What else there is to say of a run: why it did not use the GPU that was asked for, or with `verbose` any; and who
    shared one."""
    device, lines = stats.get("gpu") or {}, []
    asked = str((stats.get("settings") or {}).get("device", "auto")).startswith("gpu")
    if (why := stats.get("why_not_gpu")) and (asked or verbose):
        lines.append(f"{'not all on the GPU' if device.get('plans') else 'not on the GPU'}: {why}")
    if verbose and (why := stats.get("why_one_gpu")):
        lines.append(f"not on several GPUs: {why}")
    if shared := device.get("shared"):
        lines.append(str(shared))
    return lines


def details(stats: Mapping[str, Any]) -> list[str]:
    """Lines for --verbose: where the time went, and how each program ran."""
    lines = [_times(stats.get("phases", {}))]
    for plan, there in _placed(stats):
        words = [f"{plan.get('form')} over {' and '.join(plan.get('sides', ()))} arcs"]
        words += _on_gpu(there) if there else [f"tier {plan.get('tier')}", *map(str, plan.get("why", ()))]
        lines.append(f"{plan.get('program')}: {', '.join(words)}")
    if (device := stats.get("gpu")) and device.get("memory_limit"):
        used, limit = format_size(device["ledger_peak"]), format_size(device["memory_limit"])
        lines.append(f"memory of the GPU: {used} of {limit} used")
    if (residual := stats.get("residual")) is not None:
        lines.append(f"residual: {residual:.3g}")
    return lines


def build_details(report: BuildReport) -> list[str]:
    """The same of a store that was built."""
    return [_times(report.stats.phases)]


def _placed(stats: Mapping[str, Any]) -> list[tuple[Mapping[str, Any], Mapping[str, Any] | None]]:
    """The plan of each program, and that of the GPU if it ran there."""
    left = list((stats.get("gpu") or {}).get("plans", ()))
    found: list[tuple[Mapping[str, Any], Mapping[str, Any] | None]] = []
    for plan in stats.get("plans") or ():
        mine = bool(left) and left[0].get("program") == plan.get("program")
        found.append((plan, left.pop(0) if mine else None))
    return found


def _parts(plans: Sequence[Mapping[str, Any]]) -> list[str]:
    """Into how many parts the state was split, and the lists of who compares them."""
    of_lists: list[Mapping[str, Any]] = []
    state: list[Mapping[str, Any]] = []
    for plan in plans:
        (of_lists if plan.get("lists_bytes") or plan.get("form") in ("pair", "common") else state).append(plan)
    lists = max((plan.get("ranges", 1) for plan in of_lists), default=1)
    ranges = max((plan.get("ranges", 1) for plan in state), default=1)
    windows = max((plan.get("windows", 1) for plan in state if plan.get("ranges", 1) == 1), default=1)
    found = {"state in {} ranges": ranges, "state in {} windows": windows, "lists in {} ranges": lists}
    return [words.format(count) for words, count in found.items() if count > 1]


def _on_gpu(plan: Mapping[str, Any]) -> list[str]:
    """What a program had there."""
    pages, parts = format_size(plan["pages_bytes"]), _parts([plan])
    where = f"all pages there, {pages}" if plan["resident"] else f"{pages} of pages streamed"
    held = f"{format_size(plan['state_bytes'])} of its memory for the state{' at a time' if parts else ''}"
    return ["on the GPU", held, *parts, *([] if plan["lists_bytes"] else [where])]


def _times(phases: Mapping[str, float]) -> str:
    from penstock.observe.bar import format_seconds

    order = sorted(phases, key=lambda name: name != "open")  # the rest is in order already
    return "time: " + ", ".join(f"{name} {format_seconds(phases[name])}" for name in order)


def _progress(stats: Mapping[str, Any]) -> str:
    if "triangles" in stats:
        return number(stats["triangles"], "triangle")
    if "clusters" in stats and "hubs" in stats:
        return f"{number(stats['clusters'], 'cluster')}, {number(stats['hubs'], 'hub')}"
    if "levels" in stats:
        return number(stats["levels"], "level")
    if "iterations" in stats:
        stopped = "" if stats.get("converged", True) else ", not converged"
        return number(stats["iterations"], "iteration") + stopped
    steps = sum(each.get("supersteps", 1) for each in stats.get("supersteps", ()))
    steps += stats.get("supersteps_left_out", 0)
    return number(steps, "superstep") if steps else "done"


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


__all__ = ["build_details", "build_summary", "details", "disk_bytes", "number", "remarks", "run_summary", "tell"]
