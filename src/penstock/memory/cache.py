"""The host page cache: frames that keep what was read, between the stream and its workers.

A page is kept by handing over the frame it was read into, against a free one: nothing is copied. The cache therefore
owns the stream's ring as well, and both stay reserved until it is closed.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Literal

import numpy as np

from penstock.memory.buffers import Frames, allocated_size
from penstock.memory.extents import Batch, Extents, Spans
from penstock.memory.ledger import Ledger, Reservation

Policy = Literal["lru", "resident"]


@dataclass(slots=True)
class Entry:
    """A frame in the cache: the items in it, and whether their checksums were compared."""

    frame: int
    spans: dict[int, Spans]
    nbytes: int
    verified: bool


@dataclass(slots=True)
class Hit:
    """Items of a run that are in one cached frame."""

    entry: Entry
    items: list[int]


class PageCache:
    """Pages of one kind of item in at most `capacity` bytes.

    `lru` evicts what was used longest ago: for traversals. `resident` fills once and never evicts: for repeated full
    passes, where LRU would drop each page just before its next use.
    """

    def __init__(self, capacity: int, ledger: Ledger, policy: Policy = "lru") -> None:
        if policy not in ("lru", "resident"):
            raise ValueError(f"there is no cache policy {policy!r}; the policies are lru and resident")
        self.capacity, self.policy = int(capacity), policy
        self.hits = self.misses = 0
        self._ledger = ledger
        self._lock = threading.Lock()
        self._frames: Frames | None = None
        self._reservation: Reservation | None = None
        self._signature: Any = None
        self._ring: set[int] = set()
        self._attached = False
        self._reset(0)

    def _reset(self, count: int) -> None:
        self._frame_of = np.full(count, -1, np.int32)
        self._entries: dict[int, Entry] = {}
        # What may be evicted, oldest first. Entries that a run is about to use are out of it.
        self._idle: OrderedDict[int, Entry] = OrderedDict()
        self._spare: list[int] = []
        self.bytes = 0

    @property
    def unreserved(self) -> int:
        """Bytes of the capacity that the ledger does not count yet."""
        return self.capacity if self._reservation is None else 0

    def attach(
        self, parts: Sequence[Extents], *, frame_bytes: int, ring: int, largest: int, smallest: int
    ) -> tuple[Frames, set[int]]:
        """Frames for a stream of these parts and the numbers of those that are its ring.

        What an earlier stream over the same files left here is kept if its frames hold the `largest` item and its ring
        has the `smallest` number of them.
        """
        if self._attached:
            raise RuntimeError("the page cache is used by another open stream")
        signature = ([part.file.paths for part in parts], len(parts[0]))
        if (
            self._frames is not None
            and signature == self._signature
            and self._frames.frame_bytes >= largest
            and len(self._ring) >= smallest
        ):
            self._attached = True
            return self._frames, self._ring
        self.close()
        # The index of what is where is memory too: it is paid from the capacity.
        kept = max(0, self.capacity - 4 * len(parts[0])) // frame_bytes
        total = kept + ring
        self._reservation = self._ledger.reserve(allocated_size(total * frame_bytes) + 4 * len(parts[0]), "page cache")
        try:
            self._frames = Frames(total, frame_bytes)
        except BaseException:
            self._reservation.release()
            raise
        self._signature, self._ring = signature, set(range(ring))
        self._reset(len(parts[0]))
        self._spare = list(range(total - 1, ring - 1, -1))
        self._attached = True
        return self._frames, self._ring

    def detach(self) -> None:
        """The stream is closed; pages and ring wait for the next one."""
        self._attached = False

    def take(self, items: np.ndarray) -> tuple[list[Hit], np.ndarray]:
        """Split a run into what is here, which stays until `done` or `settle`, and what must be read."""
        with self._lock:
            frames = self._frame_of[items]
            present = frames >= 0
            grouped: dict[int, list[int]] = {}
            for frame, item in zip(frames[present].tolist(), items[present].tolist(), strict=True):
                grouped.setdefault(frame, []).append(item)
            for frame in grouped:
                self._idle.pop(frame, None)
            missing = items[~present]
            self.hits += len(items) - len(missing)
            self.misses += len(missing)
            return [Hit(self._entries[frame], found) for frame, found in grouped.items()], missing

    def done(self, hit: Hit) -> None:
        """The hit's items were used: it may be evicted again, after all others."""
        with self._lock:
            self._idle[hit.entry.frame] = hit.entry

    def admit(self, frame: int, batch: Batch, verified: bool) -> int:
        """Keep a frame of the ring if the policy wants it; the number of the frame that takes its place in the ring."""
        with self._lock:
            if any(self._frame_of[item] >= 0 for item in batch.items):  # given twice in one run
                return frame
            if self._spare:
                other = self._spare.pop()
            elif self.policy == "lru" and self._idle:
                other, victim = self._idle.popitem(last=False)
                self._forget(victim)
            else:
                return frame
            nbytes = sum(end - begin for spans in batch.spans for begin, end in spans)
            entry = Entry(frame, dict(zip(batch.items, batch.spans, strict=True)), nbytes, verified)
            self._entries[frame] = self._idle[frame] = entry
            self._frame_of[batch.items] = frame
            self.bytes += nbytes
            self._ring.remove(frame)
            self._ring.add(other)
            return other

    def settle(self) -> None:
        """A run is over, perhaps before its time: whatever it held may be evicted again."""
        with self._lock:
            if len(self._idle) < len(self._entries):
                for frame, entry in self._entries.items():
                    self._idle.setdefault(frame, entry)

    def clear(self) -> None:
        """Forget all pages; the memory stays reserved for the next ones. Not during a run."""
        with self._lock:
            for entry in list(self._entries.values()):
                self._forget(entry)
                self._spare.append(entry.frame)
            self._idle.clear()

    def _forget(self, entry: Entry) -> None:
        del self._entries[entry.frame]
        self._frame_of[list(entry.spans)] = -1
        self.bytes -= entry.nbytes

    def heartbeat(self) -> dict[str, Any]:
        """Pages and bytes held, and how often they were of use."""
        with self._lock:
            return {
                "policy": self.policy,
                "used": self.bytes,
                "limit": self.capacity,
                "items": sum(len(entry.spans) for entry in self._entries.values()),
                "hits": self.hits,
                "misses": self.misses,
            }

    def close(self) -> None:
        """Give all memory back. Streams that use the cache must be closed before."""
        self._reset(0)
        self._frames, self._signature, self._ring, self._attached = None, None, set(), False
        if self._reservation is not None:
            self._reservation.release()
            self._reservation = None

    def __enter__(self) -> PageCache:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.close()


__all__ = ["Hit", "PageCache", "Policy"]
