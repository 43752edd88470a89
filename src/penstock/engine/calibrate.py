"""Measure the rates of this machine with the kernels, streams and executors that runs use."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np

from penstock.config import Settings
from penstock.engine.cpu.kernels import combine_kernels
from penstock.engine.engine import Engine, Until
from penstock.engine.model import fetch_seconds, predict
from penstock.engine.plan import Plan, make_plan, number_dtype, read_dtype
from penstock.engine.program import Combine, Program, iterations
from penstock.engine.rates import SIZES, Rates
from penstock.engine.vectors import Slots
from penstock.memory.buffers import allocate
from penstock.memory.device import kernel
from penstock.memory.ledger import Ledger
from penstock.memory.pages import PageFeed
from penstock.memory.team import Team
from penstock.memory.topology import balanced
from penstock.observe.stats import Stats
from penstock.store.reader import Store

_ROW, _SHORT = 32, 2
"""Arcs of a vertex, on average, where arcs are timed and where vertices are."""
_ARCS = 1 << 22
_ROUNDS, _STEPS, _RANGES = 3, 5, 3


@kernel()
def _touch(values):
    """Read everything once."""
    total = np.uint64(0)
    for i in range(np.uint64(values.size)):
        total += np.uint64(values[i])
    return total


def measure(stores: Sequence[Store], settings: Settings, programs: Mapping[str, Program]) -> Rates:
    """Rates of this machine and of the disk that the stores lie on; takes about half a minute.

    `stores`: a skewed graph whose state is in the cache, and one whose state is too large for that. `programs`: combine
    programs `gather4` and `gather8` whose messages have so many bytes; a `sweep` and a `row` program if there are any.
    """
    settings = replace(settings, progress=False, tier="auto", state_ranges=None, device="cpu", checkpoint=None)
    store, team = stores[0], Team(settings.threads)
    rates = replace(
        Rates.default(settings.threads), measured=True, date=datetime.now().astimezone().isoformat(timespec="seconds")
    )
    rates = replace(rates, disk=_raw(store), touch=_touched(store, settings), memory=_sequential(team))
    rates = replace(rates, **_in_memory(store, team, programs))
    rates = _whole_runs(store, settings, programs["gather8"], rates)
    if "sweep" in programs:
        rates = _sweeps(stores, settings, programs["sweep"], rates)
    return _rows_of(store, settings, programs["row"], rates) if "row" in programs else rates


# ---- pipes


def _raw(store: Store) -> float:
    """Bytes per second of direct reads into one hot buffer for each of two threads."""
    direction = store.direction("out")
    size, pages = store.page_size, len(direction)

    def once() -> None:
        numbers, lock = iter(range(pages)), threading.Lock()

        def work() -> None:
            hot = allocate(max(size, 2 << 20))[:size]
            files: dict[int, int] = {}
            while True:
                with lock:
                    page = next(numbers, None)
                if page is None:
                    break
                stripe, offset, nbytes = direction.page_extent(page)
                if stripe not in files:
                    files[stripe] = _direct(str(direction.path("pages", stripe)))
                os.preadv(files[stripe], [hot[:nbytes]], offset)
            for descriptor in files.values():
                os.close(descriptor)

        readers = [threading.Thread(target=work) for _ in range(2)]
        for reader in readers:
            reader.start()
        for reader in readers:
            reader.join()

    return pages * size / _timed(once)


def _direct(path: str) -> int:
    try:
        return os.open(path, os.O_RDONLY | getattr(os, "O_DIRECT", 0))
    except OSError:
        return os.open(path, os.O_RDONLY)


def _touched(store: Store, settings: Settings) -> float:
    direction = store.direction("out")
    pages = np.arange(len(direction))
    with PageFeed(direction, Ledger(256 << 20), settings, cache=0) as feed:
        seconds = _timed(lambda: feed.run(pages, lambda worker, page, block, _: _touch(block.neighbours)))
    return len(direction) * store.page_size / seconds


def _sequential(team: Team) -> float:
    values = Ledger(1 << 30).zeros(32 << 20, np.uint64, "memory")
    pieces = np.array_split(values, team.threads)
    return float(values.nbytes / _timed(lambda: team.run(lambda worker: _touch(pieces[worker]))))


# ---- kernels


def _in_memory(store: Store, team: Team, programs: Mapping[str, Program]) -> dict[str, Any]:
    """The curve of gathering, and what vertices cost, on made-up blocks."""
    made = Blocks()
    found: dict[str, Any] = {"sizes": SIZES}
    for name in ("gather4", "gather8"):
        program = programs[name]
        assert isinstance(program, Combine)
        bench = Bench(program, store, team)
        found[name] = tuple(bench.gather(made.long, size) for size in SIZES)
    near = found["gather8"][0]
    offsets, _ = made.short
    rows, arcs = len(offsets) - 1, int(offsets[-1])
    short = bench.gather(made.short, SIZES[0]) * arcs
    pushed = bench.push(made.long, SIZES[0])
    return found | {
        "vertex": max(0.0, short - near * arcs) / rows,
        "emit": bench.emit(1 << 22),
        "push": max(0.0, pushed - near),
    }


class Blocks:
    """Rows of evenly spread neighbours, as fractions of 2**32, so that one serves vectors of all sizes."""

    def __init__(self) -> None:
        rng = np.random.default_rng(1)
        # The same rows several times: more than a cache holds, for less sorting.
        self.long = _rows(rng, _ARCS, _ROW, copies=3)
        self.short = _rows(rng, _ARCS, _SHORT, copies=1)


def _rows(rng: np.random.Generator, arcs: int, degree: int, copies: int) -> tuple[np.ndarray, np.ndarray]:
    """(offsets, neighbours): degrees differ, as branches are guessed wrong in graphs, too; neighbours ascend."""
    degrees = rng.integers(1, 2 * degree, arcs // degree)
    row = np.repeat(np.arange(len(degrees), dtype=np.uint64), degrees)
    keys = (row << np.uint64(32)) | rng.integers(0, 1 << 32, len(row), dtype=np.uint64)
    keys.sort()
    fractions = np.tile(keys.astype(np.uint32), copies)
    offsets = np.concatenate([[0], np.cumsum(np.tile(degrees, copies))]).astype(np.uint32)  # as in memory and in pages
    return offsets, fractions


class Bench:
    """The kernels of a combine program on blocks of our own."""

    def __init__(self, program: Combine, store: Store, team: Team) -> None:
        self.program, self.store, self.team = program, store, team
        self.kernels = combine_kernels(program, number_dtype(store))
        self.params = (*program.params.values(), store.vertices, 0, 0.0)
        self.ledger = Ledger(4 << 30)
        self.front = np.full(1, np.iinfo(np.uint64).max, np.uint64)

    def _vectors(self, slots: int) -> tuple[tuple[np.ndarray, ...], tuple[np.ndarray, ...]]:
        state = tuple(self.ledger.zeros(slots, kind, name) for name, kind in self.program.fields().items())
        reads = tuple(
            self.ledger.zeros(slots, read_dtype(self.store, name), name) for name in self.program.stored_reads()
        )
        for array in (*state, *reads):
            array[:] = 1
        return state, reads

    def _block(self, rows: tuple[np.ndarray, np.ndarray], nbytes: int) -> tuple[Any, ...]:
        offsets, fractions = rows
        count = nbytes // np.dtype(self.program.message).itemsize
        neighbours = ((fractions.astype(np.uint64) * np.uint64(count)) >> np.uint64(32)).astype(
            number_dtype(self.store)
        )
        return offsets, neighbours, count, balanced(offsets, self.team.threads), *self._vectors(len(offsets) - 1)

    def gather(self, rows: tuple[np.ndarray, np.ndarray], nbytes: int) -> float:
        """Seconds per arc of pulling from a vector of so many bytes."""
        offsets, neighbours, count, cuts, state, reads = self._block(rows, nbytes)
        message = self.ledger.zeros(count, self.program.message, "messages")
        message[:] = 1
        zero = np.uint64(0)

        def once() -> None:
            counter = np.zeros(1, np.uint64)
            args = (
                counter, cuts, zero, offsets, neighbours, (), message, zero, self.front, zero, state, reads,
                self.params, self.front,
            )  # fmt: skip
            self.team.run(lambda _: self.kernels.pull(*args))

        return _timed(once) / len(neighbours)

    def push(self, rows: tuple[np.ndarray, np.ndarray], nbytes: int) -> float:
        """Seconds per arc of pushing into a vector of so many bytes."""
        offsets, neighbours, count, cuts, state, reads = self._block(rows, nbytes)
        kind = self.program.contribution_dtype(number_dtype(self.store))
        totals = self.ledger.zeros(count, kind, "totals")
        sent = self.ledger.zeros(len(offsets) - 1, self.program.message, "messages")
        words = np.full(len(offsets) // 64 + 2, np.iinfo(np.uint64).max, np.uint64)
        touched, zero = np.zeros(count // 64 + 2, np.uint64), np.uint64(0)

        def once() -> None:
            counter = np.zeros(1, np.uint64)
            args = (
                counter, cuts, zero, offsets, neighbours, (), sent, words, zero, state, reads, self.params, zero,
                totals, touched,
            )  # fmt: skip
            self.team.run(lambda _: self.kernels.push(*args))

        return _timed(once) / len(neighbours)

    def emit(self, slots: int) -> float:
        """Seconds per vertex to make its message."""
        state, reads = self._vectors(slots)
        message = self.ledger.zeros(slots, self.program.message, "messages")
        cuts = np.linspace(0, slots, 8 * self.team.threads + 1).astype(np.uint64)

        def once() -> None:
            counter = np.zeros(1, np.uint64)
            self.team.run(lambda _: self.kernels.emit(counter, cuts, np.uint64(0), state, reads, self.params, message))

        return _timed(once) / slots


# ---- whole runs


def _whole_runs(store: Store, settings: Settings, program: Program, rates: Rates) -> Rates:
    """What is left when the known parts are taken from the time of whole runs on a small graph."""
    pages = len(store.direction("out"))
    nbytes = pages * store.page_size
    stop = iterations(_STEPS)
    memory, disk = replace(settings, tier="memory"), replace(settings, tier="disk")
    # Room for a ring, not for a cache.
    least = planned(store, disk, program).smallest
    tight = replace(disk, memory_limit=least + 8 * store.page_size)
    for place in (memory, disk, tight):  # kernels are loaded
        run(store, place, program, iterations(1))
    found: dict[str, list[float]] = {"load": [], "memory": [], "cached": [], "read": []}
    for _ in range(_ROUNDS):  # in turn, so that whatever else the machine does falls on all of them
        inside = run(store, memory, program, stop)
        found["load"].append(inside.phases["load"])
        for name, stats in (
            ("memory", inside), ("cached", run(store, disk, program, stop)), ("read", run(store, tight, program, stop))
        ):  # fmt: skip
            found[name] += [each["seconds"] for each in stats.supersteps[1:]]
    read = float(np.median([each["bytes_read"] for each in stats.supersteps[1:]]))
    typical = {name: usual(values) for name, values in found.items()}
    rates = replace(
        rates,
        load=nbytes / typical["load"],
        page=max(0.0, typical["cached"] - typical["memory"]) / pages,
        stream=max(0.0, typical["read"] - typical["cached"]) / max(read, 1.0),
    )
    ranged = replace(settings, tier="disk", state_ranges=_RANGES)
    return replace(rates, part=_spill(store, ranged, program, rates))


def _spill(store: Store, settings: Settings, program: Program, rates: Rates) -> float:
    found = steps(run(store, settings, program, iterations(_STEPS)))
    plan = planned(store, settings, program)
    known = [
        predict(plan, program, store, replace(rates, part=0.0), settings, passes, warm=True).phases["run"]
        for passes in (1, 2)
    ]
    return max(0.0, found - (known[1] - known[0])) / (plan.state_bytes * plan.ranges)


def _sweeps(stores: Sequence[Store], settings: Settings, program: Program, rates: Rates) -> Rates:
    """What a sweep takes on a graph of many arcs whose state is in the cache, and on one of few whose state is not."""
    items, disk, inside = [], [], []
    for store in stores:
        direction = store.direction("out")
        fetch = fetch_seconds(store, program, "out", rates)
        climbed = store.active * fetch / max(1, direction.arcs)
        seconds = {
            tier: usual(
                [run(store, replace(settings, tier=tier), program).phases["run"] for _ in range(_ROUNDS + 1)][1:]
            )
            for tier in ("memory", "disk")
        }
        reading = len(direction) * (store.page_size * rates.stream + rates.page)
        items.append((direction.arcs, store.active, climbed))
        disk.append(max(0.0, seconds["disk"] - reading - fetch))
        inside.append(seconds["memory"])
    sweep, sweep_fetches = solve([(arcs, climbed) for arcs, _, climbed in items], disk)
    skim, skim_fetches = solve([(vertices, climbed) for _, vertices, climbed in items], inside)
    return replace(rates, sweep=sweep, sweep_fetches=sweep_fetches, skim=skim, skim_fetches=skim_fetches)


def solve(items: Sequence[tuple[float, float]], seconds: Sequence[float]) -> tuple[float, float]:
    """What each of two kinds of items takes, from the times of two runs with different numbers of them. Neither is
    negative: where noise has it so, the other takes all."""
    (p, q), (r, s) = items[0], items[-1]
    determinant = p * s - q * r
    if len(items) > 1 and determinant:
        first = (seconds[0] * s - seconds[-1] * q) / determinant
        second = (seconds[-1] * p - seconds[0] * r) / determinant
        if first >= 0 and second >= 0:
            return first, second
        if first < 0:
            return 0.0, float(np.mean([time / each[1] for time, each in zip(seconds, items, strict=True)]))
    return float(np.mean([time / each[0] for time, each in zip(seconds, items, strict=True)])), 0.0


def _rows_of(store: Store, settings: Settings, program: Program, rates: Rates) -> Rates:
    stats = run(store, replace(settings, tier="memory"), program, iterations(3))
    besides = max(0.0, steps(stats) - fetch_seconds(store, program, "out", rates))
    return replace(rates, row=besides / store.direction("out").arcs)


_STARTED = """
import sys, penstock
stats = penstock.run("pagerank", sys.argv[1], stop="fixed", max_iter=2, progress=False).stats
first, second = (step["seconds"] for step in stats["supersteps"])
print(stats["phases"].get("prepare", 0.0) + max(0.0, first - second))
"""


def starting(path: Path) -> float:
    """Seconds that a run takes longer in a new process, whose kernels come from their cache."""
    found = [
        float(subprocess.run([sys.executable, "-c", _STARTED, str(path)], stdout=subprocess.PIPE, check=True).stdout)
        for _ in range(2)
    ]
    return min(found)


def run(store: Store, settings: Settings, program: Program, until: Until | None = None) -> Stats:
    """The figures of one run."""
    stats = Stats()
    engine = Engine(store, settings, stats)
    try:
        engine.run(program, until=until)
    finally:
        engine.close()
    return stats


def planned(store: Store, settings: Settings, program: Program) -> Plan:
    """The plan that a run would have."""
    return make_plan(program, store, settings, Slots(store).count)


def steps(stats: Stats) -> float:
    """Seconds of a superstep, without the first, which fills the cache and loads kernels."""
    return usual([each["seconds"] for each in stats.supersteps[1:]])


def usual(seconds: Sequence[float]) -> float:
    """The lower quartile: what else a machine does only ever adds to what is measured."""
    return float(np.quantile(seconds, 0.25))


def _timed(once: Callable[[], Any]) -> float:
    """Seconds of one call, after a first that warms up."""
    once()
    found = []
    for _ in range(_ROUNDS):
        began = time.perf_counter()
        once()
        found.append(time.perf_counter() - began)
    return usual(found)


__all__ = ["measure", "starting"]
