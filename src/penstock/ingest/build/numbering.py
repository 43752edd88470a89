"""From the user's ids to codes: dense numbers that ascend with the ids.

Integers in a range that memory can index are their own codes. All others are looked up in a dictionary: each chunk
brings a small one of its own, their union is sorted, and chunks are translated when they are read again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.errors import DoesNotFit, InputError
from penstock.ingest.build.log import EdgeLog, Piece
from penstock.ingest.source import EdgeChunk, Ids
from penstock.memory.spill import Spill

ABSENT = np.uint32(0xFFFFFFFF)
MOST = 0xFFFFFFFE
"""Codes are 32 bits wide while a store is built; the store itself has room for 48."""
PIECE = 1 << 20
"""Edges translated at once: their ids are copied several times on the way."""
VERTEX_BYTES = 24
"""Memory that building needs for each code: degrees both ways, the number, its inverse, and the sort between them."""


def roomy(edges: int, declared: int) -> int:
    """The widest domain worth indexing: one far wider than its use would make every pass over vertices a waste."""
    return max(1 << 16, 8 * edges, 2 * declared)


class Codes:
    """Codes that are the ids themselves."""

    def __init__(self, domain: int) -> None:
        self.domain = domain
        self.kind = "int64"
        self.nbytes = 0
        """Memory that the ids take."""

    def users(self, codes: np.ndarray) -> np.ndarray | pa.Array:
        """The ids of these codes."""
        return codes.astype(np.int64)

    def of(self, ids: range | Ids) -> np.ndarray:
        """The codes of these ids; ABSENT where there is none."""
        values = np.arange(ids.start, ids.stop, dtype=np.int64) if isinstance(ids, range) else as_integers(ids)
        known = (values >= 0) & (values < self.domain)
        return np.where(known, values, int(ABSENT)).astype(np.uint32)


class DictionaryCodes(Codes):
    """Codes that are ranks in a sorted dictionary."""

    def __init__(self, values: np.ndarray | pa.Array) -> None:
        super().__init__(len(values))
        self.values = values
        self.nbytes = values.nbytes
        self.kind = str(values.dtype) if isinstance(values, np.ndarray) else "string"

    def users(self, codes: np.ndarray) -> np.ndarray | pa.Array:
        if isinstance(self.values, np.ndarray):
            return self.values[codes]
        return self.values.take(pa.array(codes))

    def of(self, ids: range | Ids) -> np.ndarray:
        if isinstance(self.values, np.ndarray):
            values = np.arange(ids.start, ids.stop) if isinstance(ids, range) else as_integers(ids)
            if not len(self.values):
                return np.full(len(values), ABSENT)
            values = values.astype(self.values.dtype)
            at = np.minimum(np.searchsorted(self.values, values), len(self.values) - 1)
            return np.where(self.values[at] == values, at, int(ABSENT)).astype(np.uint32)
        found = pc.index_in(as_strings(ids), value_set=self.values)
        return np.asarray(found.fill_null(-1)).astype(np.int64).astype(np.uint32)


def as_strings(ids: Ids | range) -> pa.Array:
    """String ids as one large_string array."""
    array = ids.combine_chunks() if isinstance(ids, pa.ChunkedArray) else ids
    return pa.array(array).cast(pa.large_string())


def as_integers(ids: Ids) -> np.ndarray:
    """Integer ids as int64, or as uint64 when one of them is too big for that."""
    values = np.asarray(ids)
    if values.dtype == np.uint64 and len(values) and values.max() > np.iinfo(np.int64).max:
        return values
    return values.astype(np.int64, copy=False)


@dataclass
class _Segment:
    """Edges that came with one dictionary; `offset` and `nbytes` say where it is spilled, none: codes are ids."""

    count: int
    offset: int = -1
    nbytes: int = 0


class Numberer:
    """Takes chunks with the user's ids, and gives them back with codes."""

    def __init__(
        self, spill: Spill, columns: Mapping[str, np.dtype], *, memory: int, limit: int, strings: bool, name: str
    ) -> None:
        self.log = EdgeLog(spill, columns, memory=memory, name="edges")
        self._dictionaries = spill.create("dictionaries")
        self._limit, self._strings, self._name = limit, strings, name
        self._segments: list[_Segment] = []
        self._highest = -1
        self._negative = self._wide = False
        self._union: np.ndarray | pa.Array = pa.array([], pa.large_string()) if strings else np.zeros(0, np.uint64)
        self._fresh: list[np.ndarray | pa.Array] = []
        self._fresh_count = 0

    def add(self, chunk: EdgeChunk) -> None:
        """Take a chunk in."""
        if self._strings:
            source, target = as_strings(chunk.source), as_strings(chunk.target)
            encoded = pa.concat_arrays([source, target]).dictionary_encode()
        else:
            low, high = bounds(chunk)
            if low >= 0 and high <= MOST:
                self._highest = max(self._highest, high)
                self._segments.append(_Segment(len(chunk)))
                self.log.append(np.asarray(chunk.source), np.asarray(chunk.target), chunk.columns)
                return
            self._negative |= low < 0
            self._wide |= high > np.iinfo(np.int64).max
            if self._negative and self._wide:
                raise self._mixed()
            bits = np.concatenate([np.asarray(ids).astype(np.uint64) for ids in (chunk.source, chunk.target)])
            encoded = pa.array(bits).dictionary_encode()
        codes = np.asarray(encoded.indices).astype(np.uint32, copy=False)
        self._keep(len(chunk), encoded.dictionary)
        self.log.append(codes[: len(chunk)], codes[len(chunk) :], chunk.columns)

    def _mixed(self) -> InputError:
        return InputError("ids below zero and above 2**63 in one graph: no integer type holds both", path=self._name)

    def _keep(self, count: int, dictionary: pa.Array) -> None:
        if self._strings:
            data = pa.record_batch([dictionary], ["id"]).serialize()
        else:
            data = np.asarray(dictionary).astype(np.uint64)
        offset = self._dictionaries.append(data)
        self._segments.append(_Segment(count, offset, memoryview(data).nbytes))
        self._unite(dictionary if self._strings else np.asarray(dictionary).astype(np.uint64))

    def _unite(self, values: np.ndarray | pa.Array) -> None:
        """Collect distinct ids; sort them together whenever the fresh ones outnumber the known."""
        self._fresh.append(values)
        self._fresh_count += len(values)
        if self._fresh_count > max(1 << 20, len(self._union)):
            self._merge()

    def _merge(self) -> None:
        if self._strings:
            self._union = pc.unique(pa.chunked_array([self._union, *self._fresh], pa.large_string()))
            size = self._union.nbytes + 8 * len(self._union)
        else:
            self._union = np.unique(np.concatenate([self._union, *self._fresh]))
            size = self._union.nbytes
        self._fresh, self._fresh_count = [], 0
        if size + VERTEX_BYTES * len(self._union) > self._limit:
            needed = size + VERTEX_BYTES * len(self._union)
            what = f"a graph of at least {len(self._union)} vertices"
            raise DoesNotFit(what, needed=2 * needed, limit=2 * self._limit)

    def finish(self, declared: range | Ids | None, edges: int) -> Codes:
        """Decide how ids are coded, now that all are known."""
        direct = not self._strings and all(segment.offset < 0 for segment in self._segments)
        highest = self._highest
        if direct and declared is not None and len(declared):
            low, high = id_bounds(declared)
            highest = max(highest, high)
            direct = low >= 0 and high <= MOST
        wide = roomy(edges, 0 if declared is None else len(declared))
        if direct and (highest + 1) * VERTEX_BYTES <= self._limit and highest < wide:
            return Codes(highest + 1)
        self._encode_rest()
        if declared is not None:
            self._unite(self._declared(declared))
        self._merge()
        if len(self._union) > MOST:
            raise InputError(f"more than {MOST} vertices are not built yet", path=self._name)
        values = self._union
        if self._strings:
            values = values.take(pc.array_sort_indices(values))
        else:
            values = np.sort(values.view(np.uint64 if self._wide else np.int64))
        self._union = np.zeros(0, np.uint64)
        return DictionaryCodes(values)

    def _declared(self, declared: range | Ids) -> np.ndarray | pa.Array:
        if self._strings:
            return as_strings(declared)
        values = np.arange(declared.start, declared.stop) if isinstance(declared, range) else as_integers(declared)
        if len(values) and values.dtype.kind == "i" and int(values.min()) < 0:
            self._negative = True
        elif values.dtype.kind == "u":
            self._wide = True
        if self._negative and self._wide:
            raise self._mixed()
        return values.astype(np.uint64)

    def _encode_rest(self) -> None:
        """Segments whose codes are ids take part in the dictionary as well: their distinct ids are collected."""
        if any(segment.offset < 0 and segment.count for segment in self._segments):
            for segment, source, target, _ in self._stretches():
                if segment.offset < 0:
                    self._unite(np.asarray(pc.unique(pa.chunked_array([source, target]))).astype(np.uint64))

    def _stretches(self) -> Iterator[tuple[_Segment, np.ndarray, np.ndarray, Mapping[str, np.ndarray]]]:
        """The log cut at the ends of segments as well as at the ends of pieces."""
        segments = iter([segment for segment in self._segments if segment.count])
        left, segment = 0, _Segment(0)
        for source, target, columns in self.log.pieces():
            at = 0
            while at < len(source):
                if not left:
                    segment = next(segments)
                    left = segment.count
                take = min(left, len(source) - at, PIECE)
                part = slice(at, at + take)
                yield segment, source[part], target[part], {name: values[part] for name, values in columns.items()}
                at += take
                left -= take

    def pieces(self, codes: Codes) -> Iterator[Piece]:
        """The edges with codes for ids."""
        if not isinstance(codes, DictionaryCodes):
            yield from self.log.pieces()
            return
        current: _Segment | None = None
        table = np.zeros(0, np.uint32)
        for segment, source, target, columns in self._stretches():
            if segment.offset < 0:
                # Hashing an edge's ends and searching only distinct ids beats searching for every end.
                ends = pa.array(np.concatenate([source, target])).dictionary_encode()
                both = codes.of(ends.dictionary)[np.asarray(ends.indices)]
                yield both[: len(source)], both[len(source) :], dict(columns)
                continue
            if segment is not current:
                current, table = segment, codes.of(self._dictionary(segment))
            yield table[source], table[target], dict(columns)

    def _dictionary(self, segment: _Segment) -> Ids:
        data = np.empty(segment.nbytes, np.uint8)
        self._dictionaries.read_into(segment.offset, data)
        if self._strings:
            schema = pa.schema([("id", pa.large_string())])
            return pa.ipc.read_record_batch(pa.py_buffer(data), schema).column(0)
        return data.view(np.uint64 if self._wide else np.int64)

    def delete(self) -> None:
        self.log.delete()
        self._dictionaries.delete()


def id_bounds(ids: range | Ids) -> tuple[int, int]:
    """Smallest and largest of some integer ids."""
    if isinstance(ids, range):
        return (ids.start, ids.stop - 1) if len(ids) else (0, -1)
    values = np.asarray(ids)
    return (int(values.min()), int(values.max())) if len(values) else (0, -1)


def bounds(chunk: EdgeChunk) -> tuple[int, int]:
    """Smallest and largest id of a chunk."""
    if not len(chunk):
        return 0, -1
    lows, highs = zip(id_bounds(chunk.source), id_bounds(chunk.target), strict=True)
    return min(lows), max(highs)
