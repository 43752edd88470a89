"""Small stores for tests, and a forger who can change one and make every checksum right again."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from penstock.config import Settings, settings
from penstock.ingest.build.builder import build
from penstock.ingest.build.options import BuildOptions
from penstock.ingest.source import EdgeChunk, EdgeSource, VertexTable
from penstock.store.blob import Blob, sum_path
from penstock.store.checksum import block_checksums, checksum
from penstock.store.columns import COLUMN_RECORD, column_file, padded
from penstock.store.index import RECORD
from penstock.store.manifest import serialise


def small() -> Settings:
    return settings(memory_limit="64MB", progress=False, threads=2)


class Arrays(EdgeSource):
    """Edges out of arrays."""

    name = "arrays"

    def __init__(
        self,
        source: Any,
        target: Any,
        columns: Mapping[str, np.ndarray] | None = None,
        types: Mapping[str, pa.DataType] | None = None,
        table: VertexTable | None = None,
    ) -> None:
        self._chunk = EdgeChunk(source, target, columns or {})
        self.string_ids = isinstance(source, pa.Array)
        self.columns = types or {}
        self.estimated_edges = self.size = len(source)
        self._table = table

    def chunks(self, *, threads: int, memory: int) -> Iterator[EdgeChunk]:
        yield self._chunk

    def vertices(self) -> VertexTable | None:
        return self._table


def random_edges(seed: int = 1, vertices: int = 200, edges: int = 6000) -> tuple[np.ndarray, np.ndarray]:
    """Edges of which one vertex has so many that its page is a large one."""
    random = np.random.default_rng(seed)
    source, target = random.integers(0, vertices, (2, edges))
    source[: edges // 3] = 7
    return source, target


def make(path: Path, source: Any = None, target: Any = None, **more: Any) -> Path:
    """Build a store with pages of 4 KiB."""
    if source is None:
        source, target = random_edges()
    given = {name: more.pop(name) for name in ("columns", "types", "table") if name in more}
    build(Arrays(source, target, **given), path, BuildOptions(**{"page_size": 4096} | more), small())
    return path


def rich(path: Path, stripes: tuple[Path, ...] = (), **more: Any) -> Path:
    """Everything at once: columns, strings, stripes, vertex columns, isolated vertices, both directions."""
    source, target = random_edges(vertices=120, edges=3000)
    random = np.random.default_rng(3)
    names = pa.array([f"knoten-ä{k:03}" for k in range(125)])
    return make(
        path,
        names.take(pa.array(source)),
        names.take(pa.array(target)),
        columns={"weight": random.random(3000), "seen": random.integers(0, 2, 3000).astype(np.uint8)},
        types={"weight": pa.float64(), "seen": pa.bool_()},
        table=VertexTable(names, {"size": np.arange(125, dtype=np.int64)}, {"size": pa.int64()}),
        stripes=stripes,
        **more,
    )


def files(store: Path) -> list[Path]:
    """Every file of a store, its stripes included."""
    roots = [(store / stripe).resolve() for stripe in json.loads((store / "meta.json").read_bytes())["stripes"]]
    return sorted({path for root in (store, *roots) for path in root.rglob("*") if path.is_file()})


def reseal(store: Path, change: Callable[[dict[str, Any]], None] = lambda meta: None) -> None:
    """Make every checksum right, whatever lies there now: what a faulty writer would leave."""
    meta = json.loads((store / "meta.json").read_bytes())
    roots = [store / stripe for stripe in meta["stripes"]]
    size = meta["page_size"]
    for name, entry in meta["directions"].items():
        records = np.fromfile(store / name / "index", RECORD)
        pages = [np.fromfile(root / name / f"pages.{k}", np.uint8) for k, root in enumerate(roots)]
        for j in range(len(records)):
            at = j // len(roots) * size
            records["checksum"][j] = checksum(pages[j % len(roots)][at : at + size], j)
        records.tofile(store / name / "index")
        for column in map(column_file, entry["columns"]):
            index = np.fromfile(store / name / f"{column}.index", COLUMN_RECORD)
            values = [np.fromfile(root / name / f"{column}.{k}", np.uint8) for k, root in enumerate(roots)]
            for j, record in enumerate(index):
                at = int(record["offset"])
                index["checksum"][j] = checksum(values[j % len(roots)][at : at + padded(int(record["bytes"]))], j)
            index.tofile(store / name / f"{column}.index")
    for name in meta["blobs"]:
        data = np.fromfile(store / name, np.uint8)
        sums = block_checksums(data).astype("<u8").tobytes()
        sum_path(store / name).write_bytes(sums)
        meta["blobs"][name] = {"bytes": len(data), "sums": f"{checksum(sums):016x}"}
    change(meta)
    (store / "meta.json").write_bytes(serialise(meta))


def edit(path: Path, dtype: Any, change: Callable[[np.ndarray], None]) -> None:
    """Change an array file in place."""
    values = np.fromfile(path, dtype)
    change(values)
    values.tofile(path)


def reads(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The blocks of array files that are read from now on."""
    found: list[int] = []
    read_block = Blob.read_block

    def watched(self: Blob, block: int, target: np.ndarray) -> None:
        found.append(block)
        read_block(self, block, target)

    monkeypatch.setattr(Blob, "read_block", watched)
    return found


def copy(store: Path, target: Path) -> Path:
    shutil.copytree(store, target)
    return target
