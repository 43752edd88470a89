"""Building: every choice against the oracle, in memory and out of core, and nothing left behind when it fails."""

from __future__ import annotations

import datetime
import errno
import os
import threading
import weakref
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import oracle
import penstock as pk
from penstock.config import settings as resolve
from penstock.errors import DiskFull, DoesNotFit, InputError, StoreError, TargetExists, TargetLocked, UsageError
from penstock.ingest.build.builder import build
from penstock.ingest.build.merge import EdgeMerger
from penstock.ingest.build.options import BuildOptions
from penstock.ingest.build.repeats import RepeatSample
from penstock.ingest.source import EdgeChunk, EdgeSource, VertexTable, storage_dtype
from penstock.sorting.external import ExternalSorter
from penstock.store.draft import Draft

Edges = list[tuple[Any, ...]]


class ListSource(EdgeSource):
    """Edges from a list, in chunks of a chosen size."""

    def __init__(
        self, edges: Edges, *, columns: dict[str, pa.DataType] | None = None, step: int = 7, **known: Any
    ) -> None:
        self.name, self.edges, self.step = "a list", edges, step
        self.columns = columns or {}
        self.string_ids = bool(edges) and isinstance(edges[0][0], str)
        self.table = known.pop("vertices", None)
        for name, value in known.items():
            setattr(self, name, value)

    def chunks(self, *, threads: int, memory: int) -> Iterator[EdgeChunk]:
        for at in range(0, len(self.edges), self.step):
            part = self.edges[at : at + self.step]
            ends = [self._ids([edge[k] for edge in part]) for k in (0, 1)]
            values = {
                name: np.array([edge[k] for edge in part], kind.to_pandas_dtype())
                for k, (name, kind) in enumerate(self.columns.items(), 2)
            }
            self.position += len(part)
            yield EdgeChunk(ends[0], ends[1], values)

    def _ids(self, ids: list[Any]) -> Any:
        if self.string_ids:
            return pa.array(ids, pa.string())
        return np.array(ids, np.uint64 if max(ids, default=0) >= 1 << 63 else np.int64)

    def vertices(self) -> VertexTable | None:
        return self.table


def make(folder: Path, source: EdgeSource, **options: Any) -> pk.Graph:
    limit = options.pop("memory_limit", "64MB")
    chosen = BuildOptions.of({"page_size": 4096, "overwrite": True, **options})
    build(source, folder / "g.pen", chosen, resolve(memory_limit=limit, threads=2))
    return pk.open(folder / "g.pen")


def edges_of(graph: pk.Graph) -> Counter[tuple[Any, ...]]:
    return Counter(tuple(row.values()) for batch in graph.edge_batches() for row in batch.to_pylist())


def check_structure(graph: pk.Graph, expected: Counter[tuple[Any, ...]], vertices: set[Any]) -> None:
    """Degrees, neighbours both ways, order of numbers, ids."""
    links = oracle.arcs(expected, not graph.directed)
    assert graph.arcs == sum(links.values())
    assert graph.edges == sum(expected.values())
    users = graph.users().to_pylist()
    assert set(users) == vertices
    assert len(users) == len(vertices)
    out: Counter[Any] = Counter()
    into: Counter[Any] = Counter()
    for (source, target), count in links.items():
        out[source] += count
        into[target] += count
    for vertex in users[:20]:
        assert graph.degree(vertex) == out[vertex]
        assert graph.degree(vertex, "in") == into[vertex]
        assert Counter(graph.neighbors(vertex)) == Counter({b: c for (a, b), c in links.items() if a == vertex})
        assert Counter(graph.neighbors(vertex, "in")) == Counter({a: c for (a, b), c in links.items() if b == vertex})
    total = [out[v] + (0 if not graph.directed else into[v]) for v in users]
    if graph.store.meta["order"] == "degree":
        key = [(-d, oracle.sort_key(v)) for d, v in zip(total, users, strict=True)]
        assert key == sorted(key)
    else:
        assert users == sorted(users, key=oracle.sort_key)
    assert pk.check(graph) == []


