"""meta.json: what the store is, and the checksums of everything that has no other."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from penstock.errors import DamagedStore, StoreError
from penstock.store.checksum import checksum

FORMAT = "penstock-graph"
VERSION = 1
FEATURES = frozenset({"striped", "physical-ids", "string-ids"})
"""Features this version can read; a store lists those it needs under `requires`."""


def serialise(meta: dict[str, Any]) -> bytes:
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
        if not store.exists():
            draft = store.parent / f".{store.name}.tmp"
            unfinished = f"; a build that was cut off lies in {draft}: run it again" if draft.exists() else ""
            raise StoreError(f"{store} does not exist{unfinished}") from None
        raise StoreError(f"{store} has no meta.json: it is not a store, or its writing was cut off") from None
    except OSError as error:
        raise StoreError(f"{path} cannot be read: {error.strerror}") from None
    try:
        meta = json.loads(raw)
        version, requires = meta["format"]["version"], meta["requires"]
        named = meta["format"]["name"] == FORMAT
    except (ValueError, KeyError, TypeError):
        raise DamagedStore(f"{path} is damaged: it is not the JSON that was written") from None
    if not named:
        raise StoreError(f"{store} is not a Penstock graph: its format is {meta['format']['name']!r}")
    # A newer store is told apart from a damaged one before the checksum, which a newer version may compute otherwise.
    if isinstance(version, int) and version > VERSION:
        raise StoreError(f"{store} has format version {version}; this Penstock reads up to {VERSION}: upgrade Penstock")
    if isinstance(requires, list) and (unknown := sorted(set(map(str, requires)) - FEATURES)):
        raise StoreError(f"{store} needs {', '.join(unknown)}, which this Penstock does not know: upgrade Penstock")
    if serialise(meta) != raw:
        raise DamagedStore(f"{path} is damaged: its checksum does not match")
    return dict(meta)
