"""The page: sections, style and drawings in one file that asks for nothing from anywhere."""

from __future__ import annotations

import json
import re
from importlib.resources import files
from typing import Any

from penstock.observe.plain import strict
from penstock.observe.report.headline import headline, title
from penstock.observe.report.machine import machine
from penstock.observe.report.markup import Html, Section, join, tag, text
from penstock.observe.report.memory import memory
from penstock.observe.report.phases import phases
from penstock.observe.report.pipes import pipes
from penstock.observe.report.plan import plan
from penstock.observe.report.run import Run
from penstock.observe.report.shape import graph, result
from penstock.observe.report.steps import steps
from penstock.observe.report.timeline import timeline

SECTIONS = (phases, plan, pipes, steps, timeline, memory, graph, result, machine)
SCRIPTS = ("words.js", "axes.js", "plot.js", "heat.js", "timeline.js", "page.js")


def page(run: Run) -> str:
    """The whole report as HTML."""
    shown = [section for make in SECTIONS if (section := make(run)) is not None]
    contents = tag("nav", *(tag("a", each.title, href=f"#{each.name}") for each in shown), aria_label="Contents")
    parts = {
        "title": text(title(run)),
        "style": _asset("style.css"),
        "head": headline(run),
        "contents": contents,
        "body": join(_section(each) for each in shown),
        "version": text(run.figures.get("penstock", "")),
        "data": _data(run.drawings),
        "script": "\n".join(_asset(name) for name in SCRIPTS),
    }
    # In one go: a graph may be called {{data}}.
    return re.sub(r"\{\{(\w+)\}\}", lambda found: parts[found[1]], _asset("page.html"))


def _section(each: Section) -> Html:
    told = tag("p", each.told, class_="told") if each.told else ""
    content = tag("div", each.body, class_="content") if each.body else ""
    return tag("section", tag("div", tag("h2", each.title), told, class_="words"), content, id=each.name)


def _data(drawings: dict[str, Any]) -> str:
    """JSON that cannot end the element it stands in."""
    # A timeline is whole numbers and was looked through before: it is too long to be copied.
    clean = {name: each if each["kind"] == "timeline" else strict(each) for name, each in drawings.items()}
    return json.dumps(clean, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")


def _asset(name: str) -> str:
    return files("penstock.observe.report").joinpath("assets", name).read_text(encoding="utf-8")


__all__ = ["page"]
