"""Is a store sound? Every byte is compared with its checksum, and every part with the others."""

from __future__ import annotations

import contextlib
import os
import threading
from pathlib import Path

import numpy as np

from penstock.config import Settings
from penstock.errors import DamagedStore, DoesNotFit, StoreError
from penstock.observe.progress import Progress, progress
from penstock.store import proof
from penstock.store.audit import Audit
from penstock.store.blob import Blob, sum_path
from penstock.store.checksum import BLOCK
from penstock.store.columns import column_file
from penstock.store.encodings import ENCODINGS
from penstock.store.reader import Direction, Store

MOST = 100
"""Problems that are listed: who has more needs a new store, not a longer list."""
_PIECE = 1 << 20


def check_store(path: Path, settings: Settings) -> list[str]:
    """What is wrong with a store, one sentence each; nothing: it is sound."""
    try:
        store = Store(path, whole=False)
    except StoreError as error:
        return [str(error)]
    problems = Problems()
    with contextlib.suppress(Enough):
        _Check(store, settings, problems).run()
    return problems.found


class Enough(Exception):
    """The list is full."""


class Problems:
    """What was found so far, by any thread."""

    def __init__(self) -> None:
        self.found: list[str] = []
        self._lock = threading.Lock()

    def add(self, sentence: str) -> None:
        with self._lock:
            if len(self.found) < MOST:
                self.found.append(sentence)
                return
            if len(self.found) == MOST:
                self.found.append(f"more than {MOST} problems: the rest is not listed")
        raise Enough


