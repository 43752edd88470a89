"""Key-value data in a folder: raw columns and a manifest with their checksums. What a loop goes on from after a stop.

NAME/manifest.json names the folder beside it that counts, and says what lies where in its files. A first save is made
under a temporary name and renamed. A later one is written into the folder beside the one that counts, and its manifest
takes the place of the old one at the end: whenever the power goes, there is a complete one.
"""

from __future__ import annotations

import json
import os
import shutil
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from penstock.errors import DamagedStore, InputError, StoreError, TargetExists, UsageError
from penstock.mapreduce.chunk import Chunk, Groups
from penstock.mapreduce.columns import Bytes, Column, Kind, arrays_of, as_kind
from penstock.store.checksum import checksum
from penstock.store.lock import Lock
from penstock.store.whole import explained

if TYPE_CHECKING:
    from penstock.mapreduce.data import Data
    from penstock.mapreduce.keyvalue import KeyValue
    from penstock.mapreduce.multivalue import KeyMultiValue
    from penstock.mapreduce.session import MapReduce

MANIFEST = "manifest.json"
FORMAT = "penstock key-value data"
VERSION = 1
_DATA = "data-"


def save(data: Data, path: str | os.PathLike[str], *, overwrite: bool = False, note: Any = None) -> None:
    """Write all chunks of this rank; with several ranks, each has a folder in `path`."""
    target = Path(path)
    communicator = data.mr.communicator
    if communicator.size > 1:
        with explained(target):
            target.mkdir(parents=True, exist_ok=True)
        target /= f"{communicator.rank}-of-{communicator.size}"
    if not target.parent.is_dir():
        raise StoreError(f"cannot write {target}: there is no folder {target.parent}")
    with explained(target):
        lock = Lock(target)
        try:
            there = _existing(target, overwrite)
            folder = target if there else target.with_name(f".{target.name}.tmp")
            if not there:
                shutil.rmtree(folder, ignore_errors=True)  # what a killed run left: we hold the lock
                folder.mkdir()
            name = f"{_DATA}{uuid.uuid4().hex[:12]}"
            try:
                _write(data, folder, name, note)
                if not there:
                    os.rename(folder, target)
                    _sync(target.parent)
            except BaseException:
                shutil.rmtree(folder / name if there else folder, ignore_errors=True)
                raise
            for old in target.glob(f"{_DATA}*"):
                if old.name != name:
                    shutil.rmtree(old, ignore_errors=True)
        finally:
            lock.release()
    communicator.barrier()


def _existing(target: Path, overwrite: bool) -> bool:
    if not os.path.lexists(target):
        return False
    if not overwrite:
        raise TargetExists(f"{target} exists: choose another name or pass overwrite=True")
    try:
        ours = _manifest(target)["format"] == FORMAT
    except (StoreError, InputError):
        ours = False
    if not ours:
        raise TargetExists(f"{target} is not saved key-value data: it is not overwritten; remove it by hand")
    return True


def _write(data: Data, folder: Path, name: str, note: Any) -> None:
    inside = folder / name
    inside.mkdir()
    chunks: list[dict[str, Any]] = []
    files: dict[str, Any] = {}
    try:
        for chunk in data.mr.room.stream(data.kept):
            entry: dict[str, Any] = {"rows": len(chunk), "arrays": []}
            if isinstance(chunk, Groups):
                entry["continues"] = chunk.continues
            for file_name, array in _arrays(chunk):
                if file_name not in files:
                    files[file_name] = (inside / file_name).open("wb")
                flat = np.ascontiguousarray(array).view(np.uint8) if array.nbytes else np.empty(0, np.uint8)
                entry["arrays"].append([len(array), files[file_name].tell(), checksum(flat, len(chunks))])
                files[file_name].write(memoryview(flat))
            chunks.append(entry)
        for file in files.values():
            file.flush()
            os.fsync(file.fileno())
    finally:
        for file in files.values():
            file.close()
    _sync(inside)
    manifest = {
        "format": FORMAT, "version": VERSION, "what": data.name, "key": _described(data.key),
        "value": _described(data.value), "order": data.order, "folder": name, "note": note, "chunks": chunks,
    }  # fmt: skip
    partial = folder / f"{MANIFEST}.partial"
    with partial.open("w") as file:
        json.dump(manifest, file)
        file.flush()
        os.fsync(file.fileno())
    os.replace(partial, folder / MANIFEST)
    _sync(folder)


def _names(kind: Kind, name: str) -> list[str]:
    return [f"{name}.offsets", name] if isinstance(kind, str) else [name]


def _arrays(chunk: Chunk | Groups) -> Iterator[tuple[str, np.ndarray]]:
    parts = {"keys": chunk.keys, "groups": None, "values": chunk.values}
    if isinstance(chunk, Groups):
        parts["groups"] = chunk.offsets
    for name, column in parts.items():
        if column is not None:
            held = arrays_of(column)
            names = [f"{name}.offsets", name] if len(held) == 2 else [name]
            yield from zip(names, held, strict=True)


