"""Where the time went, and what had been foretold of it."""

from __future__ import annotations

from penstock.observe.report import words
from penstock.observe.report.markup import Html, Section, bar, join, table, tag
from penstock.observe.report.run import Run

DOCTOR = "penstock doctor --measure"
MEANINGS = {
    "open": "the store's index is read",
    "prepare": "kernels are loaded or compiled, state is set up",
    "load": "arcs are read into memory",
    "orient": "arcs are turned towards higher degrees",
    "ranks": "ids are ranked",
    "run": "the supersteps",
    "label": "groups get their names",
    "copy back": "the result is copied from the GPU",
    "write": "the result is written",
    "other": "what lies between",
}
LEAST = 0.001
"""The share of the time below which a phase has no place in the bar."""
NESTED = {"load": ("orient",)}
"""Phases that others contain: what counts of them is the rest."""


def phases(run: Run) -> Section:
    """A bar of the phases, and each beside its prediction."""
    parts = _parts(run)
    total = sum(parts.values()) or 1e-9
    shown = {name: seconds for name, seconds in parts.items() if seconds >= LEAST * total}
    colours = {name: f"c{place % 8}" for place, name in enumerate(shown)}
    told = ", ".join(f"{name} {words.seconds(seconds)}" for name, seconds in shown.items())
    measured = bar(
        ((colours[name], seconds / total) for name, seconds in shown.items()), label=f"Time by phase: {told}"
    )
    legend = tag(
        "ul",
        *(
            tag(
                "li",
                tag("i", class_=colours[name]),
                tag("b", name),
                f" {words.seconds(seconds)}",
                tag("small", _meaning(name)),
            )
            for name, seconds in shown.items()
        ),
        class_="legend",
    )
    return Section("time", "Time", _told(shown, total), join([measured, legend, prediction(run)]))


def _parts(run: Run) -> dict[str, float]:
    """Seconds by phase, in the order of their beginning, none counted twice."""
    found = dict(run.phases)
    for inner, outers in NESTED.items():
        for outer in outers:
            if outer in found and inner in found:
                found[outer] = max(0.0, found[outer] - found[inner])
    order = {"open": -1, "write": 1}  # the others came in the order of their beginning
    found = dict(sorted(found.items(), key=lambda item: order.get(item[0], 0)))
    rest = float(run.figures.get("seconds", 0.0)) - sum(found.values())
    return found | ({"other": rest} if rest > 0 else {})


def _meaning(name: str) -> str:
    return f" {MEANINGS[name]}" if name in MEANINGS else ""


def _told(shown: dict[str, float], total: float) -> str:
    if not shown:
        return "Nothing took any time."
    name = max(shown, key=lambda each: shown[each])
    return f"{words.share(shown[name], total)} of {words.seconds(total)} went to the phase “{name}”."


# ---- prediction


def prediction(run: Run) -> Html:
    """What the model said of the supersteps that were done, beside what they took."""
    foretold = run.figures.get("prediction")
    heading = tag("h3", "Foretold and measured")
    if not foretold:
        return join([heading, tag("p", _why_not(run), class_="note")])
    rows = [
        (
            name,
            words.seconds(seconds),
            words.seconds(run.phases.get(name, 0.0)),
            _ratio(run.phases.get(name, 0.0), seconds),
        )
        for name, seconds in foretold["phases"].items()
        if seconds or run.phases.get(name)
    ]
    took = sum(run.phases.get(name, 0.0) for name in foretold["phases"])
    if len(rows) > 1:
        ratio = _ratio(took, foretold["seconds"])
        rows.append(("together", words.seconds(foretold["seconds"]), words.seconds(took), ratio))
    read = run.figures.get("bytes_read", 0)
    rows.append(
        ("bytes read", words.size(foretold["bytes_read"]), words.size(read), _ratio(read, foretold["bytes_read"]))
    )
    expected = f"The model expected {words.seconds(foretold['seconds'])}, bound by {_bound(foretold['bound'])}"
    told = f"{expected}; it took {words.seconds(took)}."
    if foretold.get("estimate"):
        told += " How much a traversal visits only the run can tell, so this was an estimate."
    widest = max(took, foretold["seconds"]) or 1e-9
    bars = tag(
        "div",
        *(
            tag(
                "div",
                tag("span", name),
                bar([(kind, seconds / widest)], label=f"{name} {words.seconds(seconds)}"),
                tag("b", words.seconds(seconds)),
            )
            for name, kind, seconds in (("foretold", "foretold", foretold["seconds"]), ("measured", "c0", took))
        ),
        class_="bars",
    )
    return join(
        [heading, tag("p", told, class_="note"), bars, table(("", "foretold", "measured", "measured / foretold"), rows)]
    )


def _bound(name: str) -> str:
    return {"disk": "the disk", "memory": "memory (fetches that miss the caches)", "compute": "computing"}.get(
        name, name
    )


def _ratio(was: float, foretold: float) -> str:
    return f"{was / foretold:.2f}" if foretold else "-"


def _why_not(run: Run) -> Html:
    if run.gpu is not None:
        return Html("Predictions are made for runs on the CPU only.")
    if run.figures.get("limits"):
        return Html("Nothing was foretold: no program was run, or so many that the model would say little.")
    return join(
        [
            "Nothing was foretold: the rates of this machine are not measured. ",
            tag("code", DOCTOR),
            " measures them, once, in half a minute.",
        ]
    )


__all__ = ["DOCTOR", "phases", "prediction"]
