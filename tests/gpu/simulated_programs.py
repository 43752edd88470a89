"""Programs of a user, and what `explain` says of them, on a simulated GPU. Started by test_gpu_simulated.py in a
process that Numba's simulator was chosen for."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import penstock as pk
from engine import test_each
from engine.test_rare_programs import CHECKS, graph
from penstock.config import settings
from penstock.engine.cpu import each as on_cpu
from penstock.engine.engine import Engine
from penstock.engine.near import Near
from penstock.engine.program import Combine, Sweep, iterations
from penstock.errors import DoesNotFit
from penstock.memory import card as card_module
from penstock.memory import gpu
from penstock.memory.gpu import devices


@pytest.mark.parametrize("check", CHECKS)
def test_rare_programs(check: Any, tmp_path: Path) -> None:
    check("gpu", tmp_path)


@pytest.mark.parametrize("check", test_each.CHECKS)
def test_each_vertex(check: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(on_cpu, "run", None)
    check("gpu", tmp_path)


def test_vectors_go_home_where_there_is_no_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between programs that do not fit together, and to the CPU for what does not fit beside them."""
    monkeypatch.setattr(Near, "room", lambda *_: False)
    for check in test_each.CHECKS:
        (tmp_path / check.__name__).mkdir()
        check("gpu", tmp_path / check.__name__)


def test_networkx_on_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its functions share the engine's vectors, too."""
    nx = pytest.importorskip("networkx")
    network = nx.gnm_random_graph(9, 16, seed=1)
    monkeypatch.setattr(nx.config.backends.penstock, "device", "gpu")
    for name, options in (("betweenness_centrality", {"endpoints": True}), ("core_number", {})):
        ours = getattr(nx, name)(network, backend="penstock", **options)
        assert ours == pytest.approx(getattr(nx, name)(network, backend="networkx", **options), abs=1e-5)


def test_the_next_run_finds_the_memory_of_the_last_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """While there is plenty; and all of it is given back at the end."""
    made, empty = [], gpu.empty
    monkeypatch.setattr(gpu, "empty", lambda *given: made.append(given) or empty(*given))
    with test_each.vectors("gpu", test_each.graph(tmp_path)) as shared:
        card, step = shared.engine.gpu, test_each.STEP
        asked = {"vectors": shared.of(step), "slots": shared.slots, "until": iterations(1)}
        shared.engine.run(step, **asked)
        shared.equal("y", 3)
        made.clear()
        for _ in range(2):
            shared.engine.run(step, **asked)
            shared.equal("y", 3)
        assert not made
        assert card.free > card.ledger.free
        room = card.free  # what was kept goes for what needs it
        card.empty(room, np.uint8, "all that is left").release()
        assert card.free == card.ledger.free == room
        monkeypatch.setattr(card_module, "PLENTY", 1)  # and where there is not plenty nothing is kept
        shared.engine.run(step, **asked)
        assert card.free == card.ledger.free
    assert card.ledger.used == 0