class _Check:
    def __init__(self, store: Store, settings: Settings, problems: Problems) -> None:
        self.store, self.settings, self.problems = store, settings, problems
        self.path, self.meta = store.path, store.meta
        self.sound: set[str] = set()
        self.directions: dict[str, Direction] = {}

    def run(self) -> None:
        self._need()
        self._requires()
        total = sum(entry["bytes"] for entry in self.meta["blobs"].values())
        with progress("checking", total=total, unit="bytes", settings=self.settings) as bar:
            self._arrays(bar)
            for name in self.meta["directions"]:
                self._open(name)
            sizes = {path: size for each in self.directions.values() for path, size in each.sizes().items()}
            self._files(sizes)
            bar.update(total=total + sum(sizes.values()))
            self._arcs(bar)
            self._ids()

    def _need(self) -> None:
        """The arrays that are proportional to the vertices must fit; pages stream."""
        blobs, vertices, limit = self.meta["blobs"], self.store.vertices, self.settings.memory_limit
        degrees = {self.meta["vertex"][name]["file"] for name in ("out_degree", "in_degree")}
        index = sum(entry["bytes"] for name, entry in blobs.items() if name.endswith("index"))
        arcs = sum(blobs[name]["bytes"] for name in degrees) + index + 8 * vertices
        arcs += Audit.room(self.store, 1)
        ids = sum(blobs[f"ids/{name}"]["bytes"] for name in self._id_files()) + vertices // 8 + 4 * _PIECE
        needed = max(arcs, ids)
        if needed > limit:
            raise DoesNotFit(f"checking {self.path}", needed=needed, limit=limit)

    def _id_files(self) -> tuple[str, ...]:
        return ("offsets", "text") if self.meta["ids"]["kind"] == "string" else ("values",)

    def _requires(self) -> None:
        needed = {
            "striped": len(self.store.roots) > 1,
            "physical-ids": ENCODINGS[self.meta["encoding"]].physical,
            "string-ids": self.meta["ids"]["kind"] == "string",
        }
        for feature, used in needed.items():
            if used and feature not in self.meta["requires"]:
                self.problems.add(f"{self.path}/meta.json does not list {feature} under requires, but uses it")

    # ---- files

    def _arrays(self, bar: Progress) -> None:
        """Every block of every array file."""
        buffer = np.empty(BLOCK, np.uint8)
        for name, entry in self.meta["blobs"].items():
            try:
                blob = Blob(self.path / name, np.uint8, entry)
            except DamagedStore as error:
                self.problems.add(str(error))
                continue
            self.sound.add(name)
            for block in range(blob.blocks):
                begin, end = blob.block_range(block)
                try:
                    blob.read_block(block, buffer[: end - begin])
                except DamagedStore as error:
                    self.sound.discard(name)
                    self.problems.add(str(error))
                bar.advance(end - begin)

    def _open(self, name: str) -> None:
        if f"{name}/index" not in self.sound:
            return
        try:
            direction = self.store.direction(name)
        except DamagedStore as error:
            self.problems.add(str(error))
            return
        for column in [c for c in direction.column_records if f"{name}/{column_file(c)}.index" not in self.sound]:
            del direction.column_records[column]
        self.directions[name] = direction

    def _files(self, sizes: dict[Path, int]) -> None:
        """Files that are missing, of a wrong size, or nobody's."""
        for path, expected in sizes.items():
            try:
                size = path.stat().st_size
            except OSError as error:
                reason = "is missing" if isinstance(error, FileNotFoundError) else f"cannot be read: {error.strerror}"
                self.problems.add(f"{path} {reason}")
                continue
            if size != expected:
                wrong = "truncated" if size < expected else "too long"
                self.problems.add(f"{path} is {wrong}: {size} bytes, {expected} were written")
        known = {self.path / "meta.json"}
        for name in self.meta["blobs"]:
            known |= {self.path / name, sum_path(self.path / name)}
        for name, entry in self.meta["directions"].items():
            for stripe, root in enumerate(self.store.roots):
                known |= {root / name / f"{file}.{stripe}" for file in ("pages", *map(column_file, entry["columns"]))}
        folders = {path.parent for path in known} | {self.path, *self.store.roots}
        for root in {self.path, *self.store.roots}:
            for folder, inside, files in os.walk(root):
                here = Path(folder)
                for stranger in sorted({here / f for f in files} - known) + sorted(
                    {here / d for d in inside} - folders
                ):
                    self.problems.add(f"{stranger} does not belong to the store")

    # ---- arcs

    def _arcs(self, bar: Progress) -> None:
        degrees = {name: self._degree(name) for name in ("out", "in")}
        audits = {}
        for name, direction in self.directions.items():
            # What points here is counted in the one direction that is always there.
            counts = np.zeros(self.store.active if name == "out" else 0, np.uint64)
            audits[name] = Audit(direction, degrees[name], counts, self.settings, self.problems)
            audits[name].run(bar)
            if name == "out" and audits[name].complete:
                self._incoming(degrees["in"], counts)
        self._degrees(degrees)
        if audits.keys() == self.meta["directions"].keys() and all(audit.complete for audit in audits.values()):
            self._compare(audits)

    def _degree(self, name: str) -> np.ndarray | None:
        file = self.meta["vertex"][f"{name}_degree"]["file"]
        return self.store.degree_column(name).read() if file in self.sound else None

    def _column(self, name: str) -> str:
        return f"{self.path}/{self.meta['vertex'][f'{name}_degree']['file']}"

    def _incoming(self, degrees: np.ndarray | None, counts: np.ndarray) -> None:
        if degrees is None:
            return
        wrong = int(proof.first_difference(counts, degrees[: len(counts)]))
        if wrong >= 0:
            self.problems.add(
                f"{self._column('in')}: vertex {wrong} has in-degree {degrees[wrong]}, "
                f"but {counts[wrong]} arcs of {self.path}/out point to it"
            )

    def _degrees(self, degrees: dict[str, np.ndarray | None]) -> None:
        active, symmetric = self.store.active, not self.store.directed
        for name, values in degrees.items():
            if values is None:
                return
            if values[active:].any():
                wrong = active + int(np.argmax(values[active:] > 0))
                self.problems.add(
                    f"{self._column(name)}: vertex {wrong} has arcs, but only {active} vertices have slots"
                )
            arcs = self.meta["directions"].get(name, self.meta["directions"]["out"])["arcs"]
            total = int(values.sum(dtype=np.uint64))
            if total != arcs:
                self.problems.add(f"{self._column(name)}: the degrees sum up to {total}, but there are {arcs} arcs")
        out_degree, in_degree = degrees["out"], degrees["in"]
        assert out_degree is not None
        assert in_degree is not None
        if symmetric and (wrong := int(proof.first_difference(out_degree, in_degree))) >= 0:
            self.problems.add(f"{self._column('in')}: vertex {wrong} differs from out_degree in an undirected graph")
        if active and not out_degree[active - 1] and not in_degree[active - 1]:
            self.problems.add(f"{self.path}/meta.json counts {active} vertices with arcs, but the last one has none")
        if self.meta["order"] == "degree":
            wrong = int(proof.first_rise(out_degree, in_degree, active))
            if wrong >= 0:
                self.problems.add(f"{self._column('out')}: vertex {wrong} has a higher degree than the one before it")

    def _compare(self, audits: dict[str, Audit]) -> None:
        """`in` is `out` turned round; an undirected graph is itself turned round."""
        out = audits["out"]
        arcs, edges = out.direction.arcs, self.store.edges
        if "in" in audits:
            other = audits["in"]
            if arcs != other.direction.arcs:
                self.problems.add(f"{self.path}: out has {arcs} arcs and in {other.direction.arcs}")
            elif out.direction.columns != other.direction.columns:
                self.problems.add(f"{self.path}: out and in have different columns")
            elif out.hash != other.turned:
                self.problems.add(f"{self.path}: the arcs of in are not those of out turned round")
        if self.store.directed:
            if edges != arcs:
                self.problems.add(f"{self.path}/meta.json counts {edges} edges, but there are {arcs} arcs")
            return
        if out.hash != out.turned:
            self.problems.add(f"{self.path}/out: the graph is undirected, but not every arc is there both ways")
        if 2 * edges != arcs + out.loops:
            self.problems.add(
                f"{self.path}/meta.json counts {edges} edges, but {arcs} arcs with {out.loops} loops "
                f"make {(arcs + out.loops) / 2:g}"
            )

    # ---- ids

    def _ids(self) -> None:
        if not {f"ids/{name}" for name in ("order", *self._id_files())} <= self.sound:
            return
        try:
            ids = self.store.ids
        except DamagedStore as error:
            self.problems.add(str(error))
            return
        place = f"{self.path}/ids/order"
        seen = np.zeros(-(-ids.count // 8), np.uint8)
        for start in range(0, ids.count, _PIECE):
            numbers = ids.order.read(start, start + _PIECE)
            wrong = int(proof.mark_numbers(numbers, seen))
            if wrong >= 0 or int(numbers.max()) >= ids.count:
                wrong = wrong if wrong >= 0 else int(np.argmax(numbers >= ids.count))
                self.problems.add(f"{place}: entry {start + wrong}, number {numbers[wrong]}, is too big or there twice")
                return
        if ids.kind == "string":
            offsets, text = ids.offsets.read(), ids.text.read()
            if proof.prove_slots(offsets, len(text)) >= 0:
                self.problems.add(
                    f"{self.path}/ids/offsets does not ascend from 0 to the {len(text)} bytes of ids/text"
                )
                return
            for start in range(0, ids.count, _PIECE):
                try:
                    ids.read(start, start + _PIECE).validate(full=True)
                except ValueError:
                    self.problems.add(f"{self.path}/ids/text: among ids {start} to {start + _PIECE} one is no UTF-8")
                    return
        else:
            values = ids.values.read()
        last = -1
        for start in range(0, ids.count, _PIECE):
            numbers = ids.order.read(start, start + _PIECE)
            if ids.kind == "string":
                wrong = int(proof.first_unsorted_text(numbers, offsets, text, last))
            else:
                wrong = int(proof.first_unsorted(numbers, values, values[last], last >= 0))
            if wrong >= 0:
                one, two = ids.of(int(numbers[wrong - 1]) if wrong else last), ids.of(int(numbers[wrong]))
                self.problems.add(f"{place}: entry {start + wrong}, id {two!r}, does not come after {one!r}")
                return
            last = int(numbers[-1])


__all__ = ["MOST", "check_store"]
