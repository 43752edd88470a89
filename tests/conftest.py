"""What every test starts from: no settings of the caller's, and hypothesis that waits for the compiler. What the
compiler took is said at the end."""

from __future__ import annotations

import gc
import os
import signal
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, settings
from numba.core import event

if TYPE_CHECKING:
    from stored import Stored

if os.environ.get("NUMBA_ENABLE_CUDASIM"):
    import simulator  # noqa: F401

for name in [name for name in os.environ if name.startswith("PENSTOCK_")]:
    del os.environ[name]

# A job in the background is started with interrupts ignored, and so are all processes that it starts.
signal.signal(signal.SIGINT, signal.default_int_handler)

# The compiler makes many objects and few cycles: looking for these as often as Python does takes a tenth of its time.
gc.set_threshold(100_000, 50, 100)

# The first example of a property may compile a kernel, which is no sign of a slow test.
settings.register_profile("penstock", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("penstock")

COMPILING = event.TimingListener()
event.register("numba:compile", COMPILING)
_SECONDS: list[float] = []


@pytest.fixture(scope="session")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stored]:
    """Stores of the shapes for all tests of a worker."""
    from stored import Stored

    made = Stored(tmp_path_factory.mktemp("stored"))
    yield made
    made.close()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Tests that need a GPU say why there is none; in the simulator, only `-m gpu` has so much patience."""
    marked = [item for item in items if item.get_closest_marker("gpu")]
    if not marked:
        return
    from penstock.observe.gpus import missing

    reason = missing()
    if reason is None:
        from penstock.memory import gpu

        reason = gpu.why_not()
        if gpu.SIMULATED and config.getoption("markexpr") != "gpu":
            reason = "the simulator is too slow for all of them"
    for item in marked if reason else ():
        item.add_marker(pytest.mark.skip(reason=reason))


def pytest_sessionfinish(session: pytest.Session) -> None:
    """A worker tells its seconds to the one who started it."""
    seconds = COMPILING.duration if COMPILING.done else 0.0
    output = getattr(session.config, "workeroutput", None)
    if output is None:
        _SECONDS.append(seconds)
    else:
        output["compiling"] = seconds


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any, error: object | None) -> None:
    _SECONDS.append(getattr(node, "workeroutput", {}).get("compiling", 0.0))


def pytest_terminal_summary(terminalreporter: Any) -> None:
    terminalreporter.write_line(f"compiling kernels took {sum(_SECONDS):.0f} s of the workers' time")
