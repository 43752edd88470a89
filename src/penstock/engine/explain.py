"""What a run would do, and why: its plan beside what the model says it takes; beside what happened, if it was run."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from penstock.config import Settings, format_size
from penstock.engine.model import Prediction, predict
from penstock.engine.place import unprogrammed
from penstock.engine.plan import PAIRED, Plan, make_plan
from penstock.engine.program import Combine, Program, Row
from penstock.engine.rates import Rates
from penstock.engine.rates import load as kept_rates
from penstock.engine.vectors import Slots
from penstock.errors import DoesNotFit
from penstock.store.reader import Store

if TYPE_CHECKING:
    from penstock.engine.engine import Engine
    from penstock.engine.gpu.explain import OnDevice
    from penstock.memory.card import Card

ASSUMED = 20
"""Supersteps of a program that stops by itself, when nobody says how many."""
MOST_RUNS = 8
"""Runs of programs that a prediction is made for beside what happened."""
UNMEASURED = "not measured here: run penstock doctor --measure"


@dataclass(frozen=True)
class Reading:
    """What an algorithm does without a program: it looks at what is stored, once."""

    name: str
    what: str
    """What it reads."""
    needed: int
    """Bytes that it holds at the most."""
    bytes_read: int
    """At the most."""

    form = "reading"

    def check(self, limit: int) -> None:
        """Refuse a budget that it does not fit into."""
        if self.needed > limit:
            raise DoesNotFit(self.name, needed=self.needed, limit=limit)


@dataclass(frozen=True)
class Stage:
    """A program that an algorithm runs, or what it reads without one."""

    program: Program | Reading
    passes: int | None = None
    """How many supersteps, if that is known before."""
    note: str = ""
    """What is worth saying about the number."""
    headroom: int = 0
    """Bytes per vertex of vectors that the algorithm holds besides the program's."""
    held: int = 0
    """Bytes that it holds besides, however many vertices there are."""
    times: int = 1
    """How often it is run."""
    seeds: int = 0
    """How many vertices it starts at: those without arcs have slots of their own."""

    def slots(self, store: Store) -> int:
        """How many slots its vectors have, at the most."""
        return Slots(store).count + self.seeds


@dataclass(frozen=True)
class Explained:
    """One stage: its plan and prediction, without a plan where there is no program; or why it cannot be run."""

    stage: Stage
    plan: Plan | None = None
    prediction: Prediction | None = None
    refused: str = ""
    smallest: int = 0
    gpu: OnDevice | None = None
    """What it would do on a GPU, if it was asked for or is there."""

    @property
    def fits(self) -> bool:
        return not self.refused and not (self.gpu is not None and self.gpu.refused)

    @property
    def on_gpu(self) -> bool:
        return self.gpu is not None and self.gpu.device == "gpu"

    def as_dict(self) -> dict[str, Any]:
        return {
            "program": self.stage.program.name,
            "form": self.stage.program.form,
            "passes": self.stage.passes,
            "times": self.stage.times,
            "note": self.stage.note,
            "fits": self.fits,
            "refused": self.refused or None,
            "smallest_memory_limit": self.smallest,
            "plan": None if self.plan is None else self.plan.as_dict(),
            "prediction": None if self.prediction is None else self.prediction.as_dict(),
            **({} if self.gpu is None else {"gpu": self.gpu.as_dict()}),
        }


