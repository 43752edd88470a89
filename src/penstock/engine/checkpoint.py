"""Checkpoints: the state of an iterative run in a folder, complete or not there, tied to its store and its program.

FOLDER/current.json names the step folder that counts; it is replaced last. Each vector lies in a file of its own with
its checksum in the JSON. A run of several programs is taken up at the program that was interrupted: those before it
run again, and give the same.
"""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from penstock.engine.compile import fingerprint
from penstock.engine.program import Program
from penstock.errors import InputError, StoreError, UsageError
from penstock.store.checksum import checksum

CURRENT = "current.json"
_PIECE = 64 << 20


class Checkpoint:
    """Saves every so many supersteps or seconds, and gives back what a killed run saved."""

    def __init__(self, folder: Path, every: str, uuid: str) -> None:
        self.folder, self.uuid = folder, uuid
        self.steps, self.seconds = parse_interval(every)
        self.saved = 0
        self.resumed: int | None = None
        """The superstep at which an earlier run was taken up."""
        self._runs = 0
        self._found = self._read()
        self._last = time.monotonic()

    def _read(self) -> dict[str, Any] | None:
        try:
            found: dict[str, Any] = json.loads((self.folder / CURRENT).read_text())
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:
            raise StoreError(f"{self.folder} holds no readable checkpoint ({error}): remove it to start anew") from None
        if found.get("store") != self.uuid:
            raise UsageError(f"the checkpoint in {self.folder} belongs to another store: give another folder or remove it")
        return found

    def begin(self, program: Program, params: Mapping[str, Any], seeds: list[int]) -> dict[str, Any] | None:
        """Called as each program starts: what an earlier run saved of it, or None."""
        self._key = fingerprint(vars(program), dict(params), [int(seed) for seed in seeds])
        self._program, self._step = program.name, 0
        self._runs += 1
        found = self._found
        if found is None or found["run"] != self._runs:
            return None
        if found["key"] != self._key:
            raise UsageError(
                f"the checkpoint in {self.folder} belongs to a run of {found['program']} with other options: "
                "give another folder or remove it"
            )
        self._found = None
        self.resumed = self._step = int(found["scalars"]["step"])
        return found

    def restore(self, found: Mapping[str, Any], vectors: Mapping[str, np.ndarray]) -> Mapping[str, Any]:
        """Fill the vectors; returns the saved scalars."""
        for name, array in vectors.items():
            entry = found["vectors"].get(name)
            path = self.folder / found["folder"] / name
            if entry is None or entry["bytes"] != array.nbytes or entry["dtype"] != str(array.dtype):
                raise StoreError(f"{self.folder} holds no {name} of this run: remove it to start anew")
            flat, at, sums = array.reshape(-1).view(np.uint8), 0, []
            with path.open("rb", buffering=0) as file:
                while at < len(flat):
                    piece = flat[at : at + _PIECE]
                    if file.readinto(memoryview(piece)) != len(piece):
                        raise InputError("is truncated: remove the checkpoint to start anew", path=path)
                    sums.append(checksum(piece, at // _PIECE))
                    at += len(piece)
            if sums != entry["sums"]:
                raise InputError("is damaged: remove the checkpoint to start anew", path=path)
        scalars: Mapping[str, Any] = found["scalars"]
        return scalars

    def due(self, step: int) -> bool:
        """Whether it is time to save."""
        if self.steps is not None:
            return step - self._step >= self.steps
        return time.monotonic() - self._last >= (self.seconds or 0)

    def save(self, vectors: Mapping[str, np.ndarray], scalars: Mapping[str, Any]) -> None:
        """Write everything beside what counts now, then make it count."""
        self.folder.mkdir(parents=True, exist_ok=True)
        name = f"{self._runs}-{int(scalars['step'])}"
        target = self.folder / name
        shutil.rmtree(target, ignore_errors=True)
        target.mkdir()
        entries = {key: _write(target / key, array) for key, array in vectors.items()}
        found = {
            "store": self.uuid, "program": self._program, "key": self._key, "run": self._runs, "folder": name,
            "scalars": dict(scalars), "vectors": entries,
        }  # fmt: skip
        partial = self.folder / f"{CURRENT}.partial"
        partial.write_text(json.dumps(found))
        _sync(partial)
        os.replace(partial, self.folder / CURRENT)
        _sync(self.folder)
        for other in self.folder.iterdir():
            if other.is_dir() and other.name != name:
                shutil.rmtree(other, ignore_errors=True)
        self._step, self._last = int(scalars["step"]), time.monotonic()
        self.saved += 1

    def finish(self) -> None:
        """The run is over: nothing is left to resume."""
        if (self.folder / CURRENT).exists():
            (self.folder / CURRENT).unlink()
            shutil.rmtree(self.folder, ignore_errors=True)


def parse_interval(text: str) -> tuple[int | None, float | None]:
    """`10`: supersteps; `30s`, `5m`: time."""
    units = {"s": 1.0, "m": 60.0, "h": 3600.0}
    try:
        if text[-1:] in units:
            seconds = float(text[:-1]) * units[text[-1]]
            if seconds >= 0:
                return None, seconds
        elif int(text) >= 1:
            return int(text), None
    except ValueError:
        pass
    raise UsageError(f"{text!r} is no interval for checkpoints: write 10 for supersteps, 30s or 5m for time")


def _write(path: Path, array: np.ndarray) -> dict[str, Any]:
    flat, sums = array.reshape(-1).view(np.uint8), []
    with path.open("wb", buffering=0) as file:
        for at in range(0, len(flat), _PIECE):
            piece = flat[at : at + _PIECE]
            sums.append(checksum(piece, at // _PIECE))
            view = memoryview(piece)
            while view:
                view = view[file.write(view) :]
        os.fsync(file.fileno())
    return {"bytes": array.nbytes, "dtype": str(array.dtype), "sums": sums}


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


__all__ = ["Checkpoint", "parse_interval"]