ids = st.one_of(
    st.just(st.integers(0, 30)),
    st.just(st.integers(-5, 20)),
    st.just(st.integers(0, 30).map(lambda k: k * 10**15)),
    st.just(st.integers(0, 30).map(lambda k: 2**63 + k if k % 2 else k)),
    st.just(st.integers(0, 30).map(lambda k: f"n{k}é" if k % 3 else f"{k}")),
)
graphs = ids.flatmap(lambda id: st.lists(st.tuples(id, id, st.integers(-50, 50)), min_size=1, max_size=120))


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    edges=graphs,
    undirected=st.booleans(),
    self_loops=st.sampled_from(["keep", "drop"]),
    duplicates=st.sampled_from([None, "keep", "drop", "merge"]),
    merge=st.sampled_from(["first", "sum", "min", "max"]),
    order=st.sampled_from(["degree", "input"]),
    step=st.integers(1, 50),
)
def test_every_choice(
    tmp_path_factory: pytest.TempPathFactory, edges: Edges, order: str, step: int, **choice: Any
) -> None:
    folder = tmp_path_factory.mktemp("b")
    source = ListSource(edges, columns={"w": pa.int64()}, step=step)
    graph = make(folder, source, order=order, **choice)
    expected = oracle.kept_edges(edges, **choice)
    assert edges_of(graph) == expected
    check_structure(graph, expected, {end for edge in edges for end in edge[:2]})
    assert {p.name for p in folder.iterdir()} == {"g.pen"}


def random_edges(n: int, m: int, seed: int = 0) -> Edges:
    rng = np.random.default_rng(seed)
    # A few vertices of very high degree, so that large pages occur.
    ends = (rng.random((m, 2)) ** 3 * n).astype(int)
    return [(int(u), int(v), float(w)) for (u, v), w in zip(ends, rng.random(m), strict=True)]


@pytest.mark.parametrize("encoding", [None, "logical6", "physical22", "physical33", "physical24", "physical42"])
@pytest.mark.parametrize("undirected", [False, True])
def test_many_pages_and_large_ones(tmp_path: Path, encoding: str | None, undirected: bool) -> None:
    edges = random_edges(3000, 30_000)
    graph = make(
        tmp_path, ListSource(edges, columns={"w": pa.float64()}, step=5000), encoding=encoding, undirected=undirected
    )
    records = graph.store.direction("out").records
    assert (records["kind"] == 1).sum() >= 2
    assert (records["kind"] == 0).sum() > 10
    expected = oracle.kept_edges(edges, undirected=undirected)
    assert edges_of(graph) == expected
    check_structure(graph, expected, {end for edge in edges for end in edge[:2]})


def test_out_of_core_is_the_same_store(tmp_path: Path) -> None:
    """A budget that forces spilling everywhere gives byte for byte the store that memory gives."""
    rng = np.random.default_rng(3)
    source = {"source": rng.integers(0, 50_000, 4_000_000), "target": rng.integers(0, 50_000, 4_000_000)}
    source["w"] = rng.integers(0, 100, 4_000_000)
    written = []
    for name, limit in (("small", "48MB"), ("big", "2GB")):
        options: dict[str, Any] = {"undirected": True, "merge": "sum", "page_size": "64KiB", "memory_limit": limit}
        from penstock.api import build_store

        report = build_store(source, tmp_path / f"{name}.pen", **options)
        written.append(report.stats.as_dict()["counters"]["spill_written"])
        folder = tmp_path / f"{name}.pen"
        files = {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}
        files.pop("meta.json")
        if name == "small":
            first = files
    assert first == files
    assert written[0] > 4_000_000 * 8
    assert written[1] == 0


@pytest.mark.parametrize("undirected", [False, True])
@pytest.mark.parametrize("edges", [[(7, 2), (2, 9)], [("b", "a"), ("a", "c")]])
def test_a_limit_beyond_what_the_machine_has(tmp_path: Path, edges: Edges, undirected: bool) -> None:
    graph = pk.ingest(edges, tmp_path / "g.pen", undirected=undirected, memory_limit="1024PiB")
    assert (graph.vertices, graph.edges) == (3, 2)
    assert pk.run("wcc", graph, memory_limit="1024PiB").stats["components"] == 1