@dataclass(frozen=True)
class Explanation:
    """The stages of an algorithm on a store. `str()` draws it as a tree."""

    algorithm: str
    store: str
    memory_limit: int
    measured: bool
    """Whether the rates are this machine's own."""
    stages: tuple[Explained, ...]
    happened: Mapping[str, Any] = field(default_factory=dict)
    """The statistics of a run, if there was one."""

    @property
    def fits(self) -> bool:
        return all(each.fits for each in self.stages)

    @property
    def smallest(self) -> int:
        """The least memory_limit that all stages could be run in."""
        return max((each.smallest for each in self.stages), default=0)

    @property
    def smallest_gpu(self) -> int:
        """The least gpu_memory_limit that all stages on a GPU could be run in; 0 where none is, or it is not known."""
        return max((each.gpu.smallest for each in self.stages if each.gpu is not None), default=0)

    @property
    def foretold(self) -> bool:
        """Whether something can be said of the time of all stages."""
        return all(each.prediction is not None for each in self.stages)

    @property
    def seconds(self) -> float:
        """Predicted for all stages together."""
        return sum(each.prediction.seconds for each in self.stages if each.prediction is not None)

    def as_dict(self) -> dict[str, Any]:
        return {
            "algorithm": self.algorithm,
            "store": self.store,
            "memory_limit": self.memory_limit,
            "fits": self.fits,
            "smallest_memory_limit": self.smallest,
            **({"smallest_gpu_memory_limit": self.smallest_gpu} if any(each.gpu for each in self.stages) else {}),
            "measured": self.measured,
            "seconds": self.seconds if self.fits and self.foretold else None,
            "stages": [each.as_dict() for each in self.stages],
            "happened": dict(self.happened) or None,
        }

    def __str__(self) -> str:
        return "\n".join(_drawn(self.tree()))

    def tree(self) -> Tree:
        """Lines and the lines below them."""
        rate = "" if self.measured else f" ({UNMEASURED})"
        ends = f"about {_seconds(self.seconds)}{rate}" if self.fits else "does not fit"
        if self.fits and not self.foretold:
            ends = f"how long it takes is {UNMEASURED}"
        if not self.stages:
            ends = "passes unknown"
        head = f"{self.algorithm} on {self.store} in {format_size(self.memory_limit)}: {ends}"
        below = [_stage_tree(each) for each in self.stages]
        if not below:
            below = [("it does not tell its programs before it runs: use analyze to see them", [])]
        if self.happened:
            below.append(_beside(self))
        return head, below


Tree = tuple[str, list["Tree"]]


def explain(
    name: str,
    store: Store,
    stages: Sequence[Stage],
    settings: Settings,
    *,
    loaded: bool = False,
    card: Card | None = None,
    warm: bool = False,
) -> Explanation:
    """Plan the stages and predict what they take. Nothing of the graph is read but its index.

    `loaded`: the arcs are in memory. `card`: the GPU that they were loaded to. `warm`: this process has loaded the
    kernels.
    """
    kept = kept_rates(store.path, settings.threads)
    rates = kept or Rates.default(settings.threads)
    found: list[Explained] = []
    for place, stage in enumerate(stages):
        # The arcs that one stage has read serve the next ones, and so do kernels, more or less.
        again = loaded or any(each.plan is not None and each.plan.tier == "memory" for each in found)
        there = card is not None or any(each.on_gpu for each in found)
        told = explain_stage(
            stage, store, settings, rates, loaded=again, on_card=there, card=card, warm=warm or place > 0
        )
        found.append(told)
    measured = kept is not None or (bool(found) and all(each.on_gpu for each in found))
    return Explanation(name, str(store.path), settings.memory_limit, measured, tuple(found))


def explain_stage(
    stage: Stage,
    store: Store,
    settings: Settings,
    rates: Rates,
    *,
    loaded: bool = False,
    on_card: bool = False,
    card: Card | None = None,
    warm: bool = False,
) -> Explained:
    """One program: its plan and prediction, or why it does not fit."""
    slots, program = stage.slots(store), stage.program
    try:
        if isinstance(program, Reading):
            program.check(settings.memory_limit)
            there = _elsewhere(program, settings)
            return Explained(stage, None, _predict_reading(program, rates), smallest=program.needed, gpu=there)
        plan = make_plan(program, store, settings, slots, held=stage.headroom * slots + stage.held)
    except DoesNotFit as refused:
        return Explained(stage, refused=str(refused), smallest=refused.needed)
    passes = stage.passes or (ASSUMED if isinstance(program, Combine) else 1)
    device = None
    if settings.device not in ("cpu", "reference"):
        from penstock.engine.gpu.explain import on_device

        device = on_device(
            program, plan, store, settings, slots, passes, rates, seeds=stage.seeds, loaded=on_card, card=card
        )  # fmt: skip
    if device is not None and device.device == "gpu":
        foretold = None if device.prediction is None else _repeated(device.prediction, stage.times, plan)
        return Explained(stage, plan, foretold, smallest=plan.smallest, gpu=device)
    prediction = predict(plan, program, store, rates, settings, passes, loaded=loaded, warm=warm)
    return Explained(stage, plan, _repeated(prediction, stage.times, plan), smallest=plan.smallest, gpu=device)


