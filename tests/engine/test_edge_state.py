"""What arcs remember: the same everywhere, the same as an obvious loop, inside the budget, and across a kill."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import child
import penstock as pk
import small
from penstock.config import settings as settings_of
from penstock.engine.engine import Engine
from penstock.engine.monoid import ANY, FIRST, MAX
from penstock.engine.plan import make_plan
from penstock.engine.program import NUMBER, Bucketed, Combine, iterations
from penstock.engine.vectors import Slots
from penstock.errors import DiskFull, DoesNotFit, ProgramError, UsageError
from penstock.graph import Graph
from places import PLACES, at
from shapes import shapes
from stored import Stored

# ---- programs


def init(v, p):
    return np.int64(v.number) * 7 % 31, np.int64(0)


def init_some(v, p):
    return np.int64(v.number) * 7 % 31, np.int64(0), v.seed > 0 or np.int64(v.number) % 3 == 1


def emit(v, p):
    return v.x + p.step


def difference(message, e, p):
    """What is new since the last time, and how often that was."""
    return message - e.last, message, e.times + 1


def weighed(message, e, p):
    return message * e.weight - e.last, message + e.weight, e.times + 1


def turns(message, e, p):
    """Every other time it says nothing."""
    return (np.int64(0) if e.shut else np.int64(message) % 17), not e.shut


def alone(message, e, p):
    return 0.5 * e.level + message * p.gain, 0.5 * e.level + message * p.gain


def update(v, total, p):
    return (v.x * 3 + total) % 251, v.steps + 1


def update_some(v, total, p):
    x = (v.x * 3 + total) % 251
    return x, v.steps + p.step + 1, x % 4 != 0


def wants(v, p):
    return v.x % 4 != 2


def init_real(v, p):
    return 1.0 / (1.0 + v.number)


def emit_real(v, p):
    return v.x


def update_real(v, total, p):
    return 0.5 * v.x + 0.01 * total


WHOLE: dict[str, Any] = {
    "state": {"x": "int64", "steps": "int64"}, "reads": ("number", "seed"), "init": init, "message": "int64",
    "emit": emit, "update": update,
}  # fmt: skip
SOME: dict[str, Any] = {**WHOLE, "init": init_some, "update": update_some, "frontier": True}
KEPT: dict[str, Any] = {"last": "int64", "times": "uint8"}

PROGRAMS = {
    "difference": Combine("difference", **WHOLE, edge=difference, edge_state=KEPT),
    "weighed, wanted, against": Combine(
        "weighed", **WHOLE, columns=("weight",), edge=weighed, wants=wants, along="in", edge_state=KEPT
    ),
    "frontier": Combine("frontier", **SOME, columns=("weight",), edge=weighed, edge_state=KEPT, loops=False),
    "frontier, wanted, both": Combine("wanted", **SOME, along="both", edge=difference, wants=wants, edge_state=KEPT),
    "numbers, max": Combine(
        "turns", **{**SOME, "message": NUMBER, "emit": None}, contribution="int64", combine=MAX, edge=turns,
        wants=wants, edge_state={"shut": "bool"},
    ),
    "real": Combine(
        "real", {"x": "float64"}, init_real, ("number",), {"gain": 0.25}, message="float64", emit=emit_real,
        edge=alone, update=update_real, edge_state={"level": "float64"},
    ),
}  # fmt: skip

# ---- the obvious loop


@dataclass
class Arc:
    source: Any
    target: Any
    values: dict[str, Any]


def naive(graph: Graph, program: Combine, seeds: list[Any], steps: int) -> tuple[dict[Any, Any], Counter[Any]]:
    """(fields by vertex, rows of arcs): vertices and arcs by the user's ids, one after the other."""
    g = small.of(graph)
    slots = Slots(graph.store, [g.numbers[v] for v in seeds])
    sides = {"out": [False], "in": [True], "both": [False, True] if graph.directed else [False]}[program.along]
    zeros = {name: kind.type(0) for name, kind in program.edge_fields().items()}
    arcs = [
        # Messages travel from source to target.
        Arc(*((v, u) if back else (u, v)), dict(zip(g.columns, values, strict=True)) | zeros)
        for back in sides
        for u, v, *values in g.arcs
    ]
    state: dict[Any, tuple[Any, ...]] = {}
    awake: dict[Any, bool] = {}

    def seen(v: Any) -> SimpleNamespace:
        number = g.numbers[v]
        slot = slots.of(number) if number < slots.active or number in slots.alone else slots.body
        known = {"number": np.uint64(slot), "seed": seeds.index(v) + 1 if v in seeds else 0}
        return SimpleNamespace(**known, **dict(zip(program.state, state.get(v, ()), strict=False)))

    def take(v: Any, new: Any) -> None:
        new = new if isinstance(new, tuple) else (new,)
        state[v], awake[v] = new[: len(program.state)], bool(new[-1]) if program.frontier else True

    def params(step: int) -> SimpleNamespace:
        return SimpleNamespace(**program.params, vertices=len(g), step=step)

    for v in g.vertices:
        take(v, program.init(seen(v), params(0)))
    for step in range(steps):
        p = params(step)
        if not any(awake.values()):
            break
        sent = {
            v: seen(v).number if program.numbered else program.emit(seen(v), p)  # type: ignore[misc]
            for v in g.vertices
            if awake[v]
        }
        zero = program.combine.zero(program.contribution_dtype(np.dtype(np.uint32)))
        totals, hit = dict.fromkeys(g.vertices, zero), set()
        for arc in arcs:
            if arc.source not in sent or (not program.loops and arc.source == arc.target):
                continue
            if program.wants and not program.wants(seen(arc.target), p):
                continue
            found, *fields = program.edge(sent[arc.source], SimpleNamespace(**arc.values), p)  # type: ignore[misc]
            arc.values |= dict(zip(program.edge_state, fields, strict=True))
            totals[arc.target] = program.combine.combine(totals[arc.target], found)
            hit.add(arc.target)
        updated = [v for v in g.vertices if v in hit or not program.frontier]
        updated = [v for v in updated if not program.wants or program.wants(seen(v), p)]
        new = {v: program.update(seen(v), totals[v], p) for v in updated}  # type: ignore[misc]
        awake = dict.fromkeys(g.vertices, not program.frontier)
        for v, fields in new.items():
            take(v, fields)
    back = program.along == "in"
    rows = Counter(
        (*((a.target, a.source) if back else (a.source, a.target)), *(plain(a.values[f]) for f in program.edge_state))
        for a in arcs
    )
    return {v: tuple(map(plain, state[v])) for v in g.vertices}, rows


def plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


# ---- everywhere


def edge_rows(result: Any) -> Counter[Any]:
    return Counter(zip(*(column.to_pylist() for column in result.edges.table.columns), strict=True))


def alike(found: Counter[Any], right: Counter[Any], real: bool) -> bool:
    if not real:
        return found == right
    mine, other = sorted(found.elements()), sorted(right.elements())
    ends = [row[:2] for row in mine] == [row[:2] for row in other]
    return ends and [row[2] for row in mine] == pytest.approx([row[2] for row in other], rel=1e-9)


SHAPES = {shape.name: shape for shape in shapes()}
KINDS = {
    "directed": {"undirected": False},
    "outgoing": {"undirected": False, "incoming": False},
    "undirected": {"undirected": True},
}
NAMES = ("empty", "no edges", "one loop", "loops", "duplicates", "random", "string ids", "hub of parallel arcs")
CASES = [
    (shape, kind, program)
    for shape, kind in [*((name, kind) for name in NAMES for kind in KINDS), ("star", "undirected")]
    for program in PROGRAMS
    if kind != "undirected" or True in SHAPES[shape].ways
    # Without incoming arcs the kernels are others, which take seconds to compile: two programs show what they do.
    if kind != "outgoing" or program in ("difference", "frontier")
]


@pytest.mark.parametrize(("shape", "kind", "name"), CASES)
def test_everywhere_as_the_obvious_loop_has_it(stored: Stored, shape: str, kind: str, name: str) -> None:
    program = PROGRAMS[name]
    graph, g = stored.get(SHAPES[shape], **KINDS[kind])
    seeds = g.vertices[:1]
    right, arcs = naive(graph, program, seeds, 4)
    for place in PLACES:
        more = {"source": seeds} if seeds else {}
        result = at(place, lambda more=more, **chosen: pk.run(program, graph, max_iter=4, **more, **chosen))
        columns = [result.table[field].to_pylist() for field in program.state]
        found = dict(zip(result.table["vertex"].to_pylist(), zip(*columns, strict=True), strict=True))
        real = name == "real"
        assert found.keys() == right.keys()
        assert list(found.values()) == ([pytest.approx(x) for x in right.values()] if real else list(right.values()))
        assert alike(edge_rows(result), arcs, real), f"arcs in {place}"


