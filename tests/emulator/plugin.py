"""`pytest -p emulator.plugin -m gpu`: tests that need a GPU run on the emulated one.

`EMULATED_ORDER` says in which order things happen that nobody put in order: `eager`, `lazy` or `random`;
`EMULATED_SEED`, which random ones.
"""

from __future__ import annotations

import os
import zlib

import pytest

from emulator import driver
from emulator.scheduler import SCHEDULER, Order

driver.install()

ORDER = Order(os.environ.get("EMULATED_ORDER", "random"))
SEED = int(os.environ.get("EMULATED_SEED", "0"))
ELSEWHERE = {
    "test_the_next_process_compiles_nothing": "the emulator keeps what it compiles in a way of its own",
}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        reason = ELSEWHERE.get(getattr(item, "originalname", item.name))
        if reason is not None:
            item.add_marker(pytest.mark.skip(reason=reason))


def pytest_runtest_setup(item: pytest.Item) -> None:
    # Another one for each test, the same if it runs alone.
    SCHEDULER.choose(ORDER, zlib.crc32(f"{SEED} {item.nodeid}".encode()))
