"""A run that is killed goes on from its checkpoint, and gives what it would have given."""

from __future__ import annotations

import json
import shutil
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import child
import penstock as pk
from penstock.algorithms.registry import ALGORITHMS, UNSAVED
from penstock.engine import checkpoint as checkpoints
from penstock.engine.checkpoint import parse_interval
from penstock.errors import InputError, PenstockError, StoreError, TargetLocked, UsageError

PLACES: dict[str, dict[str, Any]] = {
    "memory": {"tier": "memory"},
    "disk": {"tier": "disk"},
    "ranges": {"tier": "disk", "state_ranges": 3},
}
RUNS: dict[str, dict[str, Any]] = {
    # One thread where sums would otherwise depend on the order of the pages.
    "pagerank": {"max_iter": 12, "stop": "fixed", "threads": 1},
    "bfs": {"source": 0},
    "cdlp": {"max_iter": 6},
}
HERE = [name for name in RUNS if name in ALGORITHMS]
MORE: dict[str, dict[str, Any]] = {
    "ppr": {"source": 0, "max_iter": 6, "threads": 1},
    "hits": {"max_iter": 4, "threads": 1},
    "sssp": {"source": 0, "parents": True, "threads": 1},
    "kcore": {},
    "scc": {},
    "betweenness": {"sources": [0, 27], "threads": 1},
    "closeness": {"samples": 70},
    "radius": {"lanes": 8},
    "neighborhood": {"source": 0, "hops": 9},
    "egonet": {"source": 0, "hops": 9},
}
"""Several programs, or something gathered beside them."""

_KILLED = """
import os, signal, time
import penstock as pk
from penstock.engine.checkpoint import Checkpoint
save, done = Checkpoint.save, 0

def killed(self, *args):
    global done
    save(self, *args)
    done += 1
    if done == {after}:
        print("saved", flush=True)
        {then}

Checkpoint.save = killed
pk.run({name!r}, {store!r}, checkpoint={folder!r}, checkpoint_every="1", **{options!r})
"""


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A grid: many levels, and as many supersteps."""
    path = tmp_path_factory.mktemp("checkpoints") / "grid.pen"
    pk.generate("grid", path, rows=20, columns=20, undirected=True, weights="1:9", page_size="4KiB")
    return path


def kill(name: str, store: Path, folder: Path, options: dict[str, Any], after: int, then: str = "SIGKILL") -> None:
    """Run in a process that dies when it has saved so often."""
    then = "os.kill(os.getpid(), signal.SIGKILL)" if then == "SIGKILL" else then
    code = _KILLED.format(name=name, store=str(store), folder=str(folder), options=options, after=after, then=then)
    run = child.start(code)
    assert run.wait() == -9
    assert (folder / checkpoints.CURRENT).exists()


def run(name: str, store: Path, folder: Path | None = None, **options: Any) -> tuple[pa.Table, dict[str, Any]]:
    more = {} if folder is None else {"checkpoint": folder, "checkpoint_every": "8"}
    result = pk.run(name, store, **options, **more)
    return result.table, result.stats


def steps(stats: dict[str, Any]) -> int:
    """How many supersteps; short ones are told in one entry."""
    return sum(each.get("supersteps", 1) for each in stats["supersteps"])


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("name", HERE)
def test_killed_and_resumed(store: Path, tmp_path: Path, name: str, place: str) -> None:
    options = RUNS[name] | PLACES[place]
    right, whole = run(name, store, **options)
    for after in (1, 4):
        folder = tmp_path / f"after{after}"
        kill(name, store, folder, options, after)
        found, stats = run(name, store, folder, **options)
        assert found.equals(right)
        assert stats["resumed_at"] == after
        assert steps(stats) == steps(whole) - after
        assert not folder.exists()
    assert [path.name for path in store.parent.iterdir()] == [store.name]


def test_killed_again_and_again(store: Path, tmp_path: Path) -> None:
    options = RUNS["bfs"] | {"tier": "memory"}
    for _ in range(3):
        kill("bfs", store, tmp_path / "c", options, 2)
    found, stats = run("bfs", store, tmp_path / "c", **options)
    assert stats["resumed_at"] == 6
    assert found.equals(run("bfs", store, **options)[0])


@pytest.mark.parametrize("moment", ["_write", "_sync"])
@pytest.mark.parametrize("nth", [1, 2, 3, 5, 6, 8])
def test_killed_while_saving(store: Path, tmp_path: Path, moment: str, nth: int) -> None:
    """What was complete before still counts; what is not complete does not."""
    folder, options = tmp_path / "c", RUNS["pagerank"] | {"tier": "memory"}
    code = f"""
    import os, signal
    import penstock as pk
    from penstock.engine import checkpoint

    call, done = checkpoint.{moment}, 0

    def killed(*args):
        global done
        done += 1
        if done == {nth}:
            os.kill(os.getpid(), signal.SIGKILL)
        return call(*args)

    checkpoint.{moment} = killed
    pk.run("pagerank", {str(store)!r}, checkpoint={str(folder)!r}, checkpoint_every="1", **{options!r})
    """
    assert child.start(code).wait() == -9
    found, _ = run("pagerank", store, folder, **options)
    assert found.equals(run("pagerank", store, **options)[0])
    assert not folder.exists()


@pytest.fixture(scope="module")
def directed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Many small components that reach each other one way."""
    path = tmp_path_factory.mktemp("directed") / "u.pen"
    pk.generate("uniform", path, vertices=300, edges=420, seed=3, weights="1:9", page_size="4KiB")
    return path


