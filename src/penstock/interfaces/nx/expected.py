"""Tests of NetworkX's own suite that are expected to fail with this backend, and why."""

FAILURES: dict[str, str] = {
    "algorithms/components/tests/test_strongly_connected.py::TestStronglyConnected::"
    "test_condensation_mapping_and_members": "relies on the order in which NetworkX finds strong components",
}
"""`path/to/test_module.py::Class::test`, below NetworkX's folder -> the reason."""
