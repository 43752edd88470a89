"""What an error, a full disk or an interrupt leaves behind: nothing. And what a whole chain of operations takes."""

from __future__ import annotations

import contextlib
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from penstock.errors import DiskFull
from penstock.mapreduce import KeyMultiValue, KeyValue, MapReduce, chunk
from penstock.memory.spill import BOUNCE

ROWS = 4000
KEYS = np.arange(ROWS) % 37


class Failure(Exception):
    """Of a user's function."""


def late(*_: Any) -> Any:
    """A function that fails when much has been done already."""
    late.calls += 1  # type: ignore[attr-defined]
    if late.calls > late.limit:  # type: ignore[attr-defined]
        raise Failure
    return None


def returning(value: Callable[..., Any]) -> Callable[[Any, Any], Any]:
    def call(one: Any, other: Any) -> Any:
        late()
        return value(one, other)

    return call


@chunk
def columns(keys: Any, values: Any) -> Any:
    late()
    return keys, values


def grouped(kv: KeyValue, f: Callable[[KeyMultiValue], Any]) -> Any:
    with kv.collate() as groups:
        return f(groups)


# Each with how many calls it lets pass.
FAILING: dict[str, tuple[int, Callable[[KeyValue], Any]]] = {
    "map": (3000, lambda kv: kv.map(returning(lambda key, value: (key, value)))),
    "map of columns": (5, lambda kv: kv.map(columns)),
    "map with a combiner": (3000, lambda kv: kv.map(returning(lambda key, value: (key, 1)), combine="sum")),
    "filter": (3000, lambda kv: kv.filter(returning(lambda key, value: True))),
    "scan": (3000, lambda kv: kv.scan(late)),
    "sort": (9000, lambda kv: kv.sort_keys(compare=returning(lambda one, other: one - other))),
    "reduce": (20, lambda kv: grouped(kv, lambda groups: groups.reduce(returning(lambda key, values: (key, 1))))),
    "compress": (20, lambda kv: kv.compress(returning(lambda key, values: (key, 1)))),
    "splitter": (5, lambda kv: kv.partition(4, lambda keys: late() or keys)),
    "records": (
        5,
        lambda kv: kv.mr.keyvalue((chunk.keys, late() or chunk.values) for chunk in kv.chunks()),
    ),
}


def nothing_left(mr: MapReduce) -> bool:
    """Whether all chunks are gone from memory and disk, once the room has heard of it."""
    return mr.room.used == 0 and mr.spill.used == 0


@pytest.fixture
def kv(tmp_path: Path) -> Iterator[KeyValue]:
    with MapReduce(
        memory_limit="1MiB", chunk_size=1024, threads=2, force_out_of_core=True, temp_directory=tmp_path
    ) as mr:
        with mr.keyvalue(KEYS, np.arange(ROWS)) as made:
            yield made
        assert nothing_left(mr)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", FAILING)
def test_a_function_that_fails(kv: KeyValue, name: str) -> None:
    late.limit, call = FAILING[name]  # type: ignore[attr-defined]
    late.calls = 0  # type: ignore[attr-defined]
    with pytest.raises(Failure):
        call(kv)
    assert [value for _, value in kv] == list(range(ROWS))  # and the session can go on


SPILLING: dict[str, Callable[[KeyValue], Any]] = {
    "map": lambda kv: kv.map(lambda keys, values: (keys, values)),
    "sort": lambda kv: kv.sort_values(descending=True),
    "convert": lambda kv: kv.convert(),
    "sort multivalues": lambda kv: grouped(kv, lambda groups: groups.sort_multivalues()),
    "reduce": lambda kv: grouped(kv, lambda groups: groups.reduce(lambda key, values: [(key, v) for v in values])),
    "parts": lambda kv: kv.aggregate("lpt", parts=3),
    "collapse": lambda kv: kv.collapse("x"),
}


@pytest.mark.parametrize("name", SPILLING)
def test_a_disk_that_is_full(tmp_path: Path, name: str) -> None:
    """At whichever write it is: the quota grows until all has room."""
    failures = 0
    for quota in range(17 * ROWS, 80 * ROWS, 9 * ROWS):
        with MapReduce(
            memory_limit="1MiB", chunk_size=1024, threads=1, force_out_of_core=True, temp_directory=tmp_path,
            max_temp_directory_size=quota,
        ) as mr:  # fmt: skip
            with mr.keyvalue(KEYS, np.arange(ROWS)) as pairs:
                try:
                    SPILLING[name](pairs).close()
                except DiskFull:
                    failures += 1
                assert [value for _, value in pairs] == list(range(ROWS))
            assert nothing_left(mr)
        assert list(tmp_path.iterdir()) == []
    assert 1 <= failures < 7


def test_an_interrupt_of_a_command(tmp_path: Path) -> None:
    (tmp_path / "spill").mkdir()
    command = [
        sys.executable, "-m", "penstock", "mr", "rmat", "--levels", "20", "--memory-limit", "8MB", "--threads", "1",
        "--temp-directory", str(tmp_path / "spill"), "-o", str(tmp_path / "edges.parquet"),
    ]  # fmt: skip
    child = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, restore_signals=True)
    try:
        for _ in range(1500):
            if any(path.is_file() and path.stat().st_size for path in _files(tmp_path / "spill")):
                break
            time.sleep(0.02)
        assert child.poll() is None
        child.send_signal(signal.SIGINT)
        _, said = child.communicate(timeout=60)
    finally:
        child.kill()
    assert child.returncode == 128 + signal.SIGINT
    assert said.count("\n") == 1
    assert list((tmp_path / "spill").iterdir()) == []
    assert not (tmp_path / "edges.parquet").exists()


def _files(folder: Path) -> list[Path]:
    with contextlib.suppress(OSError):
        return list(folder.rglob("*"))
    return []


CHAIN = """
    import sys
    import numpy as np
    from penstock.mapreduce import MapReduce
    from penstock.observe.stats import peak_rss

    def batches(count):
        for number in range(count):
            yield np.random.default_rng(number).integers(0, 60_000, 100_000), np.full(100_000, number)

    def run(count, limit, target):
        with MapReduce(memory_limit=limit, threads=2) as mr:
            kv = mr.keyvalue(batches(count))
            twice = kv.map(lambda keys, values: (keys, values * 2))
            kv.close()
            with twice.collate() as groups, groups.sort_multivalues(True) as sorted_groups:
                found = sorted_groups.pairs()
            twice.close()
            ordered = found.sort_values().sort_keys()
            found.close()
            ordered.save(target + ".saved", overwrite=True)
            again = mr.load(target + ".saved")
            again.write(target, overwrite=True)
            assert len(again) == count * 100_000
            assert mr.budget.peak <= limit
            return mr.spill.written

    run(3, LIMIT // 8, sys.argv[1])  # all kernels are loaded
    before = peak_rss()
    print(run(24, LIMIT, sys.argv[1]), peak_rss() - before)
"""


def test_a_chain_of_operations_stays_inside_the_budget(tmp_path: Path) -> None:
    limit = 16 << 20  # for 38 MB of pairs, some of them several times
    code = f"LIMIT = {limit}\n{textwrap.dedent(CHAIN)}"
    for _ in range(2):  # the first may have to compile kernels that only many pairs need
        done = subprocess.run(
            [sys.executable, "-c", code, str(tmp_path / "out.parquet")], check=True, capture_output=True, text=True
        )
    spilled, grown = map(int, done.stdout.split())
    assert spilled > 4 * limit
    assert grown < limit + 4 * BOUNCE  # so small a budget does not hold the buffers of the spill
