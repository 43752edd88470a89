"""A complete store appears or nothing: two writers, killed writers, overwriting, stripes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from penstock.errors import DiskFull, StoreError, TargetExists, TargetLocked
from penstock.store import draft as drafts
from penstock.store.draft import Draft, remove_store, stripe_folders
from penstock.store.lock import Lock, is_locked, lock_path
from penstock.store.reader import Store
from penstock.store.writer import disk_errors

from .graphs import files, make, reseal, rich


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def test_a_draft_that_is_not_committed_leaves_nothing(tmp_path: Path) -> None:
    with Draft(tmp_path / "g.pen", stripes=[tmp_path / "disk"]) as draft:
        file = draft.create(draft.path / "out" / "pages.0")
        assert is_locked(tmp_path / "g.pen")
        assert len(names(tmp_path / "disk")) == 1
    assert file.closed
    assert names(tmp_path) == {"disk"}
    assert names(tmp_path / "disk") == set()
    assert not is_locked(tmp_path / "g.pen")


def test_two_writers(tmp_path: Path) -> None:
    with Draft(tmp_path / "g.pen"):
        with pytest.raises(TargetLocked, match=f"process {os.getpid()}"):
            Draft(tmp_path / "g.pen")
        with Draft(tmp_path / "h.pen"):
            pass
    with Draft(tmp_path / "g.pen"):
        pass


def test_the_second_writer_does_the_first_no_harm(tmp_path: Path) -> None:
    with Draft(tmp_path / "g.pen") as draft:
        (draft.path / "precious").write_text("x")
        with pytest.raises(TargetLocked):
            Draft(tmp_path / "g.pen", overwrite=True)
        assert (draft.path / "precious").exists()
    assert names(tmp_path) == set()


def test_many_writers_one_at_a_time(tmp_path: Path) -> None:
    """Locks are taken and removed all the time: at no moment two writers hold the target."""
    inside: list[int] = []
    overlaps: list[int] = []

    def writer(number: int) -> None:
        for _ in range(100):
            try:
                lock = Lock(tmp_path / "g.pen")
            except TargetLocked:
                continue
            inside.append(number)
            if len(inside) > 1:
                overlaps.append(number)
            inside.remove(number)
            lock.release()

    threads = [threading.Thread(target=writer, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not overlaps
    assert not lock_path(tmp_path / "g.pen").exists()


def test_a_lock_whose_file_was_removed_is_not_held(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Opened before the last holder removed it, locked after: the file others will find is another one."""
    first = Lock(tmp_path / "g.pen")
    real_open = os.open

    def late(path: object, *args: object) -> int:
        descriptor = real_open(path, *args)  # type: ignore[arg-type]
        monkeypatch.setattr(os, "open", real_open)
        first.release()
        return descriptor

    monkeypatch.setattr(os, "open", late)
    second = Lock(tmp_path / "g.pen")
    assert is_locked(tmp_path / "g.pen")
    with pytest.raises(TargetLocked):
        Lock(tmp_path / "g.pen")
    second.release()


