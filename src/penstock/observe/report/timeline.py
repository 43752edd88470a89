"""Readers, copies, workers and kernels over time: the recording as rows of spans, small enough for a page."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from penstock.observe.events import Slice
from penstock.observe.plain import strict
from penstock.observe.report import words
from penstock.observe.report.markup import Html, Section, chart, join, table, tag
from penstock.observe.report.run import Run

MOST = 80_000
"""Spans in a page, some 1.5 MB; of more, neighbours that are too short to be seen apart are drawn as one."""
TOLD = 2_000
"""Spans of few-and-far lanes that carry all their figures."""
ROW, AXIS = 22, 38
"""Pixels of a row, and of the axis above and the scroll bar below; timeline.js draws them."""
ORDER = ("phases", "engine", "reader", "gpu", "stream", "lane", "worker")
COLOURS = {
    "read": "reading",
    "copy": "copying",
    "page": "computing on a page from disk",
    "cached": "on a page from the cache",
    "chunks": "on arcs in memory",
    "kernel": "kernels",
    "wait": "waiting",
    "superstep": "supersteps",
    "phase": "phases",
}
"""What is told apart, and how it is called."""
KINDS = {
    "page": "page", "chunks": "chunks", "wait": "wait", "read": "read", "superstep": "superstep",
    "batch": "copy", "in place": "copy", "copy in": "copy", "copy out": "copy",
    "kernel": "kernel", "count": "kernel", "reduce": "kernel", "function": "kernel", "pages": "kernel",
}  # fmt: skip
"""By a slice's name, or its first or last word."""


class Span(NamedTuple):
    """In microseconds."""

    begin: int
    length: int
    name: str
    nbytes: int
    times: int
    args: dict[str, Any] | None


def timeline(run: Run) -> Section:
    """Spans lane by lane, to be zoomed into."""
    if not run.slices:
        how = join([
            "No timeline was recorded. On the command line ", tag("code", "--report"), " records one; in Python, run ",
            "inside ", tag("code", "with penstock.recording():"), ".",
        ])  # fmt: skip
        return Section("timeline", "Timeline", "", tag("p", how, class_="note"))
    rows = lanes(run.slices, run.origin)
    names = list(dict.fromkeys(span.name for _, _, spans in rows for span in spans))
    end = max(span.begin + span.length for _, _, spans in rows for span in spans)
    run.drawings["timeline"] = {
        "kind": "timeline",
        "end": max(end, 1),
        "names": names,
        "kinds": [kind(name) for name in names],
        "rows": [
            _packed(lane, depth, spans, {name: place for place, name in enumerate(names)})
            for lane, depth, spans in rows
        ],
    }
    left = run.events.left_out if run.events is not None else 0
    told = f"{words.number(len(run.slices), 'event')} on {words.number(len({lane for lane, _, _ in rows}), 'lane')}"
    told += f"; {left:,} more were not kept." if left else "."
    busy = table(("lane", "busy", "of the time", "spans"), _busy(rows, end), caption="Time that each lane was busy")
    keys = "Drag to move, Ctrl and wheel to zoom; with the keyboard + and -, ← and →, 0 for all."
    return Section(
        "timeline",
        "Timeline",
        told,
        chart(
            "timeline",
            "What each lane did",
            keys,
            busy,
            kind="timeline",
            wide=True,
            height=AXIS + len(rows) * ROW,
            legend=_legend({kind(name) for name in names}),
        ),
    )


def _legend(kinds: set[str]) -> Html:
    shown = [(name, words) for name, words in COLOURS.items() if name in kinds]
    return tag("ul", *(tag("li", tag("i", class_=f"k-{name}"), words) for name, words in shown), class_="legend")


def kind(name: str) -> str:
    """What is drawn in one colour."""
    if name.startswith("page (hit"):
        return "cached"
    ends = name.split()
    return next((KINDS[word] for word in (name, *ends[:1], *ends[-1:]) if word in KINDS), "phase")


