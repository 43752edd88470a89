"""Energy: from a counter that is not here, so a library stands in for the driver's."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from penstock.observe import energy, gpus
from penstock.observe.energy import Energy, Meter, figures
from penstock.observe.stats import Stats


class Refused(Exception):
    pass


def library(readings: list[Any], **more: Any) -> SimpleNamespace:
    """A module like pynvml whose counter shows these millijoules, one after the other; an exception is raised."""
    left: Iterator[Any] = iter(readings)
    held = SimpleNamespace(open=0, asked=[])

    def init() -> None:
        held.open += 1

    def shutdown() -> None:
        held.open -= 1

    def total(handle: Any) -> Any:
        held.asked.append(handle)
        value = next(left)
        if isinstance(value, Exception):
            raise value
        return value

    return SimpleNamespace(
        held=held,
        nvmlInit=init,
        nvmlShutdown=shutdown,
        nvmlDeviceGetHandleByIndex=lambda index: f"device {index}",
        nvmlDeviceGetHandleByUUID=lambda uuid: f"device {uuid}",
        nvmlDeviceGetHandleByPciBusId=lambda bus: f"device at {bus}",
        nvmlDeviceGetTotalEnergyConsumption=total,
        nvmlSystemGetDriverVersion=lambda: b"580.65.06",
        **more,
    )


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> None:
    times = iter([10.0, 14.0])
    monkeypatch.setattr(energy, "time", SimpleNamespace(perf_counter=lambda: next(times)))


@pytest.mark.usefixtures("clock")
def test_joules_and_watts(monkeypatch: pytest.MonkeyPatch) -> None:
    fake = library([5_000, 2_005_000])
    monkeypatch.setitem(sys.modules, "pynvml", fake)
    with Energy(1) as meter:
        assert meter.joules is None
    assert (meter.joules, meter.seconds, meter.watts) == (2000.0, 4.0, 500.0)
    assert fake.held.asked == ["device 1", "device 1"]
    assert fake.held.open == 0
    found = meter.figures(arcs=1e12)
    assert found is not None
    assert found.as_dict() == {"joules": 2000.0, "watts": 500.0, "arcs_per_joule": 5e8, "energy_delay": 8000.0}
    assert found.arcs_per_joule == pytest.approx(1e12 / meter.seconds / found.watts)


def test_a_device_by_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    fake = library([1, 2])
    monkeypatch.setitem(sys.modules, "pynvml", fake)
    with Energy(uuid="GPU-7") as meter:
        pass
    assert meter.joules == 0.001
    assert fake.held.asked[0] == "device GPU-7"


@pytest.mark.parametrize("readings", [[Refused()], [5, Refused()], [7, 6]])
def test_no_counter(monkeypatch: pytest.MonkeyPatch, readings: list[Any]) -> None:
    fake = library(readings)
    monkeypatch.setitem(sys.modules, "pynvml", fake)
    with Energy() as meter:
        pass
    assert (meter.joules, meter.watts, meter.figures(1.0)) == (None, None, None)
    assert fake.held.open == 0


def test_no_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", None)
    with Energy() as meter:
        pass
    assert meter.joules is None
    assert meter.seconds > 0
    assert gpus.driver() is None


def test_no_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    def init() -> None:
        raise Refused

    fake = library([1, 2])
    fake.nvmlInit = init
    monkeypatch.setitem(sys.modules, "pynvml", fake)
    with Energy() as meter:
        pass
    assert meter.joules is None


@pytest.fixture(autouse=True)
def nothing_open(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(energy, "_OPEN", {})


def test_stretches_add_up_and_the_library_is_opened_once(monkeypatch: pytest.MonkeyPatch) -> None:
    fake = library([1000, 3000, 10_000, 10_500])
    monkeypatch.setitem(sys.modules, "pynvml", fake)
    meter, stats = Meter(bus="0000:19:00.0"), Stats()
    assert meter.figures(1.0) is None
    with stats.beside("run", meter):
        for name in ("load", "run", "run"):
            with stats.phase(name):
                assert fake.held.open == (name == "run" or bool(stats.phases.get("run")))
    with stats.phase("run"):  # not this one
        pass
    assert meter.joules == 2.5
    assert 0 < meter.seconds <= stats.phases["run"]
    assert set(fake.held.asked) == {"device at 0000:19:00.0"}
    assert fake.held.open == 1
    with Meter(bus="0000:19:00.0"):
        assert fake.held.open == 1
    found = meter.figures(5.0)
    assert found is not None
    assert found.arcs_per_joule == 2.0


def test_a_meter_that_counts_nothing_asks_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    monkeypatch.setattr(energy, "nvml", lambda: asked.append(1))
    meter = Meter()
    for _ in range(3):
        with meter:
            pass
    assert (meter.joules, meter.figures(1.0), len(asked)) == (None, None, 1)


def test_an_error_passes_through(monkeypatch: pytest.MonkeyPatch) -> None:
    fake = library([1000, 3000])
    monkeypatch.setitem(sys.modules, "pynvml", fake)
    meter = Energy()
    with pytest.raises(Refused), meter:
        raise Refused
    assert meter.joules == 2.0
    assert fake.held.open == 0


def test_nothing_done_is_no_division() -> None:
    assert figures(0.0, 0, 0.0).as_dict() == dict.fromkeys(("joules", "watts", "arcs_per_joule", "energy_delay"), 0.0)


def test_the_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    fake = library([])
    monkeypatch.setitem(sys.modules, "pynvml", fake)
    assert gpus.driver() == "580.65.06"
    assert fake.held.open == 0


@pytest.mark.parametrize(
    ("absent", "reason"), [("cupy", "cupy is not installed"), ("numba_cuda", "numba-cuda is not installed")]
)
def test_missing_packages(monkeypatch: pytest.MonkeyPatch, absent: str, reason: str) -> None:
    monkeypatch.delenv("NUMBA_ENABLE_CUDASIM", raising=False)
    monkeypatch.setattr(gpus.importlib.util, "find_spec", lambda name: None if name == absent else object())
    found = gpus.missing()
    assert found is not None
    assert found.startswith(reason)
    assert "penstock[gpu-cu13]" in found


def test_missing_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    def load(name: str) -> None:
        raise OSError(name)

    monkeypatch.delenv("NUMBA_ENABLE_CUDASIM", raising=False)
    monkeypatch.setattr(gpus.importlib.util, "find_spec", lambda name: object())
    monkeypatch.setattr(gpus.sys, "platform", "linux")
    monkeypatch.setattr(gpus.ctypes, "CDLL", load)
    assert gpus.missing() == "no CUDA device was found: is its driver installed?"
    monkeypatch.setattr(gpus.ctypes, "CDLL", lambda name: object())
    assert gpus.missing() is None


def test_the_simulator_is_worth_a_look(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NUMBA_ENABLE_CUDASIM", "1")
    assert gpus.missing() is None