@pytest.mark.parametrize("columns", [0, 1])
@pytest.mark.parametrize("undirected", [False, True])
def test_duplicates_that_the_sample_does_not_see(tmp_path: Path, undirected: bool, columns: int) -> None:
    """Edges are taken for distinct until two equal arcs meet; then everything is merged after all."""
    rng = np.random.default_rng(0)
    pairs = np.unique(rng.integers(0, 40_000, (60_000, 2)), axis=0)
    pairs = pairs[pairs[:, 0] < pairs[:, 1]]
    edges = [(int(u), int(v), 1) for u, v in pairs]
    hidden = [
        (u, v) for u, v, _ in edges if (((u << 32 | v) * 0x9E3779B97F4A7C15) & ((1 << 64) - 1)) >> 58
    ]  # what the sample leaves out
    twice = [(*hidden[k], 5) for k in (0, 777, len(hidden) - 1)]
    kinds = {"w": pa.int64()} if columns else {}
    for extra in ([], twice):
        given = [edge[: 2 + columns] for edge in edges + extra]
        report = None
        choice: dict[str, Any] = {"undirected": undirected, "duplicates": "merge", "merge": "sum"}
        source = ListSource(given, columns=kinds, step=50_000)
        options = BuildOptions.of({"page_size": 4096, "overwrite": True, **choice})
        report = build(source, tmp_path / "g.pen", options, resolve(memory_limit="64MB"))
        assert ("merge" in report.stats.phases) == bool(extra)
        graph = pk.open(tmp_path / "g.pen")
        assert edges_of(graph) == oracle.kept_edges(given, **choice)
        assert pk.check(graph) == []


def test_threads_make_no_difference(tmp_path: Path) -> None:
    stores = []
    for threads in (1, 2):
        pk.generate("kron", tmp_path / f"{threads}.pen", scale=10, weights="1:255", threads=threads, page_size=4096)
        folder = tmp_path / f"{threads}.pen"
        stores.append({p.name: p.read_bytes() for p in folder.rglob("*") if p.is_file() and p.name != "meta.json"})
    assert stores[0] == stores[1]


# ---- vertices


def test_declared_vertices_and_their_columns(tmp_path: Path) -> None:
    table = VertexTable(np.array([5, 1, 9, 2]), {"age": np.array([50, 10, 90, 20], np.int16)}, {"age": pa.int16()})
    graph = make(tmp_path, ListSource([(1, 2), (2, 5)], vertices=table))
    assert graph.vertices == 4
    assert graph.store.active == 3
    assert graph.degree(9) == 0
    assert graph.neighbors(9) == []
    assert graph.vertex(9)["age"] == 90
    assert [graph.vertex(v)["age"] for v in (1, 2, 5)] == [10, 20, 50]
    dropped = make(tmp_path, ListSource([(1, 2), (2, 5)], vertices=table), keep_isolated=False)
    assert dropped.vertices == 3
    assert dropped.vertex(5)["age"] == 50


def test_a_vertex_without_a_row(tmp_path: Path) -> None:
    table = VertexTable(np.array([1]), {"age": np.array([10])}, {"age": pa.int64()})
    with pytest.raises(InputError, match="vertex 2 has edges but no row"):
        make(tmp_path, ListSource([(1, 2)], vertices=table))
    assert list(tmp_path.iterdir()) == []
    graph = make(tmp_path, ListSource([(1, 2)], vertices=table), vertex_fill={"age": -1})
    assert graph.vertex(2)["age"] == -1


def test_a_vertex_seen_only_in_a_dropped_loop_stays(tmp_path: Path) -> None:
    graph = make(tmp_path, ListSource([(1, 2), (7, 7)]), self_loops="drop")
    assert graph.vertices == 3
    assert graph.degree(7) == 0
    graph = make(tmp_path, ListSource([(1, 2), (7, 7)]), self_loops="drop", keep_isolated=False)
    assert graph.vertices == 2


@pytest.mark.parametrize("order", ["degree", "input"])
@pytest.mark.parametrize("undirected", [False, True])
def test_empty_and_tiny_graphs(tmp_path: Path, order: str, undirected: bool) -> None:
    for edges, table, vertices in (
        ([], None, set()),
        ([], VertexTable(range(1)), {0}),
        ([], VertexTable(range(5)), {0, 1, 2, 3, 4}),
        ([(3, 3)], None, {3}),
        ([(0, 1)], None, {0, 1}),
    ):
        graph = make(tmp_path, ListSource(edges, vertices=table), order=order, undirected=undirected)
        check_structure(graph, oracle.kept_edges(edges, undirected=undirected), vertices)


