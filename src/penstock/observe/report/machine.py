"""On what and with what: enough to repeat the run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from penstock.observe.report import words
from penstock.observe.report.markup import Section, facts, join, tag
from penstock.observe.report.run import Run

SIZES = ("memory_limit", "gpu_memory_limit", "max_temp_directory_size")


def machine(run: Run) -> Section:
    """Options, settings, machine and versions."""
    figures = run.figures
    groups = [
        ("Options", [(name, words.value(value)) for name, value in (figures.get("options") or {}).items()]),
        ("Settings", list(_settings(figures.get("settings") or {}))),
        ("Machine", list(_machine(figures))),
    ]
    shown = [tag("article", tag("h3", title), facts(pairs)) for title, pairs in groups if pairs]
    return Section("machine", "How to repeat it", "", tag("div", join(shown), class_="plans"))


def _settings(settings: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for name, value in settings.items():
        if value is not None:
            yield name, words.size(value) if name in SIZES and isinstance(value, int) else str(value)


def _machine(figures: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    found = dict(figures.get("machine") or {})
    if "memory" in found:
        found["memory"] = words.size(found["memory"])
    yield from ((name, str(value)) for name, value in found.items() if value is not None)
    if figures.get("penstock"):
        yield "penstock", str(figures["penstock"])
    if gpu := (figures.get("gpu") or {}).get("name"):
        yield "gpu", str(gpu)
    if measured := (figures.get("limits") or {}).get("date"):
        yield "rates measured", str(measured).replace("T", " ")[:16]


__all__ = ["machine"]
