"""A graph several times bigger than the memory allowed: made, stored and ranked from disk.

    python examples/demo.py            about half a minute, and half a gigabyte of disk for that long
    python examples/demo.py --keep     leave the files in ./demo

Everything is done by the `penstock` command, so that every step can be typed by hand.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import shutil
import subprocess
import sys
import textwrap
import time
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from penstock.config import format_size, parse_size

console = Console(highlight=False)


def say(text: str = "") -> None:
    console.print(text)


def step(number: int, text: str) -> None:
    say(f"\n[bold cyan]{number}[/]  [bold]{text}[/]")


def penstock(*words: str | Path, show: bool = True) -> str:
    """Run one command. Bars and summaries go to the terminal by themselves; what it prints as result is returned."""
    line = [str(word) for word in words]
    if show:
        console.print(shell(line), style="dim", markup=False, soft_wrap=True)
        say()
    done = subprocess.run([sys.executable, "-m", "penstock", *line], stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        sys.exit(done.returncode)
    return done.stdout


def shell(words: list[str]) -> str:
    """The command as one would type it, broken where a terminal of 100 columns ends."""
    lines = textwrap.wrap(f"penstock {' '.join(words)}", 88, break_on_hyphens=False, break_long_words=False)
    return "   $ " + " \\\n       ".join(lines)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Rank a graph bigger than the memory allowed.")
    parser.add_argument("--scale", type=int, default=20, help="2 to this power vertices (default 20)")
    parser.add_argument("--edge-factor", type=int, default=32, help="edges per vertex (default 32)")
    parser.add_argument("--memory-limit", default="64MB", help="for building and for ranking (default 64MB)")
    parser.add_argument("--folder", type=Path, default=Path("demo"), help="where the files go (default ./demo)")
    parser.add_argument("--keep", action="store_true", help="leave the files there")
    return parser.parse_args()


def start_up(folder: Path, limit: str) -> int:
    """Compile what is not compiled yet, and see how much memory a run takes before it has anything to do."""
    tiny = folder / "tiny.pen"
    penstock("generate", "kron", "--scale", "10", "--undirected", "-o", tiny, "--overwrite", "-q", show=False)
    for _ in range(2):  # the second time nothing is left to compile
        words = ("run", "pagerank", tiny, "--tier", "disk", "--memory-limit", limit, "--json", "-", "-q")
        figures = penstock(*words, show=False)
    return int(json.loads(figures)["peak_memory"])


def report(run: dict[str, Any], budget: int, base: int) -> Table:
    iterations, pages = run["iterations"], run["plans"][0]["topology_bytes"]
    each = run["bytes_read"] / iterations
    seconds = run["phases"]["run"]
    above = max(0, run["peak_memory"] - base)
    table = Table(box=None, show_header=False, padding=(0, 0, 0, 3))
    table.add_column(style="dim", no_wrap=True)
    table.add_column()
    table.add_row(
        "on disk", f"pages of {format_size(pages)}, {pages / budget:.1f} times the {format_size(budget)} allowed"
    )
    table.add_row(
        "iterations", f"{iterations} in {seconds:.1f} s, until the ranks changed by {run['residual']:.0e} in all"
    )
    table.add_row(
        "read",
        f"{format_size(run['bytes_read'])}: {format_size(each)} per iteration, {each / pages:.0%} of the pages; "
        "the rest was in memory",
    )
    table.add_row(
        "speed",
        f"{format_size(run['bytes_per_second'])}/s from disk, {run['arcs_per_second'] / 1e6:.0f} million arcs/s",
    )
    table.add_row(
        "memory",
        f"peak {format_size(run['peak_memory'])}: {format_size(base)} to start up, {format_size(above)} of the "
        f"{format_size(budget)} allowed",
    )
    return table


def demo(options: argparse.Namespace) -> None:
    folder, limit = options.folder, options.memory_limit
    budget = parse_size(limit)
    store, ranks, figures = folder / "kron.pen", folder / "ranks.parquet", folder / "run.json"
    say("[bold]Penstock: a graph several times bigger than its memory budget, ranked from disk[/]")

    step(1, "Warm up with a tiny graph: compile the kernels. Only the first run on a machine waits for this.")
    began = time.perf_counter()
    with console.status("compiling"):
        base = start_up(folder, limit)
    seconds = time.perf_counter() - began
    say(f"   Done in {seconds:.0f} s. A run with next to nothing to do peaks at {format_size(base)}.")

    step(2, f"Make a Kronecker graph of 2^{options.scale} vertices, sorting on disk what does not fit in {limit}.")
    shape = ("--scale", str(options.scale), "--edge-factor", str(options.edge_factor), "--undirected")
    penstock("generate", "kron", *shape, "-o", store, "--memory-limit", limit, "--overwrite")
    facts = json.loads(penstock("info", store, "--json", show=False))
    pages = facts["directions"]["out"]["page_bytes"]
    say(f"   Its pages are {format_size(pages)}: {pages / budget:.1f} times the memory they will be read with.")

    step(3, "Rank it: each iteration streams the pages from disk past the ranks, which stay in memory.")
    table = penstock(
        "run", "pagerank", store, "--memory-limit", limit, "-o", ranks, "--json", figures, "--top", "10", "--overwrite"
    )
    say("\n   The ten vertices where a random surfer is most often:")
    print(table.rstrip())

    step(4, "What happened")
    run = json.loads(figures.read_text())
    console.print(report(run, budget, base))


def remove(folder: Path) -> None:
    for name in ("tiny.pen", "kron.pen", "ranks.parquet", "run.json"):
        if (folder / name).is_dir():
            shutil.rmtree(folder / name)
        else:
            (folder / name).unlink(missing_ok=True)
    with contextlib.suppress(OSError):  # something else is in it
        folder.rmdir()
    say("\n[dim]The files of the demo are removed; --keep would leave them.[/]")


def main() -> None:
    options = arguments()
    options.folder.mkdir(parents=True, exist_ok=True)
    try:
        demo(options)
    except KeyboardInterrupt:
        sys.exit(130)
    finally:
        if not options.keep:
            remove(options.folder)
    if options.keep:
        say(f"\nThe files are in {options.folder}. Try: penstock info {options.folder / 'kron.pen'}")


if __name__ == "__main__":
    main()
