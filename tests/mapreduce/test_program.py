"""Map through external programs."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from penstock.errors import InputError, UsageError
from penstock.mapreduce.session import MapReduce

PLACES = {"memory": {"memory_limit": "256MB"}, "disk": {"memory_limit": "2MB", "force_out_of_core": True}}


@pytest.fixture(scope="module", params=PLACES)
def mr(request: pytest.FixtureRequest) -> Iterator[MapReduce]:
    with MapReduce(threads=2, chunk_size=4096 if request.param == "disk" else None, **PLACES[request.param]) as made:
        yield made


def test_pairs_go_through_in_order(mr: MapReduce) -> None:
    pairs = [(f"key {k}", k * k) for k in range(5000)]
    kv = mr.keyvalue([k for k, _ in pairs], [v for _, v in pairs])
    assert list(mr.map_program("cat", kv, value="int64")) == pairs
    assert list(mr.map_program(["cat"], kv)) == [(k, str(v)) for k, v in pairs]


def test_bytes_go_through_as_they_are(mr: MapReduce) -> None:
    kv = mr.keyvalue([b"\xff\x00", b""], [b"a\tb", b"\x80"])
    assert list(mr.map_program("cat", kv, key="bytes", value="bytes")) == [(b"\xff\x00", b"a\tb"), (b"", b"\x80")]


def test_a_line_without_a_tab_is_a_key(mr: MapReduce) -> None:
    assert list(mr.map_program(["printf", "a\\nb\\tc"])) == [("a", ""), ("b", "c")]
    assert list(mr.map_program(["printf", "a\\nb"], value=None)) == [("a", None), ("b", None)]
    nothing = mr.keyvalue(["x", "y"])
    assert list(mr.map_program("cat", nothing)) == [("x", ""), ("y", "")]


def test_files_by_name_and_as_input(mr: MapReduce, tmp_path: Path) -> None:
    for name in "abc":
        (tmp_path / name).write_text(f"{name}\t1\n" * 2)
    assert list(mr.map_program("cat", tmp_path)) == [(name, "1") for name in "abc" for _ in range(2)]
    assert list(mr.map_program("cat", tmp_path, argument=True)) == [(name, "1") for name in "abc" for _ in range(2)]
    found = mr.map_program(["sh", "-c", "basename {}"], tmp_path, argument=True)
    assert [key for key, _ in found] == ["a", "b", "c"]


def test_much_output_of_several_keeps_its_order(mr: MapReduce, tmp_path: Path) -> None:
    for name in range(4):
        (tmp_path / str(name)).touch()
    # The first is the slowest: the others must wait for it, and not for ever.
    code = (
        "import sys, time; n = int(sys.argv[1][-1]); time.sleep(0.3 * (n == 0)); "
        "print((f'{n}\\t' + 'x' * 50 + '\\n') * 9000)"
    )
    found = mr.map_program([sys.executable, "-c", code], tmp_path, argument=True, key="string")
    assert [key for key, _ in found if key] == [str(n) for n in range(4) for _ in range(9000)]


def test_no_input_at_all(mr: MapReduce) -> None:
    assert len(mr.map_program("cat", mr.keyvalue(key="int64", value="int64"))) == 0
    assert len(mr.map_program("cat", [])) == 0
    assert list(mr.map_program("cat")) == []


def test_a_program_need_not_read_it_all(mr: MapReduce) -> None:
    kv = mr.keyvalue(np.arange(20_000), np.arange(20_000))
    found = list(mr.map_program("head -n 1", kv, key="int64", value="int64"))
    assert found[0] == (0, 0)


def test_a_program_that_fails(mr: MapReduce, tmp_path: Path) -> None:
    (tmp_path / "a").touch()
    with pytest.raises(InputError, match=r"'sh' ended with exit status 3 for .*a: it broke$"):
        mr.map_program(["sh", "-c", "echo first >&2; echo it broke >&2; exit 3"], tmp_path)
    with pytest.raises(InputError, match="'sh' was killed by signal 9"):
        mr.map_program(["sh", "-c", "kill -9 $$"], tmp_path)
    with pytest.raises(UsageError, match="'no-such-program' cannot be started"):
        mr.map_program("no-such-program", tmp_path)
    assert list(mr.map_program("cat", tmp_path)) == []


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"command": ""}, "the command is empty"),
        ({"command": "cat", "inputs": 7}, "not int"),
    ],
)
def test_wrong_use_is_refused(mr: MapReduce, options: dict, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        mr.map_program(**options)
    with pytest.raises(UsageError, match="argument=True is for files"):
        mr.map_program("cat", mr.keyvalue([1], [2]), argument=True)


def test_text_that_is_no_number(mr: MapReduce) -> None:
    with pytest.raises(InputError, match=r"'printf' printed for its only run: 'x' is no int64"):
        mr.map_program(["printf", "1\\t1\\nx\\t2\\n"], key="int64")
    assert list(mr.map_program(["printf", "9007199254740993\\t0.5\\n"], key="int64", value="float64")) == [
        (9007199254740993, 0.5)
    ]


def test_keys_that_no_line_can_hold(mr: MapReduce) -> None:
    for key, value in (("a\tb", "c"), ("a\nb", "c"), ("a", "b\nc")):
        with pytest.raises(InputError, match="no line of text can hold it"):
            mr.map_program("cat", mr.keyvalue([key], [value]))


def test_an_interrupt_kills_them(mr: MapReduce, tmp_path: Path) -> None:
    signal.siginterrupt(signal.SIGINT, False)  # as some libraries have it: reads go on after a signal
    for name in "abcd":
        (tmp_path / name).touch()
    pids = tmp_path / "pids"
    pids.mkdir()
    # The shell starts another process: both must go.
    script = f"touch {pids}/$$; sleep 60 & touch {pids}/$!; wait"

    def interrupt() -> None:
        for _ in range(500):
            if len(list(pids.iterdir())) >= 4:
                break
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        mr.map_program(["sh", "-c", script], [tmp_path / name for name in "abcd"])
    thread.join()
    signal.siginterrupt(signal.SIGINT, True)
    started = [int(path.name) for path in pids.iterdir()]
    assert len(started) >= 4
    for _ in range(300):
        if not any(alive(pid) for pid in started):
            break
        time.sleep(0.01)
    assert not [pid for pid in started if alive(pid)]


def test_an_interrupt_while_one_is_started_kills_it(mr: MapReduce, monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[int] = []

    class Slow(subprocess.Popen):  # type: ignore[type-arg]
        def __init__(self, *args: Any, **options: Any) -> None:
            super().__init__(*args, **options)
            started.append(self.pid)
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.1)

    monkeypatch.setattr(subprocess, "Popen", Slow)
    with pytest.raises(KeyboardInterrupt):
        mr.map_program(["sleep", "60"])
    for _ in range(300):
        if not alive(started[0]):
            break
        time.sleep(0.01)
    assert not alive(started[0])


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False
