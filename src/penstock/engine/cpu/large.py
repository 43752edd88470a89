"""Vertices whose arcs fill several pages: one total per page, combined when all were visited, in the order of pages."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from penstock.engine.cpu.held import Held
from penstock.memory.topology import Streamed


class PartTotals:
    """The totals of a pass."""

    def __init__(
        self,
        run: Held,
        side: Streamed,
        window: tuple[int, int] | None = None,
        message: np.ndarray | None = None,
        far: int = 0,
    ) -> None:
        self.run, self.side, self.far = run, side, np.uint64(far)
        self.lo, self.hi = window or (0, run.slots.body)
        self.message = run.message if message is None else message
        self.part = run.kernels.make("part", run.ranged)
        self.state, self.reads = run.window(self.lo, self.hi)
        self.found: dict[int, Any] = {}

    def take(self, worker: int, page: int, first: np.uint64, neighbours: np.ndarray, columns: Any) -> None:
        run = self.run
        args = (
            first, neighbours, columns, self.message, self.far, run.front, np.uint64(self.lo), self.state, self.reads,
            run.given(),
        )  # fmt: skip
        if run.program.lanes == 1:
            total, arrived = self.part(*args)
            self.found[page] = run.zero.dtype.type(total), arrived  # Python's integers would not wrap
        else:
            row = np.full(run.program.lanes, run.zero)
            self.found[page] = (row, self.part(*args, row))

    def _vertices(self) -> Iterator[tuple[int, Any]]:
        """(vertex, total) of those at which something arrived."""
        program = self.run.program
        combine, first = program.combine.combine, self.side.direction.records["first_vertex"]
        picky = program.frontier or (program.combine.first and program.lanes == 1)
        totals: dict[int, Any] = {}
        with np.errstate(over="ignore"):
            for page in sorted(self.found):
                total, arrived = self.found[page]
                vertex = int(first[page])
                if picky and not arrived:
                    continue
                if program.lanes > 1 and vertex in totals:
                    rows = zip(totals[vertex], total, strict=True)
                    totals[vertex] = np.array([combine(a, b) for a, b in rows], total.dtype)
                else:
                    totals[vertex] = combine(totals[vertex], total) if vertex in totals else total
        self.found.clear()
        yield from totals.items()

    def add(self) -> None:
        """Into the totals of the window."""
        run, combine = self.run, self.run.program.combine.combine
        for vertex, total in self._vertices():
            with np.errstate(over="ignore"):
                if run.program.lanes > 1:
                    row = run.totals[vertex - self.lo]
                    row[:] = [combine(a, b) for a, b in zip(row, total, strict=True)]
                else:
                    run.totals[vertex - self.lo] = combine(run.totals[vertex - self.lo], run.zero.dtype.type(total))
            if run.program.frontier:
                run.touched[vertex >> 6] |= np.uint64(1 << (vertex & 63))

    def finish(self) -> list[tuple[float, int]]:
        """Update the vertices at once."""
        run, found = self.run, []
        one = np.zeros(1, run.zero.dtype)
        for vertex, total in self._vertices():
            one[0] = total
            state, reads = (
                tuple(s[vertex : vertex + 1] for s in run.state),
                tuple(r[vertex : vertex + 1] for r in run.reads),
            )
            near = np.uint64(vertex)
            if not run.program.frontier:
                cuts = np.array([0, 1], np.uint64)
                counter = np.zeros(1, np.uint64)
                found.append((run.kernels.update_all(counter, cuts, near, state, reads, run.given(), one), 0))
                continue
            run.touched[vertex >> 6] |= np.uint64(1 << (vertex & 63))
            cuts = np.array([vertex >> 6, (vertex >> 6) + 1], np.uint64)
            moved, awake = run.kernels.absorb(
                np.zeros(1, np.uint64), cuts, run.touched, near, np.uint64(vertex + 1), near, state, reads, run.given(),
                one, run.after,
            )  # fmt: skip
            run.touched[vertex >> 6] = 0
            found.append((moved, int(awake)))
        return found
