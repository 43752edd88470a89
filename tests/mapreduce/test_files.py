"""Map from files and from pieces of them."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from penstock.errors import DoesNotFit, InputError, UsageError
from penstock.mapreduce.files import list_files
from penstock.mapreduce.functions import chunk, emit
from penstock.mapreduce.pieces import Pieces
from penstock.mapreduce.session import MapReduce
from penstock.mapreduce.text import WHITESPACE, lines, words

PLACES = {"memory": {"memory_limit": "256MB"}, "disk": {"memory_limit": "2MB", "force_out_of_core": True}}


@pytest.fixture(scope="module", params=PLACES)
def mr(request: pytest.FixtureRequest) -> Iterator[MapReduce]:
    with MapReduce(threads=2, **PLACES[request.param]) as made:
        yield made


@pytest.fixture(scope="module")
def tight() -> Iterator[MapReduce]:
    with MapReduce(memory_limit="2MB", threads=2) as made:
        yield made


def tree(folder: Path) -> Path:
    (folder / "in" / "deep").mkdir(parents=True)
    for name, text in {"b.txt": "b b\n", "a.txt": "a\n", "in/c.txt": "c a\n", "in/deep/d.txt": "d"}.items():
        (folder / name).write_text(text)
    return folder


def test_files_are_listed(tmp_path: Path) -> None:
    root = tree(tmp_path)
    assert [path.name for path in list_files(root)] == ["a.txt", "b.txt"]
    assert [path.name for path in list_files(root, recurse=True)] == ["a.txt", "b.txt", "c.txt", "d.txt"]
    assert [path.name for path in list_files([root / "b.txt", root / "a.txt"])] == ["b.txt", "a.txt"]
    (root / "list").write_text("in/c.txt\n\nb.txt\n")
    assert [path.name for path in list_files(root / "list", listing=True)] == ["c.txt", "b.txt"]


def test_missing_files_are_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"gone.txt: there is no such file"):
        list_files(tmp_path / "gone.txt")
    (tmp_path / "list").write_text("\nnowhere\n")
    with pytest.raises(InputError, match=r"list, line 2: .*nowhere"):
        list_files(tmp_path / "list", listing=True)


def test_one_task_for_each_file(mr: MapReduce, tmp_path: Path) -> None:
    root = tree(tmp_path)
    found = mr.map_files(root, lambda path: (path.name, path.stat().st_size), recurse=True)
    assert list(found) == [("a.txt", 2), ("b.txt", 4), ("c.txt", 4), ("d.txt", 1)]
    counted = mr.map_files(
        root, chunk(lambda path: (words(path.read_bytes()), None), parallel=True), recurse=True, combine="count"
    )
    assert sorted(counted) == [("a", 2), ("b", 2), ("c", 1), ("d", 1)]


def joined(session: MapReduce, path: Path, size: int, separator: bytes) -> list[bytes]:
    return [bytes(piece) for _, piece in Pieces(session, [path], size, separator)]


@settings(max_examples=150, suppress_health_check=list(HealthCheck))
@given(st.text("ab;\n", max_size=60), st.sampled_from([b"\n", b";", b";\n", b"\n\n", b"aba"]), st.integers(1, 20))
def test_pieces_cut_at_separators_only(
    tight: MapReduce, tmp_path_factory: pytest.TempPathFactory, text: str, separator: bytes, size: int
) -> None:
    data = text.encode()
    path = Path(os.fspath(tmp_path_factory.getbasetemp())) / "pieces.txt"
    path.write_bytes(data)
    pieces = joined(tight, path, size, separator)
    assert b"".join(pieces) == data
    assert all(pieces)
    # Cut once more, the pieces give the same records as the whole.
    records = [record for piece in pieces[:-1] for record in piece[: -len(separator)].split(separator)]
    records += pieces[-1].split(separator) if pieces else [b""]
    wanted = data.split(separator)
    if pieces and all(piece.endswith(separator) for piece in pieces):
        assert records == wanted
    assert [r for r in records if r] == [r for r in wanted if r]


def test_a_long_record_has_a_piece_of_its_own(tight: MapReduce, tmp_path: Path) -> None:
    path = tmp_path / "long"
    path.write_bytes(b"a\n" + b"x" * 100_000 + b"\nb\n")
    pieces = joined(tight, path, 64, b"\n")
    assert pieces[0] == b"a\n"
    assert b"x" * 100_000 + b"\n" in pieces[1]
    path.write_bytes(b"x" * 4_000_000)
    with pytest.raises(DoesNotFit, match=r"a record of .*long"):
        tight.map_pieces(path, lambda piece: (len(piece), 1))


def test_pieces_are_about_as_many_as_asked_for(mr: MapReduce, tmp_path: Path) -> None:
    path = tmp_path / "some"
    path.write_bytes(b"0123456\n" * 100)
    found = list(mr.map_pieces(path, lambda piece: (piece.count(b"\n"), len(piece)), pieces=10))
    assert 10 <= len(found) <= 12
    assert sum(count for count, _ in found) == 100


def text_of(seed: int, count: int) -> bytes:
    rng = np.random.default_rng(seed)
    return b"".join(b"w%d%s" % (min(z, 3000), b" \n\t"[z % 3 : z % 3 + 1]) for z in rng.zipf(1.3, count).tolist())


@chunk(parallel=True)
def counting(piece: np.ndarray) -> tuple:
    return words(piece), None


def test_words_are_counted(mr: MapReduce, tmp_path: Path) -> None:
    texts = [text_of(seed, 30_000) for seed in range(2)]
    for number, text in enumerate(texts):
        (tmp_path / f"{number}.txt").write_bytes(text)
    wanted = Counter(b" ".join(texts).decode().split())
    found: Counter = Counter()
    for word, count in mr.map_pieces(tmp_path, counting, combine="count"):
        found[word] += count
    assert found == wanted
    found = Counter(word for word, _ in mr.map_pieces(tmp_path, counting))
    assert found == wanted


def test_compiled_functions_of_pieces(mr: MapReduce, tmp_path: Path) -> None:
    def line_lengths(piece, out):
        length = 0
        for byte in piece:
            if byte == 10:
                emit(out, length, 1)
                length = 0
            else:
                length += 1

    (tmp_path / "lines").write_bytes(b"ab\n\nabc\n")
    assert [length for length, _ in mr.map_pieces(tmp_path, line_lengths)] == [2, 0, 3]


def test_empty_files_give_nothing(mr: MapReduce, tmp_path: Path) -> None:
    (tmp_path / "empty").touch()
    assert len(mr.map_pieces(tmp_path, counting, combine="count")) == 0
    assert len(mr.map_pieces(tmp_path / "empty", lambda piece: (piece, 1))) == 0


@pytest.mark.parametrize(
    ("options", "what"), [({"separator": b""}, "no separator"), ({"pieces": 0}, "pieces: 0"), ({"separator": 7}, "7")]
)
def test_wrong_options_are_refused(tight: MapReduce, tmp_path: Path, options: dict, what: str) -> None:
    with pytest.raises(UsageError, match=what):
        tight.map_pieces(tmp_path, counting, **options)


@given(st.binary(max_size=80))
def test_words_and_lines_of_any_bytes(data: bytes) -> None:
    cut = b"[" + re.escape(WHITESPACE) + b"]+"
    assert words(data, text=False).to_list() == [word for word in re.split(cut, data) if word]
    assert words(data, b"x\0", text=False).to_list() == [word for word in re.split(b"[x\0]+", data) if word]
    wanted = data.split(b"\n")
    assert lines(data, text=False).to_list() == (wanted[:-1] if not wanted[-1] else wanted)
    assert words(data, lower=True, text=False).to_list() == [each.lower() for each in words(data, text=False)]


def test_what_a_piece_becomes_may_be_kept(mr: MapReduce, tmp_path: Path) -> None:
    # Columns on the piece's own memory, which must not be used for another piece.
    path = tmp_path / "records"
    data = np.random.default_rng(1).integers(0, 2**62, 20_000)
    path.write_bytes(
        b"".join(int(each).to_bytes(8, "little") for each in data & 0x7F7F7F7F7F7F7F7F | 0x0101010101010101)
    )
    whole = np.fromfile(path, np.uint8)
    found = mr.map_pieces(path, chunk(lambda piece: (piece, piece)), separator=b"\x01")
    assert np.array_equal(np.concatenate([each.keys for each in found.chunks()]), whole)


def test_ranks_share_files_out_or_have_their_own(tmp_path: Path) -> None:
    from cluster.threads import ThreadRank, on_ranks

    for name in "abc":
        (tmp_path / name).write_text(name)

    def task(rank: ThreadRank) -> list[list[Any]]:
        with MapReduce(communicator=rank, memory_limit="4MB", threads=1) as mr:
            shared = mr.map_files(tmp_path, lambda path: (path.name, rank.rank))
            own = mr.map_pieces(tmp_path / "abc"[rank.rank], lambda piece: (piece, rank.rank), own=True)
            return [list(shared), list(own)]

    assert on_ranks(2, task) == [[[("a", 0), ("c", 0)], [(b"a", 0)]], [[("b", 1)], [(b"b", 1)]]]