def lanes(slices: Iterable[Slice], origin: float, most: int = MOST) -> list[tuple[str, int, list[Span]]]:
    """(lane, depth, spans) with spans that neither overlap nor nest; together no more than `most`, roughly."""
    found: dict[tuple[str, int], list[Span]] = {}
    open_ends: dict[str, list[int]] = {}
    total = 0
    for each in slices:
        begin = round((each.begin - origin) * 1e6)
        length = max(0, round((each.end - origin) * 1e6) - begin)
        around = open_ends.setdefault(each.lane, [])
        while around and around[-1] <= begin:
            around.pop()
        depth = len(around)
        around.append(begin + length)
        around.sort(reverse=True)  # where lanes of two runs overlap without nesting
        span = Span(begin, length, _name(each), int(each.args.get("bytes", 0)), 1, _told(each))
        found.setdefault((each.lane, depth), []).append(span)
        total += 1
    # From what is a hundredth of a pixel when all is in view.
    gap = max((spans[-1].begin + spans[-1].length for spans in found.values()), default=0) // 100_000 + 1
    while total > most:
        found = {key: _merged(spans, gap) for key, spans in found.items()}
        total, gap = sum(map(len, found.values())), gap * 4
    ordered = sorted(found, key=lambda key: (_place(key[0]), _number(key[0]), key[0], key[1]))
    return [(lane, depth, found[lane, depth]) for lane, depth in ordered]


def _name(each: Slice) -> str:
    source = each.args.get("source")
    return f"{each.name} ({source})" if source else each.name


def _told(each: Slice) -> dict[str, Any] | None:
    """What a span has to say besides its name; that of workers is in its colour."""
    if each.lane.startswith(("worker", "reader")):
        return None
    told = {name: value for name, value in each.args.items() if name not in ("seconds", "bytes")}
    return strict(told) or None


def _merged(spans: list[Span], gap: int) -> list[Span]:
    """Neighbours of the same name that are shorter than `gap` and no further apart."""
    found: list[Span] = []
    for span in spans:
        last = found[-1] if found else None
        near = last is not None and last.name == span.name and span.begin - (last.begin + last.length) <= gap
        if last is not None and near and min(span.length, last.length // last.times) <= gap:
            end = max(last.begin + last.length, span.begin + span.length)
            found[-1] = Span(
                last.begin, end - last.begin, last.name, last.nbytes + span.nbytes, last.times + span.times, None
            )
        else:
            found.append(span)
    return found


def _place(lane: str) -> int:
    word = lane.split(maxsplit=1)[0] if lane else ""
    return ORDER.index(word) if word in ORDER else len(ORDER)


def _number(lane: str) -> int:
    last = lane.rsplit(maxsplit=1)[-1] if lane else ""
    return int(last) if last.isdecimal() else 0


def _packed(lane: str, depth: int, spans: Sequence[Span], names: dict[str, int]) -> dict[str, Any]:
    """Columns of numbers; beginnings as differences, which are short."""
    begins = [span.begin for span in spans]
    row: dict[str, Any] = {
        "lane": lane,
        "depth": depth,
        "begin": [now - before for before, now in zip([0, *begins], begins, strict=False)],
        "length": [span.length for span in spans],
        "name": [names[span.name] for span in spans],
    }
    if any(span.nbytes for span in spans):
        row["bytes"] = [span.nbytes for span in spans]
    if any(span.times > 1 for span in spans):
        row["times"] = [span.times for span in spans]
    if len(spans) <= TOLD and any(span.args for span in spans):
        row["args"] = [span.args for span in spans]
    return row


def _busy(rows: Sequence[tuple[str, int, list[Span]]], end: int) -> Iterable[tuple[Any, ...]]:
    for lane, depth, spans in rows:
        if depth == 0:
            busy = sum(span.length for span in spans if kind(span.name) != "wait")
            yield lane, words.seconds(busy / 1e6), words.share(busy, end), f"{sum(span.times for span in spans):,}"


__all__ = ["Span", "kind", "lanes", "timeline"]
