"""Opening says what is wrong; reading checks what it reads; stripes are found where they are."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import numpy as np
import pytest

from penstock.errors import DamagedStore, StoreError
from penstock.store.reader import Direction, Store

from .graphs import edit, files, make, random_edges, rich


def arcs(store: Store, name: str = "out") -> list[tuple[int, int]]:
    direction = store.direction(name)
    found: list[tuple[int, int]] = []
    for page in range(len(direction)):
        block = direction.block(page)
        for i, (a, b) in enumerate(zip(block.offsets, block.offsets[1:], strict=False)):
            found += [(block.first_vertex + i, int(v)) for v in block.neighbours[a:b]]
    return found


def test_the_arcs_are_the_edges(tmp_path: Path) -> None:
    source, target = random_edges()
    store = Store(make(tmp_path / "g.pen", source, target))
    users = store.ids.all().to_numpy()
    out = arcs(store)
    assert sorted((users[u], users[v]) for u, v in out) == sorted(zip(source, target, strict=True))
    assert out == sorted(out)
    assert sorted((v, u) for u, v in arcs(store, "in")) == out
    degrees = store.degree_column("out").read()
    assert degrees.tolist() == np.bincount([u for u, _ in out], minlength=store.vertices).tolist()
    assert store.degree_column("in").read().sum() == len(out)


def test_large_and_small_pages_occur(tmp_path: Path) -> None:
    direction = Store(make(tmp_path / "g.pen")).direction("out")
    assert set(direction.records["kind"]) == {0, 1}
    assert list(direction.pages_of(0)) == [0, 1]
    assert list(direction.pages_of(1)) == [2]
    last = len(direction) - 1
    assert list(direction.pages_of(199)) == [last]
    assert list(direction.pages_of(200)) == []


@pytest.mark.parametrize("stripes", [1, 2, 3])
def test_stripes(tmp_path: Path, stripes: int) -> None:
    folders = tuple(tmp_path / f"disk{k}" for k in range(stripes))
    rich(tmp_path / "plain.pen")
    rich(tmp_path / "g.pen", folders)
    one, two = Store(tmp_path / "plain.pen"), Store(tmp_path / "g.pen")
    assert len(two.roots) == stripes
    for name in ("out", "in"):
        assert arcs(one, name) == arcs(two, name)
        a, b = one.direction(name), two.direction(name)
        for page in range(len(a)):
            stripe, offset, size = b.page_extent(page)
            assert (stripe, offset, size) == (page % stripes, page // stripes * 4096, 4096)
            for column in ("weight", "seen"):
                assert np.array_equal(a.read_column(column, page), b.read_column(column, page))
        for k in range(stripes):
            assert b.path("pages", k).stat().st_size == len(range(k, len(b), stripes)) * 4096


def test_a_missing_stripe_is_named(tmp_path: Path) -> None:
    rich(tmp_path / "g.pen", (tmp_path / "d0", tmp_path / "d1"))
    os.rename(tmp_path / "d1", tmp_path / "elsewhere")
    with pytest.raises(DamagedStore, match=r"d1/g\.pen\.[0-9a-f]{8}/out/pages\.1 is missing"):
        Store(tmp_path / "g.pen")


def test_a_store_may_be_moved_with_its_stripes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rich(tmp_path / "a/g.pen", (tmp_path / "a/d0",))
    before = arcs(Store(tmp_path / "a/g.pen"))
    shutil.move(tmp_path / "a", tmp_path / "b")
    assert arcs(Store(tmp_path / "b/g.pen")) == before
    monkeypatch.chdir(tmp_path)
    assert arcs(Store("b/g.pen")) == before


@pytest.mark.parametrize("name", ["out/pages.0", "in/pages.0", "out/weight.0", "out/index", "in/seen.index"])
@pytest.mark.parametrize("change", ["short", "long", "gone"])
def test_a_wrong_size_is_found_at_opening(tmp_path: Path, name: str, change: str) -> None:
    path = rich(tmp_path / "g.pen") / name
    data = path.read_bytes()
    if change == "gone":
        path.unlink()
    else:
        path.write_bytes(data[:-4096] if change == "short" else data + bytes(4096))
    with pytest.raises(DamagedStore, match=f"{name}.*(truncated|too long|grew|missing)"):
        Store(tmp_path / "g.pen")


@pytest.mark.parametrize("name", ["out/index", "in/index.sum", "out/weight.index"])
def test_a_damaged_index_is_found_at_opening(tmp_path: Path, name: str) -> None:
    store = rich(tmp_path / "g.pen")
    edit(store / name, np.uint8, lambda data: data.__setitem__(3, data[3] ^ 4))
    with pytest.raises(DamagedStore, match="is damaged"):
        Store(store)


def test_a_damaged_page_is_found_when_it_is_read(tmp_path: Path) -> None:
    store = rich(tmp_path / "g.pen")
    edit(store / "out/pages.0", np.uint8, lambda data: data.__setitem__(4096 + 9, data[4096 + 9] ^ 4))
    edit(store / "out/weight.0", np.uint8, lambda data: data.__setitem__(5, data[5] ^ 4))
    edit(store / "vertex/size", np.uint8, lambda data: data.__setitem__(5, data[5] ^ 4))
    opened = Store(store)
    direction = opened.direction("out")
    direction.read_page(0)
    with pytest.raises(DamagedStore, match=r"out/pages\.0: page 1 is damaged"):
        direction.block(1)
    with pytest.raises(DamagedStore, match=r"out/weight\.0: column page 0 is damaged"):
        direction.read_column("weight", 0)
    with pytest.raises(DamagedStore, match="vertex/size is damaged"):
        opened.vertex_column("size").read(100, 101)


def test_what_the_store_does_not_have(tmp_path: Path) -> None:
    store = Store(make(tmp_path / "g.pen", incoming=False))
    assert not store.has_direction("in")
    with pytest.raises(StoreError, match="stores no in arcs"):
        store.direction("in")
    with pytest.raises(StoreError, match="no vertex column 'age'; it has out_degree, in_degree"):
        store.vertex_column("age")


def test_an_undirected_graph_has_one_direction(tmp_path: Path) -> None:
    store = Store(make(tmp_path / "g.pen", undirected=True))
    assert store.has_direction("in")
    assert store.direction("in") is store.direction("out")
    assert not (tmp_path / "g.pen" / "in").exists()


def test_home_is_made_once(tmp_path: Path) -> None:
    store = Store(make(tmp_path / "g.pen", encoding="physical33"))
    assert store.direction("in").home is store.direction("in").home
    assert np.array_equal(store.direction("in").home, store.direction("out").records["first_vertex"])


def test_opening_and_reading_write_nothing(tmp_path: Path) -> None:
    path = rich(tmp_path / "g.pen", (tmp_path / "disk",))
    before = {file: file.stat().st_mtime_ns for file in files(path)}
    folder = tmp_path.stat().st_mtime_ns, path.stat().st_mtime_ns
    arcs(Store(path))
    assert {file: file.stat().st_mtime_ns for file in files(path)} == before
    assert (tmp_path.stat().st_mtime_ns, path.stat().st_mtime_ns) == folder


def test_a_store_replaced_while_it_is_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = make(tmp_path / "g.pen")
    start = Direction.__init__
    replaced: list[bool] = []

    def late(self: Direction, store: Store, name: str) -> None:
        if not replaced:
            replaced.append(True)
            make(path, np.array([1, 2, 3]), np.array([2, 3, 1]), overwrite=True)
        start(self, store, name)

    monkeypatch.setattr(Direction, "__init__", late)
    assert Store(path).edges == 3
