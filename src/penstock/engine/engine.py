"""The engine: takes programs, plans them, and has an executor run them."""

from __future__ import annotations

import os
import tempfile
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from penstock.config import Settings
from penstock.engine.checkpoint import Checkpoint
from penstock.engine.near import Near
from penstock.engine.place import one_gpu, place, sharing
from penstock.engine.plan import PAIRED, Plan, arcs_of, keeping, make_plan, stream_bytes
from penstock.engine.program import Combine, Each, Program
from penstock.engine.vectors import Slots, Vectors, in_file
from penstock.errors import DoesNotFit, UsageError
from penstock.memory.cache import Policy
from penstock.memory.ledger import Ledger, Scope
from penstock.memory.team import Team
from penstock.memory.topology import Resident, Streamed
from penstock.observe.stats import Stats
from penstock.store.reader import Store

if TYPE_CHECKING:
    from penstock.engine.cpu.each import Chosen
    from penstock.engine.gpu.plan import DevicePlan
    from penstock.memory.card import Card
    from penstock.observe.energy import Meter, Meters

Until = Callable[[int, float], bool]
"""`until(supersteps done, change of the last)`: whether to stop."""


@dataclass
class Outcome:
    """What a program left: its fields by slot, and how it went."""

    state: dict[str, np.ndarray]
    slots: Slots
    steps: int
    change: float
    front: np.ndarray | None = None
    """The bitmap of the vertices that are active still."""
    edge_state: dict[str, dict[str, np.ndarray]] = field(default_factory=dict)
    """What arcs kept: by direction and field, in the order of the direction's arcs."""
    totals: dict[str, Any] = field(default_factory=dict)


