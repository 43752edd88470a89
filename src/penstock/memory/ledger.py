"""One byte account for a budget: everything big is reserved here before it is allocated."""

from __future__ import annotations

import threading
import weakref
from collections import deque
from types import TracebackType
from typing import Any

import numpy as np

from penstock.errors import DoesNotFit
from penstock.memory.buffers import allocate, allocated_size
from penstock.observe.events import current

_MAPPED_FROM = 1 << 20
_HUGE_FROM = 4 << 20
_SHOWN_FROM = 1 << 16
"""Bytes from which a change is worth a point on the curve of somebody who records."""
Shape = int | tuple[int, ...]


class Reservation:
    """Bytes set aside in a ledger until `release`."""

    __slots__ = ("_ledger", "_released", "nbytes", "what")

    def __init__(self, ledger: Ledger, nbytes: int, what: str) -> None:
        self._ledger, self.nbytes, self.what, self._released = ledger, nbytes, what, False

    def release(self) -> None:
        """Give the bytes back; a second call does nothing."""
        self._ledger._release(self)

    def resize(self, nbytes: int) -> None:
        """Hold `nbytes` instead; when that does not fit the old size stays."""
        self._ledger._resize(self, nbytes)

    def __enter__(self) -> Reservation:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.release()


class Ledger:
    """A thread-safe account of at most `limit` bytes; `setting` is what the user would raise it by."""

    def __init__(self, limit: int, setting: str = "memory_limit") -> None:
        self.limit, self.setting = int(limit), setting
        self._lock = threading.Lock()
        self._used = self._peak = 0
        self._by_what: dict[str, int] = {}
        self._at_peak: dict[str, int] = {}
        self._events, self._tier = current(), "host" if setting == "memory_limit" else "device"
        # Arrays die wherever the collector runs, perhaps under our own lock: their bytes wait here for the next caller.
        self._dead: deque[Reservation] = deque()
        self._escaped: list[tuple[weakref.ref[np.ndarray], int]] = []

    def reserve(self, nbytes: int, what: str) -> Reservation:
        """Set `nbytes` aside for `what`, or raise DoesNotFit."""
        if nbytes < 0:
            raise ValueError(f"cannot reserve {nbytes} bytes for {what}")
        with self._lock:
            self._bury()
            self._add(int(nbytes), what)
        return Reservation(self, int(nbytes), what)

    def empty(self, shape: Shape, dtype: Any, what: str) -> np.ndarray:
        """An array whose bytes are held until its last view is gone."""
        root, array, reservation = self._make(shape, dtype, what, zero=False)
        weakref.finalize(root, self._dead.append, reservation).atexit = False
        return array

    def zeros(self, shape: Shape, dtype: Any, what: str) -> np.ndarray:
        """Like `empty`, filled with zeros."""
        root, array, reservation = self._make(shape, dtype, what, zero=True)
        weakref.finalize(root, self._dead.append, reservation).atexit = False
        return array

    def release_later(self, reservation: Reservation) -> None:
        """Release it when the ledger is next asked: for finalizers, which may run while it is locked."""
        self._dead.append(reservation)

    def scope(self, name: str) -> Scope:
        """`with ledger.scope("sort") as scope:` releases all that was taken from it at its end."""
        return Scope(self, name)

    @property
    def used(self) -> int:
        with self._lock:
            self._bury()
            return self._used

    @property
    def free(self) -> int:
        return max(0, self.limit - self.used)

    @property
    def peak(self) -> int:
        return self._peak

    @property
    def at_peak(self) -> dict[str, int]:
        """What held how many bytes when the account was fullest."""
        with self._lock:
            return dict(self._at_peak)

    def heartbeat(self) -> dict[str, Any]:
        """The account now. `escaped`: arrays still referenced though their scope has ended, no longer in `used`."""
        with self._lock:
            self._bury()
            self._escaped = [(ref, n) for ref, n in self._escaped if ref() is not None]
            return {
                "used": self._used,
                "peak": self._peak,
                "limit": self.limit,
                "escaped": sum(n for _, n in self._escaped),
                "what": dict(self._by_what),
            }

    def _make(self, shape: Shape, dtype: Any, what: str, zero: bool) -> tuple[np.ndarray, np.ndarray, Reservation]:
        kind = np.dtype(dtype)
        dims = (int(shape),) if isinstance(shape, (int, np.integer)) else tuple(int(n) for n in shape)
        nbytes = kind.itemsize
        for n in dims:
            nbytes *= n
        if nbytes < _MAPPED_FROM:
            reservation = self.reserve(nbytes, what)
            root = np.zeros(nbytes, np.uint8) if zero else np.empty(nbytes, np.uint8)
        else:
            reservation = self.reserve(allocated_size(nbytes), what)
            try:
                root = allocate(nbytes, huge=nbytes >= _HUGE_FROM)
            except BaseException:
                reservation.release()
                raise
        return root, root.view(kind).reshape(dims), reservation

    def _bury(self) -> None:
        while self._dead:
            self._drop(self._dead.popleft())

    def _add(self, nbytes: int, what: str) -> None:
        if self._used + nbytes > self.limit:
            raise DoesNotFit(what, needed=self._used + nbytes, limit=self.limit, setting=self.setting)
        self._used += nbytes
        if nbytes:
            self._by_what[what] = self._by_what.get(what, 0) + nbytes
        if self._used > self._peak:
            self._peak, self._at_peak = self._used, dict(self._by_what)
        self._show(nbytes, what)

    def _show(self, change: int, what: str) -> None:
        if self._events is not None and change >= _SHOWN_FROM:
            self._events.count(f"{self._tier} memory/{what}", self._by_what.get(what, 0))

    def _drop(self, reservation: Reservation) -> None:
        if reservation._released:
            return
        reservation._released = True
        self._subtract(reservation.nbytes, reservation.what)

    def _subtract(self, nbytes: int, what: str) -> None:
        self._used -= nbytes
        left = self._by_what.get(what, 0) - nbytes
        if left:
            self._by_what[what] = left
        else:
            self._by_what.pop(what, None)
        self._show(nbytes, what)

    def _release(self, reservation: Reservation) -> None:
        with self._lock:
            self._drop(reservation)

    def _resize(self, reservation: Reservation, nbytes: int) -> None:
        if nbytes < 0:
            raise ValueError(f"cannot reserve {nbytes} bytes for {reservation.what}")
        with self._lock:
            self._bury()
            if reservation._released:
                raise ValueError(f"the reservation for {reservation.what} was released before it was resized")
            change = nbytes - reservation.nbytes
            if change > 0:
                self._add(change, reservation.what)
            elif change:
                self._subtract(-change, reservation.what)
            reservation.nbytes = nbytes

    def _note_escaped(self, arrays: list[tuple[weakref.ref[np.ndarray], int]]) -> None:
        with self._lock:
            self._escaped = [(ref, n) for ref, n in self._escaped + arrays if ref() is not None]


