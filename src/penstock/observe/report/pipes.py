"""The pipes: what went through each, how fast, and how fast it could have gone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from penstock.observe.events import Slice
from penstock.observe.report import words
from penstock.observe.report.headline import pages_and_hits
from penstock.observe.report.markup import Html, Section, join, table, tag
from penstock.observe.report.phases import DOCTOR
from penstock.observe.report.run import Run


class Pipe(NamedTuple):
    """One hop of the data."""

    name: str
    nbytes: float
    seconds: float
    limit: float | None
    """Bytes per second, as measured on this machine."""
    of: str
    """What that limit is."""
    busy: float | None = None
    """Seconds in which something was under way, if that was recorded."""

    @property
    def rate(self) -> float:
        return self.nbytes / self.seconds if self.seconds else 0.0


def pipes(run: Run) -> Section | None:
    """A bar for each pipe, with a mark at its limit, and what the cache saved."""
    found = [pipe for pipe in _pipes(run) if pipe.nbytes > 0 and pipe.seconds > 0]
    if not found:
        return None
    bars = tag("div", *(_bar(pipe) for pipe in found), class_="pipes")
    body = [bars, _hits(run)]
    if not any(pipe.limit for pipe in found):
        body.append(
            tag(
                "p",
                "How fast these pipes could go is not measured on this machine: ",
                tag("code", DOCTOR),
                " does it, once.",
                class_="note",
            )
        )
    rows = [
        (
            pipe.name, words.size(pipe.nbytes), words.seconds(pipe.seconds), words.rate(pipe.rate),
            words.rate(pipe.limit) if pipe.limit else "not measured",
            words.share(pipe.rate, pipe.limit) if pipe.limit else "-",
            words.share(pipe.busy, pipe.seconds) if pipe.busy is not None else "-",
        )
        for pipe in found
    ]  # fmt: skip
    head = ("pipe", "moved", "in", "rate", "limit", "of the limit", "busy")
    body.append(tag("details", tag("summary", "Figures"), table(head, rows), class_="figures"))
    return Section("pipes", "Pipes", _told(found), join(body))


def _pipes(run: Run) -> Iterator[Pipe]:
    figures, limits = run.figures, run.figures.get("limits") or {}
    read = float(figures.get("bytes_read", 0))
    loading = run.phases.get("load", 0.0)
    if run.on_disk or not loading:
        yield Pipe(
            "Disk → host", read, run.running, limits.get("disk"), "direct reads that nobody looks at",
            busy_seconds(run.slices, "reader"),
        )  # fmt: skip
    else:
        yield Pipe(
            "Disk → host",
            read,
            loading,
            limits.get("load"),
            "pages from disk into one block of memory",
            busy_seconds(run.slices, "reader"),
        )
    if run.gpu is not None:
        device = limits.get("gpu") or {}
        known = device if device.get("name") == run.gpu.get("name") else {}
        yield Pipe(
            "Host → GPU",
            float(run.gpu.get("bytes_copied", 0)),
            run.running,
            known.get("copy"),
            "copies from pinned memory",
            busy_seconds(run.slices, "stream"),
        )
        yield Pipe("GPU memory → GPU", *_passed(run), known.get("memory"), "copies of a block there")
    else:
        yield Pipe("Memory → cores", *_passed(run), limits.get("memory"), "one long read of memory")
    yield Pipe("Memory → spill files", float(figures.get("spilled") or 0), run.running, None, "")


def _passed(run: Run) -> tuple[float, float]:
    """Bytes of arcs that whole passes went over, and their seconds."""
    sizes = {
        plan["program"]: plan["topology_bytes"] for plan in run.plans if plan.get("form") not in ("pair", "common")
    }
    whole = [step for step in run.steps if not {"frontier", "supersteps"} & set(step) and step.get("program") in sizes]
    return float(sum(sizes[step["program"]] for step in whole)), float(sum(step.get("seconds", 0.0) for step in whole))


def busy_seconds(slices: Iterable[Slice], kind: str) -> float | None:
    """Seconds in which at least one lane of a kind moved bytes; None if nobody looked."""
    spans = sorted((each.begin, each.end) for each in slices if each.lane.startswith(kind) and "bytes" in each.args)
    if not spans:
        return None
    total, until = 0.0, spans[0][0]
    for begin, end in spans:
        total += max(0.0, end - max(begin, until))
        until = max(until, end)
    return total


def _bar(pipe: Pipe) -> Html:
    widest = max(pipe.rate, pipe.limit or 0.0) * (1.0 if pipe.limit else 1.6)
    mark = tag("u", style=f"left:{100 * pipe.limit / widest:.3f}%") if pipe.limit else ""
    limit = (
        f"{words.share(pipe.rate, pipe.limit)} of {words.rate(pipe.limit)}, {pipe.of}"
        if pipe.limit
        else "limit not measured"
    )
    label = f"{pipe.name}: {words.rate(pipe.rate)}, {limit}"
    filled = tag("i", class_="c0", style=f"width:{100 * pipe.rate / widest:.3f}%")
    track = tag("div", filled, mark, class_="bar" if pipe.limit else "bar open", role="img", aria_label=label)
    return tag(
        "div",
        tag("b", pipe.name),
        tag("span", words.rate(pipe.rate)),
        track,
        tag("small", f"{words.size(pipe.nbytes)}; {limit}"),
        class_="pipe",
    )


def _hits(run: Run) -> Html:
    if run.gpu is not None and (run.gpu.get("hits") or run.gpu.get("in_place")):
        there, read = run.gpu.get("hits", 0), run.gpu.get("in_place", 0)
        told = f"{words.number(there, 'page was', 'pages were')} on the GPU already"
        return tag("p", told + (f", {read:,} were read where they lay on the host." if read else "."), class_="note")
    pages, hits = pages_and_hits(run)
    if not pages or not run.on_disk:
        return Html("")
    saved = hits * (run.figures.get("graph") or {}).get("page_size", 0)
    told = f"{words.share(hits, pages)} of {words.number(pages, 'page')} were in the page cache"
    return tag("p", f"{told}, which saved {words.size(saved)} of reading." if saved else f"{told}.", class_="note")


def _told(found: list[Pipe]) -> str:
    first = found[0]
    told = f"{first.name.replace(' → ', ' to ')}: {words.size(first.nbytes)} at {words.rate(first.rate)}"
    if first.limit:
        return f"{told}, {words.share(first.rate, first.limit)} of what was measured for this machine."
    return f"{told}."


__all__ = ["Pipe", "busy_seconds", "pipes"]
