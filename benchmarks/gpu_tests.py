"""The tests that need a GPU, spread over processes."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from gpu_section import Section, Sizes, table

ROOT = Path(__file__).parents[1]
_CHUNKS = 3
"""Per process: neighbours compile the same kernels, and a process that is done early takes another chunk."""

_LEAST = 4
"""Tests of a chunk: a process takes seconds to start."""


def run(section: Section) -> None:
    found = section.step("tests", _run, section)
    if not found:
        return
    rows = [(name, found[name]) for name in ("passed", "failed", "errors", "skipped")]
    table(f"pytest -m {section.sizes.marker!r} in {found['processes']} processes", ("", "tests"), rows)
    if found["failed"] or found["errors"]:
        section.fail("tests", f"{found['failed']} failed, {found['errors']} errors: {', '.join(found['bad'][:5])}")


def _pytest(section: Section, *arguments: str) -> list[str]:
    # Without xdist nobody knows its marks, to which --strict-markers would object.
    options = ["-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-o", "addopts=", "-m", section.sizes.marker]
    return [sys.executable, "-m", "pytest", *options, *arguments]


def _files(sizes: Sizes) -> list[str]:
    """The files with tests of the marker: to import all the others takes longer than many a test."""
    if sizes.marker != "gpu":
        return list(sizes.tests)
    files = [file for folder in sizes.tests for file in sorted((ROOT / folder).rglob("test_*.py"))]
    return [str(file.relative_to(ROOT)) for file in files if "mark.gpu" in file.read_text()]


def _run(section: Section) -> dict[str, Any]:
    sizes = section.sizes
    collect = subprocess.run(
        _pytest(section, "--collect-only", *_files(sizes)), cwd=ROOT, capture_output=True, text=True, check=False
    )
    ids = [line for line in collect.stdout.splitlines() if "::" in line and not line.startswith(("ERROR", " "))]
    if not ids or collect.returncode:
        said = (collect.stdout + collect.stderr)[-1500:]
        raise RuntimeError(f"no tests of {sizes.marker!r} were collected: {said}")
    processes = sizes.processes or min(12, max(1, (os.cpu_count() or 1) * 3 // 4))
    size = max(_LEAST, -(-len(ids) // (_CHUNKS * processes)))
    chunks = [ids[k : k + size] for k in range(0, len(ids), size)]
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(processes) as team:
        reports = [Path(folder) / f"{k}.xml" for k in range(len(chunks))]
        done = list(team.map(lambda pair: _chunk(section, *pair), zip(chunks, reports, strict=True)))
    found: dict[str, Any] = {"collected": len(ids), "processes": processes}
    for name in ("passed", "failed", "errors", "skipped"):
        found[name] = sum(one[name] for one in done)
    found["bad"] = [name for one in done for name in one["bad"]]
    return found


def _chunk(section: Section, ids: list[str], report: Path) -> dict[str, Any]:
    """Run these tests; a process that dies counts all that it did not report as errors."""
    left = max(1.0, section.left)
    nothing = {"passed": 0, "failed": 0, "errors": len(ids), "skipped": 0, "bad": [f"{ids[0]} and those after it"]}
    try:
        done = subprocess.run(
            _pytest(section, f"--junitxml={report}", "--no-header", *ids), cwd=ROOT, capture_output=True, text=True,
            check=False, timeout=left,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        print(f"  tests: no time left for {len(ids)} tests from {ids[0]} on", flush=True)
        return nothing
    if not report.exists():
        print(done.stdout[-3000:] + done.stderr[-3000:], flush=True)
        return nothing
    suite = next(ElementTree.parse(report).iter("testsuite"))
    count = {name: int(suite.get(name, 0)) for name in ("tests", "failures", "errors", "skipped")}
    bad = [
        f"{case.get('classname')}::{case.get('name')}"
        for case in suite.iter("testcase")
        if case.find("failure") is not None or case.find("error") is not None
    ]
    if bad:
        print(done.stdout[-4000:], flush=True)
    return {
        "passed": count["tests"] - count["failures"] - count["errors"] - count["skipped"],
        "failed": count["failures"], "errors": count["errors"], "skipped": count["skipped"], "bad": bad,
    }  # fmt: skip
