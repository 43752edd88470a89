"""Translated kernels, kept in files for the next process: numba-cuda takes longer to compile one than it takes to run.
They are of no use to anybody once a file of the package or of the emulator has changed."""

from __future__ import annotations

import functools
import hashlib
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

from llvmlite import binding as llvm

import penstock
from emulator.host import translate

_DAY = 86400


def _sources() -> Iterator[Path]:
    for folder in (Path(penstock.__file__).parent, Path(__file__).parent):
        yield from sorted(folder.rglob("*.py"))


@functools.cache
def _folder() -> Path:
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in _sources()))
    digest.update("".join(version(name) for name in ("numba-cuda", "numba", "llvmlite")).encode())
    parent = Path(sys.prefix) / "emulated"
    for old in parent.glob("*"):
        if old.stat().st_mtime < time.time() - _DAY:
            shutil.rmtree(old, ignore_errors=True)
    found = parent / digest.hexdigest()[:16]
    found.mkdir(parents=True, exist_ok=True)
    os.utime(found)  # used
    return found


def translated(function: Any, kinds: tuple[Any, ...], key: str | None) -> tuple[Any, int, bool]:
    """What `translate` makes of a kernel, which is known by its key, and whether it is new; without a key it is."""
    if key is None:
        return *translate(function, kinds), True
    name = hashlib.sha256(f"{key} {kinds}".encode()).hexdigest()
    path = _folder() / f"{name}.bc"
    if path.exists():
        words = path.read_bytes()
        return llvm.parse_bitcode(words[8:]), int.from_bytes(words[:8], "little"), False
    module, count = translate(function, kinds)
    with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as file:
        file.write(count.to_bytes(8, "little") + module.as_bitcode())
    os.replace(file.name, path)
    return module, count, True


__all__ = ["translated"]
