"""The run report in a real browser: nothing goes wrong, every chart is drawn, the timeline can be zoomed and moved."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import accumulate
from pathlib import Path
from typing import Any

import pytest

import penstock as pk
from browser import Browser, browser, program

# Of an SVG how much its paths say, nothing if they say NaN; of a canvas how many of its dots differ from the first.
DRAWN = """
Object.fromEntries([...document.querySelectorAll("[data-chart]")].map((place) => {
  const name = place.dataset.chart, canvas = place.querySelector("canvas");
  const paths = [...place.querySelectorAll("svg g path")];
  if (!canvas) return [name, paths.map((each) => each.getAttribute("d")).join("").replaceAll(/.*NaN.*/g, "").length];
  const dots = new Uint32Array(canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data.buffer);
  return [name, dots.filter((dot) => dot !== dots[0]).length];
}))
"""
CORNER = """
(() => {
  const canvas = document.querySelector("[data-chart=matrix] canvas");
  return [...canvas.getContext("2d").getImageData(canvas.width - 1, canvas.height - 1, 1, 1).data];
})()
"""


def box(page: Browser, chart: str) -> tuple[float, float, float, float]:
    """Where a chart is once it is in the middle of the window: left, top, width, height."""
    place = f"document.querySelector('[data-chart={chart}]')"
    page.eval(f"{place}.scrollIntoView({{block: 'center', behavior: 'instant'}})")
    page.frames()  # scrolling is told a frame later
    found = page.eval(f"JSON.parse(JSON.stringify({place}.getBoundingClientRect()))")
    return found["left"], found["top"], found["width"], found["height"]


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    program()  # no browser, no run
    folder = tmp_path_factory.mktemp("page")
    options = {"scale": 10, "edge_factor": 8, "seed": 2, "undirected": True, "page_size": "4KiB"}
    with pk.generate("kron", folder / "k.pen", **options) as graph, pk.recording():
        return pk.bfs(graph, source=graph.store.ids.of(0), tier="disk", memory_limit="3MB").report(folder / "run.html")


@pytest.fixture(scope="module")
def page(report: Path) -> Iterator[Browser]:
    with browser() as found:
        yield found


def longest(page: Browser) -> tuple[int, float]:
    """The row of the supersteps in the timeline, and when the longest of them was half over, as a share of the time."""
    drawn = json.loads(page.eval("document.getElementById('data').textContent"))["timeline"]
    place, row = next((place, row) for place, row in enumerate(drawn["rows"]) if row["lane"] == "engine")
    ends = zip(accumulate(row["begin"]), row["length"], strict=True)
    begin, length = max(ends, key=lambda span: span[1])
    return place, (begin + length / 2) / drawn["end"]


def view(page: Browser) -> tuple[float, float]:
    place = "document.querySelector('[data-chart=timeline]').dataset"
    return float(page.eval(f"{place}.from")), float(page.eval(f"{place}.to"))


@pytest.mark.parametrize(("width", "dark", "phone"), [(1280, False, False), (1280, True, False), (390, False, True)])
def test_every_chart_is_drawn(page: Browser, report: Path, width: int, dark: bool, phone: bool) -> None:
    page.size(width, 900, dark=dark, phone=phone)
    page.open(report)
    drawn: dict[str, Any] = page.eval(DRAWN)
    assert {"seconds", "frontier", "pages", "timeline", "memory-host", "degrees", "matrix", "values"} <= set(drawn)
    assert all(length > 50 for length in drawn.values()), drawn
    assert page.eval("document.documentElement.scrollWidth") <= width  # nothing sticks out
    assert page.eval("[...document.querySelectorAll('svg text')].every((each) => each.getBBox().x >= -1)")
    assert page.errors == []


def test_colours_follow_the_theme(page: Browser, report: Path) -> None:
    page.size(1000, 900)
    page.open(report)
    light = page.eval(CORNER)
    page.size(1000, 900, dark=True)
    page.frames()
    assert sum(page.eval(CORNER)[:3]) < sum(light[:3]) - 200
    assert page.errors == []


def test_the_timeline_is_zoomed_and_moved(page: Browser, report: Path) -> None:
    page.size(1200, 900)
    page.open(report)
    begin, end = whole = view(page)
    left, top, width, height = box(page, "timeline")
    x, y = left + width * 0.6, top + height / 2

    page.eval("document.querySelector('[data-chart=timeline]').focus({preventScroll: true})")
    page.key("+")
    page.key("+")
    zoomed = view(page)
    assert zoomed[1] - zoomed[0] < (end - begin) / 2
    page.key("ArrowRight")
    moved = view(page)
    assert moved[0] > zoomed[0]
    assert moved[1] - moved[0] == pytest.approx(zoomed[1] - zoomed[0])
    page.key("-")
    assert view(page)[1] - view(page)[0] > moved[1] - moved[0]
    page.key("0")
    assert view(page) == whole

    page.eval("document.activeElement.blur()")
    page.mouse("mouseWheel", x, y, deltaX=0, deltaY=-200)
    assert view(page) == whole  # the page scrolls on under the pointer
    _, top, _, height = box(page, "timeline")
    y = top + height / 2
    for _ in range(3):
        page.mouse("mouseWheel", x, y, deltaX=0, deltaY=-200, modifiers=2)
    wheeled = view(page)
    assert wheeled[1] - wheeled[0] < (end - begin) / 2
    page.drag(x, y, -width / 4)
    dragged = view(page)
    assert dragged[0] > wheeled[0]
    assert dragged[1] - dragged[0] == pytest.approx(wheeled[1] - wheeled[0])
    page.eval("document.querySelector('.tools button:last-child').click()")
    page.frames()
    assert view(page) == whole
    assert page.errors == []


def test_values_are_told_to_pointer_and_keyboard(page: Browser, report: Path) -> None:
    page.size(1200, 900)
    page.open(report)
    hidden = "document.getElementById('tip').hidden"
    words = "document.getElementById('tip').textContent"
    assert page.eval(hidden)
    for chart, expected in (
        ("frontier", "active vertices"),
        ("degrees", "degree"),
        ("matrix", "arcs"),
        ("timeline", "took"),
    ):
        left, top, width, height = box(page, chart)
        x, y = left + width * 0.7, top + height / 2
        if chart == "timeline":
            row, share = longest(page)
            x, y = left + 92 + (width - 92) * share, top + 24 + 22 * row + 9
        page.mouse("mouseMoved", x, y)
        assert not page.eval(hidden), chart
        assert expected in page.eval(words)
    page.eval("document.querySelector('[data-chart=frontier]').focus()")
    page.key("ArrowRight")
    first = page.eval(words)
    page.key("ArrowRight")
    assert "active vertices" in first
    assert page.eval(words) != first
    page.key("Escape")
    assert page.eval(hidden)
    assert page.errors == []


def test_on_paper_it_is_light(page: Browser, report: Path, tmp_path: Path) -> None:
    page.size(1000, 900, dark=True)
    page.open(report)
    page.paper(tmp_path / "run.pdf")
    assert (tmp_path / "run.pdf").stat().st_size > 20_000
    # What is set for printing is taken back after it.
    assert page.eval("document.documentElement.dataset.print === undefined")
    page.eval("dispatchEvent(new Event('beforeprint'))")
    assert page.eval("getComputedStyle(document.body).backgroundColor") == "rgb(252, 252, 250)"
    page.eval("dispatchEvent(new Event('afterprint'))")
    assert page.errors == []
