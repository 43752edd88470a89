"""What lies on a GPU: a budget, arrays that give back what they took, and the pages of directions."""

from __future__ import annotations

import copy
import weakref
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from typing import Any, NamedTuple

import numpy as np

from penstock.config import Settings
from penstock.errors import DeviceFull, DoesNotFit
from penstock.memory import gpu
from penstock.memory.cache import Policy
from penstock.memory.frames import DevicePages
from penstock.memory.ledger import Ledger, Reservation
from penstock.memory.share import part_of
from penstock.store.blob import Blob
from penstock.store.reader import Direction, Store

_PIECE = 1 << 22
"""Values of a column that are read at a time."""
PLENTY = 4
"""Of so many parts of the budget, one that is free is plenty."""

_Key = tuple[str, tuple[int, int, int], tuple[str, ...]]
"""A direction, which of its pages, and which columns."""


class Counts(NamedTuple):
    """Bytes copied to the device and read from disk; pages found in frames, and read where they lie on the host."""

    bytes_copied: int
    bytes_read: int
    hits: int
    in_place: int

    @classmethod
    def of(cls, stats: Mapping[str, int]) -> Counts:
        return cls(*(stats[name] for name in cls._fields))

    @classmethod
    def sum(cls, counts: Iterable[Counts]) -> Counts:
        return cls(*map(sum, zip(*counts, strict=True)))

    def since(self, before: Sequence[int]) -> dict[str, int]:
        """What has been added, by name."""
        return {name: now - then for name, now, then in zip(self._fields, self, before, strict=True)}


class Array:
    """Memory on the device: `array` for copies, `arg` for kernels. Where it was made for something that then failed,
    what it took is given back with it."""

    __slots__ = ("__weakref__", "_held", "arg", "array")

    def __init__(self, array: Any, held: Reservation, ledger: Ledger) -> None:
        self.array, self.arg, self._held = array, gpu.view(array), held
        weakref.finalize(self, ledger.release_later, held).atexit = False

    def release(self) -> None:
        """Give it back."""
        self.array = self.arg = None
        self._held.release()


class _Loan:
    """Which run a card, with its team, is lent to: its budget, and what pages have of that."""

    run: Ledger | None = None
    charge: Reservation | None = None


def spread(first: int, devices: int) -> list[int]:
    """The GPU that each of so many devices is on: from the first one on, and around again where there are fewer."""
    return [(first + k) % gpu.count() for k in range(devices)]