KILLED = """
import os, signal, sys
from pathlib import Path
from penstock.store.draft import Draft
draft = Draft(Path(sys.argv[1]), stripes=[Path(folder) for folder in sys.argv[2:]])
draft.create(draft.path / "out" / "pages.0").write(b"half")
draft.create(draft.stripes[0] / "out" / "pages.0").write(b"half")
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_what_a_killed_run_left_is_removed(tmp_path: Path) -> None:
    run = subprocess.run(
        [sys.executable, "-c", KILLED, str(tmp_path / "g.pen"), str(tmp_path / "d0"), str(tmp_path / "d1")], check=False
    )
    assert run.returncode == -signal.SIGKILL
    assert names(tmp_path) == {".g.pen.tmp", ".g.pen.lock", "d0", "d1"}
    assert len(names(tmp_path / "d0")) == 1
    with pytest.raises(StoreError, match="cut off"):
        Store(tmp_path / "g.pen")
    assert len(Store(make(tmp_path / "g.pen")).direction("out")) > 0
    assert names(tmp_path) == {"g.pen", "d0", "d1"}
    assert names(tmp_path / "d0") == names(tmp_path / "d1") == set()


def test_an_existing_target_is_refused(tmp_path: Path) -> None:
    make(tmp_path / "g.pen")
    with pytest.raises(TargetExists, match="--overwrite"):
        Draft(tmp_path / "g.pen")
    assert names(tmp_path) == {"g.pen"}


@pytest.mark.parametrize("swap", [True, False])
def test_overwriting_replaces_the_store_and_its_stripes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, swap: bool
) -> None:
    if not swap:
        monkeypatch.setattr(drafts, "_swap", lambda a, b: False)
    rich(tmp_path / "g.pen", (tmp_path / "disk",))
    (old,) = stripe_folders(tmp_path / "g.pen")
    uuid = Store(tmp_path / "g.pen").meta["uuid"]
    rich(tmp_path / "g.pen", (tmp_path / "disk",), overwrite=True)
    (new,) = stripe_folders(tmp_path / "g.pen")
    assert Store(tmp_path / "g.pen").meta["uuid"] != uuid
    assert names(tmp_path) == {"g.pen", "disk"}
    assert names(tmp_path / "disk") == {new.name}
    assert new != old


def test_a_failed_overwrite_keeps_the_old_store(tmp_path: Path) -> None:
    make(tmp_path / "g.pen")
    uuid = Store(tmp_path / "g.pen").meta["uuid"]
    with pytest.raises(RuntimeError), Draft(tmp_path / "g.pen", overwrite=True):
        raise RuntimeError
    assert Store(tmp_path / "g.pen").meta["uuid"] == uuid
    assert names(tmp_path) == {"g.pen"}


def test_the_old_store_is_there_until_the_new_one_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make(tmp_path / "g.pen")
    uuid = Store(tmp_path / "g.pen").meta["uuid"]
    seen: list[str] = []
    exchange = drafts._exchange

    def watched(a: Path, b: Path, aside: Path) -> None:
        seen.append(Store(b).meta["uuid"])
        exchange(a, b, aside)
        seen.append(Store(b).meta["uuid"])

    monkeypatch.setattr(drafts, "_exchange", watched)
    make(tmp_path / "g.pen", overwrite=True)
    assert seen[0] == uuid
    assert seen[1] == Store(tmp_path / "g.pen").meta["uuid"] != uuid


def test_a_store_moved_aside_by_a_killed_run_comes_back(tmp_path: Path) -> None:
    make(tmp_path / "g.pen")
    os.rename(tmp_path / "g.pen", tmp_path / ".g.pen.old")
    with pytest.raises(TargetExists):
        make(tmp_path / "g.pen")
    assert Store(tmp_path / "g.pen")
    os.rename(make(tmp_path / "h.pen"), tmp_path / ".g.pen.old")
    make(tmp_path / "g.pen", overwrite=True)
    assert names(tmp_path) == {"g.pen"}


def test_an_interrupt_right_after_the_rename_keeps_the_new_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rename = os.rename

    def interrupted(a: Path, b: Path) -> None:
        rename(a, b)
        if Path(b).suffix == ".pen":
            raise KeyboardInterrupt

    monkeypatch.setattr(os, "rename", interrupted)
    with pytest.raises(KeyboardInterrupt):
        rich(tmp_path / "g.pen", (tmp_path / "disk",))
    monkeypatch.undo()
    assert len(Store(tmp_path / "g.pen").direction("out")) > 0
    assert names(tmp_path) == {"g.pen", "disk"}


def test_an_interrupt_before_the_rename_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(path: Path) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(drafts, "_fsync", interrupted)
    with pytest.raises(KeyboardInterrupt):
        rich(tmp_path / "g.pen", (tmp_path / "disk",))
    assert names(tmp_path) == {"disk"}
    assert names(tmp_path / "disk") == set()


def test_everything_is_durable_before_the_manifest_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[Path] = []
    fsync = drafts._fsync

    def watched(path: Path) -> None:
        synced.append(path)
        fsync(path)

    monkeypatch.setattr(drafts, "_fsync", watched)
    store = rich(tmp_path / "g.pen", (tmp_path / "disk",))
    order = [path.name for path in synced]
    manifest = order.index("meta.json.new")
    expected = {path.name for path in files(store)} - {"meta.json"}
    assert expected <= set(order[:manifest])
    assert synced[-2] == tmp_path / ".g.pen.tmp"
    assert synced[-1] == tmp_path
    assert tmp_path / "disk" in synced[:manifest]


@pytest.mark.parametrize("kind", ["file", "folder", "other", "link"])
def test_what_is_no_store_is_not_overwritten(tmp_path: Path, kind: str) -> None:
    target = tmp_path / "g.pen"
    if kind == "file":
        target.write_text("precious")
    elif kind == "link":
        (tmp_path / "file.pen").write_text("precious")
        target.symlink_to(tmp_path / "file.pen")
    else:
        target.mkdir()
        (target / ("meta.json" if kind == "other" else "notes")).write_text('{"mine": 1}')
    with pytest.raises(TargetExists, match="is not a store"):
        Draft(target, overwrite=True)
    assert os.path.lexists(target)
    assert names(tmp_path) <= {"g.pen", "file.pen"}


def test_an_empty_folder_and_a_damaged_store_may_be_overwritten(tmp_path: Path) -> None:
    (tmp_path / "g.pen").mkdir()
    make(tmp_path / "g.pen", overwrite=True)
    meta = (tmp_path / "g.pen" / "meta.json").read_bytes()
    (tmp_path / "g.pen" / "meta.json").write_bytes(meta[:-9])
    make(tmp_path / "g.pen", overwrite=True)
    assert Store(tmp_path / "g.pen")


def test_overwriting_through_a_link_replaces_the_store_it_leads_to(tmp_path: Path) -> None:
    make(tmp_path / "real.pen")
    (tmp_path / "g.pen").symlink_to(tmp_path / "real.pen")
    uuid = Store(tmp_path / "g.pen").meta["uuid"]
    make(tmp_path / "g.pen", overwrite=True)
    assert (tmp_path / "g.pen").is_symlink()
    assert Store(tmp_path / "real.pen").meta["uuid"] != uuid
    assert names(tmp_path) == {"g.pen", "real.pen"}


def test_the_name_must_say_that_it_is_a_store(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"end it with \.pen"):
        Draft(tmp_path / "graph")


def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="cannot write in"):
        Draft(tmp_path / "file" / "g.pen")
    with pytest.raises(StoreError, match=r"cannot write .*file"):
        Draft(tmp_path / "g.pen", stripes=[tmp_path / "disk", tmp_path / "file"])
    assert names(tmp_path) == {"file", "disk"}
    assert names(tmp_path / "disk") == set()


def test_removing_a_store_removes_its_stripes(tmp_path: Path) -> None:
    rich(tmp_path / "g.pen", (tmp_path / "d0", tmp_path / "d1"))
    remove_store(tmp_path / "g.pen")
    assert names(tmp_path) == {"d0", "d1"}
    assert names(tmp_path / "d0") == names(tmp_path / "d1") == set()


def test_a_manifest_cannot_make_us_delete_what_is_no_stripe(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "letter").write_text("precious")
    rich(tmp_path / "g.pen", (tmp_path / "disk",))
    reseal(tmp_path / "g.pen", lambda meta: meta.update(stripes=["../home"]))
    remove_store(tmp_path / "g.pen")
    assert (tmp_path / "home" / "letter").exists()
    # Neither can one whose checksum is wrong.
    rich(tmp_path / "g.pen", (tmp_path / "disk",))
    (stripe,) = stripe_folders(tmp_path / "g.pen")
    meta = json.loads((tmp_path / "g.pen" / "meta.json").read_bytes())
    (tmp_path / "g.pen" / "meta.json").write_text(json.dumps(meta | {"vertices": 1}))
    remove_store(tmp_path / "g.pen")
    assert stripe.exists()


def test_a_full_disk_is_said_so() -> None:
    with pytest.raises(DiskFull, match="no space left where /x"), disk_errors(Path("/x")):
        raise OSError(28, "No space left on device")
    with pytest.raises(StoreError, match="cannot write /y: Input/output error"), disk_errors(Path("/x")):
        raise OSError(5, "Input/output error", "/y")


def test_a_file_that_cannot_be_closed_keeps_no_other_open(tmp_path: Path) -> None:
    class Full:
        def close(self) -> None:
            raise OSError(28, "no space left")

    with Draft(tmp_path / "g.pen") as draft:
        file = draft.create(draft.path / "out" / "pages.0")
        draft._files.append(Full())  # type: ignore[arg-type]
    assert file.closed
    assert names(tmp_path) == set()


def test_folders_made_for_a_draft_go_with_it(tmp_path: Path) -> None:
    with Draft(tmp_path / "deep" / "er" / "x.pen"):
        assert (tmp_path / "deep" / "er").is_dir()
    assert list(tmp_path.iterdir()) == []
