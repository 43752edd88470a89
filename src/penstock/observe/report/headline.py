"""The head of the page: what ran on what, how long it took, and the few figures that one looks for first."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from penstock.observe.report import words
from penstock.observe.report.markup import Html, join, tag
from penstock.observe.report.run import Run


def title(run: Run) -> str:
    """`pagerank on web.pen`."""
    path = graph_path(run)
    return (
        f"{run.figures.get('algorithm', 'A run')} on {Path(path).name}" if path else str(run.figures.get("algorithm"))
    )


def graph_path(run: Run) -> str:
    return str(run.figures.get("store") or run.figures.get("graph", {}).get("path") or "")


def headline(run: Run) -> Html:
    """Title, one sentence, and a row of figures."""
    figures = run.figures
    name, on = str(figures.get("algorithm", "A run")), Path(graph_path(run)).name
    heading = tag("h1", name, tag("span", " on "), on) if on else tag("h1", name)
    cards = (
        tag("div", tag("dt", label), tag("dd", shown, tag("small", note) if note else ""))
        for label, shown, note in _cards(run)
    )
    date = str(figures.get("date", ""))
    top = tag("p", "Penstock run report", tag("time", date.replace("T", " ")[:16], datetime=date), class_="over")
    return tag("header", top, heading, tag("p", _sentence(run), class_="lead"), tag("dl", *cards, class_="cards"))


def _sentence(run: Run) -> Html:
    figures, graph = run.figures, run.figures.get("graph") or {}
    machine = figures.get("machine") or {}
    parts = []
    if graph:
        kind = "A directed" if graph.get("directed") else "An undirected"
        vertices, edges = words.number(graph["vertices"], "vertex", "vertices"), words.number(graph["edges"], "edge")
        parts.append(f"{kind} graph of {vertices}, {edges} and {words.number(graph['arcs'], 'arc')}.")
    limit = figures.get("memory_limit")
    where = f"Run {place(run)}" + (f", with {words.size(limit)} of memory allowed" if limit else "")
    threads = (figures.get("settings") or {}).get("threads") or machine.get("threads")
    cpu = f", {words.number(threads, 'thread')} of {machine.get('cpu', 'this machine')}" if threads else ""
    return join([" ".join([*parts, f"{where}{cpu}."])])


def place(run: Run) -> str:
    """Where the arcs lay."""
    if run.gpu is not None:
        if run.gpu.get("resident"):
            return f"on {run.gpu.get('name', 'the GPU')}, all arcs in its memory"
        source = {"disk": "disk", "host": "host memory"}.get(str(run.gpu.get("source")), "the host")
        return f"on {run.gpu.get('name', 'the GPU')}, arcs streamed from {source}"
    if not run.plans:
        return "in memory"
    return "from disk" if run.on_disk else "in memory"


def _cards(run: Run) -> Iterator[tuple[str, str, str]]:
    figures = run.figures
    total = float(figures.get("seconds", 0.0))
    yield "Time", words.seconds(total), f"{words.seconds(run.running)} of it the run itself" if run.running else ""
    if speed := figures.get("arcs_per_second"):
        yield "Speed", words.short(speed), "arcs per second, over whole passes"
    label, done, note = progress(run)
    if label:
        yield label, done, note
    if read := figures.get("bytes_read", 0):
        over = (run.phases.get("load", 0.0) + run.running) or total
        yield "Read from disk", words.size(read), words.rate(read / over) if over else ""
    pages, hits = pages_and_hits(run)
    if pages and run.on_disk:
        yield "Found in the cache", words.share(hits, pages), f"{hits:,} of {words.number(pages, 'page')}"
    if peak := figures.get("ledger_peak"):
        limit = figures.get("memory_limit") or 0
        yield "Memory counted", words.size(peak), f"of {words.size(limit)}" if limit else ""
    if run.gpu is not None:
        yield (
            "GPU memory",
            words.size(run.gpu.get("ledger_peak", 0)),
            f"of {words.size(run.gpu.get('memory_limit', 0))}",
        )
        if energy := run.gpu.get("energy"):
            yield "Energy", f"{energy['joules']:.3g} J", f"{energy['watts']:.0f} W"


def progress(run: Run) -> tuple[str, str, str]:
    """How far it went: (what is counted, how many, how it ended)."""
    figures = run.figures
    if "levels" in figures:
        return "Levels", f"{figures['levels']:,}", ""
    if "iterations" in figures:
        converged = figures.get("converged")
        ended = "" if converged is None else "converged" if converged else "stopped before it converged"
        return "Iterations", f"{figures['iterations']:,}", ended
    steps = sum(each.get("supersteps", 1) for each in run.steps) + figures.get("supersteps_left_out", 0)
    return ("Supersteps", f"{steps:,}", "") if steps else ("", "", "")


def pages_and_hits(run: Run) -> tuple[int, int]:
    """Pages that were handed to workers, and those of them that were found in a cache."""
    return sum(step.get("pages", 0) for step in run.steps), sum(step.get("hits", 0) for step in run.steps)


__all__ = ["graph_path", "headline", "pages_and_hits", "place", "progress", "title"]
