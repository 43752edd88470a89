"""Plots of the three experiments, from the JSON: streams, cache, devices. Matplotlib is imported only here."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

INK, GREY = "#22303c", "#8a949e"
BLUE, ORANGE, GREEN = "#1f6fb4", "#d9731a", "#2e8b57"
STYLE = {
    "figure.facecolor": "white", "axes.facecolor": "#fbfbf9", "savefig.facecolor": "white", "axes.edgecolor": GREY,
    "axes.labelcolor": INK, "text.color": INK, "xtick.color": INK, "ytick.color": INK, "axes.grid": True,
    "grid.color": "#e3e3de", "grid.linewidth": 0.8, "axes.spines.top": False, "axes.spines.right": False,
    "axes.titlesize": 11, "axes.titleweight": "bold", "axes.titlelocation": "left", "font.size": 10,
    "lines.linewidth": 2, "lines.markersize": 6, "legend.frameon": False, "svg.fonttype": "none",
    "svg.hashsalt": "penstock",
}  # fmt: skip


def draw(path: Path) -> list[Path]:
    """Every experiment that the JSON has figures of, as PNG and as SVG beside it."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    record = json.loads(path.read_text())
    sections = {name: one["figures"] for name, one in record["sections"].items()}
    streamed, devices = sections.get("streamed", {}), sections.get("devices", {})
    made: list[Path] = []
    with pyplot.rc_context(STYLE):
        for name, figures, drawing in (
            ("streams", streamed.get("streams") and streamed, _streams),
            ("cache", streamed.get("cached") and streamed, _cache),
            ("devices", devices.get("runs") and devices, _devices),
        ):
            if not figures:
                continue
            figure, axes = pyplot.subplots(1, 2, figsize=(10.5, 4.4), layout="constrained")
            drawing(axes, figures)
            graph = figures["graph"]
            gpu = (record.get("gpu") or {}).get("name") or "GPU"
            figure.suptitle(
                f"{_named(graph['graph'])}, {graph['arcs'] / 1e6:,.0f} M arcs, {gpu}", x=0.01, ha="left", color=GREY,
                fontsize=9,
            )  # fmt: skip
            for ending in ("png", "svg"):
                target = path.with_name(f"{path.stem}-{name}.{ending}")
                figure.savefig(target, dpi=160, metadata={"Date": None} if ending == "svg" else None)
                made.append(target)
            pyplot.close(figure)
    if not made:
        raise SystemExit(f"{path} has no figures of the sections streamed or devices")
    return made


def _named(graph: str) -> str:
    found = re.match(r"k(\d+)", graph)
    return f"Kronecker {found[1]}" if found else graph


def _doubling(axes: Any, counts: list[int], label: str) -> None:
    """An axis of 1, 2, 4, ..."""
    from matplotlib.ticker import NullLocator

    axes.set_xscale("log", base=2)
    axes.set_xticks(counts, [str(count) for count in counts])
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xlabel(label)