@pytest.mark.parametrize(
    ("name", "place"), [(name, "memory") for name in MORE] + [("radius", "disk"), ("radius", "ranges")]
)
def test_several_programs_are_taken_up(store: Path, directed: Path, tmp_path: Path, name: str, place: str) -> None:
    graph = directed if name == "scc" else store
    options = MORE[name] | PLACES[place]
    right, whole = run(name, graph, **options)
    for after in (1, 3):
        folder = tmp_path / f"after{after}"
        kill(name, graph, folder, options, after)
        found, stats = run(name, graph, folder, **options)
        assert found.equals(right)
        assert stats["resumed_at"]
        assert not folder.exists()
        for key in ("neighbourhood", "effective_diameter", "max_radius", "cascades", "rounds", "largest", "reached"):
            assert stats.get(key) == whole.get(key)
        if name == "radius":
            assert steps(stats) == steps(whole) - after


def test_all_algorithms_have_checkpoints_or_say_why_not(store: Path, tmp_path: Path) -> None:
    options = {"induced": {"vertices": [1]}, "cross_edges": {"vertices": [1]}}
    others = set(ALGORITHMS) - set(RUNS) - set(MORE)
    assert others == set(UNSAVED)
    for name in sorted(others):
        with pytest.raises(UsageError, match=f"{name} .* has no checkpoints to go on from: run it without one"):
            run(name, store, tmp_path / "c", **options.get(name, {}))
    with pytest.raises(UsageError, match="scc of an undirected graph is wcc, which has no checkpoints"):
        run("scc", store, tmp_path / "c")
    with pytest.raises(UsageError, match="device reference saves no checkpoints"):
        run("bfs", store, tmp_path / "c", source=0, device="reference")
    assert not (tmp_path / "c").exists()


# ---- one run at a time


def test_two_runs_on_one_folder(store: Path, tmp_path: Path) -> None:
    """The second is refused, and what the first has saved stays; a killed run does not block the next one."""
    folder, options = tmp_path / "c", RUNS["bfs"] | {"tier": "memory"}
    code = _KILLED.format(
        name="bfs", store=str(store), folder=str(folder), options=options, after=3, then="time.sleep(600)"
    )
    first = child.start(code)
    try:
        current, deadline = folder / checkpoints.CURRENT, time.monotonic() + 120
        while not current.exists() or json.loads(current.read_text())["scalars"]["step"] < 3:
            assert first.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.01)
        saved = current.read_bytes()
        for name in ("bfs", "pagerank"):
            with pytest.raises(TargetLocked, match="is that of a run that goes on: wait for it or give another folder"):
                run(name, store, folder, **RUNS[name])
        assert current.read_bytes() == saved
    finally:
        first.kill()
        first.wait()
    found, stats = run("bfs", store, folder, **options)
    assert stats["resumed_at"] == 3
    assert found.equals(run("bfs", store, **options)[0])
    assert not folder.exists()


