from __future__ import annotations

import importlib
import math
import os
import threading
from dataclasses import FrozenInstanceError, fields
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.config import Settings, available_memory, available_threads, config, format_size, parse_size, settings
from penstock.errors import UsageError

# `penstock.config` is the function: the module is found under its name only.
module = importlib.import_module("penstock.config")


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("1", 1),
        ("512MB", 512_000_000),
        ("512 mb", 512_000_000),
        ("512M", 512_000_000),
        ("2GiB", 2 * 1024**3),
        ("2gi", 2 * 1024**3),
        (" 1.5 kB ", 1500),
        ("0.5KiB", 512),
        ("1TB", 10**12),
        ("3PiB", 3 * 1024**5),
        ("9007199254740993", 9007199254740993),
        (7, 7),
        (4e9, 4_000_000_000),
        (np.int64(8), 8),
        (np.uint32(9), 9),
    ],
)
def test_sizes(text: int | float | str, size: int) -> None:
    assert parse_size(text) == size
    assert type(parse_size(text)) is int


@pytest.mark.parametrize(
    "text",
    [
        "",
        "GB",
        "12XB",
        "-1",
        "1e9",
        "1,5GB",
        "many",
        "٣GB",
        "0",
        "0.1B",
        "99999999TB",
        0,
        -5,
        2**60 + 1,
        True,
        math.nan,
        math.inf,
        None,
        [],
    ],
)
def test_not_sizes(text: object) -> None:
    with pytest.raises(UsageError, match="is not a size"):
        parse_size(text)  # type: ignore[arg-type]


@pytest.mark.parametrize("text", ["99999999TB", "1025PiB", 2**60 + 1, 1e300])
def test_sizes_that_nothing_has(text: str | float) -> None:
    with pytest.raises(UsageError, match="no machine has more than 1024 PiB"):
        parse_size(text)
    assert parse_size("1024PiB") == 2**60


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1000, "1.0 kB"),
        (1_536_000, "1.5 MB"),
        (999_999, "1.0 MB"),
        (123_456_789, "123 MB"),
        (8 * 10**9, "8.0 GB"),
        (5 * 10**15, "5000 TB"),
    ],
)
def test_formatted_sizes(size: int, text: str) -> None:
    assert format_size(size) == text


@given(st.integers(1, 10**16))
def test_rounded_up_is_enough_and_rounded_down_is_not_too_much(size: int) -> None:
    assert parse_size(format_size(size, math.ceil)) >= size
    assert parse_size(format_size(size, math.floor)) <= size


def test_defaults() -> None:
    found = settings()
    assert found.memory_limit == available_memory() * 8 // 10
    assert found.threads == available_threads()
    assert (found.temp_directory, found.max_temp_directory_size, found.progress) == (None, None, None)
    assert found.direct_io
    assert found.verify_checksums


def test_settings_are_frozen() -> None:
    with pytest.raises(FrozenInstanceError):
        settings().threads = 3  # type: ignore[misc]


def test_every_setting_can_be_given() -> None:
    assert set(module._PARSERS) == {field.name for field in fields(Settings)}


def test_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, text in {
        "MEMORY_LIMIT": "3GB",
        "THREADS": "5",
        "TEMP_DIRECTORY": "~/spill",
        "MAX_TEMP_DIRECTORY_SIZE": "1GiB",
        "PROGRESS": "off",
        "DIRECT_IO": "0",
        "VERIFY_CHECKSUMS": "False",
    }.items():
        monkeypatch.setenv(f"PENSTOCK_{name}", text)
    assert settings() == Settings(3 * 10**9, 5, Path.home() / "spill", 1024**3, False, False, False)


def test_gpu_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = settings()
    assert (plain.gpu_memory_limit, plain.gpu_streams, plain.gpu_devices, plain.gpu_strategy) == (None, 2, 1, "P")
    for name, text in {"MEMORY_LIMIT": "8GiB", "STREAMS": "2", "DEVICES": "3", "STRATEGY": "S"}.items():
        monkeypatch.setenv(f"PENSTOCK_GPU_{name}", text)
    given = settings()
    assert (given.gpu_memory_limit, given.gpu_streams, given.gpu_devices, given.gpu_strategy) == (8 << 30, 2, 3, "S")
    with config(gpu_memory_limit="1GB", gpu_streams=1):
        assert (settings().gpu_memory_limit, settings(gpu_streams=8).gpu_streams) == (10**9, 8)
    assert [settings(gpu_strategy=given).gpu_strategy for given in "pPsS"] == ["P", "P", "S", "S"]


