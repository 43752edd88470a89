"""Chunks in memory up to their share, the oldest on disk beyond it, and nothing left when nobody holds them."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from penstock.errors import DiskFull, DoesNotFit
from penstock.mapreduce.account import Account
from penstock.mapreduce.chunk import Chunk, Groups
from penstock.mapreduce.columns import NOTHING, Bytes, equal
from penstock.mapreduce.room import Kept, Room
from penstock.memory.spill import Spill

LIMIT, SHARE = 1_000_000, 400_000


@pytest.fixture
def spill(tmp_path: Path) -> Iterator[Spill]:
    with Spill(tmp_path) as made:
        yield made
    assert not list(tmp_path.iterdir())


def room_of(spill: Spill, **options: object) -> Room:
    return Room(Account(LIMIT), spill, share=SHARE, **options)  # type: ignore[arg-type]


def numbers(seed: int, count: int = 5000) -> Chunk:
    rng = np.random.default_rng(seed)
    return Chunk(rng.integers(0, 99, count), rng.random(count))


def test_the_oldest_go_to_disk_and_come_back(spill: Spill) -> None:
    room = room_of(spill)
    kept = [room.put(numbers(seed)) for seed in range(12)]
    assert [each.spilled for each in kept] == [True] * 7 + [False] * 5
    assert room.used <= SHARE
    assert room.ledger.used == room.used == 5 * 80_000
    for seed, each in enumerate(kept):
        with each.read() as chunk:
            assert equal(chunk.keys, numbers(seed).keys)
            assert equal(chunk.values, numbers(seed).values)
            assert room.ledger.used == room.used + (80_000 if each.spilled else 0)
    del chunk
    assert room.ledger.used == room.used
    for each in kept:
        each.release()
    assert (room.used, room.ledger.used, spill.used) == (0, 0, 0)
    assert not list(spill.folder.glob("chunks-*"))


def test_handles_that_are_forgotten_are_given_up(spill: Spill) -> None:
    room = room_of(spill)
    kept = [room.put(numbers(seed)) for seed in range(8)]
    assert spill.used > 0
    del kept
    gc.collect()
    assert (room.used, room.ledger.used, spill.used) == (0, 0, 0)


def test_the_last_of_several_holders_gives_it_up(spill: Spill) -> None:
    room = room_of(spill, force_out_of_core=True)
    kept = room.put(numbers(0))
    assert kept.spilled
    assert room.resident == 0
    other = kept.share()
    kept.release()
    assert equal(other.get().keys, numbers(0).keys)
    other.release()
    assert room.used == spill.used == 0
    with pytest.raises(ValueError, match="released"):
        other.get()


@pytest.mark.parametrize("force", [False, True])
def test_every_column_comes_back(spill: Spill, force: bool) -> None:
    room = room_of(spill, force_out_of_core=force)
    pair = np.dtype([("a", "u1"), ("b", "f8")])
    texts = Bytes.of(["", "ä", "x\0"])
    chunks = [
        Chunk(texts, np.zeros(3, pair)),
        Chunk(np.array([True, False]), np.empty(2, NOTHING)),
        Chunk(np.empty(3, NOTHING), Bytes.of([b"\xff", b"", b"long" * 1000])),
        Chunk(np.empty(0, np.int64), Bytes.empty(text=True)),
        Groups(Bytes.of(["k"]), np.array([0, 3]), np.array(["2020", "2021", "2022"], "M8[Y]"), continues=True),
    ]
    for chunk, kept in [(chunk, room.put(chunk)) for chunk in chunks]:
        found = kept.get()
        assert type(found) is type(chunk)
        assert len(found) == len(chunk) == len(kept)
        assert all(equal(a, b) for a, b in zip(found.columns, chunk.columns, strict=True))
        assert kept.continues == getattr(chunk, "continues", False) == getattr(found, "continues", False)


def test_a_view_of_much_memory_does_not_keep_it(spill: Spill) -> None:
    room = room_of(spill)
    big = np.arange(100_000)
    kept = room.put(Chunk(big[:1000], big[1000:2000]))
    assert room.ledger.used == 16_000
    big[:] = 0
    assert kept.get().keys[-1] == 999


def test_arrays_of_the_ledger_are_counted_once(spill: Spill) -> None:
    room = room_of(spill)
    keys = room.empty(10_000, np.int64, "work")
    kept = room.put(Chunk(keys, keys))
    assert room.ledger.used == 80_000
    kept.release()
    assert room.ledger.used == 80_000  # we still hold them
    del keys, kept
    assert room.ledger.used == 0


def test_work_pushes_chunks_out(spill: Spill) -> None:
    room = room_of(spill)
    kept = [room.put(numbers(seed)) for seed in range(5)]
    with room.reserve(900_000, "work"):
        assert sum(each.spilled for each in kept) == 4
    with kept[0].read() as one, kept[4].read() as other, pytest.raises(DoesNotFit, match="work"):
        room.reserve(LIMIT - 80_000, "work")  # what is being read stays
    del one, other
    assert room.empty(110_000, np.int64, "work").nbytes == 880_000
    with pytest.raises(DoesNotFit):
        room.empty(LIMIT, np.int64, "work")


def test_what_is_larger_than_the_share_goes_to_disk_at_once(spill: Spill) -> None:
    room = room_of(spill)
    small = room.put(numbers(0, 10))
    assert room.put(numbers(1, 30_000)).spilled
    assert not small.spilled


def test_a_number_of_chunks_may_be_the_limit(spill: Spill) -> None:
    room = room_of(spill, chunks=2)
    kept = [room.put(numbers(seed, 10)) for seed in range(5)]
    assert [each.spilled for each in kept] == [True, True, True, False, False]


def test_a_room_without_a_disk_says_so(spill: Spill) -> None:
    room = room_of(spill, may_spill=False)
    with pytest.raises(DoesNotFit, match="memory_limit"):
        held = [room.put(numbers(seed)) for seed in range(8)]  # noqa: F841
    assert spill.written == 0


def test_small_chunks_share_files(spill: Spill) -> None:
    room = room_of(spill, force_out_of_core=True)
    kept = [room.put(numbers(seed, 10)) for seed in range(50)]
    assert len(list(spill.folder.glob("chunks-*"))) == 1
    for each in kept[:-1]:
        each.release()
    assert equal(kept[-1].get().keys, numbers(49, 10).keys)
    kept[-1].release()
    assert room.used == 0
    assert not list(spill.folder.glob("chunks-*"))


@pytest.mark.parametrize("ahead", [False, True])
def test_a_stream_reads_ahead(spill: Spill, ahead: bool) -> None:
    room = room_of(spill)
    kept = [room.put(numbers(seed)) for seed in range(9)]
    found = [float(chunk.values.sum()) for chunk in room.stream(kept, ahead)]
    assert found == [float(numbers(seed).values.sum()) for seed in range(9)]
    stream = room.stream(kept)
    next(stream)
    stream.close()
    assert list(room.stream([])) == []
    room.close()


def test_a_full_disk_leaves_what_is_kept(tmp_path: Path) -> None:
    with Spill(tmp_path, quota=100_000) as spill:
        room = room_of(spill)
        kept: list[Kept] = []
        with pytest.raises(DiskFull, match="max_temp_directory_size"):
            kept.extend(room.put(numbers(seed)) for seed in range(12))
        assert all(equal(each.get().keys, numbers(seed).keys) for seed, each in enumerate(kept))


def test_pieces_of_a_chunk() -> None:
    words = Bytes.of(["x" * (i % 7) for i in range(100)])
    chunk = Chunk(words, np.arange(100))
    pieces = list(chunk.pieces(200))
    assert [key for piece in pieces for key in piece.keys] == words.to_list()
    assert all(16 * len(piece) + len(piece.keys.data) <= 200 for piece in pieces)
    assert len(pieces) < 14
    long = Chunk(Bytes.of(["x" * 1000, "y"]), np.arange(2))
    assert [len(piece) for piece in long.pieces(100)] == [1, 1]
    with pytest.raises(ValueError, match="2 keys"):
        Chunk(np.arange(2), np.arange(3))


def test_groups_are_cut_and_spread() -> None:
    groups = Groups(np.array([7, 8, 9]), np.array([0, 2, 2, 5]), np.arange(5), continues=True)
    assert groups.slice(0, 1).continues
    assert not groups.slice(1, 3).continues
    assert groups.slice(1, 3).offsets.tolist() == [0, 0, 3]
    assert groups.slice(1, 3).values.tolist() == [2, 3, 4]
    assert groups.pairs().keys.tolist() == [7, 7, 9, 9, 9]
    with pytest.raises(ValueError, match="offsets"):
        Groups(np.arange(2), np.arange(2), np.arange(1))
