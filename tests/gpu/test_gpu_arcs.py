"""What arcs remember, on a GPU: as the obvious loop has it, and as the CPU where there is more of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import penstock as pk
from engine.remembering import check, goes_over
from engine.test_edge_state import KEPT, KINDS, PROGRAMS, SHAPES, WHOLE, Killed, edge_rows, killed_after
from penstock.engine.program import Combine
from penstock.errors import ProgramError
from places import GPU_PLACES
from stored import Stored

pytestmark = pytest.mark.gpu

NAMES = ("empty", "one vertex", "no edges", "one loop", "loops", "duplicates", "random", "star", "hub of parallel arcs")


@pytest.mark.parametrize("name", [pytest.param(name, marks=pytest.mark.xdist_group(name)) for name in PROGRAMS])
@pytest.mark.parametrize("kind", KINDS)
def test_as_the_obvious_loop_has_it(stored: Stored, kind: str, name: str) -> None:
    """Each shape in a place, the largest in all; no two programs and no two kinds have the same ones."""
    program, places = PROGRAMS[name], list(GPU_PLACES)
    turn = list(PROGRAMS).index(name) + list(KINDS).index(kind)
    for number, shape in enumerate(NAMES if goes_over(program, kind) else (), turn):
        if kind == "undirected" and True not in SHAPES[shape].ways:
            continue
        graph, _ = stored.get(SHAPES[shape], **KINDS[kind])
        for place in places if shape == NAMES[-1] else [places[number % len(places)]]:
            try:
                check(program, graph, place)
            except AssertionError as error:
                raise AssertionError(f"{shape} in {place}: {error}") from None


@pytest.fixture(scope="module")
def kron(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Several vertices whose arcs take more than a page."""
    path = tmp_path_factory.mktemp("kept") / "k.pen"
    pk.generate("kron", path, scale=11, edge_factor=12, seed=3, page_size="4KiB", weights="1:9")
    return path


WHOLES = {name: program for name, program in PROGRAMS.items() if name != "real"}


@pytest.mark.parametrize("name", [pytest.param(name, marks=pytest.mark.xdist_group(name)) for name in WHOLES])
@pytest.mark.parametrize("more", [{}, {"tier": "disk"}, {"state_ranges": 3}], ids=["memory", "files", "ranges"])
def test_as_the_cpu_has_it(kron: Path, name: str, more: dict[str, Any]) -> None:
    """All of it there, some, and next to nothing."""
    program, options = PROGRAMS[name], {"max_iter": 4, "source": [1]}
    with pk.open(kron) as graph:
        right = pk.run(program, graph, device="cpu", **options)
        told = pk.explain(program, graph, device="gpu", gpu_memory_limit="1GB", source=[1])
        assert told.stages[0].gpu is not None
        plan = told.stages[0].gpu.plan
        for part in (0.0, 0.5, 4.0):
            limit = int(told.smallest_gpu + part * plan.arcs_bytes)
            result = pk.run(program, graph, device="gpu", gpu_memory_limit=limit, **options, **more)
            figures = result.stats["gpu"]
            assert figures["ledger_peak"] <= limit
            found = figures["plans"][0]
            if part == 4.0:
                assert found["arcs_kept_bytes"] == found["arcs_bytes"]
            elif part == 0.0 and not more.get("state_ranges"):  # smaller vectors leave more room
                assert found["arcs_kept_bytes"] < found["arcs_bytes"]
            assert result.table.equals(right.table)
            assert edge_rows(result) == edge_rows(right)


def test_pages_that_are_loaded_serve_it(kron: Path) -> None:
    with pk.open(kron) as graph:
        right = pk.run(PROGRAMS["difference"], graph, max_iter=2, device="cpu")
        graph.load(device="gpu")
        for _ in range(2):
            result = pk.run(PROGRAMS["difference"], graph, max_iter=2, device="gpu")
            assert result.stats["gpu"]["bytes_read"] == 0
            assert result.table.equals(right.table)
            assert edge_rows(result) == edge_rows(right)


@pytest.mark.parametrize("name", ["difference", "frontier"])
def test_a_run_goes_on_where_it_was(kron: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    program, options = PROGRAMS[name], {"max_iter": 5}
    right = pk.run(program, kron, device="cpu", **options)
    least = pk.explain(program, kron, device="gpu", gpu_memory_limit="1GB").smallest_gpu
    places: list[dict[str, Any]] = [
        {"device": "gpu"},
        {"device": "gpu", "gpu_memory_limit": least},
        {"device": "cpu"},
        {"device": "gpu", "tier": "disk"},
    ]
    for first, second in zip(places, [*places[1:], places[0]], strict=True):
        folder = tmp_path / "c"
        with killed_after(2, monkeypatch), pytest.raises(Killed):
            pk.run(program, kron, checkpoint=folder, checkpoint_every="1", **options, **first)
        result = pk.run(program, kron, checkpoint=folder, checkpoint_every="9", **options, **second)
        assert result.stats["device"] == second["device"]
        assert result.stats["resumed_at"] == 2
        assert result.table.equals(right.table)
        assert result.edges.table.equals(right.edges.table)


def test_an_edge_function_that_forgets_a_field() -> None:
    def short(message, e, p):
        return message, message

    program = Combine("short", **WHOLE, edge=short, edge_state=KEPT)
    with pytest.raises(ProgramError, match="program short"):
        pk.run(program, pk.from_edges([0, 1], [1, 2]), max_iter=1, device="gpu")
