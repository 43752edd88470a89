"""MR-MPI's words: programs written for it, and every method and setting it has."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from cluster.threads import ThreadRank, on_ranks
from penstock.errors import DoesNotFit, UsageError
from penstock.mapreduce.mrmpi import MRMPI, SETTINGS

METHODS = """copy destroy add aggregate broadcast clone close collapse collate compress convert gather map map_task
    map_file map_file_char map_file_str map_mr open print reduce scan scan_kv scan_kmv scrunch sort_keys sort_values
    sort_multivalues kv_stats kmv_stats cummulative_stats num_procs my_proc"""
TEXT = "the cat and the dog\nand the bird\n" * 40


def read_words(text: bytes, out: Any) -> None:
    for word in text.split():
        out.add(word, 1)


def total(key: bytes, values: Any, out: Any) -> None:
    out.add(key, sum(values))


@pytest.mark.parametrize("outofcore", [0, 1])
def test_word_frequency(tmp_path: Path, outofcore: int) -> None:
    """The example that MR-MPI comes with."""
    (tmp_path / "text").write_text(TEXT)
    with MRMPI(memory_limit="4MB", outofcore=outofcore, memsize=-4096, fpath=tmp_path) as mr:
        want = Counter(TEXT.encode().split())
        assert mr.map_file_char(4, tmp_path / "text", "\n", read_words) == sum(want.values())
        assert mr.collate() == len(want)
        assert mr.reduce(total) == len(want)
        assert mr.sort_values(-1) == len(want)
        shown: list[tuple[bytes, int]] = []
        assert mr.scan(lambda key, value: shown.append((key, value))) == len(want)
        assert dict(shown) == want
        assert [count for _, count in shown] == sorted(want.values(), reverse=True)
        assert bool(mr.cummulative_stats()["spill_written"]) == bool(outofcore)
        assert mr.session.chunk_bytes == 4096
    assert [path.name for path in tmp_path.iterdir()] == ["text"]


def test_every_method_and_setting_is_there() -> None:
    for name in METHODS.split():
        assert callable(getattr(MRMPI, name))
    mr = MRMPI(memory_limit="4MB", **{name: value for name, value in SETTINGS.items() if name != "fpath"})
    assert (mr.memsize, mr.mapstyle, mr.freepage) == (64, 0, 1)
    with pytest.raises(AttributeError, match="'pagesize'"):
        _ = mr.pagesize
    mr.maxpage = 3
    mr.map(2, lambda task, out: out.add(task, "x"))
    assert mr.maxpage == 3
    with pytest.raises(UsageError, match="before the first operation"):
        mr.maxpage = 4
    mr.destroy()
    assert mr.session.closed


def test_objects_take_of_one_another(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    with MRMPI(memory_limit="4MB") as one, MRMPI(memory_limit="4MB") as other, MRMPI(one) as third:
        assert one.map(3, lambda task, out: out.add_multi([task, task], [1, 2])) == 6
        assert one.map(1, lambda task, out: out.add(9, 9), addflag=1) == 7
        assert other.map_mr(one, lambda key, value, out: out.add(value, key)) == 7
        third.open()
        other.map_mr(other, lambda key, value, out: third.add(key, value), addflag=1)
        assert third.close() == 7
        assert third.add(one) == third.kv_stats()["pairs"] == 14
        twin = one.copy()
        assert twin.compress("count") == 4
        assert (one.clone(), one.kmv_stats()["keys"]) == (7, 7)
        assert one.reduce(lambda key, values, out: out.add(key, next(iter(values)))) == 7
        assert one.sort_keys(lambda a, b: b - a) == 7
        assert one.print(vflag=0, nstride=2) == 4
        assert capsys.readouterr().out.split() == ["9", "2", "1", "0"]
        assert one.convert() == 4
        assert one.sort_multivalues(-1) == 4
        assert dict(one.kmv)[2].tolist() == [2, 1]
        with pytest.raises(UsageError, match="this needs pairs"):
            one.collate()
        with pytest.raises(UsageError, match="this needs keys with values"):
            other.reduce("sum")
        with pytest.raises(UsageError, match="between open and close"):
            one.add(1, 2)
        with pytest.raises(UsageError, match="it is not open"):
            one.close()
        with pytest.raises(UsageError, match="none of 1 to 6"):
            other.sort_keys(7)
        (tmp_path / "a").write_text("x")
        assert other.map_file([tmp_path], lambda path, out: out.add(Path(path).name, 1), addflag=0) == 1
        assert (other.mapfilecount, list(other.kv)) == (1, [("a", 1)])


def test_spilling_may_be_an_error() -> None:
    with MRMPI(memory_limit="2MB", outofcore=-1) as mr, pytest.raises(DoesNotFit, match="memory_limit"):
        mr.map(3000, lambda task, out: out.add("x" * 1000, task))


def test_ranks() -> None:
    def task(rank: ThreadRank) -> Any:
        with MRMPI(communicator=rank, memory_limit="4MB", threads=1) as mr:
            assert (mr.num_procs(), mr.my_proc()) == (3, rank.rank)
            assert mr.map(12, lambda number, out: out.add(number % 4, number)) == 12
            assert mr.collate() == 4
            assert mr.reduce("sum") == 4
            assert mr.gather(1) == 4
            assert mr.scrunch(1, "all") == 1
            return [(key, values.tolist()) for key, values in mr.kmv]

    first, *others = on_ranks(3, task)
    ((key, flat),) = first
    assert key == "all"
    assert dict(zip(flat[::2], flat[1::2], strict=True)) == {k: sum(range(k, 12, 4)) for k in range(4)}
    assert others == [[], []]
