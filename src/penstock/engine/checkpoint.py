"""Checkpoints: the state of an iterative run in a folder, complete or not there, tied to its store and its program.

FOLDER/current.json names the step folder that counts; it is replaced last. Each vector lies in a file of its own with
its checksums in the JSON. A run of several programs is taken up at the program that was interrupted: those before it
run again, and give the same. A run holds the folder's lock to its end, so that no other one writes there.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import shutil
import time
import weakref
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from penstock.engine.program import Program
from penstock.errors import InputError, StoreError, TargetLocked, UsageError
from penstock.memory.fingerprint import fingerprint
from penstock.store.checksum import checksum
from penstock.store.lock import Lock
from penstock.store.whole import explained

CURRENT = "current.json"
STEP = "step-"
"""How the names of step folders begin; what else lies in the folder is not ours."""
BESIDE = "beside-"
"""How the names of vectors begin that are not the program's."""
_PIECE = 8 << 20
_KEYS = {
    "store": str, "algorithm": str, "program": str, "first": str, "key": str, "run": int, "folder": str,
    "scalars": dict, "vectors": dict,
}  # fmt: skip


class Checkpoint:
    """Saves every so many supersteps or seconds, and gives back what a killed run saved."""

    def __init__(self, folder: Path, every: str, uuid: str, algorithm: str = "") -> None:
        self.folder, self.uuid, self.algorithm = folder, uuid, algorithm
        self.steps, self.seconds = parse_interval(every)
        self.saved = 0
        self.resumed: int | None = None
        """The superstep at which an earlier run was taken up."""
        self._runs, self._first, self._key = 0, "", ""
        self._beside: dict[str, np.ndarray] = {}
        self._lists: dict[str, list[Any]] = {}
        self._lock()
        try:
            self._found = self._read()
        except BaseException:
            self.close()
            raise
        self._last = time.monotonic()

    def _lock(self) -> None:
        """Have the folder for this run alone; one that cannot be used is refused now, not when the first hour is
        saved."""
        there = next(path for path in (self.folder.absolute(), *self.folder.absolute().parents) if path.exists())
        if not there.is_dir() or not os.access(there, os.W_OK | os.X_OK):
            raise StoreError(f"checkpoints cannot be written to {self.folder}: choose a folder that can be written")
        while True:
            try:
                self.folder.mkdir(parents=True, exist_ok=True)
                lock = Lock(self.folder / "checkpoint")
            except FileNotFoundError:  # another run has just finished, and removed the folder
                continue
            except TargetLocked:
                raise TargetLocked(
                    f"the checkpoint in {self.folder} is that of a run that goes on: wait for it or give another folder"
                ) from None
            except StoreError:
                raise StoreError(
                    f"{self.folder} is on a file system that cannot lock files: choose a folder on another one"
                ) from None
            except OSError as error:
                raise StoreError(f"checkpoints cannot be written to {self.folder}: {error.strerror}") from None
            break
        # A run that is dropped without being closed lets the folder go as well.
        self._release = weakref.finalize(self, lock.release)

    def _read(self) -> dict[str, Any] | None:
        """What an earlier run left."""
        try:
            found = json.loads((self.folder / CURRENT).read_text())
        except FileNotFoundError:
            return None
        except (OSError, ValueError):
            found = None
        if not isinstance(found, dict) or not all(isinstance(found.get(key), kind) for key, kind in _KEYS.items()):
            raise StoreError(f"{self.folder / CURRENT} is no readable checkpoint: remove it to start anew")
        if found["store"] != self.uuid:
            raise UsageError(
                f"the checkpoint in {self.folder} belongs to another store: give another folder or remove it"
            )
        if found["algorithm"] != self.algorithm:
            self._refuse(found)
        return found

    def _refuse(self, found: Mapping[str, Any]) -> None:
        raise UsageError(
            f"the checkpoint in {self.folder} belongs to a run of {found['algorithm'] or found['program']} with other "
            "options: give another folder or remove it"
        )

    def accompany(self, vectors: Mapping[str, np.ndarray], lists: Mapping[str, list[Any]]) -> None:
        """What an algorithm gathers itself while its programs run: it is saved and given back, in place, with their
        state."""
        self._beside = {BESIDE + name: array for name, array in vectors.items()}
        self._lists = dict(lists)

    def begin(self, program: Program, params: Mapping[str, Any], seeds: list[int]) -> dict[str, Any] | None:
        """Called as each program starts: what an earlier run saved of it, or None."""
        # The key tells all programs so far: what one starts from is what those before it left.
        self._key = fingerprint(self._key, vars(program), dict(params), [int(seed) for seed in seeds])
        self._first = self._first or self._key
        self._program, self._step = program.name, 0
        self._runs += 1
        found = self._found
        if found is None:
            return None
        if found["first"] != self._first or (found["run"] == self._runs and found["key"] != self._key):
            self._refuse(found)
        if found["run"] != self._runs:
            return None
        self._found = None
        self.resumed = self._step = int(found["scalars"]["step"])
        return found

    def restore(
        self, found: Mapping[str, Any], vectors: Mapping[str, np.ndarray], drop: Callable[[], None] | None = None
    ) -> Mapping[str, Any]:
        """Fill the vectors; returns the saved scalars. `drop` lets pages of spilled vectors go."""
        for name, array in {**vectors, **self._beside}.items():
            entry = found["vectors"].get(name)
            if not entry or (entry.get("bytes"), entry.get("dtype")) != (array.nbytes, str(array.dtype)):
                raise StoreError(f"{self.folder} holds no {name} of this run: remove it to start anew")
            _fill(self.folder / found["folder"] / name, array, entry.get("sums"), drop)
        for name, values in self._lists.items():
            values[:] = found.get("lists", {}).get(name, [])
        scalars: Mapping[str, Any] = found["scalars"]
        return scalars

    def due(self, step: int) -> bool:
        """Whether it is time to save."""
        if self._found is not None:  # a later program is to be taken up: what is there still counts
            return False
        if self.steps is not None:
            return step - self._step >= self.steps
        return time.monotonic() - self._last >= (self.seconds or 0)

    def save(
        self, vectors: Mapping[str, np.ndarray], scalars: Mapping[str, Any], drop: Callable[[], None] | None = None
    ) -> None:
        """Write everything beside what counts now, then make it count."""
        name = f"{STEP}{self._runs}-{int(scalars['step'])}"
        target = self.folder / name
        with explained(self.folder):
            self.folder.mkdir(parents=True, exist_ok=True)
            shutil.rmtree(target, ignore_errors=True)
            target.mkdir()
            everything = {**vectors, **self._beside}
            entries = {key: _write(target / key, array, drop) for key, array in everything.items()}
            _sync(target)
            found = {
                "store": self.uuid, "algorithm": self.algorithm, "program": self._program, "first": self._first,
                "key": self._key, "run": self._runs, "folder": name, "scalars": dict(scalars), "vectors": entries,
                "lists": self._lists,
            }  # fmt: skip
            partial = self.folder / f"{CURRENT}.partial"
            partial.write_text(json.dumps(found))
            _sync(partial)
            os.replace(partial, self.folder / CURRENT)
            _sync(self.folder)
        self._clear(but=name)
        self._step, self._last = int(scalars["step"]), time.monotonic()
        self.saved += 1

    def finish(self) -> None:
        """The run is over: nothing is left to resume."""
        (self.folder / CURRENT).unlink(missing_ok=True)
        (self.folder / f"{CURRENT}.partial").unlink(missing_ok=True)
        self._clear()
        self.close()

    def close(self) -> None:
        """Let other runs have the folder."""
        self._release()
        with contextlib.suppress(OSError):  # there is something to resume, or something else is in it
            self.folder.rmdir()

    def _clear(self, but: str = "") -> None:
        for other in self.folder.glob(f"{STEP}*"):
            if other.name != but:
                shutil.rmtree(other, ignore_errors=True)


