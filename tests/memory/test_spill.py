from __future__ import annotations

import errno
import os
import resource
import signal
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

from penstock.errors import DamagedStore, DiskFull
from penstock.memory import spill as module
from penstock.memory.buffers import allocate
from penstock.memory.spill import PREFIX, Spill, check_space


def folders(directory: Path) -> list[Path]:
    return list(directory.glob(f"{PREFIX}*"))


def test_round_trip_counts_and_removal(tmp_path: Path) -> None:
    with Spill(tmp_path / "deep" / "er", quota=None) as spill:
        file = spill.create("run-0")
        a, b = np.arange(1000, dtype=np.uint32), np.arange(7, dtype=np.float64)
        assert file.append(a, np.empty(0, np.int8), b) == 0
        assert file.append(b"tail") == 4056
        assert file.append() == 4060
        assert file.size == spill.used == spill.written == 4060
        back, rest = np.empty(1000, np.uint32), bytearray(4)
        file.read_into(0, back)
        file.read_into(4056, rest)
        file.read_into(0, np.empty(0, np.uint8))
        assert (back == a).all()
        assert bytes(rest) == b"tail"
        other = spill.create("run-1")
        other.append(b"x" * 100)
        file.delete()
        file.delete()
        beat = spill.heartbeat()
        assert (beat["used"], beat["peak"], beat["written"], beat["read"]) == (100, 4160, 4160, 4004)
        assert len(folders(tmp_path / "deep" / "er")) == 1
    assert folders(tmp_path / "deep" / "er") == []


