"""Tests of NetworkX's own suite that are expected to fail with this backend, and why."""

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
