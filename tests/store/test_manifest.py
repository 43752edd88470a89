"""meta.json: no byte changes unseen, and what cannot be read is told apart."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from penstock.errors import DamagedStore, StoreError
from penstock.store.lock import lock_path
from penstock.store.manifest import VERSION, read_manifest, serialise
from penstock.store.reader import Store

from .graphs import copy, make, reseal, rich


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return rich(tmp_path_factory.mktemp("manifest") / "g.pen")


def test_round_trip(store: Path) -> None:
    raw = (store / "meta.json").read_bytes()
    meta = read_manifest(store)
    assert serialise(meta) == raw
    assert list(meta)[-1] == "checksum"
    assert json.loads(raw)["format"] == {"name": "penstock-graph", "version": VERSION}


def test_every_byte_flip_is_found(store: Path, tmp_path: Path) -> None:
    raw = (store / "meta.json").read_bytes()
    for place in range(len(raw)):
        flipped = bytearray(raw)
        flipped[place] ^= 0x20 if place % 2 else 0x01
        (tmp_path / "meta.json").write_bytes(flipped)
        with pytest.raises(StoreError):
            read_manifest(tmp_path)


def test_every_truncation_is_found(store: Path, tmp_path: Path) -> None:
    raw = (store / "meta.json").read_bytes()
    for length in (0, 1, len(raw) // 2, len(raw) - 2, len(raw) - 1):
        (tmp_path / "meta.json").write_bytes(raw[:length])
        with pytest.raises(DamagedStore, match="is damaged"):
            read_manifest(tmp_path)


def forged(tmp_path: Path, change: Callable[[dict[str, Any]], Any], store: Path) -> Path:
    meta = read_manifest(store)
    change(meta)
    (tmp_path / "meta.json").write_bytes(serialise(meta))
    return tmp_path


def test_a_newer_version_is_not_called_damaged(store: Path, tmp_path: Path) -> None:
    path = forged(tmp_path, lambda meta: meta["format"].update(version=VERSION + 1), store)
    with pytest.raises(StoreError, match="upgrade Penstock") as caught:
        read_manifest(path)
    assert not isinstance(caught.value, DamagedStore)
    # A newer version may sum otherwise.
    (path / "meta.json").write_bytes((path / "meta.json").read_bytes().replace(b'"vertices"', b'"knoten"'))
    with pytest.raises(StoreError, match=f"format version {VERSION + 1}"):
        read_manifest(path)


def test_an_unknown_feature_is_named(store: Path, tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="needs zstd-pages, which this Penstock does not know: upgrade"):
        read_manifest(forged(tmp_path, lambda meta: meta["requires"].append("zstd-pages"), store))


def test_another_format_is_named(store: Path, tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="not a Penstock graph: its format is 'penstock-table'"):
        read_manifest(forged(tmp_path, lambda meta: meta["format"].update(name="penstock-table"), store))


def test_what_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"does not exist$"):
        read_manifest(tmp_path / "g.pen")
    (tmp_path / ".g.pen.tmp").mkdir()
    with pytest.raises(StoreError, match=r"cut off lies in .*: run it again"):
        read_manifest(tmp_path / "g.pen")
    descriptor = os.open(lock_path(tmp_path / "g.pen"), os.O_CREAT | os.O_RDWR)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        with pytest.raises(StoreError, match="another run is writing it"):
            read_manifest(tmp_path / "g.pen")
    finally:
        os.close(descriptor)


def test_what_is_no_store(tmp_path: Path) -> None:
    (tmp_path / "half.pen").mkdir()
    with pytest.raises(StoreError, match=r"has no meta\.json"):
        read_manifest(tmp_path / "half.pen")
    (tmp_path / "edges.txt").write_text("1 2\n")
    with pytest.raises(StoreError, match="is a file, not a store: run `penstock ingest"):
        read_manifest(tmp_path / "edges.txt")
    for text in ("", "[]", "7", "null", '{"format": 1}', "{", "[" * 100_000):
        (tmp_path / "half.pen" / "meta.json").write_text(text)
        with pytest.raises(DamagedStore, match="not the JSON"):
            read_manifest(tmp_path / "half.pen")


REQUIRED = ["vertices", "active", "edges", "directed", "order", "ids", "page_size", "encoding", "stripes"]
REQUIRED += ["directions", "vertex", "blobs", "uuid"]


@pytest.mark.parametrize("field", REQUIRED)
@pytest.mark.parametrize("value", [..., None, -1, "x", [], {}, 1.5], ids=repr)
def test_a_field_that_is_missing_or_odd_is_one_sentence(store: Path, tmp_path: Path, field: str, value: Any) -> None:
    if field == "uuid" and value == "x":
        return
    change = (lambda meta: meta.pop(field)) if value is ... else (lambda meta: meta.update({field: value}))
    path = forged(tmp_path, change, store)
    with pytest.raises(StoreError) as caught:
        Store(path)
    assert field in str(caught.value) or field == "active" or "encoding" in str(caught.value)


@pytest.mark.parametrize(
    ("change", "phrase"),
    [
        (lambda m: m["ids"].pop("kind"), "no field ids.kind"),
        (lambda m: m["ids"].update(kind="uuid"), "ids.kind is 'uuid'"),
        (lambda m: m["ids"].update(order="float64"), "ids.order"),
        (lambda m: m["directions"].pop("out"), "must be out"),
        (lambda m: m["directions"].update(sideways={}), "sideways"),
        (lambda m: m["directions"]["in"].pop("arcs"), "no field directions.in.arcs"),
        (lambda m: m["directions"]["in"].update(columns=[]), "directions.in.columns"),
        (lambda m: m["directions"]["in"]["columns"].update(weight="decimal"), "unknown type 'decimal'"),
        (lambda m: m["directions"]["in"]["columns"].update(cost="double"), "does not list the file in/cost.index"),
        (lambda m: m["vertex"].pop("in_degree"), "vertex.in_degree"),
        (lambda m: m["vertex"]["size"].pop("file"), "vertex.size.file"),
        (lambda m: m["vertex"]["size"].update(type="int8"), "vertex column size"),
        (lambda m: m["vertex"]["out_degree"].update(type="float"), "out_degree is float"),
        (lambda m: m["blobs"].update({"../../etc/passwd": {"bytes": 1, "sums": "0" * 16}}), "no file of a store"),
        (lambda m: m["blobs"].update({"/etc/passwd": {"bytes": 1, "sums": "0" * 16}}), "no file of a store"),
        (lambda m: m["blobs"]["ids/order"].update(sums="?"), "no checksum"),
        (lambda m: m["blobs"].update({"ids/order": 5}), "blobs.ids/order"),
        (lambda m: m["blobs"].pop("out/index"), "out/index"),
        (lambda m: m.update(page_size=5000), "page_size 5000"),
        (lambda m: m.update(page_size=2048), "page_size 2048"),
        (lambda m: m.update(stripes=[3]), "stripes"),
        (lambda m: m.update(vertices=True), "vertices is True"),
        (lambda m: m.update(active=10**9), "1000000000 vertices with arcs"),
        (lambda m: m.update(encoding="varint"), "varint"),
        (lambda m: m["format"].update(version="1"), "format.version"),
    ],
)
def test_a_manifest_of_another_tool(store: Path, tmp_path: Path, change: Any, phrase: str) -> None:
    with pytest.raises(StoreError) as caught:
        Store(forged(tmp_path, change, store))
    assert phrase in str(caught.value)
    assert "\n" not in str(caught.value)


def test_unknown_fields_are_left_alone(tmp_path: Path) -> None:
    # What a later version adds without listing it under `requires`, older ones can do without.
    path = make(tmp_path / "g.pen")
    reseal(copy(path, tmp_path / "h.pen"), lambda meta: meta.update(comment="hello"))
    assert Store(tmp_path / "h.pen").meta["comment"] == "hello"


def test_unreadable(store: Path, tmp_path: Path) -> None:
    (tmp_path / "meta.json").mkdir()
    with pytest.raises(StoreError, match="cannot be read"):
        read_manifest(tmp_path)
