"""What a report is made of: the figures of a run, its recording, and what its graph and its result look like."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from penstock.observe.events import Level, Slice


class Counted(Protocol):
    """A distribution, as `penstock.profile` finds it."""

    @property
    def name(self) -> str: ...
    @property
    def values(self) -> np.ndarray: ...
    @property
    def counts(self) -> np.ndarray: ...
    @property
    def edges(self) -> np.ndarray | None: ...
    @property
    def log(self) -> bool: ...
    @property
    def zeros(self) -> int: ...
    @property
    def nulls(self) -> int: ...
    @property
    def odd(self) -> int: ...
    @property
    def of(self) -> str: ...
    def binned(self, per_decade: int = 10) -> Any: ...


class Dense(Protocol):
    """A density, as `penstock.profile` finds it."""

    @property
    def counts(self) -> np.ndarray: ...
    @property
    def vertices(self) -> int: ...
    @property
    def arcs(self) -> int: ...
    @property
    def sampled(self) -> float: ...


class Recorded(Protocol):
    """Slices and levels of a run: `Events`, or a trace that was read back."""

    @property
    def began(self) -> float: ...
    @property
    def slices(self) -> list[Slice]: ...
    @property
    def levels(self) -> list[Level]: ...
    @property
    def left_out(self) -> int: ...


@dataclass(frozen=True)
class Run:
    """All that is known. Whatever is missing is left out of the page, or it says what to do to have it."""

    figures: Mapping[str, Any]
    events: Recorded | None = None
    degrees: Sequence[Counted] = ()
    density: Dense | None = None
    values: Counted | None = None
    top: tuple[Sequence[str], Sequence[Sequence[Any]]] | None = None
    """The names of the columns and the rows of the largest values, or of the first."""
    ordered: bool = True
    """Whether those rows are the largest."""
    unseen: str = ""
    """Why nothing can be said of the graph."""
    drawings: dict[str, Any] = field(default_factory=dict)
    """What the page draws, by the name of its place: filled by the sections."""

    @cached_property
    def phases(self) -> dict[str, float]:
        return {name: float(seconds) for name, seconds in self.figures.get("phases", {}).items()}

    @cached_property
    def steps(self) -> list[dict[str, Any]]:
        return list(self.figures.get("supersteps", ()))

    @cached_property
    def plans(self) -> list[dict[str, Any]]:
        return list(self.figures.get("plans") or ())

    @property
    def gpu(self) -> dict[str, Any] | None:
        return self.figures.get("gpu") or None

    @property
    def on_disk(self) -> bool:
        """Whether pages were streamed."""
        if self.gpu is not None:
            return self.gpu.get("source") == "disk"
        return any(plan.get("tier") == "disk" for plan in self.plans)

    @property
    def running(self) -> float:
        """Seconds of the supersteps, with what lies between them."""
        return self.phases.get("run", 0.0)

    @cached_property
    def slices(self) -> list[Slice]:
        return self.events.slices if self.events is not None else []

    @cached_property
    def origin(self) -> float:
        """Where the clock of the timeline starts."""
        if self.events is None:
            return 0.0
        return min([self.events.began, *(each.begin for each in self.slices[:1])])


__all__ = ["Counted", "Dense", "Recorded", "Run"]
