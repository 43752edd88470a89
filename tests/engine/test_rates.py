"""Rates: kept by machine, threads and disk; a curve of gathering that knows what is hot."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from penstock.engine import rates
from penstock.engine.rates import GatherCurve, GpuRates, Rates


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def made(threads: int = 2) -> Rates:
    return replace(Rates.default(threads), measured=True, date="2026-01-01T00:00:00+00:00", disk=3e9)


def test_kept_and_found_again(tmp_path: Path) -> None:
    assert rates.load(tmp_path, 2) is None
    path = rates.save(made(), tmp_path)
    assert path == tmp_path / "cache" / "penstock" / "rates.json"
    assert rates.load(tmp_path, 2) == made()
    assert rates.load(tmp_path / "not" / "there" / "yet.pen", 2) == made()


def test_threads_are_kept_apart(tmp_path: Path) -> None:
    rates.save(made(2), tmp_path)
    assert rates.load(tmp_path, 3) is None
    rates.save(replace(made(3), disk=1e9), tmp_path)
    assert [rates.load(tmp_path, threads) for threads in (2, 3)] == [made(2), replace(made(3), disk=1e9)]


@pytest.mark.parametrize("text", ["", "{", "[]", '{"format": 99, "rates": {}}', '{"format": 1}'])
def test_a_damaged_file_is_no_rates(tmp_path: Path, text: str) -> None:
    rates.kept_in().parent.mkdir(parents=True)
    rates.kept_in().write_text(text)
    assert rates.load(tmp_path, 2) is None
    rates.save(made(), tmp_path)
    assert rates.load(tmp_path, 2) == made()


def test_rates_of_another_version_are_no_rates(tmp_path: Path) -> None:
    path = rates.save(made(), tmp_path)
    held = json.loads(path.read_text())
    del held["rates"][rates.key_of(tmp_path, 2)]["emit"]
    path.write_text(json.dumps(held))
    assert rates.load(tmp_path, 2) is None


CARD = GpuRates("Card", 8 << 30, 5e10, 4e12, 5e-5, (1 << 20, 1 << 30), (1e-11, 9e-11), "2026-01-01T00:00:00+00:00")


def test_a_gpu_is_kept_beside_the_rest(tmp_path: Path) -> None:
    rates.save(made(), tmp_path)
    assert rates.load_gpu() is None
    rates.save_gpu(CARD)
    rates.save_gpu(replace(CARD, name="Other", copy=1e10))
    assert rates.load(tmp_path, 2) == made()
    assert rates.load_gpu() == rates.load_gpu("Card") == CARD
    assert rates.load_gpu("Other") == replace(CARD, name="Other", copy=1e10)
    assert rates.load_gpu("Another") is None
    assert CARD.curve().nearest == 1e-11


def test_a_gpu_of_another_version_is_none() -> None:
    path = rates.save_gpu(CARD)
    held = json.loads(path.read_text())
    for values in held["rates"].values():
        del values["launch"]
    path.write_text(json.dumps(held))
    assert rates.load_gpu("Card") is None


def test_home_without_a_variable(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert rates.kept_in() == tmp_path / ".cache" / "penstock" / "rates.json"


def test_defaults_are_marked() -> None:
    assert not Rates.default(4).measured
    assert Rates.default(4).gather(8).nearest < Rates.default(1).gather(8).nearest


SIZES, SECONDS = (1000, 10_000, 100_000), (1e-9, 2e-9, 6e-9)


@pytest.mark.parametrize(("nbytes", "each"), [*zip(SIZES, SECONDS, strict=True)])
def test_what_was_measured_is_what_is_said(nbytes: int, each: float) -> None:
    curve = GatherCurve(SIZES, SECONDS)
    assert curve.seconds(np.array([50.0]), np.array([float(nbytes)])) == pytest.approx(50 * each)
    # Cut into classes that are hit alike, the vector costs the same.
    assert curve.seconds(np.full(5, 10.0), np.full(5, nbytes / 5)) == pytest.approx(50 * each)


def test_hot_vertices_are_cheap() -> None:
    curve = GatherCurve(SIZES, SECONDS)
    even = curve.seconds(np.array([500.0, 500.0]), np.array([1000.0, 99_000.0]))
    hot = curve.seconds(np.array([990.0, 10.0]), np.array([1000.0, 99_000.0]))
    spread = curve.seconds(np.array([10.0, 990.0]), np.array([1000.0, 99_000.0]))
    assert 1000 * 1e-9 < hot < even < spread
    assert spread == pytest.approx(1000 * 6e-9, rel=0.1)


def test_larger_vectors_go_on_missing() -> None:
    curve = GatherCurve(SIZES, SECONDS)
    far = curve.seconds(np.array([1.0]), np.array([1e7]))
    assert 6e-9 < far < 7e-9


def test_noise_makes_nothing_cheaper() -> None:
    noisy = GatherCurve(SIZES, (2e-9, 1e-9, 6e-9))
    assert noisy.seconds(np.array([1.0]), np.array([10_000.0])) == pytest.approx(2e-9)


def test_nothing_costs_nothing() -> None:
    assert GatherCurve(SIZES, SECONDS).seconds(np.zeros(0), np.zeros(0)) == 0.0