def _elsewhere(reading: Reading, settings: Settings) -> OnDevice | None:
    """To who asked for a GPU, that this is not done there."""
    if not settings.device.startswith("gpu"):
        return None
    from penstock.engine.gpu.explain import OnDevice

    return OnDevice("cpu", unprogrammed(reading.name))


def _predict_reading(reading: Reading, rates: Rates) -> Prediction:
    seconds = reading.bytes_read / rates.disk
    return Prediction(seconds, {"run": seconds}, reading.bytes_read, "disk", 1, estimate=True)


def _repeated(once: Prediction, times: int, plan: Plan) -> Prediction:
    """A program that is run so often is loaded once."""
    phases = once.phases | {"run": once.phases["run"] * times}
    read = once.bytes_read if plan.tier == "memory" else once.bytes_read * times
    return replace(once, seconds=sum(phases.values()), phases=phases, bytes_read=read)


def foreseen(engine: Engine, *, loaded: bool = False) -> dict[str, Any] | None:
    """What the model says of the supersteps that an engine has done on the CPU; None where no rates are kept for this
    machine, or programs were run so often that it would say little."""
    if not 1 <= len(engine.plans) <= MOST_RUNS or engine.used_gpu:
        return None
    rates = kept_rates(engine.store.path, engine.settings.threads)
    if rates is None:
        return None
    done: dict[str, int] = {}
    for step in engine.stats.supersteps:
        done[step.get("program", "")] = done.get(step.get("program", ""), 0) + 1
    names = [plan.program for plan in engine.plans]
    phases: dict[str, float] = {}
    read, bounds, estimate = 0, [], False
    for program, plan in zip(engine.programs, engine.plans, strict=True):
        passes = -(-done.get(plan.program, 1) // names.count(plan.program))
        told = predict(plan, program, engine.store, rates, engine.settings, passes, loaded=loaded, warm=True)
        loaded = loaded or plan.tier == "memory"
        for name, seconds in told.phases.items():
            phases[name] = phases.get(name, 0.0) + seconds
        read += told.bytes_read
        bounds.append((told.seconds, told.bound))
        estimate = estimate or told.estimate
    return {
        "seconds": sum(phases.values()),
        "phases": phases,
        "bytes_read": read,
        "bound": max(bounds)[1],
        "estimate": estimate,
    }


# ---- words


def _stage_tree(each: Explained) -> Tree:
    program, plan, prediction = each.stage.program, each.plan, each.prediction
    head = f"{program.name} ({program.form})"
    if each.refused:
        return head, [(f"does not fit: {each.refused}", [])]
    lines: list[Tree] = []
    if each.gpu is not None:
        from penstock.engine.gpu.explain import lines as device_lines

        lines += device_lines(each.gpu, UNMEASURED)
    if isinstance(program, Reading):
        return head, [*lines, *_reading_lines(each, program)]
    assert plan is not None
    if not each.on_gpu:
        lines.append((f"arcs: {_where(plan)}", [(reason, []) for reason in plan.why]))
    lines += [(f"direction: {_direction(program, plan)}", []), (f"passes: {_passes(each)}", [])]
    if not each.on_gpu:
        lines.append((_memory(plan), [(text, []) for text in _shares(plan)]))
    lines.append((f"smallest memory_limit: {format_size(plan.smallest, math.ceil)}", []))
    if prediction is None:
        return head, lines
    about = ", an estimate: how much is visited shows in the run" if prediction.estimate else ""
    phases: list[Tree] = [(f"{name} {_seconds(seconds)}", []) for name, seconds in prediction.phases.items()]
    reads: Tree = (f"reads {format_size(prediction.bytes_read)} from disk", [])
    lines.append((f"takes {_seconds(prediction.seconds)}, bound by {prediction.bound}{about}", [*phases, reads]))
    return head, lines


def _reading_lines(each: Explained, reading: Reading) -> list[Tree]:
    assert each.prediction is not None
    note = f" ({each.stage.note})" if each.stage.note else ""
    return [
        (f"reads {reading.what}, at most {format_size(reading.bytes_read)}, once{note}", []),
        (f"smallest memory_limit: {format_size(reading.needed, math.ceil)}", []),
        (f"takes {_seconds(each.prediction.seconds)} or less, bound by disk", []),
    ]


def _where(plan: Plan) -> str:
    if plan.tier == "memory":
        return f"in memory, {format_size(plan.topology_bytes)}"
    return f"from disk, {format_size(plan.topology_bytes)} of pages"


def _direction(program: Program, plan: Plan) -> str:
    if isinstance(program, Combine) and program.frontier and not program.edge_state:
        return "push or pull, as the frontier has it"
    names = " and ".join("incoming" if name == "in" else "outgoing" for name in plan.sides)
    return f"pull along the {names} arcs" if isinstance(program, Combine | Row) else f"over the {names} arcs"


def _passes(each: Explained) -> str:
    note = f" ({each.stage.note})" if each.stage.note else ""
    if isinstance(each.stage.program, Combine) and each.stage.program.frontier:
        levels = "as many as there are levels" if each.stage.times == 1 else f"{each.stage.times:,} traversals"
        return levels + note
    passes = each.stage.passes or (ASSUMED if isinstance(each.stage.program, Combine) else 1)
    return f"{passes}{note if each.stage.passes else note or ' (assumed)'}"


def _memory(plan: Plan) -> str:
    taken = plan.window_bytes + plan.fixed_bytes + (plan.topology_bytes if plan.tier == "memory" else plan.cache_bytes)
    return f"memory: {format_size(taken)} of {format_size(plan.memory_limit)}"


def _shares(plan: Plan) -> Iterator[str]:
    ranges = f", {format_size(plan.window_bytes)} at a time in {plan.ranges} ranges" if plan.ranges > 1 else ""
    yield f"state {format_size(plan.state_bytes)}{ranges if plan.form not in PAIRED else ''}"
    if plan.form in PAIRED and plan.ranges > 1:
        yield f"lists in {plan.ranges} ranges"
    if plan.edge_state_bytes:
        files = f" in files, {format_size(plan.edge_window_bytes)} at a time" if plan.tier == "disk" else ""
        yield f"state of the arcs {format_size(plan.edge_state_bytes)}{files}"
    if plan.tier == "memory":
        yield f"arcs {format_size(plan.topology_bytes)}"
        return
    yield f"index and ring {format_size(plan.fixed_bytes)}"
    share = plan.cache_bytes / plan.topology_bytes if plan.topology_bytes else 0.0
    yield f"page cache {format_size(plan.cache_bytes)}, {share:.0%} of the pages"


def _beside(told: Explanation) -> Tree:
    """Predicted and measured, line by line."""
    stats = told.happened
    phases = dict(stats.get("phases", {}))
    predicted: dict[str, float] = {}
    for each in told.stages:
        for name, seconds in (each.prediction.phases if each.prediction is not None else {}).items():
            predicted[name] = predicted.get(name, 0.0) + seconds
    lines: list[Tree] = []
    for name, mine in (("start", "prepare"), ("load", "load"), ("run", "run")):
        if name in predicted or mine in phases:
            lines.append((f"{name}: {_seconds(predicted.get(name, 0.0))}, was {_seconds(phases.get(mine, 0.0))}", []))
    read = sum(each.prediction.bytes_read for each in told.stages if each.prediction is not None)
    lines.append((f"read: {format_size(read)}, was {format_size(stats.get('bytes_read', 0))}", []))
    supersteps = stats.get("supersteps", [])
    passes = sum(each.prediction.passes for each in told.stages if each.prediction is not None)
    if supersteps:
        lines.append((f"passes: {passes}, were {supersteps[-1]['superstep']}", []))
    lines.append((f"pages found in the cache: {stats.get('cache_hits', 0):,}", []))
    lines.append((f"memory counted: at most {format_size(stats.get('ledger_peak', 0))}", []))
    lines.append((f"memory of the process: at most {format_size(stats.get('peak_memory', 0))}", []))
    return f"run: {_seconds(told.seconds)} predicted, was {_seconds(sum(phases.values()))}", lines


def _seconds(seconds: float) -> str:
    if seconds < 1:
        return f"{seconds * 1e3:.3g} ms"
    return f"{seconds:.3g} s" if seconds < 120 else f"{seconds / 60:.1f} min"


def _drawn(tree: Tree) -> Iterator[str]:
    head, below = tree
    yield head
    yield from _branches(below, "")


def _branches(below: list[Tree], prefix: str) -> Iterator[str]:
    for place, (line, more) in enumerate(below):
        last = place == len(below) - 1
        yield f"{prefix}{'└── ' if last else '├── '}{line}"
        yield from _branches(more, prefix + ("    " if last else "│   "))


__all__ = ["Explained", "Explanation", "Reading", "Stage", "explain", "foreseen"]
