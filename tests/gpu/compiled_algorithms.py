"""Every kernel that algorithms launch compiles for a GPU that is not there, with just the types it is launched with:
the simulator, which runs kernels, knows no types. Memory is the host's, nothing is run, what a search finds is made up.
Started by test_gpu_compiled.py in a process of its own, for what it puts in the place of the driver stays."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numba
import numpy as np
import pytest
from numba.cuda import api, compiler
from numba.cuda.cudadrv import devices as drivers

import penstock as pk
from penstock.engine.gpu.held import Held
from penstock.memory import gpu
from penstock.memory.gpu import arrays, devices, kernels, pinning, primitives, streams
from places import GPU_PLACES, at

HOPPER = SimpleNamespace(compute_capability=(9, 0), id=0, name="none")
CONTEXT = SimpleNamespace(device=HOPPER)
COMPILED: dict[tuple[Any, ...], str] = {}
"""The names of kernels, by what they are made of and the types they were launched with."""


def compile_only(self: kernels.Launcher, stream: Any, blocks: int, threads: int, *args: Any) -> None:
    kinds = tuple(numba.typeof(arg) for arg in args)
    if (self, kinds) not in COMPILED:
        gpu.cuda.compile_ptx(self.made.py_func, kinds, cc=HOPPER.compute_capability)
        COMPILED[self, kinds] = self.made.py_func.__name__


def made_up_front(self: Held) -> None:
    """For some supersteps, now of few arcs and now of many: it is pushed, then pulled."""
    self.active, self.arcs_ahead = [(1, 1), (1, 10**6), (1, 1), (0, 0)][self.step % 4]


def zeros(shape: Any, dtype: Any) -> np.ndarray:
    return np.zeros(shape, dtype)


for module in (arrays, devices, pinning, primitives, streams):
    module.SIMULATED = True
for module in (gpu, arrays):
    module.view = lambda array: array
    module.empty = zeros
arrays._simulated = lambda array: array
kernels.Launcher.__call__ = compile_only
Held.read_front = made_up_front
drivers.get_context = lambda devnum=None: CONTEXT
drivers._runtime.get_or_create_context = lambda devnum=None: CONTEXT
for module in (api, compiler, gpu.cuda):
    if hasattr(module, "get_current_device"):
        module.get_current_device = lambda: HOPPER

OPTIONS: dict[str, dict[str, Any]] = {
    "pagerank": {"max_iter": 2},
    "bfs": {"source": 36},
    "sssp": {"source": 36, "parents": True},
    "wcc": {},
    "cdlp": {"max_iter": 2},
    "kcore": {},
    "closeness": {},
    "triangles": {},
    "lcc": {},
    "scan": {},
}
PLACES: dict[str, dict[str, Any]] = GPU_PLACES | {
    f"gpu-{strategy}": {"device": "gpu", "gpu_devices": 2, "gpu_strategy": strategy} for strategy in "PS"
}
WANTED = {
    "absorb", "add_tallies", "arcs", "degrees", "edges", "emit_active", "emit_all", "finish", "initialise",
    "initialise_seeds", "merge_totals", "narrow", "over_segments", "over_tasks", "pack", "page_costs", "pieces",
    "pull", "pull_segments", "push", "push_segments", "segments", "select", "settle", "simplify", "sorted_segments",
    "sorted_tasks", "update_all", "vertices", "vote", "vote_parts", "wanting", "wide",
}  # fmt: skip


@pytest.fixture(scope="module", params=[False, True], ids=["directed", "undirected"])
def graph(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> pk.Graph:
    """One vertex takes several pages."""
    rng = np.random.default_rng(2)
    few = rng.integers(0, 36, (2, 160))
    source, target = np.r_[np.full(1100, 36), few[0]], np.r_[np.arange(1100) % 40, few[1]]
    arcs = {"source": source, "target": target, "weight": rng.random(len(source)).astype(np.float32)}
    path = tmp_path_factory.mktemp("compiled") / "g.pen"
    return pk.ingest(arcs, path, undirected=request.param, page_size=4096, duplicates="keep")


@pytest.mark.parametrize("name", OPTIONS)
def test_kernels_compile(graph: pk.Graph, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that does not raises an error."""
    from penstock.engine.gpu import passing, rows
    from penstock.engine.gpu.lists import Lists

    # Such small graphs have no long lists and rows.
    monkeypatch.setattr(rows, "SHORT", 1)
    monkeypatch.setattr(rows, "tables", lambda item: (256, 64))
    monkeypatch.setattr(passing, "list_items", lambda lengths, first: np.zeros((1, 2), np.uint32))
    monkeypatch.setattr(Lists, "passing", one_piece(Lists.passing))
    for place, chosen in PLACES.items():
        if place in GPU_PLACES:
            at(place, lambda **where: pk.run(name, graph, **OPTIONS[name], **where))
        else:
            pk.run(name, graph, threads=2, **OPTIONS[name], **chosen)


def test_all_kinds_of_kernels_were_met() -> None:
    assert set(COMPILED.values()) >= WANTED


def one_piece(passing: Any) -> Any:
    def found(*args: Any) -> Any:
        for each in passing(*args):
            yield each._replace(pieces=1)

    return found