@pytest.mark.parametrize("device", ["auto", "cpu", "reference", "gpu", "gpu:0", "gpu:1", "gpu:15"])
def test_devices(device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert settings(device=device).device == device
    monkeypatch.setenv("PENSTOCK_DEVICE", device)
    assert settings().device == device


@pytest.mark.parametrize(
    "device", ["GPU", "gpu:", "gpu:-1", "gpu:01", "gpu:x", "gpu:1\n", "gpu:\u0661", "cpu:0", "", 0]
)
def test_not_devices(device: object) -> None:
    with pytest.raises(UsageError, match=r"device: .* is none of auto, cpu, gpu, gpu:0, gpu:1, \.\.\., reference"):
        settings(device=device)


def test_an_empty_variable_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PENSTOCK_THREADS", "")
    assert settings().threads == available_threads()


def test_precedence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PENSTOCK_THREADS", "2")
    monkeypatch.setenv("PENSTOCK_MEMORY_LIMIT", "2GB")
    with config(threads=3) as outer:
        assert (outer.threads, outer.memory_limit) == (3, 2 * 10**9)
        with config(memory_limit="1GB", threads=4) as inner:
            assert (inner.threads, inner.memory_limit) == (4, 10**9)
            assert settings(threads=5).threads == 5
            assert settings(threads=None).threads == 4
        assert settings() == outer
    assert settings().threads == 2


def test_false_wins_over_true() -> None:
    with config(progress=True, direct_io=True):
        assert settings(progress=False, direct_io=False).progress is False
        assert settings(progress=False, direct_io=False).direct_io is False


def test_none_in_a_context_leaves_a_setting_alone() -> None:
    with config(threads=3), config(threads=None, memory_limit=None, temp_directory=None):
        assert settings().threads == 3


def test_a_context_ends_with_an_error() -> None:
    with pytest.raises(KeyError), config(threads=77):
        raise KeyError
    assert settings().threads != 77


def test_contexts_belong_to_their_thread() -> None:
    seen: list[int] = []
    with config(threads=77):
        thread = threading.Thread(target=lambda: seen.append(settings().threads))
        thread.start()
        thread.join()
    assert seen == [available_threads()]


def test_progress_may_be_a_function() -> None:
    assert settings(progress=print).progress is print


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"threads": 0}, "threads: 0 is not a whole number of at least 1"),
        ({"threads": "two"}, "threads: 'two' is not a whole number"),
        ({"threads": 1.5}, "threads: 1.5 is not a whole number"),
        ({"threads": True}, "threads: True is not a whole number"),
        ({"memory_limit": "lots"}, "memory_limit: 'lots' is not a size"),
        ({"max_temp_directory_size": "0"}, "max_temp_directory_size: '0' is not a size: it must be positive"),
        ({"temp_directory": 5}, "temp_directory: 5 is not a folder"),
        ({"direct_io": "maybe"}, "direct_io: 'maybe' is neither true nor false"),
        ({"progress": 3}, "progress: 3 is neither true nor false"),
        ({"gpu_memory_limit": "most"}, "gpu_memory_limit: 'most' is not a size"),
        ({"gpu_streams": 0}, "gpu_streams: 0 is not a whole number of at least 1"),
        ({"gpu_devices": "all"}, "gpu_devices: 'all' is not a whole number"),
        ({"gpu_strategy": "Q"}, "gpu_strategy: 'Q' is none of P, S"),
        ({"gpu_strategy": 1}, "gpu_strategy: 1 is none of P, S"),
        ({"memory": "1GB"}, "there is no setting 'memory'; the settings are checkpoint"),
    ],
)
def test_errors_name_the_setting(values: dict[str, object], words: str) -> None:
    with pytest.raises(UsageError) as by_keyword:
        settings(**values)
    assert words in str(by_keyword.value)
    with pytest.raises(UsageError) as by_context, config(**values):
        pass
    assert str(by_context.value) == str(by_keyword.value)


def test_errors_name_the_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PENSTOCK_MEMORY_LIMIT", "lots")
    with pytest.raises(UsageError, match="PENSTOCK_MEMORY_LIMIT: 'lots' is not a size"):
        settings()


def test_the_machine() -> None:
    assert 0 < available_memory() <= os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    assert 1 <= available_threads() <= (os.cpu_count() or 1)


@pytest.mark.parametrize(
    ("membership", "files"),
    [
        ("0::/user/job\n", ["user/job/memory.max", "user/memory.max", "memory.max"]),
        ("0::/\n", ["memory.max"]),
        ("4:cpu,memory:/docker/1\n", [f"memory/{at}memory.limit_in_bytes" for at in ("docker/1/", "docker/", "")]),
        ("3:cpu:/x\n", []),
    ],
)
def test_control_groups(tmp_path: Path, membership: str, files: list[str]) -> None:
    (tmp_path / "cgroup").write_text(membership)
    assert list(module._cgroup_limits(tmp_path / "cgroup", tmp_path)) == [tmp_path / name for name in files]
    assert list(module._cgroup_limits(tmp_path / "missing", tmp_path)) == []


def test_the_smallest_control_group_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "job").mkdir()
    (tmp_path / "memory.max").write_text("4096\n")
    (tmp_path / "job" / "memory.max").write_text("max\n")
    monkeypatch.setattr(module, "_cgroup_limits", lambda *_: [tmp_path / "job/memory.max", tmp_path / "memory.max"])
    assert available_memory() == 4096