def test_arcs_in_ranges_share_pages(tmp_path: Path) -> None:
    """Windows cut pages, and each arc is asked once all the same."""
    shape = SHAPES["random"]
    with shape.build(tmp_path / "g.pen", undirected=False) as graph:
        for ranges in (1, 2, 7, 30):
            chosen = {"tier": "disk", "state_ranges": ranges, "threads": 2}
            result = pk.run(PROGRAMS["difference"], graph, max_iter=5, **chosen)
            assert set(result.edges.table["times"].to_pylist()) == {5}
            assert result.stats["plans"][0]["ranges"] >= ranges


def test_one_direction_for_the_whole_run(tmp_path: Path) -> None:
    """In memory, a frontier of few vertices would else push or crawl, and turn around later."""
    program = PROGRAMS["frontier"]
    for incoming, way in ((True, "pull"), (False, "push")):
        path = tmp_path / f"{way}.pen"
        with SHAPES["random"].build(path, undirected=False, incoming=incoming) as graph:
            stats = pk.run(program, graph, max_iter=6, tier="memory").stats
            assert {step["direction"] for step in stats["supersteps"]} == {way}


def test_arcs_that_carry_nothing_stay_as_they_are(tmp_path: Path) -> None:
    def start(v, p):
        return 0, v.seed > 0

    def one(v, p):
        return 1

    def remember(message, e, p):
        return message, p.step + 1

    def reach(v, total, p):
        return v.far or p.step + 1, v.far == 0

    program = Combine(
        "reach", {"far": "int64"}, start, ("seed",), message="int64", emit=one, edge=remember, update=reach,
        frontier=True, edge_state={"at": "int64"},
    )  # fmt: skip
    edges = {"source": np.array([0, 1, 2, 9]), "target": np.array([1, 2, 3, 8])}
    for incoming in (True, False):  # in memory, small frontiers that push would crawl
        graph = pk.ingest(edges, tmp_path / f"{incoming}.pen", incoming=incoming)
        result = pk.run(program, graph, source=0, tier="memory")
        assert edge_rows(result) == Counter([(0, 1, 1), (1, 2, 2), (2, 3, 3), (9, 8, 0)])
        assert pk.run("degree", graph).edges is None


# ---- engine


