"""meta.json: what the store is, and the checksums of everything that has no other."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from penstock.errors import DamagedStore, StoreError, meant_path
from penstock.store.checksum import checksum
from penstock.store.columns import column_file, type_dtype
from penstock.store.lock import is_locked

FORMAT = "penstock-graph"
VERSION = 1
FEATURES = frozenset({"striped", "physical-ids", "string-ids"})
"""Features this version can read; a store lists those it needs under `requires`."""

ID_KINDS = ("int64", "uint64", "string")
ORDERS = ("degree", "input")
_DIGEST = re.compile(r"[0-9a-f]{16}")


def serialise(meta: Mapping[str, Any]) -> bytes:
    """The bytes of meta.json. Its last field is the checksum of the rest, so that no byte of it can change unseen."""
    body = {key: value for key, value in meta.items() if key != "checksum"}
    text = json.dumps(body, indent=1, ensure_ascii=True)
    return (
        json.dumps(body | {"checksum": f"{checksum(text.encode()):016x}"}, indent=1, ensure_ascii=True).encode() + b"\n"
    )


def read_manifest(store: Path) -> dict[str, Any]:
    """Read and check meta.json; say exactly what is wrong with a store that cannot be opened."""
    path = store / "meta.json"
    try:
        raw = path.read_bytes()
    except NotADirectoryError:
        raise StoreError(f"{store} is a file, not a store: run `penstock ingest {store} -o NAME.pen` first") from None
    except FileNotFoundError:
        raise StoreError(_absent(store)) from None
    except OSError as error:
        raise StoreError(f"{path} cannot be read: {error.strerror}") from None
    try:
        meta = json.loads(raw)
        version, requires = meta["format"]["version"], meta["requires"]
        name = meta["format"]["name"]
    except (ValueError, KeyError, TypeError, RecursionError):
        raise DamagedStore(f"{path} is damaged: it is not the JSON that was written") from None
    if name != FORMAT:
        raise StoreError(f"{store} is not a Penstock graph: its format is {name!r}")
    # A newer store is told apart from a damaged one before the checksum, which a newer version may compute otherwise.
    if isinstance(version, int) and version > VERSION:
        raise StoreError(f"{store} has format version {version}; this Penstock reads up to {VERSION}: upgrade Penstock")
    if isinstance(requires, list) and (unknown := sorted(set(map(str, requires)) - FEATURES)):
        raise StoreError(f"{store} needs {', '.join(unknown)}, which this Penstock does not know: upgrade Penstock")
    if serialise(meta) != raw:
        raise DamagedStore(f"{path} is damaged: its checksum does not match")
    try:
        _validate(meta)
    except _Wrong as wrong:
        raise StoreError(f"{path} is intact, but no manifest of a store: {wrong}; build the store again") from None
    return dict(meta)


def _absent(store: Path) -> str:
    if store.exists():
        if not (store / "out").exists():
            return f"{store} is a folder without a store in it: it has no meta.json"
        return f"{store} has no meta.json: it is not a store, or its writing was cut off; build it again"
    if is_locked(store):
        return f"{store} does not exist yet: another run is writing it; wait for it"
    draft = store.parent / f".{store.name}.tmp"
    if draft.exists():
        return f"{store} does not exist; a build that was cut off lies in {draft}: run it again"
    return f"{store} does not exist{meant_path(store)}"


class _Wrong(Exception):
    """What some other tool wrote into a manifest that no reader can use."""


def _field(where: Mapping[str, Any], name: str, kind: Any, within: str = "") -> Any:
    place = f"{within}.{name}" if within else name
    if name not in where:
        raise _Wrong(f"it has no field {place}")
    value: Any = where[name]
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise _Wrong(f"its field {place} is {value!r}, no {_KINDS[kind]}")
    if kind is int and value < 0:
        raise _Wrong(f"its field {place} is negative")
    return value


_KINDS = {int: "whole number", str: "text", bool: "truth value", list: "list", dict: "object"}


def _choice(where: Mapping[str, Any], name: str, choices: tuple[str, ...], within: str = "") -> str:
    value: str = _field(where, name, str, within)
    if value not in choices:
        raise _Wrong(f"its field {f'{within}.' if within else ''}{name} is {value!r}, none of {', '.join(choices)}")
    return value


def _validate(meta: Mapping[str, Any]) -> None:
    """Everything the readers rely on is there and has its type."""
    if _field(meta["format"], "version", int, "format") < 1:
        raise _Wrong("its field format.version is 0")
    _field(meta, "requires", list)
    _field(meta, "uuid", str)
    vertices, active = _field(meta, "vertices", int), _field(meta, "active", int)
    if active > vertices:
        raise _Wrong(f"it counts {active} vertices with arcs among {vertices}")
    _field(meta, "edges", int)
    _field(meta, "directed", bool)
    _choice(meta, "order", ORDERS)
    size = _field(meta, "page_size", int)
    if not 4096 <= size <= 64 << 20 or size & (size - 1):
        raise _Wrong(f"its page_size {size} is no power of two from 4 KiB to 64 MiB")
    _field(meta, "encoding", str)
    stripes = _field(meta, "stripes", list)
    if not stripes or not all(isinstance(stripe, str) and "\0" not in stripe for stripe in stripes):
        raise _Wrong("its field stripes lists no folders")
    blobs = _blobs(meta)
    _directions(meta, blobs)
    _vertex_columns(meta, blobs, vertices)
    ids = _field(meta, "ids", dict)
    kind = _choice(ids, "kind", ID_KINDS, "ids")
    _choice(ids, "order", ("uint32", "uint64"), "ids")
    for name in ("order", "offsets", "text") if kind == "string" else ("order", "values"):
        _listed(blobs, f"ids/{name}")


def _blobs(meta: Mapping[str, Any]) -> Mapping[str, Any]:
    blobs: dict[str, Any] = _field(meta, "blobs", dict)
    for name, entry in blobs.items():
        parts = PurePosixPath(name).parts
        if len(parts) != 2 or name != "/".join(parts) or ".." in parts or "\0" in name:
            raise _Wrong(f"{name!r} under blobs is no file of a store")
        if not isinstance(entry, dict):
            raise _Wrong(f"its field blobs.{name} is {entry!r}, no object")
        _field(entry, "bytes", int, f"blobs.{name}")
        if not _DIGEST.fullmatch(_field(entry, "sums", str, f"blobs.{name}")):
            raise _Wrong(f"its field blobs.{name}.sums is no checksum")
    return blobs


def _directions(meta: Mapping[str, Any], blobs: Mapping[str, Any]) -> None:
    directions = _field(meta, "directions", dict)
    if "out" not in directions or not set(directions) <= {"out", "in"}:
        raise _Wrong(f"its directions are {', '.join(directions) or 'none'}; there must be out, and there may be in")
    for name in directions:
        place = f"directions.{name}"
        entry = _field(directions, name, dict, "directions")
        _field(entry, "pages", int, place)
        _field(entry, "arcs", int, place)
        _listed(blobs, f"{name}/index")
        for column, kind in _field(entry, "columns", dict, place).items():
            _column_type(kind, f"column {column} of {name}")
            _listed(blobs, f"{name}/{column_file(column)}.index")


def _vertex_columns(meta: Mapping[str, Any], blobs: Mapping[str, Any], vertices: int) -> None:
    columns = _field(meta, "vertex", dict)
    for name in ("out_degree", "in_degree", *columns):
        entry = _field(columns, name, dict, "vertex")
        width = _column_type(entry.get("type"), f"vertex column {name}")
        file = _field(entry, "file", str, f"vertex.{name}")
        _listed(blobs, file)
        if blobs[file]["bytes"] != vertices * width:
            raise _Wrong(f"vertex column {name} has {blobs[file]['bytes']} bytes for {vertices} vertices")
    for name in ("out_degree", "in_degree"):
        if columns[name]["type"] not in ("uint32", "uint64"):
            raise _Wrong(f"vertex column {name} is {columns[name]['type']}, neither uint32 nor uint64")


def _column_type(kind: object, what: str) -> int:
    try:
        return type_dtype(str(kind)).itemsize
    except ValueError:
        raise _Wrong(f"{what} has the unknown type {kind!r}") from None


def _listed(blobs: Mapping[str, Any], name: str) -> None:
    if name not in blobs:
        raise _Wrong(f"it does not list the file {name} under blobs")