def test_the_example(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Made small: a simulated thread is slow."""
    text = (Path(__file__).parents[2] / "examples" / "gpu.py").read_text()
    for large, small in (("scale=14", "scale=11"), ("max_iter=5", "max_iter=1"), ("16KiB", "4KiB")):
        assert large in text
        text = text.replace(large, small)
    (tmp_path / "gpu.py").write_text(text)
    runpy.run_path(str(tmp_path / "gpu.py"))
    resident, streamed, same = capsys.readouterr().out.splitlines()
    assert resident.endswith("bytes of pages stay there")
    assert streamed.endswith("bytes of pages come from the host")
    assert same == "the same ranks: True"


def wrong(v, p):
    return v.nowhere


def same(v, p):
    return v.x


def take(v, total, p):
    return total


def arc(u, v, e, state, p):
    pass


PROGRAMS = [
    Combine(name="mistaken", state={"x": "float64"}, init=wrong, message="float64", emit=same, update=take),
    Sweep(name="mistaken", state={"x": "int64"}, reads=("seed",), init=wrong, arc=arc),
]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.form)
def test_an_error_that_is_kept_holds_no_memory(program: Any, tmp_path: Path) -> None:
    """As a notebook keeps the last one."""
    where = graph(tmp_path)
    with Engine(where.store, settings(device="gpu")) as engine:
        with pytest.raises(Exception, match="nowhere") as kept:
            engine.run(program)
        assert engine.gpu.ledger.used == 0
        del kept


def test_explain_knows_of_a_loaded_graph(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a GPU's free memory as it is: what is loaded is no longer free."""
    where, taken = graph(tmp_path), 0
    monkeypatch.setattr(devices, "free_memory", lambda: (200_000 - taken, 200_000))
    where.load(device="gpu")
    assert where.card is not None
    assert where.card.ledger.limit == 180_000
    taken = 190_000
    few: dict[str, Any] = {"max_iter": 1, "stop": "fixed"}
    for device in ("auto", "gpu"):
        told = pk.explain("pagerank", where, device=device, **few)
        assert told.fits, str(told)
        assert told.stages[0].gpu is not None
        assert (told.stages[0].on_gpu, told.stages[0].gpu.source, told.stages[0].gpu.limit) == (True, "device", 180_000)
        stats = pk.pagerank(where, device=device, **few).stats
        assert (stats["device"], stats["gpu"]["source"], stats["gpu"]["memory_limit"]) == ("gpu", "device", 180_000)
    where.unload()


def test_who_did_not_ask_for_a_gpu_gets_the_cpu_where_it_is_too_small(tmp_path: Path) -> None:
    where = graph(tmp_path, vertices={"id": np.arange(5000)}, undirected=True)
    right = pk.wcc(where, device="cpu").table
    least = pk.explain("wcc", where, device="gpu", gpu_memory_limit="1MB").smallest_gpu
    where.load(device="gpu", gpu_memory_limit=least - 1)
    told = pk.explain("wcc", where).stages[0]
    assert told.fits
    assert not told.on_gpu
    assert told.gpu is not None
    assert "on the GPU needs" in told.gpu.why
    found = pk.wcc(where)
    assert found.table.equals(right)
    assert found.stats["device"] == "cpu"
    assert "gpu_memory_limit" in found.stats["why_not_gpu"]
    with pytest.raises(DoesNotFit):
        pk.wcc(where, device="gpu")
    where.unload()


def test_devices_that_share_a_gpu_share_its_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    where = graph(tmp_path)
    monkeypatch.setattr(devices, "free_memory", lambda: (2_000_000, 2_000_000))
    options: dict[str, Any] = {"device": "gpu", "gpu_devices": 4, "max_iter": 1, "stop": "fixed"}
    text = str(pk.explain("pagerank", where, **options))
    told = pk.explain("pagerank", where, **options).stages[0].gpu
    stats = pk.pagerank(where, **options).stats["gpu"]
    assert told is not None
    assert told.limit == stats["memory_limit"] == 450_000
    said = "4 devices share 1 GPU, for there are no more: that is slower than one for each"
    assert (told.as_dict()["shared"], stats["shared"], stats["gpus"], said in text) == (said, said, 1, True)
    # Who has as many, or uses one, is told nothing.
    monkeypatch.setattr(gpu, "count", lambda: 4)
    stats = pk.pagerank(where, **options).stats["gpu"]
    assert (stats["shared"], stats["gpus"]) == (None, 4)
    assert "devices share" not in str(pk.explain("pagerank", where, **options))
    monkeypatch.setattr(gpu, "count", lambda: 1)
    assert pk.wcc(where, device="gpu", gpu_devices=4).stats["gpu"]["shared"] is None


def test_a_limit_is_no_more_than_there_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    where = graph(tmp_path)
    monkeypatch.setattr(devices, "free_memory", lambda: (1_000_000, 8_000_000))
    options: dict[str, Any] = {"device": "gpu", "gpu_memory_limit": "4MB", "max_iter": 1, "stop": "fixed"}
    told = pk.explain("pagerank", where, **options).stages[0].gpu
    assert told is not None
    assert told.limit == pk.pagerank(where, **options).stats["gpu"]["memory_limit"] == 900_000
    where.load(device="gpu", gpu_memory_limit="4MB")
    assert pk.pagerank(where, **options).stats["gpu"]["bytes_read"] == 0  # the graph that was loaded is used
    where.unload()


def test_what_is_said_where_others_took_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    from penstock.errors import DeviceFull
    from penstock.memory.gpu import arrays

    class Refused(RuntimeError):
        status = 2

    class Runtime:
        CUDARuntimeError, errorMemoryAllocation = Refused, 2

    class Cuda:
        runtime = Runtime

        @staticmethod
        def Memory(size: int) -> None:
            raise Refused("out of memory")

    class Cupy:
        cuda = Cuda

    monkeypatch.setattr(arrays, "SIMULATED", False)
    monkeypatch.setattr(arrays, "cupy", Cupy)
    monkeypatch.setattr(arrays, "free_memory", lambda: (5_000_000, 1 << 30))
    with pytest.raises(DeviceFull, match=r"no 800 MB left, only 5\.0 MB, .* lower gpu_memory_limit") as refused:
        gpu.empty(100_000_000, np.float64)
    assert refused.value.exit_code == 3
    Refused.status = 700
    with pytest.raises(Refused):
        gpu.empty(1, np.float64)