@pytest.mark.parametrize("direct", [True, False])
def test_any_cut_comes_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, direct: bool) -> None:
    """Pieces that start and end anywhere, smaller and larger than a block and a bounce buffer, written by halves."""
    real, opened = os.pwritev, os.open

    def half(descriptor: int, views: list[np.ndarray], at: int) -> int:
        return real(descriptor, [views[0][: max(4096, len(views[0]) // 8192 * 4096)]], at)

    def refuse(path: object, flags: int, *rest: int) -> int:
        if flags & os.O_DIRECT:
            raise OSError(errno.EINVAL, "no direct I/O here")
        return opened(path, flags, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(os, "pwritev", half)
    monkeypatch.setattr(module, "BOUNCE", 16384)
    if not direct:
        monkeypatch.setattr(os, "open", refuse)
    rng = np.random.default_rng(0)
    with Spill(tmp_path) as spill:
        file = spill.create("f")
        assert file.direct == direct
        sizes = [4, 4092, 4096, 1, 20_000, 40_000, 5, 16_384, 4095]
        pieces = [rng.integers(0, 256, n, dtype=np.uint8) for n in sizes]
        aligned = allocate(65_536)
        aligned[:] = rng.integers(0, 256, len(aligned), dtype=np.uint8)
        file.append(*pieces[:4])
        for piece in pieces[4:]:
            file.append(piece)
        everything = np.concatenate([*pieces, aligned])
        file.append(aligned)
        assert file.size == len(everything)
        for begin, end in (
            (0, len(everything)),
            (0, 1),
            (4095, 4097),
            (8192, 8192 + 40_960),
            (70_001, len(everything)),
        ):
            back = np.empty(end - begin, np.uint8)
            file.read_into(begin, back)
            assert (back == everything[begin:end]).all()
        block = allocate(65_536)
        file.read_into(4096, block)
        assert (block == everything[4096 : 4096 + 65_536]).all()


def test_appends_from_many_threads_do_not_mix(tmp_path: Path) -> None:
    with Spill(tmp_path) as spill:
        file = spill.create("f")
        where: dict[int, int] = {}

        def write(k: int) -> None:
            for n in range(20):
                where[k * 20 + n] = file.append(np.full(500, k * 20 + n, np.uint32))

        threads = [threading.Thread(target=write, args=(k,)) for k in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        back = np.empty(500, np.uint32)
        for value, offset in where.items():
            file.read_into(offset, back)
            assert (back == value).all()


def test_removed_on_failure_and_interrupt(tmp_path: Path) -> None:
    for error in (ValueError, KeyboardInterrupt):
        with pytest.raises(error), Spill(tmp_path) as spill:  # noqa: PT012
            spill.create("f").append(b"abc")
            raise error
        assert folders(tmp_path) == []


def test_quota_names_directory_size_and_setting(tmp_path: Path) -> None:
    with Spill(tmp_path, quota=1000) as spill:
        file = spill.create("f")
        file.append(b"x" * 900)
        with pytest.raises(DiskFull) as caught:
            file.append(b"x" * 101)
        for word in (str(tmp_path), "1.0 kB", "max_temp_directory_size"):
            assert word in str(caught.value)
        assert spill.used == file.size == 900
        with pytest.raises(DiskFull) as caught:
            spill.require(5000, "sorting 100 edges")
        for word in (
            str(tmp_path),
            "sorting 100 edges",
            "5.0 kB",
            "1.0 kB",
            "900 B",
            "5.9 kB",
            "max_temp_directory_size",
        ):
            assert word in str(caught.value)
        with pytest.raises(DiskFull, match=r"to at least 6\.0 kB"):  # with 5.9 kB it would be refused again
            spill.require(5001, "sorting 101 edges")
        spill.require(100, "fits")
        file.delete()
        spill.create("g").append(b"x" * 1000)
    assert folders(tmp_path) == []


def test_default_quota_follows_free_space(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = module.shutil.disk_usage(tmp_path)._replace(free=1000)
    monkeypatch.setattr(module.shutil, "disk_usage", lambda path: usage)
    with Spill(tmp_path) as spill:
        assert spill.quota == 900
        with pytest.raises(DiskFull, match="90 %"):
            spill.create("f").append(b"x" * 901)
    with pytest.raises(DiskFull, match=r"the build needs 2\.0 kB.*1\.0 kB free.*larger disk"):
        check_space(tmp_path, 2000, "the build")
    with Spill(tmp_path, quota=10_000) as spill, pytest.raises(DiskFull, match=r"1\.0 kB free"):
        spill.require(5000, "sorting")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
def test_no_space_left_is_one_sentence(tmp_path: Path) -> None:
    with Spill(tmp_path) as spill:
        file = spill.create("f")
        full = os.open("/dev/full", os.O_RDWR)
        os.dup2(full, file._descriptor)
        os.close(full)
        with pytest.raises(DiskFull) as caught:
            file.append(b"x" * 10_000)
        assert str(tmp_path) in str(caught.value)
        assert "no space left" in str(caught.value)
        assert "temp_directory" in str(caught.value)


def test_user_quota_and_other_errors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Spill(tmp_path) as spill:
        file = spill.create("f")
        for number, kind in ((errno.EDQUOT, DiskFull), (errno.EIO, OSError)):

            def fail(*_: object, number: int = number) -> int:
                raise OSError(number, os.strerror(number))

            monkeypatch.setattr(os, "pwritev", fail)
            with pytest.raises(kind) as caught:
                file.append(b"x" * 10_000)
            assert isinstance(caught.value, DiskFull) == (number == errno.EDQUOT)


def test_file_size_limit(tmp_path: Path) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, hard))
    try:
        with Spill(tmp_path) as spill, pytest.raises(DiskFull, match="ulimit -f"):
            spill.create("f").append(np.zeros(3 << 20, np.uint8))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, before)
    assert folders(tmp_path) == []


def test_file_cut_short_by_someone_else(tmp_path: Path) -> None:
    with Spill(tmp_path) as spill:
        file = spill.create("f")
        file.append(b"x" * 10_000)
        os.truncate(file.path, 4096)
        with pytest.raises(DamagedStore, match="ends at byte 4096"):
            file.read_into(0, bytearray(10_000))
        with pytest.raises(DamagedStore, match="ends at byte 10000"):
            file.read_into(9000, bytearray(1001))


CHILD = """
import sys, time
from pathlib import Path
from penstock.memory.spill import Spill
spill = Spill(Path(sys.argv[1]), quota=None)
spill.create("f").append(b"x" * 100000)
print("ready", flush=True)
time.sleep(60)
"""


def test_folder_of_a_killed_run_is_swept_and_that_of_a_living_one_is_not(tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", CHILD, str(tmp_path)], stdout=subprocess.PIPE, text=True) as child:
        try:
            assert child.stdout is not None
            assert child.stdout.readline() == "ready\n"
            stale = folders(tmp_path)
            assert len(stale) == 1
            with Spill(tmp_path) as spill:
                assert set(folders(tmp_path)) == {*stale, spill.folder}
        finally:
            child.kill()
            child.wait()
    assert folders(tmp_path) == stale, "a killed run cannot clean up"
    with Spill(tmp_path) as spill:
        assert folders(tmp_path) == [spill.folder]


def test_half_made_and_half_removed_folders_are_swept(tmp_path: Path) -> None:
    (tmp_path / f"{PREFIX}empty").mkdir()
    (tmp_path / f"{PREFIX}nolock").mkdir()
    (tmp_path / f"{PREFIX}nolock" / "f").write_bytes(b"x")
    (tmp_path / "other").mkdir()
    with Spill(tmp_path) as spill:
        assert folders(tmp_path) == [spill.folder]
    assert (tmp_path / "other").exists()


def test_creation_survives_a_sweep_that_takes_its_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real, calls = module.tempfile.mkdtemp, []

    def stolen(**keywords: object) -> str:
        folder = real(**keywords)  # type: ignore[call-overload]
        if not calls:
            module._sweep(tmp_path)
        calls.append(folder)
        return str(folder)

    monkeypatch.setattr(module.tempfile, "mkdtemp", stolen)
    with Spill(tmp_path) as spill:
        assert len(calls) == 2
        assert str(spill.folder) == calls[1]


def test_forked_child_leaves_the_files_alone(tmp_path: Path) -> None:
    with Spill(tmp_path) as spill:
        spill.create("f").append(b"x")
        pid = os.fork()
        if pid == 0:
            spill._finalizer()
            os._exit(0)
        os.waitpid(pid, 0)
        assert (spill.folder / "f").exists()


def test_more_files_than_descriptors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a process may open few files, most are opened for each use."""
    monkeypatch.setattr(module.resource, "getrlimit", lambda _: (16, 16))
    before = len(os.listdir("/proc/self/fd"))
    with Spill(tmp_path) as spill:
        files = [spill.create(f"bucket-{k}") for k in range(50)]
        for k, file in enumerate(files):
            file.append(np.full(3000, k, np.uint32))
            file.append(np.full(3000, k + 1, np.uint32))
        assert len(os.listdir("/proc/self/fd")) <= before + 16 // 4 + 1  # and the lock
        back = np.empty(6000, np.uint32)
        for k, file in enumerate(files):
            file.read_into(0, back)
            assert (back == np.repeat([k, k + 1], 3000)).all()
            file.delete()
        assert spill.used == 0
    assert folders(tmp_path) == []
