"""What `penstock doctor` says of GPUs, which are made up here."""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from penstock.engine.rates import GpuRates
from penstock.interfaces.cli import doctor

from .conftest import Call


def card(**more: Any) -> Any:
    """What stands for `penstock.memory.gpu` where there are two GPUs."""
    values: dict[str, Any] = {
        "SIMULATED": False,
        "count": lambda: 2,
        "why_not": lambda: None,
        "name": lambda device: f"Card {device}",
        "free_memory": lambda: (7 * 10**9, 8 * 10**9),
        "versions": lambda: "CUDA 13.0, cupy 14",
        "using": lambda device: contextlib.nullcontext(),
    }
    return SimpleNamespace(**(values | more))


@pytest.fixture
def with_card(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., None]:
    def put(**more: Any) -> None:
        import penstock.memory

        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
        monkeypatch.setattr("penstock.observe.gpus.missing", lambda: None)
        monkeypatch.setattr("penstock.observe.gpus.driver", lambda: "580.65")
        monkeypatch.setattr(penstock.memory, "gpu", card(**more), raising=False)
        monkeypatch.setitem(sys.modules, "penstock.memory.gpu", card(**more))

    return put


def test_doctor_tells_about_gpus(cli: Call, with_card: Callable[..., None], monkeypatch: pytest.MonkeyPatch) -> None:
    with_card()
    found = {item["what"]: item for item in json.loads(cli("doctor", "--no-measure", "--json").stdout)}
    assert found["gpu 0"]["text"] == "Card 0, 7.0 GB free of 8.0 GB; driver 580.65, CUDA 13.0, cupy 14"
    assert found["gpu 1"]["state"] == "ok"
    assert found["gpu 0 rates"]["state"] == "warn"
    measured: list[int] = []

    def measure(device: int) -> GpuRates:
        measured.append(device)
        return GpuRates(f"Card {device}", 8 * 10**9, 5.5e10, 4e12, 4e-5, (1 << 20, 1 << 30), (1e-11, 1e-10), "today")

    monkeypatch.setitem(sys.modules, "penstock.engine.gpu.calibrate", SimpleNamespace(measure=measure))
    monkeypatch.setattr("penstock.engine.gpu.calibrate", SimpleNamespace(measure=measure), raising=False)
    first = [finding.text for finding in doctor.gpus(None)]
    assert measured == [0, 1]
    assert "55.0 GB/s from pinned memory, 4000 GB/s of its own, 40.0 us to start a kernel" in first
    assert "billions of arcs a second by size of the vector: 1 MiB 100.0, 1024 MiB 10.0" in first
    assert [finding.text for finding in doctor.gpus(None)] == first
    assert measured == [0, 1]
    doctor.gpus(True)
    assert measured == [0, 1, 0, 1]


def test_doctor_without_gpus(cli: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("penstock.observe.gpus.missing", lambda: "cupy is not installed: install it")
    monkeypatch.setitem(sys.modules, "penstock.memory.gpu", None)  # importing it would fail
    found = doctor.gpus(True)
    assert [(each.what, each.state, each.text) for each in found] == [
        ("gpu", "ok", "none: cupy is not installed: install it")
    ]


def test_doctor_survives_a_broken_gpu(cli: Call, with_card: Callable[..., None]) -> None:
    def broken() -> Any:
        raise RuntimeError("the driver is older than the library\nmore")

    with_card(free_memory=broken)
    found = doctor.gpus(None)
    assert {each.state for each in found} == {"warn"}
    assert found[0].text == "cannot be used: RuntimeError: the driver is older than the library"
    with_card(why_not=broken)
    assert [each.what for each in doctor.gpus(None)] == ["gpu"]