def _described(kind: Kind) -> Any:
    return kind if isinstance(kind, str) else np.lib.format.dtype_to_descr(kind)


def _kind(found: Any, path: Path) -> Kind:
    try:
        if isinstance(found, list):
            found = [tuple(tuple(x) if isinstance(x, list) else x for x in field) for field in found]
        return found if found in ("string", "bytes") else as_kind(np.lib.format.descr_to_dtype(found))
    except (TypeError, ValueError, UsageError):
        raise InputError(f"names no kind that is known: {found!r}", path=path / MANIFEST) from None


def _manifest(path: Path) -> dict[str, Any]:
    try:
        found = json.loads((path / MANIFEST).read_text())
    except FileNotFoundError:
        raise StoreError(f"{path} holds no saved key-value data") from None
    except (OSError, ValueError) as error:
        raise StoreError(f"{path / MANIFEST} cannot be read: {error}") from None
    if not isinstance(found, dict) or found.get("format") != FORMAT:
        raise StoreError(f"{path / MANIFEST} is no manifest of saved key-value data")
    if found.get("version") != VERSION:
        raise StoreError(f"{path} was saved by another version ({found.get('version')}): this one reads {VERSION}")
    return found


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def load(mr: MapReduce, path: str | os.PathLike[str]) -> KeyValue | KeyMultiValue:
    """What `save` wrote, checked as it is read; `note` is what was given there. Folders of more or fewer ranks than
    there are now are dealt out."""
    whole = Path(path)
    size, rank = mr.communicator.size, mr.communicator.rank
    parts = [whole]
    if not (whole / MANIFEST).exists():
        parts = sorted(whole.glob("*-of-*"), key=lambda each: int(each.name.split("-")[0]))
        if not parts:
            raise StoreError(f"{whole} holds no saved key-value data")
    found = [_load(mr, part, empty=number % size != rank) for number, part in enumerate(parts)]
    first = found[0]
    if len(found) == 1:
        return first
    both = first._with(tuple(found[1:]))  # type: ignore[arg-type]
    both.note = first.note
    if sum(bool(each.kept) for each in found) == 1:
        both.order = first.order
    for each in found:
        each.close()
    return both


def _load(mr: MapReduce, path: Path, empty: bool) -> KeyValue | KeyMultiValue:
    from penstock.mapreduce.keyvalue import KeyValue
    from penstock.mapreduce.multivalue import KeyMultiValue

    manifest = _manifest(path)
    key, value = (_kind(manifest.get(which), path) for which in ("key", "value"))
    grouped = manifest["what"] == KeyMultiValue.name
    names = [*_names(key, "keys"), *(["groups"] if grouped else []), *_names(value, "values")]
    kept = []
    try:
        for number, entry in enumerate([] if empty else manifest["chunks"]):
            arrays = [
                _read(mr, path / manifest["folder"] / name, _dtype(name, key, value), where, number)
                for name, where in zip(names, entry["arrays"], strict=True)
            ]
            keys, values = _column(arrays, key), None
            groups = arrays.pop(0) if grouped else None
            values = _column(arrays, value)
            chunk = Chunk(keys, values) if groups is None else Groups(keys, groups, values, entry["continues"])
            kept.append(mr.room.put(chunk))
    except (KeyError, TypeError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        raise DamagedStore(f"{path / MANIFEST} does not fit the files beside it") from error
    found = (KeyMultiValue if grouped else KeyValue)(mr, kept, key, value, order=manifest.get("order"))
    found.note = manifest.get("note")
    return found


def _dtype(name: str, key: Kind, value: Kind) -> np.dtype:
    if name.endswith(".offsets") or name == "groups":
        return np.dtype(np.int64)
    kind = key if name == "keys" else value
    return np.dtype(np.uint8) if isinstance(kind, str) else kind


def _column(arrays: list[np.ndarray], kind: Kind) -> Column:
    first = arrays.pop(0)
    return Bytes(first, arrays.pop(0), kind == "string") if isinstance(kind, str) else first


def _read(mr: MapReduce, path: Path, dtype: np.dtype, where: list[int], number: int) -> np.ndarray:
    count, at, expected = where
    if not dtype.itemsize:
        return np.empty(count, dtype)
    array = mr.room.empty(count, dtype, "a chunk that is loaded")
    flat = array.view(np.uint8)
    try:
        with path.open("rb", buffering=0) as file:
            file.seek(at)
            view = memoryview(flat)
            while view:
                got = file.readinto(view)
                if not got:
                    raise DamagedStore(f"{path} is truncated: save the data anew")
                view = view[got:]
    except OSError as error:
        raise StoreError(f"{path} cannot be read: {error.strerror}") from None
    if checksum(flat, number) != expected:
        raise DamagedStore(f"{path} is damaged at byte {at}: save the data anew")
    return array


__all__ = ["MANIFEST", "load", "save"]
