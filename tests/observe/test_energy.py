"""Energy: from a counter that is not here, so a library stands in for the driver's."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from penstock.observe import energy, gpus
from penstock.observe.energy import Energy, Meter, Meters, figures
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


class Clock:
    """Time that passes when it is told to."""

    def __init__(self) -> None:
        self.now = 5.0

    def perf_counter(self) -> float:
        return self.now


@pytest.fixture
def passing(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(energy, "time", clock)
    return clock


def test_stretches_are_one_and_the_library_is_opened_once(monkeypatch: pytest.MonkeyPatch, passing: Clock) -> None:
    fake = library([1000, 3000, 3500, 7000])
    monkeypatch.setitem(sys.modules, "pynvml", fake)
    meter, stats = Meter(bus="0000:19:00.0"), Stats()
    assert meter.figures(1.0) is None
    with stats.beside("run", meter):
        for name, seconds in (("load", 1.0), ("run", 0.5), ("load", 0.5), ("run", 1.0)):
            with stats.phase(name):
                passing.now += seconds
    with stats.phase("run"):  # not this one
        passing.now += 3.0
    assert (meter.joules, meter.seconds) == (2.5, 2.0)
    assert fake.held.asked == ["device at 0000:19:00.0"] * 3
    assert fake.held.open == 1
    with Meter(bus="0000:19:00.0") as another:
        pass
    assert another._first is not None
    another._first.join()
    assert fake.held.open == 1
    found = meter.figures(5.0)
    assert found is not None
    assert (found.arcs_per_joule, found.watts) == (2.0, 1.25)


def test_a_run_too_short_for_the_counter_is_read_once(monkeypatch: pytest.MonkeyPatch, passing: Clock) -> None:
    fake = library([1000])
    monkeypatch.setitem(sys.modules, "pynvml", fake)
    meter = Meter()
    for _ in range(3):
        with meter:
            passing.now += energy.LEAST / 4
    assert (meter.figures(1.0), meter.joules, meter.watts) == (None, None, None)
    assert meter._first is not None
    meter._first.join()
    assert len(fake.held.asked) == 1


def test_short_stretches_make_a_long_one(monkeypatch: pytest.MonkeyPatch, passing: Clock) -> None:
    """Only at the end it is known that a stretch was the last."""
    fake = library([1000, 3000, 4000])
    monkeypatch.setitem(sys.modules, "pynvml", fake)
    meter = Meter()
    for _ in range(12):
        with meter:
            passing.now += energy.LEAST / 8
    assert (meter.joules, meter.seconds) == (2.0, pytest.approx(1.5 * energy.LEAST))
    for _ in range(2):
        found = meter.figures(6.0)
        assert found is not None
        assert found.arcs_per_joule == 2.0
    assert len(fake.held.asked) == 3


def test_several_gpus_are_added_up(monkeypatch: pytest.MonkeyPatch, passing: Clock) -> None:
    """Not where one of them cannot be counted."""
    counters = {"device at a": [1000, 3000], "device at b": [500, 4500]}
    fake = library([])
    fake.nvmlDeviceGetTotalEnergyConsumption = lambda handle: counters[handle].pop(0)
    monkeypatch.setitem(sys.modules, "pynvml", fake)
    known, unknown = Meters([Meter(bus="a"), Meter(bus="b")]), Meters([Meter(bus="c")])
    for meters in (known, unknown):
        with meters:
            passing.now += 2.0
    found = known.figures(12.0)
    assert found is not None
    assert (found.joules, found.watts, found.arcs_per_joule) == (6.0, 3.0, 2.0)
    assert Meters([*known._meters, *unknown._meters]).figures(12.0) is None
    assert Meters([]).figures(12.0) is None


def test_the_first_reading_is_not_waited_for(monkeypatch: pytest.MonkeyPatch, passing: Clock) -> None:
    fake, slow = library([1000, 3000]), threading.Event()
    read = fake.nvmlDeviceGetTotalEnergyConsumption

    def total(handle: Any) -> Any:
        assert slow.wait(10)
        return read(handle)

    fake.nvmlDeviceGetTotalEnergyConsumption = total
    monkeypatch.setitem(sys.modules, "pynvml", fake)
    with Meter() as meter:
        assert fake.held.asked == []
        slow.set()
        passing.now += 1.0
    assert meter.joules == 2.0


def test_a_meter_that_counts_nothing_asks_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    monkeypatch.setattr(energy, "nvml", lambda: asked.append(1))
    meter = Meter()
    for _ in range(3):
        with meter:
            pass
    assert meter._first is not None
    meter._first.join()
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
    assert 'pip install ".[gpu-cu13]"' in found


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
