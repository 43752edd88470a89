"""How NetworkX's own test-suite is run with this backend: what is expected to fail there, and why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

FAILURES: dict[str, str] = {
    "algorithms/components/tests/test_strongly_connected.py::TestStronglyConnected::"
    "test_condensation_mapping_and_members": "relies on the order in which NetworkX finds strong components",
}
"""`path/to/test_module.py::Class::test`, below NetworkX's folder -> the reason."""
SAMPLED: dict[str, tuple[int, str]] = {
    "algorithms/tests/test_distance_measures.py::TestDistance::test_use_bounds_on_off_consistency": (
        25,
        "one of 500 random graphs that are asked the same",
    ),
}
"""Tests with very many cases: of so many one is run."""
MOST = 40
"""Calls of one test that go to the backend; the rest, in tests that ask thousands of tiny graphs for their components,
stays with NetworkX. It keeps the whole suite within minutes."""


class Suite:
    """The state of a run of the suite; without one, nothing is limited."""

    def __init__(self) -> None:
        self.running, self.calls = False, 0

    def exhausted(self) -> bool:
        """Whether this test has made enough calls."""
        self.calls += 1
        return self.running and self.calls > MOST

    def start(self, items: list[Any]) -> None:
        """Mark the tests, and have each begin its count anew."""
        import pytest

        self.running = True
        seen: Counter[str] = Counter()
        for item in items:
            test = item.nodeid.split("networkx/")[-1].partition("[")[0]
            if test in FAILURES:
                item.add_marker(pytest.mark.xfail(reason=FAILURES[test], strict=True))
            if test in SAMPLED:
                every, reason = SAMPLED[test]
                if seen[test] % every:
                    item.add_marker(pytest.mark.skip(reason=reason))
                seen[test] += 1
            item.runtest = self._counted(item.runtest)

    def _counted(self, runtest: Callable[[], None]) -> Callable[[], None]:
        def run() -> None:
            self.calls = 0
            runtest()

        return run


__all__ = ["FAILURES", "MOST", "SAMPLED", "Suite"]
