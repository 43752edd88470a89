"""How a store is built: one frozen object, checked once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Self

from penstock.config import parse_size
from penstock.errors import UsageError
from penstock.store.columns import ALIGN

RULES = ("first", "sum", "min", "max")
CHOICES = {
    "self_loops": ("keep", "drop"),
    "duplicates": ("keep", "drop", "merge"),
    "order": ("degree", "input"),
}


@dataclass(frozen=True)
class BuildOptions:
    """What to make of the edges that come in."""

    undirected: bool | None = None
    """Store every edge both ways. None: as the input says, else directed."""
    self_loops: str = "keep"
    """`keep` or `drop`."""
    duplicates: str | None = None
    """`keep`, `drop` (the first one stays) or `merge`. None: merge if a rule is given or the graph is undirected."""
    merge: str | Mapping[str, str] = "first"
    """How the columns of merged edges combine: `first`, `sum`, `min` or `max`, or one of these for each column."""
    order: str = "degree"
    """`degree`: vertices numbered by falling degree; `input`: as their ids ascend."""
    keep_isolated: bool = True
    """Keep declared vertices that have no edges."""
    incoming: bool = True
    """Also store the arcs by target, for algorithms that pull. Undirected graphs need no second copy."""
    page_size: int = 1 << 20
    """Bytes of a page: a power of two from 4KiB to 64MiB."""
    encoding: str | None = None
    """How neighbours are written: plain, logical6, physical22, physical33, physical24 or physical42."""
    stripes: tuple[Path, ...] = ()
    """Folders, one on each disk, over which pages are spread."""
    overwrite: bool = False
    """Replace a target that exists."""
    vertex_fill: Mapping[str, Any] = field(default_factory=dict)
    """Values of vertex columns for vertices the vertex table does not list."""

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Self:
        """Options from keywords; unknown ones are refused by name."""
        known = {f.name for f in fields(cls)}
        for name in values:
            if name not in known:
                raise UsageError(f"there is no option {name!r}; building takes {', '.join(sorted(known))}")
        given = {name: value for name, value in values.items() if value is not None}
        if "page_size" in given:
            given["page_size"] = parse_size(given["page_size"])
        if "stripes" in given:
            given["stripes"] = tuple(Path(folder) for folder in given["stripes"])
        if "merge" in given:  # who says how to merge wants to
            given.setdefault("duplicates", "merge")
        options = cls(**given)
        options._check()
        return options

    def _check(self) -> None:
        for name, choices in CHOICES.items():
            value = getattr(self, name)
            if value is not None and value not in choices:
                raise UsageError(f"{name} must be {' or '.join(choices)}, not {value!r}")
        if not isinstance(self.merge, (str, Mapping)):
            raise UsageError(f"merge must be {', '.join(RULES)}, or one of these for each column, not {self.merge!r}")
        for rule in (self.merge,) if isinstance(self.merge, str) else self.merge.values():
            if rule not in RULES:
                raise UsageError(f"merge must be {', '.join(RULES)}, not {rule!r}")
        size = self.page_size
        if size < ALIGN or size > 64 << 20 or size & (size - 1):
            raise UsageError(f"page_size must be a power of two from 4KiB to 64MiB, not {size} bytes")

    def rule(self, column: str) -> str:
        """How this column's values combine."""
        if self.duplicates == "drop":
            return "first"
        return self.merge if isinstance(self.merge, str) else self.merge.get(column, "first")