def test_a_run_that_ends_early_lets_the_folder_go(store: Path, tmp_path: Path) -> None:
    refused: list[dict[str, Any]] = [{"source": "nobody"}, {"source": 0, "memory_limit": 1}]
    for options in refused:
        with pytest.raises(PenstockError):
            run("bfs", store, tmp_path / "c", **options)
        assert not (tmp_path / "c").exists()
    run("bfs", store, tmp_path / "c", source=0)


@pytest.mark.slow
def test_killed_at_any_moment(tmp_path: Path) -> None:
    """By the command line, some time after it was seen to save."""
    store, folder = tmp_path / "k.pen", tmp_path / "c"
    pk.generate("kron", store, scale=14, undirected=True, seed=3)
    words = ["run", "pagerank", str(store), "--tol", "0", "--max-iter", "40", "--threads", "1", "--tier", "disk", "-q"]
    words += ["--checkpoint", str(folder), "--checkpoint-every", "3", "-o", str(tmp_path / "r.parquet")]
    code = f"import sys; sys.argv[1:] = {words!r}; from penstock.interfaces.cli import main; main()"
    current = folder / checkpoints.CURRENT
    for pause in (0.0, 0.003, 0.01, 0.03):
        before = current.read_bytes() if current.exists() else b""
        begun = child.start(code)
        while begun.poll() is None and (not current.exists() or current.read_bytes() == before):
            time.sleep(0.001)
        time.sleep(pause)
        begun.kill()
        begun.wait()
    assert child.start(code).wait() == 0
    right = pk.pagerank(store, tol=0, max_iter=40, threads=1, tier="disk").table
    assert pq.read_table(tmp_path / "r.parquet").equals(right)
    assert not folder.exists()


# ---- what is refused


