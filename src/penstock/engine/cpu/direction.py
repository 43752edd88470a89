"""Which way a traversal goes: along the arcs of its frontier, or against those of the vertices it has not reached."""

from __future__ import annotations

import numpy as np

from penstock.engine.cpu.held import ALONE, Held
from penstock.engine.kernels import bits
from penstock.memory.topology import Resident

ALPHA, BETA = 15, 18
"""When a traversal turns around (Beamer et al. 2012): to pull when the frontier has more than 1/ALPHA of the arcs not
yet seen; back to push when it has fewer than 1/BETA of the vertices and shrinks."""
PUSH_COST = 4
"""What pushing along an arc costs, in arcs pulled: an atomic update against a read."""


class Turning(Held):
    """A run that chooses its direction and its pages, superstep by superstep."""

    def choose(self) -> tuple[bool, dict[str, np.ndarray]]:
        """Whether to pull, and which pages of which side to visit."""
        program, sides = self.program, self.sides
        if self.plan.tier == "memory":
            return self._choose_in_memory(), {}
        if not program.frontier:
            names = sides.pull or sides.push
            return bool(sides.pull), {name: np.arange(len(self.store.direction(name))) for name in names}
        pushed = {name: self._pages(name, self.front) for name in sides.push}
        pulled = {}
        if sides.pull:
            wanted = self._wanting()
            pulled = {name: self._pages(name, wanted) for name in sides.pull}
        if not sides.push or not sides.pull:
            return bool(sides.pull), pulled or pushed
        pull = sum(map(len, pulled.values())) < 2 * sum(map(len, pushed.values()))
        return pull, pulled if pull else pushed

    def _choose_in_memory(self) -> bool:
        sides, program = self.sides, self.program
        if not sides.pull or not sides.push or not program.frontier:
            return bool(sides.pull)
        out = [side for name in sides.push if isinstance(side := self.side(name), Resident)]
        if self.unseen is None:
            self.unseen = sum(len(side.neighbours) for side in out)
        if self.pulling:
            self.pulling = self.active >= self.before or self.active > self.slots.active // BETA
        if not self.pulling:
            found = [
                weight
                for side in out
                for weight in self.share(
                    bits.weigh, self.word_cuts, self.front, side.offsets, alone=self.active < ALONE
                )
            ]
            arcs = sum(int(arcs) for _, arcs in found)
            ratio = ALPHA if program.combine.first else PUSH_COST
            self.pulling = arcs * ratio > self.unseen
            if program.wants is not None:
                self.unseen = max(0, self.unseen - arcs)
        self.before = self.active
        return self.pulling

    def _wanting(self) -> np.ndarray | None:
        if self.program.wants is None:
            return None
        found = np.zeros(len(self.front), np.uint64)
        params = self.given()
        for lo, hi in self.windows:
            state, reads = self.window(lo, hi)
            piece = found if not self.ranged else np.zeros(len(found), np.uint64)
            window = (np.uint64(lo), np.uint64(hi), np.uint64(lo), state, reads)
            self.share(self.kernels.wanting, self.words(lo, hi, 1 << 6), *window, params, piece)
            if self.ranged:
                found |= piece
            self.drop()
        return found

    def _pages(self, name: str, chosen: np.ndarray | None) -> np.ndarray:
        records = self.store.direction(name).records
        if chosen is None:
            return np.arange(len(records))
        found = np.empty(len(records), np.int64)
        return found[: bits.pages_of(chosen, records, found)]