def test_without_incoming_arcs(tmp_path: Path) -> None:
    graph = make(tmp_path, ListSource([(1, 2), (1, 3)]), incoming=False)
    assert graph.degree(3, "in") == 1
    with pytest.raises(UsageError, match="incoming"):
        graph.neighbors(3, "in")
    with pytest.raises(UsageError, match="incoming"):
        pk.run("cdlp", graph)
    assert sum(pk.pagerank(graph).to_dict().values()) == pytest.approx(1)  # pushed along the outgoing ones
    assert pk.check(graph) == []


def test_stripes(tmp_path: Path) -> None:
    edges = random_edges(2000, 20_000)
    disks = [tmp_path / f"disk{k}" for k in range(3)]
    graph = make(tmp_path, ListSource(edges, columns={"w": pa.float64()}, step=999), stripes=disks)
    assert edges_of(graph) == oracle.kept_edges(edges)
    assert all(any(disk.iterdir()) for disk in disks)
    assert not list((tmp_path / "g.pen").glob("*/pages.*"))
    (tmp_path / "moved").mkdir()
    # Overwriting removes the old stripes too.
    make(tmp_path, ListSource([(1, 2)]))
    assert not any(entry for disk in disks for entry in disk.iterdir())


# ---- refusals


def test_targets(tmp_path: Path) -> None:
    make(tmp_path, ListSource([(1, 2)]))
    with pytest.raises(TargetExists, match="overwrite"):
        make(tmp_path, ListSource([(1, 2)]), overwrite=False)
    (tmp_path / "other.pen").mkdir()
    (tmp_path / "other.pen" / "diary.txt").write_text("dear")
    with pytest.raises(TargetExists, match="not a store"):
        build(ListSource([(1, 2)]), tmp_path / "other.pen", BuildOptions(overwrite=True), resolve(memory_limit="64MB"))
    with pytest.raises(StoreError, match=r"\.pen"):
        build(ListSource([(1, 2)]), tmp_path / "name", BuildOptions(), resolve(memory_limit="64MB"))
    with Draft(tmp_path / "busy.pen"), pytest.raises(TargetLocked, match="another run"):
        build(ListSource([(1, 2)]), tmp_path / "busy.pen", BuildOptions(), resolve(memory_limit="64MB"))
    assert not (tmp_path / ".busy.pen.tmp").exists()


def test_failing_source_leaves_nothing_and_keeps_the_old_store(tmp_path: Path) -> None:
    class Broken(ListSource):
        def chunks(self, *, threads: int, memory: int) -> Iterator[EdgeChunk]:
            yield from super().chunks(threads=threads, memory=memory)
            raise InputError("is torn", path="x.txt", line=7)

    with pytest.raises(InputError, match=r"x\.txt, line 7"):
        make(tmp_path, Broken([(1, 2)]))
    assert list(tmp_path.iterdir()) == []
    make(tmp_path, ListSource([(1, 2)]))
    with pytest.raises(InputError):
        make(tmp_path, Broken([(3, 4)]))
    assert edges_of(pk.open(tmp_path / "g.pen")) == Counter({(1, 2): 1})


def test_budgets_too_small_say_what_would_do(tmp_path: Path) -> None:
    with pytest.raises(DoesNotFit, match="at least") as refused:
        make(tmp_path, ListSource([(1, 2)]), memory_limit="1MB")
    make(tmp_path, ListSource([(1, 2)]), memory_limit=refused.value.needed)
    wide = ListSource([(0, 3_000_000)], id_bounds=(0, 3_000_000), vertices=VertexTable(range(3_000_001)))
    with pytest.raises(DoesNotFit, match="3000001 vertices") as refused:
        make(tmp_path, wide, memory_limit="48MB")
    wide = ListSource([(0, 3_000_000)], id_bounds=(0, 3_000_000), vertices=VertexTable(range(3_000_001)))
    assert make(tmp_path, wide, memory_limit=refused.value.needed).vertices == 3_000_001


