"""The page feed: what it holds is given back, also when it cannot be made."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

import penstock as pk
from penstock.config import settings
from penstock.errors import DoesNotFit
from penstock.memory.ledger import Ledger
from penstock.memory.pages import PageFeed


@pytest.mark.parametrize("encoding", ["plain", "logical6"])
@pytest.mark.parametrize("limit", [0, 10_000, 1 << 20])
def test_a_feed_gives_back_what_it_held(tmp_path: Path, limit: int, encoding: str) -> None:
    graph = pk.generate("complete", tmp_path / "g.pen", vertices=200, page_size=4096, encoding=encoding)
    direction, ledger = graph.store.direction("in"), Ledger(limit)
    before = len(os.listdir("/proc/self/fd")), threading.active_count()
    if limit < 1 << 20:
        with pytest.raises(DoesNotFit):
            PageFeed(direction, ledger, settings(threads=2))
    else:
        with PageFeed(direction, ledger, settings(threads=2)) as feed:
            assert ledger.used > 0
            feed.run(range(len(direction)), lambda *_: None)
    assert (len(os.listdir("/proc/self/fd")), threading.active_count()) == before
    assert ledger.used == 0
