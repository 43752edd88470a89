"""What the engine decided, program by program."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from penstock.observe.report import words
from penstock.observe.report.headline import place
from penstock.observe.report.markup import Html, Section, facts, tag
from penstock.observe.report.run import Run

MOST = 4
"""Programs that are shown one by one."""


def plan(run: Run) -> Section | None:
    """One list of facts for each program, equal ones together."""
    if not run.plans:
        return None
    alike: list[tuple[dict[str, Any], int]] = []
    for each in run.plans:
        if alike and _key(alike[-1][0]) == _key(each):
            alike[-1] = alike[-1][0], alike[-1][1] + 1
        else:
            alike.append((each, 1))
    shown = [_program(run, each, times) for each, times in alike[:MOST]]
    if len(alike) > MOST:
        shown.append(tag("p", f"And {words.number(len(alike) - MOST, 'more program')}.", class_="note"))
    return Section("plan", "Plan", _told(run), tag("div", *shown, class_="plans"))


def _key(plan: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple(plan.get(name) for name in ("program", "form", "tier", "ranges"))


def _told(run: Run) -> str:
    names = list(dict.fromkeys(plan["program"] for plan in run.plans))
    told = f"{', '.join(names[:3])}{' and others' if len(names) > 3 else ''} ran {place(run)}"
    why = next((reason for plan in run.plans for reason in plan.get("why", ())), "")
    return f"{told}: {why}." if why else f"{told}."


def _program(run: Run, plan: Mapping[str, Any], times: int) -> Html:
    often = f", {times} times" if times > 1 else ""
    return tag(
        "article", tag("h3", plan["program"], tag("small", f" {plan['form']} program{often}")), facts(_facts(run, plan))
    )


def _facts(run: Run, plan: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    on_disk = plan["tier"] == "disk"
    if run.gpu is None:
        yield "Arcs", f"{'from disk' if on_disk else 'in memory'}, {words.size(plan['topology_bytes'])}"
    ways = {"in": "incoming", "out": "outgoing"}
    yield (
        "Direction",
        f"along the {' and '.join(ways.get(side, side) for side in plan['sides'])} arcs" + _taken(run, plan),
    )
    there = _on_gpu(run, plan)
    ranges = plan.get("ranges", 1) if there is None else 1  # of the host's memory
    listed = plan["form"] in ("pair", "common")
    split = f", in {ranges} ranges of {words.size(plan['window_bytes'])}" if ranges > 1 and not listed else ""
    yield "State", words.size(plan["state_bytes"]) + split
    if ranges > 1 and listed:
        yield "Lists", f"in {ranges} ranges"
    if plan.get("edge_state_bytes"):
        yield "State of the arcs", words.size(plan["edge_state_bytes"])
    if on_disk and run.gpu is None:
        yield "Index and ring", words.size(plan["fixed_bytes"])
        cached = words.share(min(plan["cache_bytes"], plan["topology_bytes"]), plan["topology_bytes"])
        yield "Page cache", f"{words.size(plan['cache_bytes'])}, room for {cached} of the pages"
    yield "Least memory_limit", words.size(plan["smallest"])
    for reason in plan.get("why", ()):
        yield "Why", reason
    if why := run.figures.get("why_not_gpu"):
        yield "No GPU", why
    if there is not None:
        shown = (f"{name.replace('_', ' ')} {_device(name, found)}" for name, found in there.items())
        yield "On the GPU", ", ".join(shown)
    if shared := (run.gpu or {}).get("shared"):
        yield "GPUs", shared


def _on_gpu(run: Run, plan: Mapping[str, Any]) -> dict[str, Any] | None:
    """What this program had there, if it was there."""
    for each in (run.gpu or {}).get("plans", ()):
        if each.get("program", plan["program"]) == plan["program"]:
            return {name: found for name, found in each.items() if name != "program"}
    return None


def _device(name: str, found: Any) -> str:
    if isinstance(found, bool):
        return "yes" if found else "no"
    return words.size(found) if name.endswith("bytes") or name in ("limit", "smallest") else str(found)


def _taken(run: Run, plan: Mapping[str, Any]) -> str:
    """How often each way was taken, where the frontier decides."""
    ways: dict[str, int] = {}
    for step in run.steps:
        if step.get("program") == plan["program"] and "direction" in step:
            ways[step["direction"]] = ways.get(step["direction"], 0) + step.get("supersteps", 1)
    if len(ways) == 1:
        return f", {next(iter(ways))}"
    return "".join([": ", ", ".join(f"{name} {times:,}" for name, times in ways.items())]) if ways else ""


__all__ = ["plan"]
