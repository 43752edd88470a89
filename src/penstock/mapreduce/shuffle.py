"""Shuffle: pairs go to the rank, or into the part, that their key belongs to.

Ranks exchange in rounds. In each, a rank sends no more than its share of one chunk, so that whoever receives
everything receives about a chunk. A single rank goes the same way, but for the rounds that would move nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from penstock.cluster.communicator import Alone, Communicator, check_rank
from penstock.errors import UsageError
from penstock.mapreduce.chunk import Chunk
from penstock.mapreduce.columns import Bytes, Column, Kind, arrays_of, kind_name
from penstock.mapreduce.splitters import Splitter, make_splitter
from penstock.memory.ledger import Reservation

if TYPE_CHECKING:
    from penstock.mapreduce.keyvalue import KeyValue

Route = Callable[[Column], np.ndarray]


def aggregate(kv: KeyValue, splitter: Any = "range", parts: int | None = None) -> KeyValue:
    """All pairs of one key on one rank. `parts` given: instead, cut this rank's pairs into so many parts, which follow
    one another in the result; its `records` says how many pairs each has."""
    mr = kv.mr
    if parts is not None:
        cut = partition(kv, splitter, parts)
        whole = cut[0].add(*cut[1:])
        whole.partitioned, whole.records = cut[0].partitioned, [len(part) for part in cut]
        for part in cut:
            part.close()
        return whole
    size = mr.communicator.size
    if size == 1:
        _check(splitter)
        mr.skipped("aggregate")
        return kv.copy()
    _agree(kv)
    if kv.partitioned is not None and _same(kv.partitioned, splitter, size):
        mr.skipped("aggregate")
        return kv.copy()
    made = make_splitter(splitter, kv.kept, size, kv.key, mr.communicator)
    moved = exchange(kv, made.parts)
    moved.partitioned = made.identity
    return moved


def _check(splitter: Any) -> None:
    """What would be refused with more ranks is refused with one."""
    if not callable(splitter) and not isinstance(splitter, Splitter):
        make_splitter(splitter, [], 1, np.dtype(np.int64), Alone())


def _same(have: tuple[Any, ...], splitter: Any, count: int) -> bool:
    if have[1] != count:
        return False
    if isinstance(splitter, str) or splitter is None:
        return bool(have[0] == (splitter or "range"))
    return bool(have == getattr(splitter, "identity", ("custom", count, splitter)))


def partition(kv: KeyValue, splitter: Any, parts: int) -> list[KeyValue]:
    """This rank's pairs in `parts` lists of chunks, in input order inside each."""
    made = make_splitter(splitter, kv.kept, parts, kv.key, Alone())
    with _working(kv), kv.mr.writers(parts, kv.key, kv.value) as writers:
        for chunk in kv.chunks():
            for writer, piece in zip(writers, split(chunk, made.parts(chunk.keys), parts), strict=True):
                if len(piece):
                    writer.add_chunk(piece.keys, piece.values)
        found = [writer.done() for writer in writers]
    for one in found:
        one.partitioned = made.identity
    return found


def _working(kv: KeyValue) -> Reservation:
    """For parts, positions and the copy that is made of the largest chunk."""
    largest = max((kept.nbytes + 24 * kept.rows for kept in kv.kept), default=0)
    return kv.mr.room.reserve(largest, "a chunk that is split")


def split(chunk: Chunk, part: np.ndarray, parts: int) -> list[Chunk]:
    """The pairs of each part, in input order."""
    if parts == 1:
        return [chunk]
    # NumPy sorts narrow integers by radix: linear and stable.
    narrow = part.astype(np.uint8 if parts <= 256 else np.uint16 if parts <= 65536 else np.int64)
    bounds = np.concatenate([[0], np.cumsum(np.bincount(part, minlength=parts))])
    ordered = chunk.take(np.argsort(narrow, kind="stable"))
    return [ordered.slice(int(bounds[p]), int(bounds[p + 1])) for p in range(parts)]