class Card:
    """One GPU, for one store. Pages stay until others need their room."""

    def __init__(self, store: Store, settings: Settings, host: Ledger) -> None:
        self.store, self.settings, self.host = store, settings, host
        self.number = int(settings.device.partition(":")[2] or 0)
        gpu.use(self.number)
        self._loan = _Loan()
        self._set_up(gpu.usable_memory(settings.gpu_memory_limit))

    def _set_up(self, limit: int) -> None:
        self._limit = limit
        self.ledger = Ledger(limit, "gpu_memory_limit")
        self.stream = gpu.Stream(null=True)
        self.apart = False
        """Whether it is one of a team on several GPUs: then all that is done with it is done inside `on()`."""
        self.place = 0
        """Which one of a team it is."""
        self._team: list[Card] = []
        self._pages: dict[_Key, DevicePages] = {}
        self._columns: dict[str, Array] = {}
        self._spare: dict[tuple[Any, Any], list[Array]] = {}
        """By shape and type: what a run took that was like this, for the next one."""
        self._policy: Policy = "resident"
        self._host_bytes = 0
        self._before = Counts(0, 0, 0, 0)

    # ---- several

    def team(self, count: int) -> list[Card]:
        """This one and others, each with a budget of its own: on the GPUs that follow, and around again where there are
        fewer. They are closed with this one."""
        if len(self._team) != count - 1:
            self._disband()
            numbers = spread(self.number, count)
            self.apart = len(set(numbers)) > 1
            if self.settings.gpu_memory_limit is None and numbers.count(self.number) > 1:
                self.close_pages()
                self.ledger.limit = min(self.ledger.limit, self._even(numbers.count(self.number)))
            for place, number in enumerate(numbers[1:], 1):
                self._team.append(self._other(number, numbers.count(number)))
                self._team[-1].place = place
        return [self, *self._team]

    def _even(self, sharers: int) -> int:
        return gpu.usable_memory() // sharers

    def _other(self, number: int, sharers: int) -> Card:
        other = copy.copy(self)
        other.number = number
        with gpu.using(number):
            limit = self.settings.gpu_memory_limit
            other._set_up(self._limit_of(number, sharers) if limit is None else gpu.usable_memory(limit))
        other.apart = self.apart
        return other

    def _limit_of(self, number: int, sharers: int) -> int:
        there = [card.ledger.limit for card in (self, *self._team) if card.number == number]
        return there[0] if there else self._even(sharers)

    def on(self) -> AbstractContextManager[None]:
        """What is done inside is done on this GPU."""
        return gpu.using(self.number) if self.apart else nullcontext()

    def _disband(self) -> None:
        for other in self._team:
            with other.on():
                other.close_pages()
        self._team.clear()
        self.ledger.limit = self._limit  # others there may have had a part of it

    # ---- runs that have a budget of their own

    def answers(self, settings: Settings) -> bool:
        """Whether it is the one that these settings ask for."""
        number, limit = settings.device.partition(":")[2], settings.gpu_memory_limit
        return (not number or int(number) == self.number) and limit in (
            None, self.ledger.limit, self.settings.gpu_memory_limit
        )  # fmt: skip

    def lend(self, run: Ledger) -> bool:
        """To a run on a loaded graph: what pages take of the host's memory is in its budget, too, until `take_back`.
        False if there is no room for what they have taken already, or another run has it."""
        if self._loan.run is not None or self.host_bytes > run.free:
            return False
        self._loan.run, self._loan.charge = run, run.reserve(self.host_bytes, "pages of the loaded graph")
        return True

    def take_back(self) -> None:
        """The run is over."""
        self.drop_spare()
        if self._loan.charge is not None:
            self._loan.charge.release()
        self._loan.run = self._loan.charge = None

    def _count_host(self, nbytes: int) -> None:
        """So much of the host's memory is what pages have now."""
        if (charge := self._loan.charge) is not None:
            charge.resize(charge.nbytes + nbytes - self._host_bytes)
        self._host_bytes = nbytes

    # ---- arrays

    def empty(self, shape: Any, dtype: Any, what: str) -> Array:
        """Memory as it was left."""
        kind = np.dtype(dtype)
        if like := self._spare.get((_shape(shape), kind)):
            return like.pop()
        size = int(np.prod(shape)) * kind.itemsize
        if size > self.ledger.free:
            self.drop_spare()
        if size > self.ledger.free:
            self._drop_columns()
        held = self.ledger.reserve(size, what)
        try:
            return Array(self._given(shape, kind), held, self.ledger)
        except BaseException:
            held.release()
            raise

    def _given(self, shape: Any, kind: np.dtype) -> Any:
        """By the driver. Where others have taken what is in the budget, what is kept for later may be just enough."""
        try:
            return gpu.empty(shape, kind)
        except DeviceFull:
            if not self._spare:
                raise
        self.drop_spare()
        return gpu.empty(shape, kind)

    def full(self, shape: Any, value: Any, dtype: Any, what: str) -> Array:
        """Memory filled with a value."""
        found = self.empty(shape, dtype, what)
        found.array.fill(value)
        return found

    def upload(self, array: np.ndarray, what: str) -> Array:
        """A copy of a host array."""
        found = self.empty(array.shape, array.dtype, what)
        gpu.fill(found.array, array)
        return found

    def take(self, arrays: Iterable[Array]) -> None:
        """Have back what a run is done with. While there is plenty it is kept for the next run, which will often ask
        for the same: the driver takes as long to give memory, and to take it back, as a superstep."""
        for array in arrays:
            if self.ledger.free < self.ledger.limit // PLENTY:
                array.release()
            else:
                self._spare.setdefault((array.array.shape, array.array.dtype), []).append(array)

    @property
    def free(self) -> int:
        """What arrays may take, once nothing is kept for the next run."""
        spare = sum(array.array.nbytes for like in self._spare.values() for array in like)
        return self.ledger.free + spare

    def drop_spare(self) -> None:
        """Give back what is kept for the next run."""
        for array in (array for like in self._spare.values() for array in like):
            array.release()
        self._spare.clear()

    def read_columns(self, names: Sequence[str], target: Any) -> None:
        """Copy a column of the active vertices to an array, or the sum of several. One alone stays for the next run if
        there is room to spare."""
        columns, name = [self.store.vertex_column(name) for name in names], names[0]
        spare = self.ledger.free // 8
        if len(names) == 1 and name not in self._columns and len(target) * columns[0].dtype.itemsize <= spare:
            found = self.empty(len(target), columns[0].dtype, f"column {name}")
            _read(columns, found.array)
            self._columns[name] = found
        if len(names) == 1 and name in self._columns:
            target[...] = self._columns[name].array
        else:
            _read(columns, target)

    # ---- arcs

    def pages(
        self,
        names: Sequence[str],
        columns: Sequence[str],
        policy: Policy,
        *,
        state: int = 0,
        by_turns: Collection[str] = (),
        shares: Mapping[str, Direction] | None = None,
        host_share: tuple[int, int] | None = None,
        lender: Card | None = None,
    ) -> dict[str, DevicePages]:
        """The pages of directions, with room for what the budget has left. Those that are there, whole, are kept.

        `state`: bytes that a run holds beside them, at most; `by_turns`: directions that will be asked for in turn with
        these, and are opened with them if they can be; `shares`: the directions to use by name, if they are not the
        store's; `host_share`: a fraction that bounds what is taken of the host's free memory; pages that `lender`
        has there are not put there again.
        """
        directions = {name: self.store.direction(name) if shares is None else shares[name] for name in names}
        found = {name: self._there(_key(each, columns), policy) for name, each in directions.items()}
        if all(side is not None for side in found.values()):
            return self._named({name: side for name, side in found.items() if side is not None})
        self.close_pages()
        self._policy, before = policy, self.host.used
        unlike = {_key(each, columns): each for each in directions.values()}
        # What the state does not take yet is left free: the next run finds room for it beside these pages.
        spare = max(0, state - self.ledger.used)
        others = {_key(each, columns): each for each in map(self.store.direction, by_turns)}
        if _least(unlike | others) <= self.ledger.free - spare:
            unlike |= others
        if _least(unlike) > self.ledger.free - spare:
            what, needed = f"streaming pages of {self.store.path} to the GPU", self.ledger.used + spare + _least(unlike)
            raise DoesNotFit(what, needed=needed, limit=self.ledger.limit, setting=self.ledger.setting)
        for place, key in enumerate(sorted(unlike)):
            room = _room(self.ledger.free - spare, [unlike[each] for each in sorted(unlike)[place:]], columns)
            lent = lender._pages.get(key) if lender is not None else None
            shared, whole = host_share or (1, 1)
            parts = -(-whole * (len(unlike) - place) // shared)
            budget = self.host
            if self._loan.run is not None and self._loan.run.free < self.host.free:
                budget = self._loan.run
            host_room = budget.free // parts if parts > 1 or budget is not self.host else None
            with _whole_budget(budget, parts, bounded=host_room is not None):
                side = DevicePages(
                    unlike[key], columns, self.ledger, self.host, self.settings,
                    policy=policy, room=room, host_room=host_room, streams=self.settings.gpu_streams,
                    stream=self.stream, lender=lent,
                )  # fmt: skip
                try:
                    side.load()
                    self._count_host(self.host.used - before)
                    self._pages[key] = side
                except BaseException:
                    side.close()
                    raise
        return self._named({name: self._pages[_key(each, columns)] for name, each in directions.items()})

    def _named(self, sides: dict[str, DevicePages]) -> dict[str, DevicePages]:
        """Have timelines say which device it is, where there are several now."""
        for side in sides.values():
            side.of = f" of device {self.place}" if self.place or self._team else ""
        return sides

    def make_room(
        self, state: int, least: int, sides: Iterable[Direction], columns: Sequence[str], policy: Policy
    ) -> None:
        """Close pages if there is no room for a run's state beside them; or, if the run will ask for others, beside the
        least of those."""
        there = all(self._holder(_key(side, columns), policy) is not None for side in sides)
        if self.free < state + (0 if there else least):
            self.close_pages()

    def _there(self, key: _Key, policy: Policy) -> DevicePages | None:
        holder = self._holder(key, policy)
        if holder is None or holder == key:
            return None if holder is None else self._pages[holder]
        return _with_columns(self._pages[holder], holder[2], key[2])

    def _holder(self, key: _Key, policy: Policy) -> _Key | None:
        """Which of the pages that are open are those of a key, perhaps with more columns."""
        for found, side in self._pages.items():
            alike = found[:2] == key[:2] and set(key[2]) <= set(found[2])
            if alike and (policy == self._policy or side.resident):
                return found
        return None

    @property
    def host_bytes(self) -> int:
        """Bytes of the host's memory that pages hold, of all of a team."""
        return sum(card._host_bytes for card in (self, *self._team))

    def count_copied(self, nbytes: int) -> None:
        """What was copied to the device besides pages."""
        self._before = Counts.sum([self._before, Counts(nbytes, 0, 0, 0)])

    def read_counts(self) -> Counts:
        """So far."""
        return Counts.sum([self._before, *(Counts.of(side.stats) for side in self._pages.values())])

    def team_counts(self) -> Counts:
        """The same of all of a team."""
        return Counts.sum([card.read_counts() for card in (self, *self._team)])

    @property
    def sources(self) -> set[str]:
        """Where the pages that are open come from: `device` where all are there, `host`, `disk`."""
        return {side.source for card in (self, *self._team) for side in card._pages.values()}

    @property
    def peak(self) -> int:
        """The most that was counted, on the fullest one of a team."""
        return max(card.ledger.peak for card in (self, *self._team))

    def close_pages(self) -> None:
        """Give the pages' memory back."""
        for other in self._team:  # they may have borrowed from these
            with other.on():
                other.close_pages()
        self._before = self.read_counts()
        gpu.synchronize()
        self.drop_spare()
        self._drop_columns()
        sides, self._pages = self._pages, {}  # first: one that could not be closed is none to go on with
        with ExitStack() as closing:
            closing.callback(self._count_host, 0)
            for side in sides.values():
                closing.callback(side.close)

    def _drop_columns(self) -> None:
        for column in self._columns.values():
            column.release()
        self._columns.clear()

    def close(self) -> None:
        """Give everything back."""
        self._disband()
        with self.on():
            self.close_pages()


def _shape(shape: Any) -> tuple[int, ...]:
    return tuple(shape) if isinstance(shape, tuple) else (int(shape),)


def _read(columns: Sequence[Blob], target: Any) -> None:
    """The sum of columns, a piece at a time: neither memory may have room for all of it besides."""
    for a in range(0, len(target), _PIECE):
        b = min(a + _PIECE, len(target))
        gpu.fill(target[a:b], np.asarray(sum(column.read(a, b).astype(target.dtype) for column in columns)))


def _key(direction: Direction, columns: Sequence[str]) -> _Key:
    return direction.name, part_of(direction), tuple(columns)


def _least(sides: Mapping[_Key, Direction]) -> int:
    return sum(DevicePages.least(side, columns) for (_, _, columns), side in sides.items())


@contextmanager
def _whole_budget(host: Ledger, parts: int, *, bounded: bool) -> Iterator[None]:
    """Who is given one of several parts of the host's free memory, and finds it too small, says what that part should
    be: say what the budget should be."""
    used = host.used
    try:
        yield
    except DoesNotFit as error:
        if not bounded or error.setting != host.setting:
            raise
        needed = used + parts * error.needed
        raise DoesNotFit(error.what, needed=needed, limit=host.limit, setting=host.setting) from error


def _room(free: int, directions: Sequence[Direction], columns: Sequence[str]) -> int:
    """What the first of these is given of what is free: what it needs at least, and of the rest as it needs more."""
    if len(directions) == 1:
        return free
    least = [DevicePages.least(each, columns) for each in directions]
    more = [DevicePages.needed(each, columns) - few for each, few in zip(directions, least, strict=True)]
    spare = max(0, free - sum(least))
    return least[0] + (more[0] if spare >= sum(more) else spare * more[0] // sum(more))


def _with_columns(side: DevicePages, names: tuple[str, ...], columns: tuple[str, ...]) -> DevicePages:
    """The same pages with some of their columns."""
    other = copy.copy(side)
    places = [names.index(name) for name in columns]
    other.names, other.columns = columns, tuple(side.columns[k] for k in places)
    strides = np.array([side.layout.strides[k] for k in places] or [0], np.uint64)
    other.strides = gpu.view(gpu.upload(strides))
    return other


__all__ = ["Array", "Card", "Counts", "spread"]
