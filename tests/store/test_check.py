"""A sound store is sound; no byte of any file changes unseen; a writer's faults are found behind good checksums."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.config import settings
from penstock.errors import DoesNotFit
from penstock.ingest.source import VertexTable
from penstock.observe.progress import ProgressEvent
from penstock.store.check import MOST, check_store
from penstock.store.columns import COLUMN_RECORD
from penstock.store.encodings import ENCODINGS
from penstock.store.index import RECORD

from .graphs import copy, edit, files, make, random_edges, reseal, rich, small

# ---- sound stores


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("order", ["degree", "input"])
def test_sound(tmp_path: Path, encoding: str, order: str) -> None:
    assert check_store(make(tmp_path / "g.pen", encoding=encoding, order=order), small()) == []


@pytest.mark.parametrize("more", [{"undirected": True}, {"incoming": False}, {"self_loops": "drop"}])
def test_sound_whatever_was_chosen(tmp_path: Path, more: dict[str, Any]) -> None:
    assert check_store(make(tmp_path / "g.pen", **more), small()) == []


def test_sound_undirected_with_columns_and_duplicates(tmp_path: Path) -> None:
    source, target = random_edges(vertices=40)
    values = {"w": np.random.default_rng(1).random(len(source))}
    store = make(
        tmp_path / "g.pen",
        source,
        target,
        columns=values,
        types={"w": pa.float64()},
        undirected=True,
        duplicates="keep",
    )
    assert check_store(store, small()) == []


def test_sound_with_isolated_vertices_and_odd_ids(tmp_path: Path) -> None:
    ids = np.array([-5, 2**40, 0, -(2**63), 2**63 - 1])
    store = make(tmp_path / "g.pen", ids[:2], ids[1:3], table=VertexTable(ids), order="input")
    assert check_store(store, small()) == []
    wide = np.array([2**64 - 1, 2**63, 5], np.uint64)
    assert check_store(make(tmp_path / "w.pen", wide[:2], wide[1:]), small()) == []


def test_sound_empty(tmp_path: Path) -> None:
    nothing = np.zeros(0, np.int64)
    assert check_store(make(tmp_path / "g.pen", nothing, nothing), small()) == []
    assert check_store(make(tmp_path / "h.pen", nothing, nothing, table=VertexTable(np.arange(5))), small()) == []


def test_sound_rich(tmp_path: Path) -> None:
    assert check_store(rich(tmp_path / "g.pen", tuple(tmp_path / f"disk{k}" for k in range(3))), small()) == []


def test_progress_reaches_the_last_byte(tmp_path: Path) -> None:
    events: list[ProgressEvent] = []
    store = rich(tmp_path / "g.pen")
    check_store(store, settings(memory_limit="64MB", progress=events.append))
    summed = [f for f in files(store) if f.name != "meta.json" and f.suffix != ".sum"]
    assert events[-1].finished
    assert events[-1].done == events[-1].total == sum(f.stat().st_size for f in summed)


def test_a_budget_too_small_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DoesNotFit):
        check_store(make(tmp_path / "g.pen"), settings(memory_limit="100kB"))


# ---- damage


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("check")
    return rich(root / "g.pen", (root / "disk0", root / "disk1"))


def damaged(store: Path, path: Path, data: bytes) -> list[str]:
    before = path.read_bytes()
    try:
        path.write_bytes(data)
        return check_store(store, small())
    finally:
        path.write_bytes(before)


def test_every_file_has_its_share_of_the_flips(whole: Path) -> None:
    for path in files(whole):
        data = path.read_bytes()
        places = {0, len(data) // 2, len(data) - 1, *range(3, len(data), max(1, len(data) // 5))}
        for place in sorted(p for p in places if 0 <= p < len(data)):
            flipped = bytearray(data)
            flipped[place] ^= 0x10
            found = damaged(whole, path, bytes(flipped))
            assert found, f"byte {place} of {path} changed unseen"
            assert any(path.name.removesuffix(".sum") in sentence or path.name == "meta.json" for sentence in found)


@given(data=st.data())
def test_any_flip_is_found(whole: Path, data: st.DataObject) -> None:
    path = data.draw(st.sampled_from([f for f in files(whole) if f.stat().st_size]))
    content = bytearray(path.read_bytes())
    content[data.draw(st.integers(0, len(content) - 1))] ^= data.draw(st.integers(1, 255))
    assert damaged(whole, path, bytes(content))


def test_truncated_grown_and_missing_files_are_found(whole: Path) -> None:
    for path in files(whole):
        data = path.read_bytes()
        for changed in (data[:-1], data[: len(data) // 2], b"", data + b"\0"):
            if changed != data:
                assert damaged(whole, path, changed), f"{path} with {len(changed)} of {len(data)} bytes"
        os.rename(path, path.with_name("elsewhere"))
        try:
            assert check_store(whole, small()), f"{path} is missing"
        finally:
            os.rename(path.with_name("elsewhere"), path)
    assert check_store(whole, small()) == []


def test_swapped_pages_are_found(tmp_path: Path) -> None:
    store = make(tmp_path / "g.pen")
    edit(store / "out/pages.0", (np.uint8, 4096), lambda pages: pages.__setitem__([0, 1], pages[[1, 0]].copy()))
    assert len(check_store(store, small())) == 2


def test_strangers_are_reported(whole: Path) -> None:
    stranger = whole / "out" / "notes.txt"
    stranger.write_text("hello")
    folder = whole / "more"
    folder.mkdir()
    try:
        found = check_store(whole, small())
    finally:
        stranger.unlink()
        folder.rmdir()
    assert len(found) == 2
    assert all(str(name) in " ".join(found) for name in (stranger, folder))


def test_it_goes_on_after_a_problem(tmp_path: Path) -> None:
    store = rich(tmp_path / "g.pen")
    for name in ("out/pages.0", "in/weight.0", "vertex/size", "ids/text", "out/seen.index"):
        edit(store / name, np.uint8, lambda data: data.__setitem__(5, data[5] ^ 1))
    found = check_store(store, small())
    assert all(any(name in sentence for sentence in found) for name in ("out/pages.0", "in/weight.0", "vertex/size"))
    assert all(any(name in sentence for sentence in found) for name in ("ids/text", "out/seen.index"))
    assert len(found) == 5


def test_the_list_ends_somewhere(tmp_path: Path) -> None:
    source = np.arange(120_000) % 100_000
    store = make(tmp_path / "g.pen", source, source[::-1].copy())
    edit(store / "out/pages.0", (np.uint8, 4096), lambda pages: pages.__setitem__((slice(None), 9), 77))
    found = check_store(store, small())
    assert len(found) == MOST + 1
    assert "more than" in found[-1]


def test_what_is_no_store_is_one_sentence(tmp_path: Path) -> None:
    assert len(check_store(tmp_path / "none.pen", small())) == 1
    assert "does not exist" in check_store(tmp_path / "none.pen", small())[0]


# ---- faults of a writer: every checksum is right


def put(name: str, dtype: Any, place: Any, value: Any) -> Callable[[Path], None]:
    return lambda store: edit(store / name, dtype, lambda values: values.__setitem__(place, value))


def record(name: str, field: str, page: int, value: int, dtype: Any = RECORD) -> Callable[[Path], None]:
    return lambda store: edit(store / name, dtype, lambda values: values[field].__setitem__(page, value))


def swap(name: str, dtype: Any, a: int, b: int) -> Callable[[Path], None]:
    return lambda store: edit(store / name, dtype, lambda v: v.__setitem__([a, b], v[[b, a]].copy()))


def other_end(name: str) -> Callable[[Path], None]:
    """Let the last arc end at another vertex; neighbours still ascend."""

    def change(store: Path) -> None:
        records = np.fromfile(store / name / "index", RECORD)
        place = (len(records) - 1) * 1024 + int(records["arcs"][-1]) - 1
        old = int(np.fromfile(store / name / "pages.0", np.uint32)[place])
        assert old < 199
        put(f"{name}/pages.0", np.uint32, place, 199)(store)

    return change


def gap(store: Path) -> None:
    """Write behind the arcs of the last page."""
    records = np.fromfile(store / "out/index", RECORD)
    assert records["payload"][-1] < 4096
    put("out/pages.0", np.uint8, (len(records) - 1) * 4096 + 4 * int(records["arcs"][-1]), 1)(store)


FAULTS: dict[str, tuple[Callable[[Path], None], str]] = {
    "order of neighbours": (swap("out/pages.0", np.uint32, 0, 1000), "do not ascend"),
    "neighbour that is not there": (put("out/pages.0", np.uint32, 1021, 200), "does not exist"),
    "large pages out of order": (put("out/pages.0", np.uint32, 1024, 0), "go on below"),
    "slot": (put("out/pages.0", np.uint32, 1023, 999), "slot 1 is wrong"),
    "first slot": (put("out/pages.0", np.uint32, 1022, 1), "slot 0 is wrong"),
    "padding": (gap, "between its arcs and its slots"),
    "out_degree": (put("vertex/out_degree", np.uint32, 5, 3), "out_degree is 3"),
    "out_degree of a large vertex": (put("vertex/out_degree", np.uint32, 0, 3), "out_degree is 3"),
    "in_degree": (put("vertex/in_degree", np.uint32, 5, 3), "in-degree 3"),
    "another arc in out": (other_end("out"), "in-degree"),
    "another arc in in": (other_end("in"), "not those of out turned round"),
    "largest degree": (record("out/index", "largest_degree", -1, 9999), "other smallest and largest degrees"),
    "smallest degree": (record("out/index", "smallest_degree", -1, 0), "other smallest and largest degrees"),
    "degree of a large page": (record("out/index", "largest_degree", 0, 1), "wrong degree"),
    "first arc": (record("out/index", "first_arc", 2, 5), "begin at the arc"),
    "first vertex": (record("out/index", "first_vertex", 3, 0), "begin at the vertex"),
    "payload": (record("out/index", "payload", 1, 5), "wrong payload"),
    "kind": (record("out/index", "kind", 1, 2), "neither small nor large"),
    "part": (record("out/index", "part", 1, 2), "record"),
    "encoding": (record("out/index", "encoding", 1, 99), "unknown encoding"),
    "another encoding": (record("out/index", "encoding", 1, 6), "payload"),
    "ids not sorted": (swap("ids/order", np.uint32, 3, 4), "does not come after"),
    "ids not sorted at the start": (swap("ids/order", np.uint32, 0, 1), "does not come after"),
    "a number twice": (put("ids/order", np.uint32, 3, 5), "there twice"),
    "a number too big": (put("ids/order", np.uint32, 3, 4000), "too big"),
    "an id twice": (put("ids/values", np.int64, 3, 5), "does not come after"),
    "minimum": (record("out/w.index", "minimum", 1, 0, COLUMN_RECORD), "w.index: record 1"),
    "maximum": (record("out/w.index", "maximum", 1, 0, COLUMN_RECORD), "w.index: record 1"),
    "column offset": (record("out/w.index", "offset", 1, 4096, COLUMN_RECORD), "w.index: record 1"),
    "column bytes": (record("out/w.index", "bytes", 1, 8, COLUMN_RECORD), "w.index: record 1"),
    "column value": (put("in/w.0", np.float64, 40, 0.5), "not those of out turned round"),
    "column padding": (put("out/w.0", np.uint8, 8192 - 1, 1), "behind its values"),
}


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    source, target = random_edges()
    values = {"w": np.random.default_rng(1).random(len(source))}
    return make(tmp_path_factory.mktemp("faults") / "g.pen", source, target, columns=values, types={"w": pa.float64()})


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_behind_good_checksums(plain: Path, tmp_path: Path, fault: str) -> None:
    change, phrase = FAULTS[fault]
    store = copy(plain, tmp_path / "g.pen")
    change(store)
    reseal(store)
    found = check_store(store, small())
    assert any(phrase in sentence for sentence in found), found


def test_the_forger_alone_does_no_harm(plain: Path, tmp_path: Path) -> None:
    store = copy(plain, tmp_path / "g.pen")
    reseal(store)
    assert check_store(store, small()) == []
    assert (store / "meta.json").read_bytes() == (plain / "meta.json").read_bytes()


@pytest.mark.parametrize(
    ("change", "phrase"),
    [
        (lambda meta: meta.update(edges=5), "counts 5 edges"),
        (lambda meta: meta.update(active=150), "covers 200 vertices"),
        (lambda meta: meta["directions"]["in"].update(arcs=5), "arcs"),
        (lambda meta: meta["directions"]["in"].update(pages=5), "records for 5 pages"),
        (lambda meta: meta.update(directed=False), "undirected"),
        (lambda meta: meta.update(encoding="physical22"), "requires"),
    ],
)
def test_a_manifest_that_lies(plain: Path, tmp_path: Path, change: Any, phrase: str) -> None:
    store = copy(plain, tmp_path / "g.pen")
    reseal(store, change)
    assert any(phrase in sentence for sentence in check_store(store, small()))


def test_degree_order_is_checked(tmp_path: Path) -> None:
    store = make(tmp_path / "g.pen", order="input")
    reseal(store, lambda meta: meta.update(order="degree"))
    assert any("higher degree" in sentence for sentence in check_store(store, small()))


def test_an_undirected_graph_must_be_its_own_mirror(tmp_path: Path) -> None:
    # 0-1, 2-3 and 0-1, 2-3 turned into 0->1, 1->2, 2->3, 3->0: all degrees stay as they are.
    store = make(tmp_path / "g.pen", np.array([0, 2]), np.array([1, 3]), undirected=True)
    assert np.fromfile(store / "out/pages.0", np.uint32)[:4].tolist() == [1, 0, 3, 2]
    put("out/pages.0", np.uint32, slice(0, 4), [1, 2, 3, 0])(store)
    reseal(store)
    found = check_store(store, small())
    assert len(found) == 1
    assert "both ways" in found[0]


def test_loops_count_in_undirected_graphs(tmp_path: Path) -> None:
    store = make(tmp_path / "g.pen", np.array([0, 0, 1]), np.array([0, 1, 1]), undirected=True)
    assert check_store(store, small()) == []
    reseal(store, lambda meta: meta.update(edges=2))
    assert any("counts 2 edges" in sentence for sentence in check_store(store, small()))


def test_strings_out_of_order(tmp_path: Path) -> None:
    store = rich(tmp_path / "g.pen")
    swap("ids/order", np.uint32, 0, 1)(store)
    reseal(store)
    assert any("does not come after" in sentence for sentence in check_store(store, small()))


def test_text_that_is_no_text(tmp_path: Path) -> None:
    store = rich(tmp_path / "g.pen")
    put("ids/text", np.uint8, 0, 0xFF)(store)
    reseal(store)
    assert any("UTF-8" in sentence for sentence in check_store(store, small()))


def test_truth_is_zero_or_one(tmp_path: Path) -> None:
    store = rich(tmp_path / "g.pen")
    put("out/seen.0", np.uint8, 0, 2)(store)
    record("out/seen.index", "maximum", 0, 2, COLUMN_RECORD)(store)
    reseal(store)
    assert any("neither false" in sentence for sentence in check_store(store, small()))


def test_a_moved_store_is_sound(tmp_path: Path) -> None:
    rich(tmp_path / "a" / "g.pen", (tmp_path / "a" / "disk0", tmp_path / "a" / "disk1"))
    shutil.move(tmp_path / "a", tmp_path / "b")
    assert json.loads((tmp_path / "b/g.pen/meta.json").read_bytes())["stripes"][0].startswith("../disk0/")
    assert check_store(tmp_path / "b" / "g.pen", small()) == []
