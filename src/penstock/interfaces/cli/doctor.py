"""`penstock doctor`: what this machine offers, and what would slow Penstock down."""

from __future__ import annotations

import json
import os
import platform
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from penstock.config import available_memory, available_threads, format_size
from penstock.interfaces.cli.summary import tell
from penstock.version import VERSION

if TYPE_CHECKING:
    from penstock.engine.rates import Rates

PACKAGES = ("numpy", "numba", "llvmlite", "pyarrow", "xxhash", "typer", "rich", "tbb")
EXTRAS = {
    "networkx": "its graphs and its backend",
    "matplotlib": "penstock plot",
    "pandas": "to_pandas",
    "polars": "to_polars",
    "scipy": "sparse matrices",
    "mpi4py": "several nodes",
}
HUGE_PAGES = Path("/sys/kernel/mm/transparent_hugepage/enabled")
MARKS = {"ok": "[green]ok[/]", "warn": "[yellow]warn[/]", "bad": "[red]bad[/]"}


@dataclass(frozen=True)
class Finding:
    """One line: what was looked at, how it is, and what to do if it is not well."""

    what: str
    state: str
    text: str
    values: dict[str, Any] | None = None
    """Figures behind the text."""


def doctor(
    measure: Annotated[
        bool | None,
        typer.Option(
            "--measure/--no-measure",
            help="Measure how fast it reads and computes, for predictions (the default where it never was), or do not.",
            show_default=False,
        ),
    ] = None,
    threads: Annotated[
        int | None,
        typer.Option("--threads", metavar="N", min=1, help="Compute threads to measure.", show_default=False),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """Look at this machine and the folder you are in; exit 1 if Penstock cannot work here.

    What it measures takes about half a minute, needs an idle machine, and is kept for explain.
    """
    findings = examine(Path.cwd())
    well = all(finding.state != "bad" for finding in findings)
    findings += _rates(Path.cwd(), measure if well else False, threads)
    findings += gpus(measure if well else False)
    if as_json:
        typer.echo(json.dumps([asdict(finding) for finding in findings], indent=2))
    else:
        _show(findings)
    if any(finding.state == "bad" for finding in findings):
        raise typer.Exit(1)


def examine(folder: Path) -> list[Finding]:
    return [
        _python(),
        *_packages(),
        _extras(),
        *_variables(),
        _threading_layer(),
        Finding("cores", "ok", f"{available_threads()} of {os.cpu_count() or 1} may be used"),
        _memory(),
        _huge_pages(),
        _direct_io(folder),
        _disk(folder),
    ]


def _rates(folder: Path, measure: bool | None, threads: int | None) -> list[Finding]:
    """The rates kept for this machine, or measured now; and the lines about them."""
    from penstock import api
    from penstock.config import settings
    from penstock.engine import rates

    kept = rates.load(folder, settings(threads=threads).threads)
    if measure or (measure is None and kept is None):
        tell("measuring for about half a minute ...")
        try:
            kept = api.measure(folder, **({} if threads is None else {"threads": threads}))
        except OSError as error:
            return [Finding("rates", "warn", f"not measured: {error.strerror or error}")]
    if kept is None:
        return [Finding("rates", "warn", "not measured here: run penstock doctor --measure")]
    measured = f"{kept.date}, {kept.threads} threads, kept in {rates.kept_in()}"
    return [
        Finding("rates", "ok", measured, kept.as_dict()),
        *(Finding(what, "ok", text) for what, text in _in_words(kept)),
    ]


def _in_words(rates: Rates) -> Iterator[tuple[str, str]]:
    def nanoseconds(seconds: float) -> str:
        return f"{seconds * 1e9:.2f} ns"

    yield "disk", f"{rates.disk / 1e9:.2f} GB/s direct, {rates.touch / 1e9:.2f} GB/s of pages read and looked at"
    yield "into memory", f"{rates.load / 1e9:.2f} GB/s of pages; memory itself {rates.memory / 1e9:.1f} GB/s"
    for width, curve in ((4, rates.gather4), (8, rates.gather8)):
        points = ", ".join(
            f"{size >> 10 if size < 1 << 20 else size >> 20} {'KiB' if size < 1 << 20 else 'MiB'} {seconds * 1e9:.1f}"
            for size, seconds in zip(rates.sizes, curve, strict=True)
        )
        yield f"gather {width} bytes", f"ns per arc by size of the vector: {points}"
    yield "vertex", f"{nanoseconds(rates.vertex)} to update, {nanoseconds(rates.emit)} to emit"
    yield "arc", f"{nanoseconds(rates.push)} to push, {nanoseconds(rates.sweep)} to sweep, besides the gather"
    yield "page", f"{rates.page * 1e6:.1f} us to hand out; a byte read adds {nanoseconds(rates.stream)} to a busy pass"
    yield "start", f"{rates.start:.2f} s until a new process computes"


def gpus(measure: bool | None) -> list[Finding]:
    """What each GPU is and how fast; or why there is none. Where packages are missing, none is imported."""
    from penstock.observe.gpus import driver, missing

    reason = missing()
    if reason is None:
        try:
            from penstock.memory import gpu

            reason = gpu.why_not()
        except Exception as error:  # libraries that do not fit together fail in many ways, and the CPU needs none
            return [Finding("gpu", "warn", f"cannot be used: {type(error).__name__}: {error}".splitlines()[0])]
    if reason is not None:
        return [Finding("gpu", "ok", f"none: {reason}")]
    found, version = [], driver()
    for device in range(gpu.count()):
        what = f"gpu {device}"
        try:
            with gpu.using(device):
                free, total = gpu.free_memory()
            text = f"{gpu.name(device)}, {format_size(free)} free of {format_size(total)}"
            found.append(Finding(what, "ok", f"{text}; {f'driver {version}, ' if version else ''}{gpu.versions()}"))
            found += _gpu_rates(device, False if gpu.SIMULATED else measure)
        except Exception as error:
            found.append(Finding(what, "warn", f"cannot be used: {type(error).__name__}: {error}".splitlines()[0]))
    return found


def _gpu_rates(device: int, measure: bool | None) -> list[Finding]:
    from penstock.engine import rates
    from penstock.memory import gpu

    what = f"gpu {device} rates"
    kept = rates.load_gpu(gpu.name(device))
    if measure or (measure is None and kept is None):
        from penstock.engine.gpu import calibrate

        tell(f"measuring {gpu.name(device)} for some seconds ...")
        kept = calibrate.measure(device)
        rates.save_gpu(kept)
    if kept is None:
        return [Finding(what, "warn", "not measured here: run penstock doctor --measure")]
    text = (
        f"{kept.copy / 1e9:.1f} GB/s from pinned memory, {kept.memory / 1e9:.0f} GB/s of its own, "
        f"{kept.launch * 1e6:.1f} us to start a kernel"
    )
    each = ", ".join(
        f"{size >> 20} MiB {1e-9 / seconds:.1f}" for size, seconds in zip(kept.sizes, kept.gather, strict=True)
    )
    return [
        Finding(what, "ok", text, kept.as_dict()),
        Finding(f"gpu {device} gather", "ok", f"billions of arcs a second by size of the vector: {each}"),
    ]


def _python() -> Finding:
    return Finding("penstock", "ok", f"{VERSION}, Python {platform.python_version()}, {platform.platform(terse=True)}")


def _packages() -> list[Finding]:
    found = []
    for name in PACKAGES:
        try:
            found.append(Finding(name, "ok", metadata.version(name)))
        except metadata.PackageNotFoundError:
            missing = "not installed: pip install tbb makes parallel regions cheaper"
            found.append(Finding(name, "warn", missing) if name == "tbb" else Finding(name, "bad", "not installed"))
    return found


def _extras() -> Finding:
    """Packages that some features need; nothing is wrong without them."""
    there, missing = [], []
    for name, use in EXTRAS.items():
        try:
            there.append(f"{name} {metadata.version(name)}")
        except metadata.PackageNotFoundError:
            missing.append(f"{name} ({use})")
    shown = [", ".join(there)] if there else []
    return Finding("extras", "ok", "; ".join(shown + ([f"not installed: {', '.join(missing)}"] if missing else [])))


def _variables() -> list[Finding]:
    from penstock.interfaces.cli.config import strangers

    return [Finding("variable", "warn", sentence) for sentence in strangers(os.environ)]


def _threading_layer() -> Finding:
    """Numba chooses its layer at the first parallel kernel, so one is run."""
    what = "threading layer"
    try:
        from penstock.memory.device import threading_layer

        layer = threading_layer()
    except Exception as error:
        return Finding(what, "bad", f"no kernel can be run: {type(error).__name__}: {error}".splitlines()[0])
    if layer == "tbb":
        return Finding(what, "ok", layer)
    try:
        advice = f"tbb {metadata.version('tbb')} is installed, but its libtbb.so.12 cannot be loaded"
    except metadata.PackageNotFoundError:
        advice = "pip install tbb"
    # workqueue aborts when two threads meet in it; omp is merely slower than tbb.
    return Finding(what, "warn", f"{layer}, {'the slowest' if layer == 'workqueue' else 'slower than tbb'}: {advice}")


def _memory() -> Finding:
    allowed, machine = available_memory(), os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    text = format_size(allowed)
    if allowed < machine:
        text += f" by the control group's limit, of {format_size(machine)} in the machine"
    return Finding("memory", "ok", f"{text}; memory_limit is {format_size(allowed * 8 // 10)} if you set none")


def _huge_pages() -> Finding:
    try:
        setting = HUGE_PAGES.read_text()
    except OSError:
        return Finding("huge pages", "warn", "not offered here: direct reads may be two to three times slower")
    chosen = setting[setting.find("[") + 1 : setting.find("]")]
    if chosen == "never":
        return Finding(
            "huge pages", "warn", f"switched off: write madvise to {HUGE_PAGES} for two to three times faster reads"
        )
    return Finding("huge pages", "ok", chosen)


def _direct_io(folder: Path) -> Finding:
    what = "direct I/O"
    try:
        with tempfile.NamedTemporaryFile(dir=folder, prefix=".penstock-doctor-") as file:
            file.write(bytes(1 << 16))
            file.flush()
            os.fsync(file.fileno())
            direct = _reads_directly(Path(file.name))
    except OSError as error:
        return Finding(what, "warn", f"not tried: cannot write in {folder}: {error.strerror}")
    if direct:
        return Finding(what, "ok", f"works in {folder}")
    return Finding(what, "warn", f"refused in {folder}: pages are read through the kernel's cache")


def _reads_directly(path: Path) -> bool:
    from penstock.memory.buffers import allocate
    from penstock.memory.extents import StripedFile

    file = StripedFile([path])
    try:
        file.read_into(0, 0, allocate(1 << 16))
        return file.direct
    finally:
        file.close()


def _disk(folder: Path) -> Finding:
    usage = shutil.disk_usage(folder)
    state = "warn" if usage.free < 1 << 30 else "ok"
    return Finding("free disk", state, f"{format_size(usage.free)} of {format_size(usage.total)} in {folder}")


def _show(findings: list[Finding]) -> None:
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column(style="dim", no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for finding in findings:
        table.add_row(finding.what, MARKS[finding.state], escape(finding.text))
    Console(highlight=False).print(table)
