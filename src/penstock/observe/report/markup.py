"""HTML by the piece. What comes from a graph or a user is text, never markup."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import Any, NamedTuple


class Html(str):
    """Markup: it is put into the page as it is."""

    __slots__ = ()


class Section(NamedTuple):
    """A part of the page: what it shows, and in a sentence what there is to see."""

    name: str
    title: str
    told: str
    body: Html


def text(value: Any) -> Html:
    """Anything as it may stand in a page."""
    return value if isinstance(value, Html) else Html(escape(str(value)))


def join(parts: Iterable[Any]) -> Html:
    return Html("".join(text(part) for part in parts))


def tag(name: str, *inside: Any, **attributes: Any) -> Html:
    """`tag("p", "a < b", class_="note")`; attributes that are None are left out."""
    written = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(str(value))}"'
        for key, value in attributes.items()
        if value is not None
    )
    return Html(f"<{name}{written}>{join(inside)}</{name}>")


def table(head: Sequence[str], rows: Iterable[Sequence[Any]], *, caption: str | None = None, left: int = 1) -> Html:
    """A table whose first `left` columns are words and whose others are figures."""

    def cells(kind: str, row: Sequence[Any]) -> Html:
        return join(tag(kind, cell, class_=None if at < left else "figure") for at, cell in enumerate(row))

    titles = join(tag("th", name, scope="col", class_=None if at < left else "figure") for at, name in enumerate(head))
    body = join(tag("tr", cells("td", row)) for row in rows)
    told = tag("caption", caption, class_="unseen") if caption else ""
    # In a box of its own: a table that is wider than a phone scrolls, the page does not.
    return tag("div", tag("table", told, tag("thead", tag("tr", titles)), tag("tbody", body)), class_="scroll")


def facts(pairs: Iterable[tuple[str, Any]]) -> Html:
    """Names and what they are."""
    return tag("dl", *(tag("div", tag("dt", name), tag("dd", what)) for name, what in pairs), class_="facts")


def chart(
    name: str,
    title: str,
    told: str,
    fallback: Html | None = None,
    *,
    kind: str = "plot",
    wide: bool = False,
    height: int | None = None,
    legend: Html | str = "",
) -> Html:
    """A place for a drawing, with its words, and its figures as a table for those who do not see it."""
    place = tag(
        "div",
        class_=f"{kind} drawn",
        data_chart=name,
        role="img",
        aria_label=f"{title}. {told}",
        tabindex="0",
        style=None if height is None else f"height:{height}px",
    )
    below = "" if fallback is None else tag("details", tag("summary", "Figures"), fallback, class_="figures")
    return tag(
        "figure",
        tag("figcaption", tag("strong", title), tag("span", told)),
        place,
        legend,
        below,
        class_="wide" if wide else None,
    )


def bar(parts: Iterable[tuple[str, float]], *, label: str) -> Html:
    """A bar of parts in percent: (class, share of the whole)."""
    inside = join(tag("i", class_=kind, style=f"width:{max(0.0, min(100.0, 100 * part)):.3f}%") for kind, part in parts)
    return tag("div", inside, class_="bar", role="img", aria_label=label)


__all__ = ["Html", "Section", "bar", "chart", "facts", "join", "table", "tag", "text"]
