"""What an algorithm is given: the graph, an engine on it, and ways to turn ids into seeds and vectors into a result."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np

from penstock.config import Settings
from penstock.engine.engine import Engine, Outcome
from penstock.engine.explain import Reading, Stage, foreseen
from penstock.engine.place import unprogrammed
from penstock.engine.plan import PAIRED
from penstock.engine.rates import limits
from penstock.engine.vectors import Slots
from penstock.errors import DoesNotFit, UsageError
from penstock.graph import Graph
from penstock.observe.stats import Stats
from penstock.options import whole
from penstock.result import SELF, Result


class Job:
    """One run of one algorithm."""

    def __init__(self, graph: Graph, settings: Settings, name: str, options: Mapping[str, Any]) -> None:
        self.graph, self.store, self.settings, self.name = graph, graph.store, settings, name
        self.stats = Stats()
        self.stats.note(algorithm=name, options=dict(options))
        if settings.checkpoint is not None and settings.device == "reference":
            raise UsageError("device reference saves no checkpoints: run it on the cpu, or without one")
        self.engine = Engine(
            graph.store, settings, self.stats, resident=graph.loaded, ids=graph.loaded_ids, card=graph.card
        )

    def seeds(self, source: Any) -> list[int]:
        """The internal numbers of one id or of several, at least one; each once."""
        found = self.numbers(source)
        if not found:
            raise UsageError(f"{self.name} needs at least one source")
        return found

    def numbers(self, source: Any) -> list[int]:
        """The internal numbers of ids; each once."""
        wanted = [source] if is_single(source) else list(source)
        return list(dict.fromkeys(self.store.ids.number(vertex) for vertex in wanted))

    def require(self, stages: Sequence[Stage]) -> None:
        """Refuse at once, before anything is read, a budget that is too small for one of the stages."""
        count, refused = Slots(self.store).count, []
        for stage in stages:
            try:
                if isinstance(stage.program, Reading):
                    stage.program.check(self.settings.memory_limit)
                else:
                    self.engine.plan(stage.program, count, beside=stage.headroom * count + stage.held)
                    self.engine.refuse_early(stage.program, count)
            except DoesNotFit as error:
                refused.append(error)
        if refused:
            raise max(refused, key=lambda error: (error.setting == "memory_limit", error.needed))

    def sample(self, count: int, seed: int) -> np.ndarray:
        """So many different vertices, by internal number."""
        n = self.store.vertices
        if not 1 <= count <= n:
            raise UsageError(f"samples must be from 1 to the number of vertices, {n}, not {count}")
        return np.random.default_rng(whole("seed", seed, 0)).choice(n, count, replace=False)

    def result(
        self,
        outcome: Outcome | Slots,
        columns: Mapping[str, np.ndarray],
        *,
        nulls: Mapping[str, Any] | None = None,
        references: Sequence[str] = (),
        types: Mapping[str, str] | None = None,
        subset: np.ndarray | None = None,
        **notes: Any,
    ) -> Result:
        """A result from vectors by slot."""
        self.engine.home(*columns.values())
        slots = outcome if isinstance(outcome, Slots) else outcome.slots
        nulls = dict(nulls or {})

        def value(name: str, slot: int) -> Any:
            found = columns[name][slot]
            if name in references and found == slot and slot >= slots.active:
                return SELF  # the slot of an isolated vertex is not its number
            return found

        values = {name: vector[: slots.active] for name, vector in columns.items()}
        isolated = {name: value(name, slots.body) for name in columns}
        exceptions = {
            number: {name: value(name, slot) for name in columns}
            for slot, number in enumerate(slots.alone, slots.active)
        }
        return Result(
            self.store.ids, values, isolated, self.figures(**notes), nulls=nulls, references=references,
            exceptions=exceptions, types=types, subset=subset,
        )  # fmt: skip

    def figures(self, **notes: Any) -> dict[str, Any]:
        """The statistics of the run so far."""
        engine, stats = self.engine, self.stats
        if engine.checkpoint is not None:
            engine.checkpoint.finish()
            notes |= {"checkpoints": engine.checkpoint.saved, "resumed_at": engine.checkpoint.resumed}
        read, hits = engine.read_counts()
        busy = sum(stats.phases.get(name, 0.0) for name in ("load", "run"))
        stats.note(
            arcs_per_second=self._arcs_per_second(),
            bytes_per_second=read / busy if busy else None,
            bytes_read=read,
            cache_hits=hits,
            memory_limit=self.settings.memory_limit,
            ledger_peak=engine.ledger.peak,
            ledger_at_peak=engine.ledger.at_peak,
            spilled=engine.vectors.spilled,
            plans=[plan.as_dict() for plan in engine.plans[:8]],
            prediction=foreseen(engine, loaded=bool(self.graph.loaded)),
            graph=self._graph(),
            limits=limits(self.store.path, self.settings.threads),
            **notes,
        )
        if not engine.programs:
            asked = self.settings.device.startswith("gpu") or (self.settings.device == "auto" and self.graph.card)
            stats.note(device="cpu", **({"why_not_gpu": unprogrammed(self.name)} if asked else {}))
        if (device := engine.device_figures(self._arcs())) is not None:
            stats.note(gpu=device)
        return stats.as_dict()

    def _graph(self) -> dict[str, Any]:
        """What the run was about."""
        store = self.store
        return {
            "path": str(store.path),
            "vertices": store.vertices,
            "active": store.active,
            "edges": store.edges,
            "arcs": store.direction("out").arcs if store.has_direction("out") else store.direction("in").arcs,
            "directed": store.directed,
            "page_size": store.page_size,
            "pages": {name: len(store.direction(name)) for name in store.meta["directions"]},
        }

    def _arcs_per_second(self) -> float | None:
        """Of the supersteps that pass over all arcs; those of a frontier would tell more of the graph than of us."""
        arcs, passes = self._passes()
        seconds = sum(step["seconds"] for step in passes)
        return sum(arcs[step["program"]] for step in passes) / seconds if seconds else None

    def _passes(self) -> tuple[dict[str, int], list[dict[str, Any]]]:
        """The arcs of each program, and the supersteps that passed over all of them."""
        arcs = {
            plan.program: sum(self.store.direction(side).arcs for side in plan.sides)
            for plan in self.engine.plans
            if plan.form not in PAIRED
        }
        passes = [
            step
            for step in self.stats.supersteps
            if not {"frontier", "supersteps"} & set(step) and step.get("program") in arcs
        ]
        return arcs, passes

    def _arcs(self) -> int:
        """Visited so far; of a traversal's each counts once."""
        arcs, passes = self._passes()
        whole = {step["program"] for step in passes}
        traversed = sum(arcs.get(plan.program, 0) for plan in self.engine.plans if plan.program not in whole)
        return sum(arcs[step["program"]] for step in passes) + traversed

    def close(self) -> None:
        self.engine.close()
        if self.engine.checkpoint is not None:
            self.engine.checkpoint.close()


def is_single(source: Any) -> bool:
    """Whether it is one id, not several."""
    return isinstance(source, str | bytes) or not isinstance(source, Collection | np.ndarray)


def how_many(source: Any) -> int:
    """How many ids there are."""
    return 1 if is_single(source) else len(source)


def floats(dtype: str) -> str:
    """The dtype of a result of real numbers, checked."""
    if dtype not in ("float32", "float64"):
        raise UsageError(f"dtype must be float32 or float64, not {dtype!r}")
    return dtype