def _times(axes: Any, values: list[float]) -> None:
    """An axis for these times: from 0 where they are alike, so that noise does not look like a trend; else logarithmic,
    with ticks one would write."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    low, high = min(values), max(values)
    if high < 4 * low:
        axes.set_ylim(0, 1.25 * high)
        return
    axes.set_yscale("log")
    axes.set_ylim(low / 1.5, high * 1.5)
    axes.yaxis.set_major_locator(LogLocator(base=10, subs=(1.0, 2.0, 5.0)))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.yaxis.set_minor_formatter(NullFormatter())


def _streams(axes: Any, figures: dict[str, Any]) -> None:
    found = {int(count): one for count, one in figures["streams"].items()}
    counts, rate = sorted(found), figures.get("pinned_rate")
    moved = [(found[count]["pagerank"].get("bytes_per_second") or 0) / 1e9 for count in counts]
    left, right = axes
    left.plot(counts, moved, "o-", color=BLUE)
    for count, value in zip(counts, moved, strict=True):
        text = f"{value / (rate / 1e9):.0%}" if rate else f"{value:.0f}"
        left.annotate(text, (count, value), (0, -15), textcoords="offset points", ha="center", color=BLUE, fontsize=9)
    if rate:
        left.axhline(rate / 1e9, color=INK, linestyle="--", linewidth=1.2)
        left.annotate(
            f"copies from pinned memory: {rate / 1e9:.1f} GB/s", (counts[0], rate / 1e9), (0, 5),
            textcoords="offset points", fontsize=9,
        )  # fmt: skip
    left.set_ylim(0, 1.15 * max([*moved, (rate or 0) / 1e9]))
    left.set_ylabel("pages moved, GB/s")
    left.set_title("PageRank, pages streamed")
    took = [found[count]["bfs"]["superstep_seconds"] * 1e3 for count in counts]
    right.plot(counts, took, "o-", color=ORANGE)
    _times(right, took)
    right.set_ylabel("ms per search")
    right.set_title("BFS, pages streamed")
    for each in axes:
        _doubling(each, counts, "streams")


def _cache(axes: Any, figures: dict[str, Any]) -> None:
    found = {int(share): one for share, one in figures["cached"].items()}
    shares = sorted(found)
    left, right = axes
    there = [100 * found[share]["pagerank"]["hit_share"] for share in shares]
    took = [found[share]["pagerank"]["seconds"] * 1e3 for share in shares]
    left.plot(there, took, "o-", color=BLUE, label="measured")
    bound = [found[share].get("bound_seconds") for share in shares]
    limits = list(took)
    if all(bound):
        limits += [value * 1e3 for value in bound]
        xs, ys = _bound(figures, there, [value * 1e3 for value in bound])
        left.plot(xs, ys, "--", color=INK, linewidth=1.2, label="bound: the other pages at the pinned rate, or kernels")
        left.legend(loc="lower left", fontsize=9)
    left.set_xlabel("pages found on the GPU, %")
    left.set_ylabel("ms per iteration")
    left.set_title("PageRank")
    searches = [found[share]["bfs"]["superstep_seconds"] * 1e3 for share in shares]
    right.plot(shares, searches, "o-", color=ORANGE)
    for share, value in zip(shares, searches, strict=True):
        copied = found[share]["bfs"].get("bytes_copied", 0)
        text = f"{copied / 1e9:.2f} GB copied" if copied >= 1e8 else f"{copied / 1e6:.0f} MB copied"
        # Beside the line, which falls.
        at, edge = ((-9, -4), "right") if share == shares[-1] else ((6, 6), "left")
        right.annotate(text, (share, value), at, textcoords="offset points", ha=edge, fontsize=8, color=GREY)
    right.set_xlabel("pages the cache has room for, %")
    right.set_ylabel("ms per search")
    right.set_title("BFS, least recently used pages go")
    for each, values in ((left, limits), (right, searches)):
        _times(each, values)
        each.set_xlim(-3, 103)


def _bound(figures: dict[str, Any], there: list[float], bound: list[float]) -> tuple[list[float], list[float]]:
    """The bound as a curve: straight in bytes, so bent on a logarithmic axis, down to the kernels' time."""
    rate, size = figures.get("pinned_rate"), figures["graph"]["page_bytes"]
    if not rate:
        return there, bound
    floor = min(bound)
    xs = [there[0] + (100 - there[0]) * k / 200 for k in range(201)]
    return xs, [max(floor, (1 - x / 100) * size / rate * 1e3) for x in xs]


def _devices(axes: Any, figures: dict[str, Any]) -> None:
    lines: dict[tuple[str, str], dict[int, Any]] = {}
    for name, one in figures["runs"].items():
        place, strategy, count = name.split()
        lines.setdefault((place, strategy), {})[int(count)] = one
    colours, dashes = {"P": BLUE, "S": GREEN}, {"resident": "-", "streamed": "--"}
    meanings = {"P": "P, pages dealt out", "S": "S, state dealt out"}
    counts = sorted({count for line in lines.values() for count in line})
    for each, algorithm, key, label in (
        (axes[0], "pagerank", "seconds", "ms per iteration"),
        (axes[1], "bfs", "superstep_seconds", "ms per search"),
    ):
        seen = []
        for (place, strategy), line in lines.items():
            xs = sorted(line)
            ys = [line[x][algorithm][key] * 1e3 for x in xs]
            seen += ys
            each.plot(
                xs, ys, "o", linestyle=dashes[place], color=colours[strategy],
                label=f"{meanings[strategy]}, {place}",
            )  # fmt: skip
        _times(each, seen)
        _doubling(each, counts, "logical devices on one GPU")
        each.set_ylabel(label)
    axes[0].set_title("PageRank")
    axes[1].set_title("BFS")
    axes[0].figure.legend(
        *axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=4, fontsize=9, handlelength=3.5
    )