def parse_interval(text: str) -> tuple[int | None, float | None]:
    """`10`: supersteps; `30s`, `5m`: time."""
    units = {"s": 1.0, "m": 60.0, "h": 3600.0}
    try:
        if text[-1:] in units:
            seconds = float(text[:-1]) * units[text[-1]]
            if math.isfinite(seconds) and seconds >= 0:
                return None, seconds
        elif int(text) >= 1:
            return int(text), None
    except ValueError:
        pass
    raise UsageError(f"{text!r} is no interval for checkpoints: write 10 for supersteps, 30s or 5m for time")


def _write(path: Path, array: np.ndarray, drop: Callable[[], None] | None) -> dict[str, Any]:
    flat, sums = array.reshape(-1).view(np.uint8), []
    with path.open("wb", buffering=0) as file:
        for at in range(0, len(flat), _PIECE):
            piece = flat[at : at + _PIECE]
            sums.append(checksum(piece, at // _PIECE))
            view = memoryview(piece)
            while view:
                view = view[file.write(view) :]
            if drop is not None:
                drop()
        os.fsync(file.fileno())
    return {"bytes": array.nbytes, "dtype": str(array.dtype), "sums": sums}


def _fill(path: Path, array: np.ndarray, sums: Any, drop: Callable[[], None] | None) -> None:
    """Read what `_write` wrote, if it is still that."""
    anew = "remove the checkpoint to start anew"
    flat, found = array.reshape(-1).view(np.uint8), []
    try:
        file = path.open("rb")
    except OSError as error:
        raise InputError(f"{error.strerror}: {anew}", path=path) from None
    with file:
        for at in range(0, len(flat), _PIECE):
            piece = flat[at : at + _PIECE]
            if file.readinto(memoryview(piece)) != len(piece):
                raise InputError(f"is truncated: {anew}", path=path)
            found.append(checksum(piece, at // _PIECE))
            if drop is not None:
                drop()
    if found != sums:
        raise InputError(f"is damaged: {anew}", path=path)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


__all__ = ["CURRENT", "Checkpoint", "parse_interval"]
