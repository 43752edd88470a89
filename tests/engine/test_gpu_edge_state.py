"""What arcs remember on a GPU: how it is planned, here; and in the simulator that it is the same as on the CPU. Numba
must be told of that before it is imported, so in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import penstock as pk
from engine.test_edge_state import PROGRAMS
from penstock.engine.gpu import arcs
from penstock.engine.gpu.plan import make_device_plan
from penstock.engine.program import Combine
from penstock.engine.rates import GPU_SIZES, GpuRates, save_gpu
from penstock.engine.vectors import Slots
from penstock.errors import DoesNotFit


@pytest.mark.parametrize("marked", ["not slow", pytest.param("slow", marks=pytest.mark.slow)])
def test_on_a_simulated_gpu(marked: str) -> None:
    file = Path(__file__).with_name("simulated_edge_state.py")
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-p", "no:xdist", str(file)]
    # Kernels count with unsigned numbers that pass through zero, which NumPy warns of.
    command += ["-W", "ignore::RuntimeWarning", "-m", marked]
    environment = os.environ | {"NUMBA_ENABLE_CUDASIM": "1"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, cwd=file.parents[2], check=False)
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]


@pytest.fixture(scope="module")
def kron(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("planned") / "k.pen"
    pk.generate("kron", path, scale=12, edge_factor=12, seed=3, page_size="4KiB")
    return path


def forgetful(program: Combine) -> Combine:
    return Combine(**{**vars(program), "edge_state": {}})


@pytest.mark.parametrize("name", ["difference", "frontier, wanted, both", "real"])
def test_the_plan_shares_out_what_there_is(kron: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arcs, "RING", 1 << 16)
    program = PROGRAMS[name]
    with pk.open(kron) as graph:
        store, slots = graph.store, Slots(graph.store).count
        with pytest.raises(DoesNotFit) as refused:
            make_device_plan(program, store, slots, 1)
        smallest, size = refused.value.needed, sum(kind.itemsize for kind in program.edge_fields().values())
        with pytest.raises(DoesNotFit):
            make_device_plan(program, store, slots, smallest - arcs.least_bytes(program, [store.direction("in")]))
        before, windows = -1, 1
        for limit in np.linspace(smallest, 4 * smallest + (4 << 20), 40).astype(int).tolist():
            plan = make_device_plan(program, store, slots, limit)
            sides = [store.direction(each.side) for each in plan.kept]
            assert {side.name for side in sides} == ({"in", "out"} if program.along == "both" else {"in"})
            assert plan.smallest == smallest
            assert plan.arcs_bytes == sum(side.arcs for side in sides) * size
            assert plan.state_bytes + plan.least_bytes <= limit
            # More room is never of less use, unless the vectors have just come in one piece.
            assert plan.arcs_kept_bytes >= before or plan.windows < windows
            before, windows = plan.arcs_kept_bytes, plan.windows
            for side, kept in zip(sides, plan.kept, strict=True):
                assert kept.arcs == side.records["arcs"][: kept.pages].sum()
                rest = side.records["arcs"][kept.pages :]
                assert kept.window >= rest.max(initial=0)
                assert (kept.window == 0) == (kept.arcs == side.arcs)
        assert plan.arcs_kept_bytes == plan.arcs_bytes
        assert plan.resident
        plain = make_device_plan(forgetful(program), store, slots, 1 << 30)
        assert plain.kept == ()
        assert plain.smallest < smallest


def test_explained(kron: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = PROGRAMS["difference"]
    with pk.open(kron) as graph:
        plenty = pk.explain(program, graph, device="gpu", gpu_memory_limit="1GB")
        assert "state of the arcs" in str(plenty)
        assert "stay there" not in str(plenty)
        least = pk.explain(program, graph, device="gpu", gpu_memory_limit=plenty.smallest_gpu)
        assert least.fits
        assert "the rest comes with its pages" in str(least)
        assert not pk.explain(program, graph, device="gpu", gpu_memory_limit=plenty.smallest_gpu // 2).fits
        seeded = pk.explain(program, graph, device="gpu", gpu_memory_limit="1GB", source=[1, 2])
        assert seeded.smallest_gpu >= plenty.smallest_gpu + 16
        # What passes takes its time there and back.
        rates = GpuRates("some GPU", 8 << 30, 1e6, 2e12, 0.0, GPU_SIZES, (5e-12,) * len(GPU_SIZES))
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
        save_gpu(rates)
        passing = plenty.smallest_gpu + 2 * graph.store.direction("in").arcs
        told = pk.explain(program, graph, device="gpu", gpu_memory_limit=passing, max_iter=3).stages[0]
        assert told.gpu is not None
        assert told.prediction is not None
        assert told.gpu.plan.arcs_passing > 0
        assert told.prediction.parts["state"] >= 2 * told.gpu.plan.arcs_passing / rates.copy
        both = pk.explain(program, graph, device="gpu", gpu_memory_limit="1GB", gpu_devices=2).stages[0].gpu
        assert both is not None
        assert both.devices == 1