@pytest.fixture(scope="module")
def remains(store: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What a killed PageRank left. Not to be changed."""
    folder = tmp_path_factory.mktemp("remains") / "left"
    kill("pagerank", store, folder, RUNS["pagerank"] | {"tier": "memory"}, 3)
    return folder


@pytest.fixture
def left(remains: Path, tmp_path: Path) -> Path:
    """A copy that may be damaged."""
    return Path(shutil.copytree(remains, tmp_path / "left"))


def test_another_store(left: Path, tmp_path: Path) -> None:
    pk.generate("chain", tmp_path / "chain.pen", vertices=9)
    with pytest.raises(UsageError, match="another store: give another folder or remove it"):
        run("pagerank", tmp_path / "chain.pen", left)


def test_another_algorithm_or_other_options(left: Path, store: Path) -> None:
    for name, options in (
        ("pagerank", {"damping": 0.5}),
        ("pagerank", {"dtype": "float32"}),
        ("pagerank", {"dangling": "drop"}),
        ("bfs", {"source": 1}),
    ):
        with pytest.raises(UsageError, match="a run of pagerank with other options: give another folder"):
            run(name, store, left, **options)
    assert run("pagerank", store, left, **RUNS["pagerank"])[1]["resumed_at"] == 3


def test_other_sources(store: Path, tmp_path: Path) -> None:
    kill("bfs", store, tmp_path / "c", RUNS["bfs"], 2)
    with pytest.raises(UsageError, match="other options"):
        run("bfs", store, tmp_path / "c", source=5)


def test_it_may_go_on_elsewhere(left: Path, store: Path) -> None:
    """Where the arcs lie is no option of the algorithm."""
    found, stats = run("pagerank", store, left, **RUNS["pagerank"], tier="disk", state_ranges=2)
    assert stats["resumed_at"] == 3
    right = run("pagerank", store, **RUNS["pagerank"])[0]
    assert found["vertex"].equals(right["vertex"])
    assert found["rank"].to_pylist() == pytest.approx(right["rank"].to_pylist(), rel=1e-12)


def files(left: Path) -> list[Path]:
    found = [path for path in left.glob(f"{checkpoints.STEP}*/*") if path.is_file()]
    assert found
    return found


def test_damaged(left: Path, store: Path) -> None:
    for file in files(left):
        whole = file.read_bytes()
        for place in (0, len(whole) // 2, len(whole) - 1):
            file.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
            with pytest.raises(InputError, match="is damaged: remove the checkpoint to start anew") as told:
                run("pagerank", store, left, **RUNS["pagerank"])
            assert str(file) in str(told.value)
        file.write_bytes(whole)


def test_truncated(left: Path, store: Path) -> None:
    for file in files(left):
        whole = file.read_bytes()
        for part in (b"", whole[:-1]):
            file.write_bytes(part)
            with pytest.raises(InputError, match="is truncated: remove the checkpoint to start anew"):
                run("pagerank", store, left, **RUNS["pagerank"])
        file.unlink()
        with pytest.raises(InputError, match="remove the checkpoint to start anew"):
            run("pagerank", store, left, **RUNS["pagerank"])
        file.write_bytes(whole)


@pytest.mark.parametrize("text", ["", "{", "[]", "3", '{"run": 1}', "\x00" * 10])
def test_no_checkpoint_at_all(left: Path, store: Path, text: str) -> None:
    (left / checkpoints.CURRENT).write_text(text)
    with pytest.raises((StoreError, UsageError), match="remove it"):
        run("pagerank", store, left)


@pytest.mark.parametrize("missing", ["key", "run", "program", "folder", "scalars", "vectors"])
def test_half_a_checkpoint(left: Path, store: Path, missing: str) -> None:
    current = left / checkpoints.CURRENT
    found = json.loads(current.read_text())
    del found[missing]
    current.write_text(json.dumps(found))
    with pytest.raises(StoreError, match="remove it to start anew"):
        run("pagerank", store, left, **RUNS["pagerank"])


def test_a_folder_with_other_things_is_left_alone(store: Path, tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "thesis.txt").write_text("mine")
    (folder / "photos").mkdir()
    run("bfs", store, folder, **RUNS["bfs"])
    assert sorted(path.name for path in folder.iterdir()) == ["photos", "thesis.txt"]


def test_a_run_that_fails_keeps_what_it_saved(store: Path, tmp_path: Path) -> None:
    steps = 0

    def stop(event: Any) -> None:
        nonlocal steps
        steps += 1
        if event.done >= 5:
            raise KeyboardInterrupt

    folder, options = tmp_path / "c", RUNS["bfs"] | {"tier": "memory"}
    with pytest.raises(KeyboardInterrupt):
        run("bfs", store, folder, **options, progress=stop)
    found, stats = run("bfs", store, folder, **options)
    assert stats["resumed_at"]
    assert found.equals(run("bfs", store, **options)[0])


def test_a_finished_run_leaves_nothing(store: Path, tmp_path: Path) -> None:
    for name in HERE:
        stats = pk.run(name, store, checkpoint=tmp_path / "c", checkpoint_every="2", **RUNS[name]).stats
        assert stats["checkpoints"] > 1
        assert stats["resumed_at"] is None
        assert not (tmp_path / "c").exists()


def test_intervals() -> None:
    assert [parse_interval(text) for text in ("10", "30s", "5m", "0.5h", "0s")] == [
        (10, None), (None, 30.0), (None, 300.0), (None, 1800.0), (None, 0.0)
    ]  # fmt: skip
    for text in ("", "0", "-1", "1.5", "s", "-1s", "5 minutes", "nans", "infs"):
        with pytest.raises(UsageError, match="no interval"):
            parse_interval(text)


def test_time_between_checkpoints(store: Path, tmp_path: Path) -> None:
    often = pk.run("bfs", store, source=0, checkpoint=tmp_path / "c", checkpoint_every="0s").stats
    assert often["checkpoints"] == len(often["supersteps"])
    assert pk.run("bfs", store, source=0, checkpoint=tmp_path / "c", checkpoint_every="1h").stats["checkpoints"] == 0


def test_a_folder_that_cannot_be_made(store: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="file"):
        run("bfs", store, tmp_path / "file", source=0)


def test_a_copy_of_the_folder_serves_as_well(left: Path, store: Path, tmp_path: Path) -> None:
    shutil.copytree(left, tmp_path / "copy")
    assert run("pagerank", store, tmp_path / "copy", **RUNS["pagerank"])[1]["resumed_at"] == 3