@pytest.fixture(scope="module")
def kron(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("kept") / "k.pen"
    pk.generate("kron", path, scale=14, edge_factor=12, seed=3, page_size="16KiB")
    return path


def test_all_orders_are_those_of_the_stored_arcs(tmp_path: Path) -> None:
    with pk.generate("kron", tmp_path / "k.pen", scale=9, seed=3, page_size="4KiB") as graph:
        found = []
        for place in PLACES:

            def kept(**chosen: Any) -> dict[str, Any]:
                with Engine(graph.store, settings_of(**chosen)) as engine:
                    outcome = engine.run(PROGRAMS["difference"], until=iterations(2))
                    return {n: {f: a.copy() for f, a in s.items()} for n, s in outcome.edge_state.items()}

            found.append(at(place, kept))
        for other in found[1:]:
            assert other.keys() == found[0].keys() == {"in"}
            for field in KEPT:
                np.testing.assert_array_equal(other["in"][field], found[0]["in"][field])


# ---- budgets


def test_the_plan_counts_the_arcs(kron: Path) -> None:
    program, plain = PROGRAMS["difference"], Combine(**{**vars(PROGRAMS["difference"]), "edge_state": {}})
    with pk.open(kron) as graph:
        store, slots = graph.store, Slots(graph.store).count

        def plan(which: Combine, **chosen: Any) -> Any:
            return make_plan(which, store, settings_of(threads=2, **chosen), slots)

        arcs = store.direction("in").arcs * 9
        memory, disk = plan(program, tier="memory"), plan(program, tier="disk")
        assert memory.fixed_bytes - plan(plain, tier="memory").fixed_bytes == memory.edge_state_bytes == arcs
        assert disk.smallest - plan(plain, tier="disk").smallest == disk.edge_window_bytes > 0
        assert disk.edge_window_bytes < arcs
        # Between what the arcs take and what they take with their fields, only the plain program is in memory.
        limit = memory.fixed_bytes + memory.topology_bytes + memory.window_bytes
        assert plan(program, memory_limit=limit).tier == "disk"
        assert plan(plain, memory_limit=limit).tier == "memory"
        with pytest.raises(DoesNotFit) as refused:
            plan(program, tier="memory", memory_limit=limit)
        assert refused.value.needed > limit
        assert "state of the arcs" in str(pk.explain(program, graph, tier="disk"))


def test_arcs_that_were_loaded_give_way(kron: Path) -> None:
    """The graph fits into memory, but not with what its arcs keep."""
    with pk.open(kron) as graph:
        right = pk.run(PROGRAMS["difference"], graph, max_iter=2)
        graph.load("in")
        held = sum(block.nbytes for block in graph.loaded.values())
        result = pk.run(PROGRAMS["difference"], graph, max_iter=2, memory_limit=held + (2 << 20), threads=2)
        assert result.stats["plans"][0]["tier"] == "disk"
        assert result.table.equals(right.table)
        assert edge_rows(result) == edge_rows(right)


_BIG = """
import numpy as np
import penstock as pk

def init(v, p):
    return 1.0

def emit(v, p):
    return v.x / (v.out_degree + 1.0)

def edge(message, e, p):
    return message - e.last, message, e.mean * 0.5 + message

def update(v, total, p):
    return v.x + 0.5 * total

P = pk.Combine(
    name="big", state={{"x": "float64"}}, init=init, reads=("out_degree",), message="float64", emit=emit, edge=edge,
    update=update, edge_state={{"last": "float64", "mean": "float64"}},
)
r = pk.run(P, {store!r}, max_iter=3, memory_limit={limit}, threads=2, **{more!r})
assert r.stats["ledger_peak"] <= {limit}, r.stats["ledger_peak"]
assert r.stats["plans"][0]["edge_state_bytes"] > 3 * {limit}
seen = 0
for batch in r.edges.batches():
    seen += len(batch)
assert seen == {arcs}
"""


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("large") / "k.pen"
    pk.generate("kron", path, scale=18, edge_factor=16, undirected=True, seed=5)
    return path


@pytest.mark.parametrize("more", [{}, {"state_ranges": 3}])
def test_the_process_stays_in_its_budget(large: Path, more: dict[str, Any]) -> None:
    """120 MB of fields in files, 24 MB of budget."""
    limit, cache = 24_000_000, large.parent / "cache"
    with pk.open(large) as graph:
        code = _BIG.format(store=str(large), limit=limit, more=more, arcs=graph.arcs)
    for start_up in (child.COLD, child.WARM):
        assert child.weigh(code, cache)["private_peak"] < limit + start_up
    assert sorted(path.name for path in large.parent.iterdir()) == ["cache", "k.pen"]


def test_a_quota_for_files(kron: Path) -> None:
    with pytest.raises(DiskFull, match=r"last of the arcs of a run needs .* but max_temp_directory_size is 1\.0 kB"):
        pk.run(PROGRAMS["difference"], kron, max_iter=1, tier="disk", max_temp_directory_size="1kB")


@pytest.mark.skipif(not hasattr(os, "posix_fallocate"), reason="the system cannot tell before")
def test_a_full_disk_is_told_before_the_run(kron: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", full)
    with pytest.raises(DiskFull, match="there is no such space: free some space or set temp_directory"):
        pk.run(PROGRAMS["difference"], kron, max_iter=1, tier="disk")


# ---- checkpoints


class Killed(Exception):
    pass


@contextmanager
def killed_after(saves: int, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Stop a run right after it has saved so often."""
    from penstock.engine.checkpoint import Checkpoint

    save: Callable[..., None] = Checkpoint.save
    done = 0

    def stop(self: Any, *args: Any) -> None:
        nonlocal done
        save(self, *args)
        done += 1
        if done == saves:
            raise Killed

    with monkeypatch.context() as patched:
        patched.setattr(Checkpoint, "save", stop)
        yield


@pytest.mark.parametrize("name", ["difference", "frontier"])
def test_a_run_goes_on_where_it_was(kron: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    program, options = PROGRAMS[name], {"max_iter": 6, "threads": 2}
    path = kron
    if program.columns:
        path = tmp_path / "weighed.pen"
        pk.generate("kron", path, scale=9, seed=3, page_size="4KiB", weights="1:9")
    right = pk.run(program, path, **options)
    places = [{"tier": "memory"}, {"tier": "disk"}, {"tier": "disk", "state_ranges": 3}]
    for first, second in zip(places, [*places[1:], places[0]], strict=True):
        folder = tmp_path / "c"
        with killed_after(2, monkeypatch), pytest.raises(Killed):
            pk.run(program, path, checkpoint=folder, checkpoint_every="1", **options, **first)
        result = pk.run(program, path, checkpoint=folder, checkpoint_every="9", **options, **second)
        assert result.stats["resumed_at"] == 2
        assert result.table.equals(right.table)
        assert result.edges.table.equals(right.edges.table)


# ---- what is refused


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"edge_state": {"_x": "int64"}}, "'_x' cannot be the name"),
        ({"edge_state": {"a b": "int64"}}, "'a b' cannot be the name"),
        ({"edge_state": {"x": "U3"}}, "'x' is a number or a bool"),
        ({"edge_state": {"weight": "int64"}, "columns": ("weight",)}, "'weight' is a column of the edge"),
        ({"edge_state": {"source": "int64"}}, "'source' is a column of the edge"),
        ({"edge": None}, "needs an edge function"),
        ({"lanes": 2}, "edge_state, which goes with neither lanes"),
        ({"frontier": True, "bucketed": Bucketed("x")}, "neither lanes nor bucketed"),
        ({"combine": ANY}, "stops at the first contribution"),
        ({"combine": FIRST, "message": NUMBER}, "stops at the first contribution"),
    ],
)
def test_nonsense_is_refused(changed: dict[str, Any], message: str) -> None:
    good = {"name": "mine", **WHOLE, "edge": difference, "edge_state": KEPT}
    assert Combine(**good)
    with pytest.raises(UsageError, match=message):
        Combine(**{**good, **changed})


@pytest.mark.parametrize("device", ["cpu", "reference"])
def test_an_edge_function_that_forgets_a_field(device: str) -> None:
    def short(message, e, p):
        return message, message

    program = Combine("short", **WHOLE, edge=short, edge_state=KEPT)
    with pytest.raises(ProgramError, match="program short"):
        pk.run(program, pk.from_edges([0, 1], [1, 2]), max_iter=1, device=device)


def test_the_order_of_fields_makes_another_program(tmp_path: Path) -> None:
    """The same functions, the same names: kernels of the one must not serve the other."""

    def both(message, e, p):
        return message, np.int64(1), np.int64(2)

    graph = pk.from_edges([0, 1], [1, 0])
    for names in (("a", "b"), ("b", "a")):
        program = Combine("order", **WHOLE, edge=both, edge_state=dict.fromkeys(names, "int64"))
        table = pk.run(program, graph, max_iter=1).edges.table
        assert (table[names[0]].to_pylist(), table[names[1]].to_pylist()) == ([1, 1], [2, 2])