class Scope:
    """Arrays and reservations of one stage, all released at its end. Do not use its arrays after that."""

    def __init__(self, ledger: Ledger, name: str) -> None:
        self.ledger, self.name = ledger, name
        self._held: list[Reservation] = []
        self._arrays: dict[int, tuple[np.ndarray, np.ndarray, Reservation]] = {}

    def empty(self, shape: Shape, dtype: Any, what: str | None = None) -> np.ndarray:
        return self._keep(*self.ledger._make(shape, dtype, what or self.name, zero=False))

    def zeros(self, shape: Shape, dtype: Any, what: str | None = None) -> np.ndarray:
        return self._keep(*self.ledger._make(shape, dtype, what or self.name, zero=True))

    def reserve(self, nbytes: int, what: str | None = None) -> Reservation:
        reservation = self.ledger.reserve(nbytes, what or self.name)
        self._held.append(reservation)
        return reservation

    def release(self, array: np.ndarray) -> None:
        """Give one array of this scope back before the end; `array` must be what `empty` or `zeros` returned."""
        entry = self._arrays.pop(id(array), None)
        if entry is None:
            raise ValueError(f"the array is not held by scope {self.name}")
        entry[2].release()

    def close(self) -> None:
        """Release everything; what the caller still refers to stays in memory and shows as `escaped`."""
        entries = list(self._arrays.values())
        self._arrays.clear()
        arrays = [(weakref.ref(entry[0]), entry[2].nbytes) for entry in entries]
        held = self._held + [entry[2] for entry in entries]
        self._held = []
        entries.clear()
        for reservation in held:
            reservation.release()
        self.ledger._note_escaped(arrays)

    def _keep(self, root: np.ndarray, array: np.ndarray, reservation: Reservation) -> np.ndarray:
        self._arrays[id(array)] = (root, array, reservation)
        return array

    def __enter__(self) -> Scope:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.close()


__all__ = ["Ledger", "Reservation", "Scope"]