def test_disk_space_is_asked_for_before_the_work(tmp_path: Path) -> None:
    huge = ListSource([(1, 2)], estimated_edges=10**15)
    with pytest.raises(DiskFull, match="needs"):
        make(tmp_path, huge)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"order": "random"}, "order must be"),
        ({"duplicates": "no"}, "duplicates must be"),
        ({"merge": "avg"}, "merge must be"),
        ({"page_size": 5000}, "page_size"),
        ({"page_size": "128MiB"}, "page_size"),
        ({"encoding": "zip"}, "no encoding"),
        ({"colour": "red"}, "no option"),
    ],
)
def test_options_that_make_no_sense(tmp_path: Path, options: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        make(tmp_path, ListSource([(1, 2)]), **options)
    assert list(tmp_path.iterdir()) == []


def test_physical_ids_that_are_too_small(tmp_path: Path) -> None:
    source = {"source": np.arange(300_000), "target": np.zeros(300_000, np.int64)}
    with pytest.raises(UsageError, match="use physical"):
        pk.ingest(source, tmp_path / "g.pen", encoding="physical22", memory_limit="64MB", page_size="1MiB")
    assert list(tmp_path.iterdir()) == []


def test_mixed_signs_beyond_int64(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no integer type"):
        make(tmp_path, ListSource([(-1, 2), (2**63 + 1, 3)], step=1))


def test_sums_do_not_overflow(tmp_path: Path) -> None:
    source = ListSource([(1, 2, 200), (2, 1, 100)], columns={"w": pa.uint8()})
    graph = make(tmp_path, source, undirected=True, merge="sum")
    assert edges_of(graph) == Counter({(1, 2, 300): 1})
    assert graph.columns == {"w": "uint64"}


@pytest.mark.parametrize(("kind", "values"), [(pa.int64(), (2**63 - 1, 1)), (pa.uint64(), (2**64 - 1, 1))])
def test_sums_that_no_type_holds_are_refused(tmp_path: Path, kind: pa.DataType, values: tuple[int, int]) -> None:
    source = ListSource([(1, 2, w) for w in values], columns={"w": kind})
    with pytest.raises(InputError, match="column w in equal edges add up to more"):
        make(tmp_path, source, duplicates="merge", merge="sum")
    assert list(tmp_path.iterdir()) == []


def test_durations_add_up_to_durations(tmp_path: Path) -> None:
    edges = pa.table({"source": [1, 1], "target": [2, 2], "w": pa.array([5, 6], pa.duration("s"))})
    graph = pk.ingest(edges, tmp_path / "g.pen", duplicates="merge", merge="sum")
    assert graph.columns == {"w": "duration[s]"}
    assert edges_of(graph) == Counter({(1, 2, datetime.timedelta(seconds=11)): 1})


def test_names_are_checked_before_reading(tmp_path: Path) -> None:
    class Unread(ListSource):
        def chunks(self, *, threads: int, memory: int) -> Iterator[EdgeChunk]:
            raise AssertionError("was read")

    source = Unread([(1, 2, 3)], columns={"w": pa.int64()})
    with pytest.raises(UsageError, match="merge names column 'v', but the edges have w"):
        make(tmp_path, source, duplicates="merge", merge={"v": "sum"})
    with pytest.raises(UsageError, match="there is no encoding"):
        make(tmp_path, source, encoding="plane")


@pytest.mark.parametrize(
    ("kind", "value", "found"),
    [
        (pa.timestamp("us"), datetime.datetime(1970, 1, 1, 0, 0, 1), 1_000_000),
        (pa.bool_(), True, 1),
        (pa.int8(), -3, -3),
        (pa.float64(), 2, 2.0),
    ],
)
def test_fill_values_of_every_kind(tmp_path: Path, kind: pa.DataType, value: Any, found: Any) -> None:
    table = VertexTable(np.array([1]), {"x": np.zeros(1, storage_dtype(kind))}, {"x": kind})
    graph = make(tmp_path, ListSource([(1, 2)], vertices=table), vertex_fill={"x": value})
    assert graph.store.vertex_column("x").read().tolist() == [0, found]


@pytest.mark.parametrize(("kind", "value"), [(pa.int8(), 1000), (pa.int64(), "many"), (pa.float64(), None)])
def test_fill_values_that_do_not_fit(tmp_path: Path, kind: pa.DataType, value: Any) -> None:
    table = VertexTable(np.array([1]), {"x": np.zeros(1, storage_dtype(kind))}, {"x": kind})
    with pytest.raises(UsageError, match=rf"vertex_fill\['x'\] must be of type {kind}"):
        make(tmp_path, ListSource([(1, 2)], vertices=table), vertex_fill={"x": value})


def test_declared_vertices_of_a_source_that_knows_its_range(tmp_path: Path) -> None:
    for ids, expected in ((np.array([0, 3, 5]), [0, 1, 2, 3, 5]), (range(1, 6), [1, 2, 3, 4, 5])):
        source = ListSource([(1, 2)], vertices=VertexTable(ids), id_bounds=(0, 5), estimated_edges=1)
        assert make(tmp_path, source, order="input").users().to_pylist() == expected


def test_what_sorted_in_vain_is_gone_before_the_merge(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the sample misses a duplicate, the merge must not share the budget with the sorter that met it."""
    sorters: list[weakref.ref[Any]] = []
    make_sorter, make_merger = ExternalSorter.__init__, EdgeMerger.__init__

    def remember(self: ExternalSorter, *args: Any, **kwargs: Any) -> None:
        make_sorter(self, *args, **kwargs)
        sorters.append(weakref.ref(self._buffers))

    def look(self: EdgeMerger, *args: Any, **kwargs: Any) -> None:
        assert [ref() for ref in sorters] == [None]
        make_merger(self, *args, **kwargs)

    monkeypatch.setattr(RepeatSample, "found", lambda self: False)
    monkeypatch.setattr(ExternalSorter, "__init__", remember)
    monkeypatch.setattr(EdgeMerger, "__init__", look)
    graph = make(tmp_path, ListSource([(1, 2), (2, 1), (3, 4)]), undirected=True)
    assert len(sorters) == 3
    assert edges_of(graph) == Counter({(1, 2): 1, (3, 4): 1})


@pytest.mark.parametrize("undirected", [False, True])
def test_a_full_disk_leaves_no_threads_and_no_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, undirected: bool
) -> None:
    """Pages are written by a thread: its error is the build's, and nothing goes on behind the caller's back."""

    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, "no space left on device")

    monkeypatch.setattr("penstock.store.writer.write_all", full)
    before = threading.active_count(), len(os.listdir("/proc/self/fd"))
    with pytest.raises(DiskFull) as refused:
        make(tmp_path, ListSource([(k, k + 1) for k in range(5000)]), undirected=undirected)
    assert (threading.active_count(), len(os.listdir("/proc/self/fd"))) == before
    assert list(tmp_path.iterdir()) == []
    del refused


def test_one_edge_over_and_over(tmp_path: Path) -> None:
    """More copies than the sample holds: the loop at 0 is in every sample, however thin."""
    zeros = np.zeros(1_200_000, np.int64)
    graph = pk.ingest({"source": zeros, "target": zeros}, tmp_path / "g.pen", undirected=True, memory_limit="64MB")
    assert edges_of(graph) == Counter({(0, 0): 1})


def test_a_sample_thins_until_it_fits() -> None:
    sample = RepeatSample(symmetric=False, memory=0)
    ends = np.arange(1 << 22, dtype=np.uint32)
    sample.add(ends, ends[::-1].copy())
    assert not sample.found()
    assert sum(map(len, sample._keys)) <= 1 << 14
    sample.add(ends, ends[::-1].copy())
    assert sample.found()


@pytest.mark.parametrize("choice", [{"undirected": True}, {"duplicates": "keep"}, {"self_loops": "drop"}])
def test_the_smallest_budget_is_enough_for_wide_columns(tmp_path: Path, choice: dict[str, Any]) -> None:
    """What is refused is refused before reading, and what is let in gets through."""
    columns = {name: pa.int64() for name in "abcdef"}
    edges = [(int(u), int(v), *range(6)) for u, v, _ in random_edges(50, 3000)]
    with pytest.raises(DoesNotFit, match="building a store") as refused:
        make(tmp_path, ListSource(edges, columns=columns), memory_limit="30MB", page_size="1MiB", **choice)
    graph = make(
        tmp_path, ListSource(edges, columns=columns), memory_limit=refused.value.needed, page_size="1MiB", **choice
    )
    assert edges_of(graph) == oracle.kept_edges(edges, **choice)


def test_a_rule_to_merge_by_means_merging(tmp_path: Path) -> None:
    graph = make(tmp_path, ListSource([(1, 2, 3), (1, 2, 4)], columns={"w": pa.int64()}), merge="sum")
    assert edges_of(graph) == Counter({(1, 2, 7): 1})


def test_ldbc_edges_name_listed_vertices_only(tmp_path: Path) -> None:
    (tmp_path / "g.v").write_text("1\n2\n")
    (tmp_path / "g.e").write_text("1 2\n2 3\n")
    with pytest.raises(InputError, match="names vertex 3"):
        pk.ingest(tmp_path / "g.e", tmp_path / "g.pen")
    assert not (tmp_path / "g.pen").exists()