class Engine:
    """Runs programs on one store under one budget. Arcs in memory, and page caches, serve all programs of an engine."""

    def __init__(
        self,
        store: Store,
        settings: Settings,
        stats: Stats | None = None,
        *,
        resident: Mapping[str, Resident] | None = None,
        ids: np.ndarray | None = None,
        card: Card | None = None,
    ) -> None:
        self.store, self.settings, self.stats = store, settings, stats or Stats()
        self.ledger = Ledger(settings.memory_limit)
        self.team = Team(settings.threads)
        beside = store.path.absolute().parent
        self.vectors = Vectors(self.ledger, settings, beside if _writable(beside) else Path(tempfile.gettempdir()))
        self.plans: list[Plan] = []
        self.programs: list[Program] = []
        """What was run, beside its plans."""
        self.checkpoint: Checkpoint | None = None
        if settings.checkpoint is not None:
            algorithm = self.stats.notes.get("algorithm", "")
            self.checkpoint = Checkpoint(settings.checkpoint, settings.checkpoint_every, store.meta["uuid"], algorithm)
        self._scope: Scope = self.ledger.scope("topology")
        self._given = dict(resident or {})
        self.ids = ids
        """The ids of the active vertices, if the graph has them in memory."""
        held = sum(block.nbytes for block in self._given.values()) + (ids.nbytes if ids is not None else 0)
        if held:
            # What the user loaded counts, too; if a run has no room for it, it does without.
            most = settings.memory_limit if self._given else settings.memory_limit // 4
            if settings.tier == "disk" or held > most:
                self._given, self.ids = {}, None
            else:
                self._scope.reserve(held, "loaded graph")
        self._resident: dict[tuple[str, tuple[str, ...]], Resident] = {}
        self._streamed: dict[tuple[str, tuple[str, ...]], Streamed] = {}
        self._policy: Policy = "resident"
        self._stream_bytes, self._once = 0, False
        if card is not None and not self._takes(card):
            card = None
        self._gpu, self._lent = card, card is not None
        self._meters: dict[int, Meter] = {}
        """By the number of a GPU."""
        self.near = Near()
        """The vectors that lie on the GPU between programs."""
        self.sources: set[str] = set()
        """Where a GPU had arcs from: itself, the host, the disk."""
        self._counted = card.team_counts() if card is not None else (0, 0, 0, 0)
        self.device_plans: list[DevicePlan] = []
        """Of what was run on a GPU."""
        self._named: list[str] = []
        """The programs that these are of."""
        self._spread: list[int] = []
        """The GPU that each device was on, in the run over the most of them."""
        self.by_turns: tuple[Program, ...] = ()
        """Programs that an algorithm will run, one after the other and again."""
        self._of_programs: dict[tuple[int, str], tuple[Program, Any]] = {}
        self.bytes_read = 0
        self.hits = 0

    def _takes(self, card: Card) -> bool:
        """Whether to run on the card that the graph was loaded to: if it is the one that was asked for, and there is
        room for what it has in the host's memory, which counts as what was loaded does."""
        if not card.answers(self.settings) or not card.lend(self.ledger):
            return False
        self._return = weakref.finalize(self, card.take_back)
        return True

    # ---- programs

    def run(
        self,
        program: Program,
        *,
        params: Mapping[str, Any] | None = None,
        seeds: Sequence[int] = (),
        vectors: Mapping[str, np.ndarray] | None = None,
        active: np.ndarray | None = None,
        until: Until | None = None,
        slots: Slots | None = None,
        stays: bool = False,
    ) -> Outcome:
        """Run a program to its end.

        `vectors` are arrays by slot for fields (changed in place) or reads of these names; fields that are all given
        are not initialised. `active` is the first frontier, for a program that is not initialised. With `stays`, what
        it leaves may stay on the GPU until a later program takes it, or `home` is asked for it.
        """
        values = _values(program, params)
        slots = slots or Slots(self.store, seeds)
        given = sum(array.nbytes for array in (vectors or {}).values() if not in_file(array))
        plan = self._planned(program, slots.count, given)
        self.plans.append(plan)
        self.programs.append(program)
        executor, device = self._executor(program, slots)
        self._make_room_for(program, plan, given, device)
        alone = device == "gpu" and (self.settings.gpu_devices == 1 or bool(one_gpu(program)))
        if not (alone and program.form == "combine" and self.checkpoint is None):
            self.near.home(*(vectors or {}).values(), changing=True)
            if device == "gpu":
                self.near.leave()
                self.gpu.drop_spare()
        if device != "gpu":
            return executor(self, program, plan, values, slots, dict(vectors or {}), active, until)
        from penstock.memory import gpu
        from penstock.memory.card import spread

        if self.settings.gpu_devices == 1:
            self.gpu.team(1)
        numbers = spread(self.gpu.number, 1 if alone else self.settings.gpu_devices)
        self._spread = max(self._spread, numbers, key=len)
        with gpu.using(self.gpu.number), self.stats.beside("run", self._metered(numbers)):
            if alone and self.checkpoint is None:
                self.near.card, self.near.keeping = self.gpu, stays
            try:
                found = executor(self, program, plan, values, slots, dict(vectors or {}), active, until)
            finally:
                self.near.keeping = False
                self._named += [program.name] * (len(self.device_plans) - len(self._named))
        self.sources |= self.gpu.sources
        return found

    def once(self, program: Program, what: str, make: Callable[[], Any]) -> Any:
        """What is made of a program, once for this engine: to see that its functions are those of before takes longer
        than many a superstep."""
        key = id(program), what
        if key not in self._of_programs:
            self._of_programs[key] = program, make()
        return self._of_programs[key][1]

    def home(self, *vectors: np.ndarray) -> None:
        """Have these vectors here, to be read and written."""
        self.near.home(*vectors, changing=True)

    def each(
        self,
        program: Each,
        vectors: Mapping[str, np.ndarray],
        *,
        params: Mapping[str, Any] | None = None,
        slots: Slots | None = None,
        members: bool = False,
    ) -> Chosen:
        """Run a program that sees each vertex with arcs by itself: where its vectors are."""
        from penstock.engine.cpu import each as on_cpu

        values, slots = _values(program, params), slots or Slots(self.store)
        chosen = {name: vectors[name] for name in program.state}
        if self.near.card is not None and all(map(self.near.stays, chosen.values())):
            from penstock.engine.gpu import each as on_gpu

            with self.near.on():
                if self.near.room(on_gpu.bytes_of(self, program, slots, chosen, members), chosen.values()):
                    return on_gpu.run(self, program, values, slots, chosen, members)
        self.near.home(*chosen.values(), changing=program.update is not None)
        if self.settings.device == "reference":
            from penstock.engine.reference import each as reference

            return reference.run(self, program, values, slots, chosen, members)
        return on_cpu.run(self, program, values, slots, chosen, members)

    def _planned(self, program: Program, slots: int, given: int) -> Plan:
        """The plan of a run; if it does not fit beside the pages of a loaded graph, they go."""
        try:
            return self.plan(program, slots, given=given)
        except DoesNotFit:
            if self._gpu is None or not self._lent or not self._gpu.host_bytes:
                raise
            self._gpu.close_pages()
        return self.plan(program, slots, given=given)

    def plan(self, program: Program, slots: int | None = None, *, given: int = 0, beside: int = 0) -> Plan:
        """What running the program would take; `given`: bytes of its vectors that are there already; `beside`: bytes
        that the algorithm will hold besides."""
        count = Slots(self.store).count if slots is None else slots
        topology = sum(block.nbytes for block in (*self._resident.values(), *self._given.values()))
        held = max(0, self.ledger.used - topology - self._page_bytes - given) + beside
        loaded = self.settings.tier != "disk" and not self.settings.state_ranges and self._covers(program)
        return make_plan(program, self.store, self.settings, count, held=held, resident=loaded)

    def refuse_early(self, program: Program, slots: int) -> None:
        """Refuse a program that will be run on a GPU, if its state cannot fit there."""
        if self.settings.device != "auto" and place(program, self.store, self.settings)[0] == "gpu":
            self._unfit(program, slots)

    def _unfit(self, program: Program, slots: int, seeds: int = 0) -> str:
        """Why a program cannot be run on the GPU that was found: its state has no room. Who asked for it is refused."""
        from penstock.engine.gpu.explain import device_plan

        try:
            device_plan(program, self.store, slots, self.gpu.ledger.limit, self.settings, seeds)
        except DoesNotFit as refused:
            if self.settings.device != "auto":
                raise
            return str(refused)
        return ""

    def _covers(self, program: Program) -> bool:
        names = {self.store.direction(name).name for name in arcs_of(self.store, program)}
        return all(
            any(name == n and set(program.columns) <= set(c) for n, c in self._resident)
            or (name in self._given and set(program.columns) <= set(self._given[name].columns))
            for name in names
        )

    def _executor(self, program: Program, slots: Slots) -> tuple[Callable[..., Outcome], str]:
        import importlib

        folder, why = place(program, self.store, self.settings, loaded=self._lent)
        if folder == "gpu" and self.settings.device == "auto":
            why = self._unfit(program, slots.count, len(slots.seeds))
            folder = "cpu" if why else "gpu"
        self.stats.note(device=folder, **({"why_not_gpu": why} if why else {}))
        if folder == "gpu" and self.settings.gpu_devices > 1 and (one := one_gpu(program)):
            self.stats.note(why_one_gpu=one)
        return importlib.import_module(f"penstock.engine.{folder}.{program.form}").run, folder

    @property
    def gpu(self) -> Card:
        """The GPU of this engine, asked for when first needed; the one that the graph was loaded to, if it was."""
        if self._gpu is None:
            from penstock.memory.card import Card

            self._gpu = Card(self.store, self.settings, self.ledger)
        return self._gpu

    @property
    def spare_gpu_memory(self) -> int | None:
        """What others than programs may take of the GPU: where the graph was loaded to it, what that has left."""
        if self._gpu is None or not self._lent:
            return self.settings.gpu_memory_limit
        self._gpu.drop_spare()
        return max(1, self._gpu.ledger.free)

    def _metered(self, numbers: Sequence[int]) -> Meters:
        """What counts the energy of these GPUs in all phases `run`; one that several devices share counts once."""
        from penstock.memory import gpu
        from penstock.observe.energy import Meter, Meters

        for number in set(numbers) - set(self._meters):
            self._meters[number] = Meter(bus=gpu.bus(number))
        return Meters(self._meters[number] for number in set(numbers))

    @property
    def used_gpu(self) -> bool:
        """Whether a program has been run on a GPU."""
        return bool(self._meters)

    def device_figures(self, arcs: float) -> dict[str, Any] | None:
        """What the runs on a GPU took there, over so many arcs; None if there was none."""
        if not self._meters or self._gpu is None:
            return None
        from penstock.memory import gpu
        from penstock.observe.energy import Meters

        source = next((each for each in ("disk", "host", "device") if each in self.sources), None)
        energy = Meters(self._meters.values()).figures(arcs)
        named = zip(self._named, self.device_plans, strict=False)
        return {
            "name": gpu.name(self._gpu.number),
            "gpus": len(set(self._spread)),
            "shared": sharing(len(self._spread), len(set(self._spread))) or None,
            "memory_limit": self._gpu.ledger.limit,
            "ledger_peak": self._gpu.peak,
            "resident": None if source is None else source == "device",
            "source": source,
            **self._gpu.team_counts().since(self._counted),
            "plans": [{"program": name, **plan.as_dict()} for name, plan in list(named)[:8]],
            "energy": None if energy is None else energy.as_dict(),
        }

    # ---- arcs

    def resident(self, name: str, columns: Sequence[str]) -> Resident:
        """A direction's arcs in memory."""
        direction = self.store.direction(name)
        given = self._given.get(direction.name)
        if given is not None and set(columns) <= set(given.columns):
            return given if tuple(columns) == given.columns else given.with_columns(columns)
        key = (direction.name, tuple(columns))
        for (held, names), block in self._resident.items():
            if held == direction.name and set(columns) <= set(names):
                return block if names == tuple(columns) else block.with_columns(columns)
        with self.stats.phase("load"):
            self._resident[key] = Resident(direction, columns, self._scope, self.settings)
        self.bytes_read += self._resident[key].bytes_read
        return self._resident[key]

    def streamed(
        self, names: Sequence[str], columns: Sequence[str], policy: Policy, *, once: bool = False
    ) -> dict[str, Streamed]:
        """Directions' pages from disk, with caches that share what the budget has left. `once`: each page is read one
        time, and keeping it would only cost the memory's first touch; caches that are there are used."""
        wanted = {(self.store.direction(name).name, tuple(columns)) for name in names}
        if not wanted <= set(self._streamed) or policy != self._policy or (self._once and not once):
            self.close_streams()
            self._policy, before = policy, self.ledger.used
            turns = set() if once else {(name, tuple(columns)) for name in self.asked_by_turns(columns, policy)}
            sides = [self.store.direction(name) for name, _ in wanted | turns]
            needed = sum(stream_bytes(side, columns, self.settings.threads) for side in sides)
            keys = sorted(wanted | turns if 2 * needed <= self.ledger.free else wanted)
            for place, key in enumerate(keys):
                others = [self.store.direction(name) for name, _ in keys[place + 1 :]]
                later = sum(stream_bytes(other, columns, self.settings.threads) for other in others)
                room = 0 if once else max(0, self.ledger.free - later) // (len(others) + 1)
                self._streamed[key] = Streamed(
                    self.store.direction(key[0]), columns, self.ledger, self.settings, policy,
                    cache=room - room // 4 if others or once else None,
                )  # fmt: skip
            self._stream_bytes, self._once = self.ledger.used - before, once
        return {name: self._streamed[self.store.direction(name).name, tuple(columns)] for name in names}

    def asked_by_turns(self, columns: Sequence[str], policy: Policy) -> set[str]:
        """The directions that programs ask for by turns, with these columns, and kept so."""
        found = set()
        for program in self.by_turns:
            if isinstance(program, Combine) and program.columns == tuple(columns) and keeping(program) == policy:
                found |= {self.store.direction(name).name for name in arcs_of(self.store, program)}
        return found

    def read_counts(self) -> tuple[int, int]:
        """(bytes read, pages found in caches) so far."""
        stats = [side.feed.stats for side in self._streamed.values()]
        read = self.bytes_read + sum(s["bytes_read"] for s in stats)
        if self._gpu is not None:
            read += self._gpu.team_counts()[1] - self._counted[1]
        return read, self.hits + sum(s["hits"] for s in stats)

    def close_streams(self) -> None:
        """Close the streams and give their caches back; a program that comes opens new ones."""
        for side in self._streamed.values():
            self.bytes_read += side.feed.stats["bytes_read"]
            self.hits += side.feed.stats["hits"]
            side.close()
        self._streamed.clear()
        self._stream_bytes = 0

    @property
    def _page_bytes(self) -> int:
        """Bytes of the budget that pages hold which are there for later programs: streams, and what a GPU has here."""
        return self._stream_bytes + (self._gpu.host_bytes if self._gpu is not None and not self._lent else 0)

    def make_room(self, nbytes: int) -> None:
        """For a result: let pages go that are there for later programs, if there is no room for so much beside them."""
        if self.used_gpu:
            self.sources |= self.gpu.sources
        self._make_room(nbytes)
        if self.ledger.free < nbytes and self.used_gpu:
            self.gpu.close_pages()

    def _make_room(self, nbytes: int) -> None:
        """The same, but for pages of a loaded graph."""
        if self.ledger.free < nbytes:
            self.close_streams()
        if self.ledger.free < nbytes and self._gpu is not None and not self._lent:
            self._gpu.close_pages()

    def _make_room_for(self, program: Program, plan: Plan, given: int, device: str) -> None:
        """Let go of what other programs have left in memory, if this one has no room beside it."""
        needed = plan.fixed_bytes + (plan.window_bytes if plan.ranges > 1 else max(0, plan.window_bytes - given))
        if plan.tier == "memory":
            # A GPU has the arcs itself, but for lists that the host makes of them.
            elsewhere = self._covers(program) or (device == "gpu" and program.form not in PAIRED)
            self._make_room(needed + (0 if elsewhere else plan.topology_bytes))
            return
        if self._page_bytes:
            # Streams that are open are used, or closed before others are opened; lists are made by way of their own.
            sides = [self.store.direction(name) for name in plan.sides if program.form not in PAIRED]
            self._make_room(needed - sum(stream_bytes(side, program.columns, self.settings.threads) for side in sides))
        if not self._page_bytes and self.ledger.free < needed:
            self._unload()

    def _unload(self) -> None:
        """Do without arcs in memory, where a program has no room for them."""
        self._resident.clear()
        self._given.clear()
        self.ids = None
        self._scope.close()
        self._scope = self.ledger.scope("topology")

    def close(self) -> None:
        self.near.close()
        if self._gpu is not None and self._lent:
            self._return()
        elif self._gpu is not None:
            self._gpu.close()
        self.close_streams()
        self._resident.clear()
        self._scope.close()
        self.vectors.close()
        self.team.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.close()


def _values(program: Program, params: Mapping[str, Any] | None) -> dict[str, Any]:
    """A program's parameters: those that are given, and for the others what it says itself."""
    values = dict(program.params)
    for name, value in (params or {}).items():
        if name not in values:
            raise UsageError(f"program {program.name} has no parameter {name!r}; it has {', '.join(values) or 'none'}")
        kind = type(values[name])
        values[name] = kind(value) if kind in (int, float, bool) else value
    return values


def _writable(folder: Path) -> bool:
    return os.access(folder, os.W_OK)


__all__ = ["Engine", "Outcome", "Until"]
