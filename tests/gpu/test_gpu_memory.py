"""A budget bounds what is allocated on a GPU; and what was compiled for it once is found by the next process."""

from __future__ import annotations

import gc
import math
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import penstock as pk
from penstock.errors import DeviceFull, UsageError
from penstock.graph import Graph

OPTIONS: dict[str, dict[str, Any]] = {
    "pagerank": {"max_iter": 3, "stop": "fixed"},
    "bfs": {"source": 0},
    "wcc": {},
    "sssp": {"source": 0, "weight": "weight"},
    "cdlp": {"max_iter": 2},
    "kcore": {},
    "triangles": {},
    "scan": {},
}
ROUNDED = 1 << 16
"""What CuPy's own operations may take for a moment beside what is planned."""


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Graph]:
    path = tmp_path_factory.mktemp("bounded") / "g.pen"
    shape = {"scale": 16, "edge_factor": 16, "undirected": True, "weights": "1:255", "page_size": 64 << 10}
    with pk.generate("kron", path, seed=3, **shape) as made:
        yield made


class Count:
    """Bytes of the device that are allocated, by the engine and by CuPy for its own operations."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        import cupy

        self.now = self.most = 0
        self._pool, count = cupy.get_default_memory_pool(), self
        self._pool.free_all_blocks()

        class Memory(cupy.cuda.Memory):  # type: ignore[misc]
            def __init__(self, size: int) -> None:
                super().__init__(size)
                count.add(size)

            def __del__(self) -> None:
                count.add(-self.size)

        monkeypatch.setattr(cupy.cuda, "Memory", Memory)

    def add(self, size: int) -> None:
        self.now += size
        self.most = max(self.most, self.now + self._pool.total_bytes())


@pytest.mark.gpu
@pytest.mark.parametrize("name", OPTIONS)
def test_a_limit_bounds_what_is_allocated(graph: Graph, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    limit = 2 * pk.explain(name, graph, device="gpu", gpu_memory_limit=1 << 30, **OPTIONS[name]).smallest_gpu
    count = Count(monkeypatch)
    stats = pk.run(name, graph, device="gpu", gpu_memory_limit=limit, **OPTIONS[name]).stats
    assert stats["device"] == "gpu"
    assert 0.5 * stats["gpu"]["ledger_peak"] < count.most <= limit + ROUNDED
    assert count.now == 0


@pytest.mark.gpu
@pytest.mark.parametrize("name", ["triangles", "scan"])
def test_lists_are_sorted_in_what_is_planned(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the least memory in which all of them are made on the GPU: arcs with a direction are not in their order."""
    with pk.generate("kron", tmp_path / "d.pen", scale=15, seed=4, page_size=64 << 10) as directed:
        told = pk.explain(name, directed, device="gpu", gpu_memory_limit=1 << 30).stages[0].gpu
        assert told is not None
        limit = told.plan.state_bytes + told.plan.least_bytes
        count = Count(monkeypatch)
        figures = pk.run(name, directed, device="gpu", gpu_memory_limit=limit).stats["gpu"]
        assert figures["plans"][0]["lists_bytes"] == 0
        assert figures["ledger_peak"] <= limit
        assert count.most <= limit + ROUNDED


@pytest.mark.gpu
def test_the_compiler_keeps_no_array(monkeypatch: pytest.MonkeyPatch) -> None:
    from penstock.memory import gpu

    cuda = gpu.cuda

    def set_one(out: Any) -> None:
        out[cuda.grid(1)] = math.sqrt(out.size)

    count = Count(monkeypatch)
    gc.disable()
    try:
        array = gpu.zeros(1 << 20, np.float64)
        gpu.Launcher(cuda.jit(set_one))(gpu.Stream(), 1, 1, gpu.view(array))
        gpu.synchronize()
        del array
        assert count.now == 0
    finally:
        gc.enable()


@pytest.mark.gpu
def test_a_gpu_that_others_have_to_themselves(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    import cupy

    def busy() -> tuple[int, int]:
        raise cupy.cuda.runtime.CUDARuntimeError(46)

    monkeypatch.setattr(cupy.cuda.runtime, "memGetInfo", busy)
    with pytest.raises(UsageError, match="device gpu: GPU 0 cannot be used: "):
        pk.run("bfs", graph, source=0, device="gpu")
    with pytest.raises(UsageError, match="device gpu: GPU 0 cannot be used: "):
        pk.MapReduce(device="gpu")


@pytest.mark.gpu
def test_scratch_that_the_gpu_has_not(monkeypatch: pytest.MonkeyPatch) -> None:
    import cupy

    from penstock.memory import gpu

    def nothing_left(*args: Any, **options: Any) -> Any:
        raise cupy.cuda.memory.OutOfMemoryError(1 << 20, 1 << 30)

    array = gpu.upload(np.arange(1 << 18, dtype=np.uint32)[::-1].copy())
    monkeypatch.setattr(cupy, "cumsum", nothing_left)
    with pytest.raises(DeviceFull, match=r"the GPU has no 1\.0 MB left"):
        gpu.running_sum(array)


@pytest.mark.gpu
def test_the_next_process_compiles_nothing(graph: Graph, tmp_path: Path) -> None:
    code = f"import penstock as pk; pk.run('bfs', {str(graph.path)!r}, source=0, device='gpu')"
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path)}
    written = []
    for _ in range(2):
        subprocess.run([sys.executable, "-c", code], env=environment, check=True)
        written.append({path: path.stat().st_mtime_ns for path in tmp_path.rglob("*") if path.is_file()})
    assert written[0]
    assert written[0] == written[1]
