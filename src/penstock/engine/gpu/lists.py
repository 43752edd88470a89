"""The oriented lists of a graph on a GPU, or the whole ones, and what they take there."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from penstock.engine.gpu.functions import Kernel
from penstock.engine.gpu.held import blocks
from penstock.engine.gpu.kernels import lists as making
from penstock.engine.gpu.kernels import pair as using
from penstock.engine.gpu.plan import SLACK
from penstock.engine.gpu.rows import segment_places
from penstock.engine.pairing import longest_list, whole_entries
from penstock.engine.plan import number_dtype
from penstock.memory import gpu
from penstock.memory.card import Array, Card
from penstock.memory.fingerprint import fingerprint
from penstock.memory.frames import DevicePages
from penstock.memory.tasks import BLOCK, cut
from penstock.store.reader import Store

if TYPE_CHECKING:
    from penstock.engine.engine import Engine

NARROW = gpu.WARP
"""Lists of at most so many entries have a warp, with an entry for each of its threads."""
PIECE = 1024
"""Entries of a longer list that a block takes, in a table of twice as many places."""
SORTED = 1 << 26
"""Entries that are sorted at a time."""

_SOME = 1 << 16
"""Lists that are looked at together."""

_MADE: dict[tuple[Any, ...], Kernel] = {}


def plain(name: str, **about: Any) -> Kernel:
    """A kernel of this name in which no program is."""
    about = {"everyone": False} | about | {"block": BLOCK, "narrow": NARROW, "piece": PIECE, "places": 2 * PIECE}
    key = (name, *sorted(about.items()))
    if key not in _MADE:
        template = getattr(making, name, None) or getattr(using, name)
        made = template(SimpleNamespace(**about))
        _MADE[key] = Kernel(gpu.template_kernel(made, fingerprint("gpu", template.__module__, key)))
    return _MADE[key]


def entries_of(store: Store) -> int:
    """A bound of the entries of all lists, parallel arcs each."""
    arcs = store.direction("out").arcs
    return arcs if store.directed else arcs // 2


def in_order(store: Store, *, everyone: bool) -> bool:
    """Whether the begins of rows are lists already, or all of them are."""
    return not store.directed and (everyone or bool(store.meta["order"] == "degree"))


class Part(NamedTuple):
    """Lists on the device: the first of them, the one after the last, the place of their first entry among all, and
    the array they are in."""

    first: int
    last: int
    base: Any
    lists: Any


class Pass(NamedTuple):
    """Lists that come up against those of a part: on which stream, and the pieces of the long ones."""

    stream: gpu.Stream
    mine: Part
    items: Any
    pieces: int


def item_count(entries: int) -> int:
    """The most pieces that the long ones of lists of so many entries can have."""
    return entries // (NARROW + 1) + entries // PIECE + 1


def lengths_of(offsets: np.ndarray, lo: int, hi: int) -> Iterator[np.ndarray]:
    """How long the lists `lo` to `hi` are, some of them at a time."""
    for at in range(lo, hi, _SOME):
        yield np.diff(offsets[at : min(at + _SOME, hi) + 1]).astype(np.int64)


def list_items(lengths: Iterator[np.ndarray], first: int) -> np.ndarray:
    """The pieces of long lists, the first of which has the number `first`: (u, which piece)."""
    found = [np.zeros((0, 2), np.uint32)]
    for some in lengths:
        long = np.flatnonzero(some > NARROW)
        many = -(-some[long] // PIECE)
        number = np.arange(many.sum()) - np.repeat(np.cumsum(many) - many, many)
        found.append(np.stack([np.repeat(long + first, many), number], axis=1).astype(np.uint32))
        first += len(some)
    return np.concatenate(found)


class Sizes:
    """Bytes of lists on a device, known before anything is there."""

    def __init__(self, store: Store, *, everyone: bool = False) -> None:
        self.entries, active = whole_entries(store) if everyone else entries_of(store), store.active
        self.everyone, self.ranked = everyone, not everyone and store.meta["order"] != "degree"
        self.in_order = in_order(store, everyone=everyone)
        self.keys = 0 if self.in_order else min(self.entries, max(SORTED, longest_list(store, self.entries)))
        self.items = 1 if everyone else item_count(self.entries)
        self.segments = max(1, len(cut(store.direction("out")).segments))
        # CuPy takes as much again as it sorts or adds up, and to sort some to count in.
        self.scratch = max(8 * self.keys + self.keys // 4, 8 * (active + 1))
        self.nbytes = (
            8 * (2 * active + 2) + 4 * self.entries + 8 * self.keys + self.scratch + 8 * self.items
            + 4 * self.segments + (4 * active if self.ranked else 0) + SLACK
        )  # fmt: skip


class Lists:
    """List u is `lists[starts[u]]` to `lists[ends[u]]`; made from the outgoing arcs. All of them are on the device. If
    they are of everyone, u and who is in its list are numbers; else ranks."""

    source, all_there = "device", True

    def __init__(self, engine: Engine, device: Card, sizes: Sizes, *, ways: bool) -> None:
        self.engine, self.device, self.sizes, self.ways = engine, device, sizes, ways
        self.store, self.stream, self.count = engine.store, device.stream, engine.store.active
        self._arrays: list[Array] = []
        self.figures = {"windows": 1, "spilled_lists": 0}

    def prepare(self) -> None:
        """The memory for them."""
        device, sizes, active = self.device, self.sizes, self.count
        self.starts = self._kept(device.full(active + 1, 0, np.uint64, "lists"))
        self.ends = self._kept(device.full(max(1, active), 0, np.uint64, "lists"))
        self.lists = self._kept(device.empty(max(1, sizes.entries), np.uint32, "lists"))
        self.items = self._kept(device.empty((sizes.items, 2), np.uint32, "pieces of lists"))
        self.found = self._kept(device.full(1, 0, np.uint64, "pieces of lists"))
        self.keys = self._kept(device.empty(max(1, sizes.keys), np.uint64, "keys"))
        self.rank = self._kept(device.upload(self._ranks(), "ranks"))
        self.later = self._kept(device.upload(segment_places(cut(self.store.direction("out"))), "segments"))
        self._scratch = device.ledger.reserve(sizes.scratch, "sorting")

    def _kept(self, array: Array) -> Array:
        self._arrays.append(array)
        return array

    def _ranks(self) -> np.ndarray:
        """The vertices by falling degree; one number only, where they are numbered so."""
        store, count = self.store, self.count
        if not self.sizes.ranked or not count:
            return np.zeros(1, np.uint32)
        rank = np.empty(count, np.uint32)
        with self.engine.ledger.reserve(32 * count, "ordering by degree"):
            degree = store.vertex_column("out_degree").read(0, count).astype(np.int64)
            if store.directed:
                degree += store.vertex_column("in_degree").read(0, count).astype(np.int64)
            np.negative(degree, out=degree)
            rank[np.argsort(degree, kind="stable")] = np.arange(count, dtype=np.uint32)
        return rank

    def orient(self, state: int) -> None:
        """Take their memory, and make them."""
        self.prepare()
        self.make(state)

    def place(self) -> None:
        """They are there."""

    def make(self, state: int) -> None:
        """Count, write, sort, and drop what is there twice; pages take what `state` bytes leave."""
        with self.engine.stats.phase("load"):
            side = self.device.pages(("out",), (), "resident", state=state)["out"]
        count = self.count
        if not count:
            return
        ordered = self.sizes.in_order
        self._visit(side, self.starts, writing=False, ordered=ordered)
        self.stream.synchronize()
        gpu.running_sum(self.starts.array)
        self.ends.array[:] = self.starts.array[int(ordered) : count + int(ordered)]
        self._visit(side, self.starts if ordered else self.ends, writing=True, ordered=ordered)
        if not ordered:
            self.stream.synchronize()
            self._sort()
        plain("simplify", ways=self.ways, everyone=self.sizes.everyone)(
            self.stream, blocks(count), BLOCK, np.uint32(count), self.starts.arg, self.ends.arg, self.lists.arg
        )

    def _visit(self, side: DevicePages, cursor: Array, *, writing: bool, ordered: bool) -> None:
        name = "sorted" if ordered else "over"
        about = {"writing": writing, "directed": self.store.directed, "ways": self.ways}
        about["everyone"] = self.sizes.everyone
        tasks, segments = plain(f"{name}_tasks", **about), plain(f"{name}_segments", **about)
        words, later = np.uint64(side.page_words), (self.later.arg,) if ordered else ()
        tail = (self.rank.arg, cursor.arg, self.lists.arg)

        def launch(stream: gpu.Stream, order: Any, count: int, segment_order: Any, pieces: int) -> None:
            segments(
                stream, pieces, BLOCK, segment_order, side.segments, side.heavy, *later, side.words, words,
                side.frame_of, *tail,
            )  # fmt: skip
            tasks(
                stream, count, BLOCK, order, side.tasks, np.uint32(side.limit), side.words, words, side.first_of,
                side.vertices_of, side.frame_of, *tail,
            )  # fmt: skip

        side.visit(None, launch)

    def _sort(self) -> None:
        """Each list by itself, as many at a time as there is room for keys."""
        total = int(gpu.download(self.starts.array[self.count :])[0])
        cuts = [0, self.count]
        starts = np.array([0, total], np.uint64)
        if total > self.sizes.keys:
            starts, cuts = gpu.download(self.starts.array), [0]
            while cuts[-1] < self.count:
                end = starts[cuts[-1]] + np.uint64(self.sizes.keys)
                cuts.append(max(cuts[-1] + 1, int(np.searchsorted(starts, end, "right")) - 1))
            starts = starts[cuts]
        for k, (lo, hi) in enumerate(pairwise(cuts)):
            entries = int(starts[k + 1] - starts[k])
            if not entries:
                continue
            plain("keys")(
                self.stream, blocks(entries), BLOCK, np.uint64(entries), np.uint32(lo), np.uint32(hi), self.starts.arg,
                self.lists.arg, self.keys.arg,
            )  # fmt: skip
            self.stream.synchronize()
            gpu.sort(self.keys.array[:entries])
            plain("unkeyed")(
                self.stream, blocks(entries), BLOCK, np.uint64(entries), starts[k], self.keys.arg, self.lists.arg
            )

    @property
    def bounds(self) -> tuple[Any, Any]:
        """Where lists begin and end."""
        return self.starts.arg, self.ends.arg

    def held(self) -> Iterator[Part]:
        """All of them."""
        if self.count:
            yield Part(0, self.count, np.uint64(0), self.lists.arg)

    def passing(self, theirs: Part) -> Iterator[Pass]:
        """The same lists."""
        if self.sizes.everyone:
            yield Pass(self.stream, theirs, self.items.arg, 0)
            return
        plain("pieces")(
            self.stream, blocks(self.count), BLOCK, np.uint32(self.count), *self.bounds, self.found.arg, self.items.arg
        )
        yield Pass(self.stream, theirs, self.items.arg, int(gpu.download(self.found.array)[0]))

    def lengths(self, slots: int) -> Array:
        """How long they are, by slot."""
        found = self.device.full(slots, 0, number_dtype(self.store), "reads")
        plain("lengths")(self.stream, blocks(self.count), BLOCK, np.uint32(self.count), *self.bounds, found.arg)
        return found

    def entries_of(self, part: Part) -> int:
        """How many entries the lists of a part have, gaps and all."""
        return int(gpu.download(self.starts.array[part.last :])[0])

    def close(self) -> None:
        self.stream.synchronize()
        for array in self._arrays:
            array.release()
        if hasattr(self, "_scratch"):
            self._scratch.release()


__all__ = ["Lists", "Part", "Pass", "Sizes", "item_count", "lengths_of", "list_items", "plain"]
