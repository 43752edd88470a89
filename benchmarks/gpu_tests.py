"""The tests that need a GPU, spread over processes."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ElementTree
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

from gpu_section import Section, Sizes, table

ROOT = Path(__file__).parents[1]
_LONGEST = (
    "pagerank", "sssp", "scc", "betweenness", "radius", "hits", "closeness", "kcore", "programs", "lcc", "triangles",
    "ppr", "cdlp", "bfs", "neighborhood", "wcc",
)  # fmt: skip
"""Groups that have the most kernels to compile, the longest first; the others come after them."""
_PROGRAMS = 4
"""Of the tests' own programs, so many share a process: it takes as long to start as two of them."""

_MANY = 12
"""Tests of a file from which on they are shared out, by the last of their parameters."""

_NAMED = re.compile(r"\[(.+)-(?:gpu|gpu-streamed|gpu-ranges)\]$")
"""What a test is of, an algorithm or a program, and where."""


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
    processes = sizes.processes or min(16, os.cpu_count() or 1)
    groups = grouped(ids)
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(processes) as team:
        reports = [Path(folder) / f"{k}.xml" for k in range(len(groups))]
        done = dict(zip(groups, team.map(partial(_chunk, section), groups, groups.values(), reports), strict=True))
    found: dict[str, Any] = {"collected": len(ids), "processes": processes}
    for name in ("passed", "failed", "errors", "skipped"):
        found[name] = sum(one[name] for one in done.values())
    found["bad"] = [name for one in done.values() for name in one["bad"]]
    found["groups"] = {name: {key: one[key] for key in one if key != "bad"} for name, one in done.items()}
    return found


def grouped(ids: list[str]) -> dict[str, list[str]]:
    """Tests that compile the same kernels together: by algorithm, some programs, else by file. The longest first, so
    that none is begun when the others are done."""
    found: dict[str, list[str]] = {}
    programs: dict[str, list[str]] = {}
    for each in ids:
        file, named = each.partition("::")[0], _NAMED.search(each)
        where = programs if named and "everywhere" not in file else found
        where.setdefault(named[1] if named else file, []).append(each)
    for at in range(0, len(programs), _PROGRAMS):
        some = list(programs.values())[at : at + _PROGRAMS]
        found[f"programs {at // _PROGRAMS}"] = [each for group in some for each in group]
    for file in [name for name, some in found.items() if len(some) > _MANY]:
        for each in found.pop(file):
            last = each.rpartition("[")[2].rpartition("-")[2].rstrip("]") if each.endswith("]") else "rest"
            found.setdefault(f"{file} {last}", []).append(each)
    order = {name: place for place, name in enumerate(_LONGEST)}
    return dict(sorted(found.items(), key=lambda item: order.get(item[0].partition(" ")[0], len(order))))


def _chunk(section: Section, name: str, ids: list[str], report: Path) -> dict[str, Any]:
    """Run the tests of a group, and say how that went."""
    began = time.perf_counter()
    found = _tried(section, ids, report) | {"seconds": time.perf_counter() - began}
    counts = ", ".join(f"{found[each]} {each}" for each in ("passed", "failed", "errors", "skipped") if found[each])
    print(f"  tests: {name}, {counts}, {found['seconds']:.1f} s", flush=True)
    return found


def _tried(section: Section, ids: list[str], report: Path) -> dict[str, Any]:
    """A process that dies counts all that it did not report as errors."""
    left = section.left
    nothing = {"passed": 0, "failed": 0, "errors": len(ids), "skipped": 0, "bad": [f"{ids[0]} and those after it"]}
    if left <= 0:
        print(f"  tests: no time left to begin {len(ids)} tests from {ids[0]} on", flush=True)
        return nothing
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
