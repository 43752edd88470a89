"""The GPU, measured: `python benchmarks/gpu.py` runs all sections but the last within ten minutes and writes one JSON.

    resident   a graph that fits: PageRank, BFS, WCC, SSSP, their energy; cuSPARSE beside them
    streamed   the same graph from pinned host memory: by number of streams, by share of the graph that is cached
    disk       the same graph from disk, beside direct reads
    shapes     graphs in the order of input, skewed and uniform, beside a bare gather
    triangles  all lists of neighbours on the device, and lists that pass
    devices    strategies P and S over logical devices
    mapreduce  sorting pairs, in core and out of core, beside the CPU and the bus; map, group and reduce
    tests      the tests that need a GPU
    algorithms all algorithms, whole calls, beside the CPU
    big        two billion arcs under 2 GiB: five minutes more, most of them to make the graph; `--only big`

Sections may be run in separate calls: each replaces its own figures in the JSON. Each runs in a process of its own, so
that one that fails, or takes longer than it may, leaves the others alone; what it measured until then is kept.
The three experiments (streams, cache, devices) are drawn beside the JSON, where matplotlib is installed; `--plot` draws
them again and measures nothing.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

RESULT = Path(__file__).parent / "results" / "gpu.json"
SECTIONS = {
    "resident": 130, "streamed": 125, "disk": 60, "shapes": 60, "triangles": 40, "devices": 80, "mapreduce": 70,
    "tests": 290, "algorithms": 60, "big": 330,
}  # fmt: skip
"""In order, with the most seconds that each may take. What one leaves over is there for those after it."""
CAP = 580
"""Ten minutes, but for starting and clearing up."""


def main(arguments: list[str] | None = None) -> int:
    options = _options(arguments)
    if options.plot:
        return _draw(options.output)
    if options.part is not None:
        return _inside(options)
    chosen = options.only or [name for name in SECTIONS if name != "big"]
    began = time.monotonic()
    made = not options.folder.exists()
    options.folder.mkdir(parents=True, exist_ok=True)
    before = set(options.folder.iterdir())
    failed = []
    try:
        for name in chosen:
            left = options.cap - (time.monotonic() - began)
            allowed = left if len(chosen) == 1 else min(left, SECTIONS[name])
            print(f"== {name} (at most {allowed:.0f} s)", flush=True)
            record = _outside(name, options, allowed)
            _merge(options.output, name, record)
            if record["errors"]:
                failed.append(name)
            print(f"== {name} took {record['seconds']:.1f} s", flush=True)
    finally:
        if not options.keep_graph:
            _remove(options.folder, before, whole=made)
    _judge(options.output)
    if {"streamed", "devices"} & set(chosen):
        _draw(options.output)
    print(f"{time.monotonic() - began:.0f} s in all; kept in {options.output}")
    if failed:
        print(f"with errors: {', '.join(failed)}")
    return 1 if failed else 0


def bench(folder: Path, scale: int, rounds: int) -> None:
    """For `benchmarks/run.py`, whose sizes are for CPUs."""
    main(["--folder", str(folder)])


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", type=_sections, help="these sections, with commas between them")
    parser.add_argument("--output", type=Path, default=RESULT)
    parser.add_argument("--folder", type=Path, default=Path("bench-data/gpu"), help="where graphs are, or are made")
    parser.add_argument("--keep-graph", action="store_true", help="keep the graphs that are made")
    parser.add_argument("--cap", type=float, default=CAP, help="seconds for everything")
    parser.add_argument("--scale", type=int, help="of the graph of the first sections; 24")
    parser.add_argument("--tiny", action="store_true", help="sizes for the simulator: NUMBA_ENABLE_CUDASIM=1")
    parser.add_argument("--plot", action="store_true", help="draw the experiments from the JSON, and measure nothing")
    parser.add_argument("--part", type=Path, help=argparse.SUPPRESS)
    return parser.parse_args(arguments)


def _sections(text: str) -> list[str]:
    names = text.split(",")
    if unknown := [name for name in names if name not in SECTIONS]:
        raise argparse.ArgumentTypeError(f"{unknown[0]!r} is none of {', '.join(SECTIONS)}")
    return [name for name in SECTIONS if name in names]


def _inside(options: argparse.Namespace) -> int:
    """One section, in this process."""
    from gpu_section import Section, Sizes

    from penstock.memory import gpu

    (name,) = options.only
    sizes = (Sizes.tiny() if options.tiny else Sizes()).scaled(options.scale)
    section = Section(name, sizes, options.folder, options.part, options.cap, tiny=options.tiny, output=options.output)
    section.save()
    if (why := gpu.why_not()) is not None:
        section.fail("start", why)
        return 1
    section.step("device", _device)
    section.step(name, importlib.import_module(f"gpu_{name}").run, section)
    return 1 if section.errors else 0


def _device() -> dict[str, Any]:
    from penstock.memory import gpu
    from penstock.observe import gpus

    free, total = gpu.free_memory()
    return {
        "name": gpu.name(), "driver": gpus.driver(), "versions": gpu.versions(), "memory": total, "free": free,
        "devices": gpu.count(), "multiprocessors": gpu.multiprocessors(),
    }  # fmt: skip


def _outside(name: str, options: argparse.Namespace, allowed: float) -> dict[str, Any]:
    """One section in a process of its own, stopped when its time is over."""
    began = time.monotonic()
    record: dict[str, Any] = {"figures": {}, "errors": []}
    if allowed <= 0:
        record["errors"].append({"step": "start", "error": "skipped: no time was left"})
        return record | {"seconds": 0.0}
    with tempfile.TemporaryDirectory(prefix="penstock-gpu-") as folder:
        part = Path(folder) / "part.json"
        command = [sys.executable, "-u", __file__, "--only", name, "--part", str(part), "--cap", f"{allowed:.1f}"]
        command += ["--folder", str(options.folder), "--output", str(options.output)]
        command += ["--tiny"] if options.tiny else []
        command += ["--scale", str(options.scale)] if options.scale is not None else []
        child = subprocess.Popen(command, start_new_session=True)
        try:
            code: int | None = child.wait(allowed + (0 if options.tiny else 5))
        except subprocess.TimeoutExpired:
            code = None
        finally:
            if child.poll() is None:
                os.killpg(child.pid, signal.SIGKILL)
                child.wait()
        if part.exists():
            record = json.loads(part.read_text())
        if code is None:
            record["errors"].append({"step": "end", "error": f"stopped after {allowed:.0f} s, its cap"})
        elif code and not record["errors"]:
            record["errors"].append({"step": "end", "error": f"the process ended with {code}"})
    return record | {"seconds": time.monotonic() - began}


def _merge(output: Path, name: str, record: dict[str, Any]) -> None:
    """The section's figures into the JSON, beside those of the others."""
    from penstock.observe.stats import machine

    found = json.loads(output.read_text()) if output.exists() else {}
    now = datetime.now(UTC).isoformat(timespec="seconds")
    device = record["figures"].pop("device", None)
    head = {"benchmark": "gpu", "date": now, "machine": machine(), "gpu": device or found.get("gpu")}
    sections = found.get("sections", {}) | {name: {"date": now, "gpu": (device or {}).get("name"), **record}}
    ordered = {each: sections[each] for each in SECTIONS if each in sections}
    _write(output, head | {"sections": ordered, "targets": found.get("targets", [])})


def _judge(output: Path) -> None:
    from gpu_targets import judged, show

    found = json.loads(output.read_text())
    found["targets"] = judged(found["sections"])
    _write(output, found)
    show(found["targets"])


def _draw(output: Path) -> int:
    """The three experiments; 1 if they cannot be drawn."""
    from gpu_plot import draw

    try:
        for path in draw(output):
            print(f"drawn: {path}")
    except (ImportError, SystemExit) as error:  # no matplotlib; no figures, as their sections failed
        print(f"not drawn: {error}")
        return 1
    return 0


def _write(output: Path, found: dict[str, Any]) -> None:
    output.parent.mkdir(parents=True, exist_ok=True)
    beside = output.with_name(output.name + ".new")
    beside.write_text(json.dumps(found, indent=1) + "\n")
    os.replace(beside, output)


def _remove(folder: Path, before: set[Path], *, whole: bool) -> None:
    """What was not there before."""
    if whole:
        shutil.rmtree(folder, ignore_errors=True)
        return
    for path in set(folder.iterdir()) - before:
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)


if __name__ == "__main__":
    sys.exit(main())
