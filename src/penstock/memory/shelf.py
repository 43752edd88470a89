"""Which pages stay in frames of the device, and which of them must make room for others."""

from __future__ import annotations

import numpy as np

from penstock.memory.cache import Policy

NOWHERE = np.uint32(0xFFFFFFFF)


class Shelf:
    """The first `kept` frames. `resident`: the first pages lie there for good; `lru`: those that were used last."""

    def __init__(self, pages: int, kept: int, policy: Policy) -> None:
        self.kept, self.policy = kept, policy
        self.placed = False
        """Whether each page beyond those that stay is where a visit of all pages puts it. Sides that share frames share
        this."""
        self.there = np.zeros(pages, bool)
        self._used = np.zeros(pages, np.int64)
        self._owner = np.full(kept, -1, np.int64)
        self._tick = 0

    @property
    def staying(self) -> int:
        """Pages below this never leave the device."""
        return self.kept if self.policy == "resident" else 0

    def fill(self) -> None:
        """The pages that stay are there."""
        self.there[: self.staying] = True
        self._owner[: self.staying] = np.arange(self.staying)

    def split(self, wanted: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Pages that are here, which this visit may use, and pages that are not."""
        self._tick += 1
        self._used[wanted] = self._tick
        there = self.there[wanted]
        return wanted[there], wanted[~there]

    def admit(self, missing: np.ndarray) -> np.ndarray:
        """Frames for missing pages to stay in, NOWHERE for most: those that this visit does not use, unused for the
        longest time. Whoever fills one says so by `arrived`."""
        found = np.full(len(missing), NOWHERE, np.uint32)
        if self.policy == "resident" or not self.kept:
            return found
        age = np.where(self._owner < 0, -1, self._used[self._owner])
        frames = np.flatnonzero(age < self._tick)
        frames = np.sort(frames[np.argsort(age[frames], kind="stable")][: len(missing)])
        gone = self._owner[frames]
        self.there[gone[gone >= 0]] = False
        self._owner[frames] = missing[: len(frames)]
        found[: len(frames)] = frames
        return found

    def arrived(self, pages: np.ndarray, frames: np.ndarray) -> None:
        self.there[pages[frames < self.kept]] = True

    def forget(self) -> None:
        """What came lately cannot be trusted: only the pages that stay are here."""
        self.there[self.staying :] = False

    def settle(self) -> None:
        """After a visit that failed: frames promised to pages that did not come are free."""
        self._owner[(self._owner >= 0) & ~self.there[self._owner]] = -1


__all__ = ["NOWHERE", "Shelf"]