def exchange(kv: KeyValue, route: Route) -> KeyValue:
    """Every pair to the rank that `route` names; what has come here, by rounds, and inside a round by rank."""
    mr = kv.mr
    communicator = mr.communicator
    size = communicator.size
    ready = _pieces(kv, max(1, mr.chunk_bytes // size))
    with _working(kv), mr.writer(kv.key, kv.value) as writer:
        while True:
            piece = next(ready, None)
            if not communicator.allreduce(int(piece is not None), "max"):
                break
            sent: list[list[np.ndarray]] = [[] for _ in range(size)]
            if piece is not None:
                sent = [pack(each) if len(each) else [] for each in split(piece, route(piece.keys), size)]
                mr.counters.add(
                    "bytes_sent", sum(a.nbytes for r, part in enumerate(sent) for a in part if r != mr.rank)
                )
            for arrays in communicator.all_to_all(sent):
                if arrays:
                    came = unpack(arrays, kv.key, kv.value)
                    writer.add_chunk(came.keys, came.values)
        return writer.done()


def _pieces(kv: KeyValue, nbytes: int) -> Iterator[Chunk]:
    for chunk in kv.chunks():
        if len(chunk):
            yield from chunk.pieces(nbytes)


def pack(chunk: Chunk) -> list[np.ndarray]:
    """The arrays of a chunk, to be sent."""
    return [array for column in chunk.columns for array in arrays_of(column)]


def unpack(arrays: list[np.ndarray], key: Kind, value: Kind) -> Chunk:
    """The chunk that was packed."""
    rest = list(arrays)
    found: list[Column] = []
    for kind in (key, value):
        if isinstance(kind, str):
            offsets, data = rest.pop(0), rest.pop(0)
            found.append(Bytes(offsets, data, kind == "string"))
        else:
            found.append(rest.pop(0))
    return Chunk(*found)


def _agree(kv: KeyValue) -> None:
    """A rank without pairs takes the kinds of the others; two that differ are an error on all."""
    offers = kv.mr.communicator.allgather((kv.key, kv.value) if len(kv) else None)
    kinds = [offer for offer in offers if offer is not None]
    for other in kinds[1:]:
        if other != kinds[0]:
            raise UsageError(
                f"ranks hold pairs of different kinds: ({kind_name(kinds[0][0])}, {kind_name(kinds[0][1])}) and "
                f"({kind_name(other[0])}, {kind_name(other[1])})"
            )
    if kinds:
        kv.key, kv.value = kinds[0]


def gather(kv: KeyValue, ranks: int = 1) -> KeyValue:
    """All pairs on the lowest `ranks` ranks: those of rank r go to r modulo that number."""
    communicator: Communicator = kv.mr.communicator
    if ranks < 1:
        raise UsageError(f"pairs cannot be gathered on {ranks} ranks: give at least 1")
    if ranks >= communicator.size:
        kv.mr.skipped("gather")
        return kv.copy()
    _agree(kv)
    target = communicator.rank % ranks
    return exchange(kv, lambda keys: np.full(len(keys), target))


def broadcast(kv: KeyValue, root: int = 0) -> KeyValue:
    """What the root has, on every rank, in place of what was there."""
    mr, communicator = kv.mr, kv.mr.communicator
    check_rank(root, communicator.size)
    if communicator.size == 1:
        mr.skipped("broadcast")
        return kv.copy()
    mine = communicator.rank == root
    key, value, order = communicator.broadcast((kv.key, kv.value, kv.order) if mine else None, root)
    ready = kv.chunks() if mine else iter(())
    with mr.writer(key, value) as writer:
        while True:
            chunk = next(ready, None)
            arrays = communicator.broadcast(pack(chunk) if chunk is not None else None, root)
            if arrays is None:
                found = writer.done()
                found.order = order
                return found
            came = unpack(arrays, key, value)
            writer.add_chunk(came.keys, came.values)


__all__ = ["aggregate", "broadcast", "exchange", "gather", "pack", "partition", "split", "unpack"]
