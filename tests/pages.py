"""The code blocks of Markdown pages, run as a reader would who types them one after the other in one folder."""

from __future__ import annotations

import contextlib
import gzip
import logging
import os
import re
import shlex
import shutil
import subprocess
import sys
import types
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

ROOT = Path(__file__).parents[1]
COMMANDS = ("", "bash", "sh", "console")
"""The languages whose lines are typed at a prompt. In `console` those are the lines after `$ `."""
SHOWN = ("text", "json")
"""Those that are only looked at."""
NOT_RUN: dict[str, str] = {
    r"(python -m )?pip install ": "it would change the environment that the tests run in",
    r"make [a-z-]+": "it runs these tests, or minutes",
    r"python benchmarks/": "it takes minutes",
    r"python examples/": "tests of their own run the examples",
    r"python -m pytest ": "tests run no tests",
    r"(NETWORKX\w+=\S+ )+(python -m )?pytest ": "tests run no tests",
    r"mpi(exec|run) ": "it starts other processes, which tests/cluster does",
    r"spark-submit ": "Spark is not among what the tests need",
    r"penstock --install-completion": "it would change the shell",
    r"penstock doctor .*--measure": "it takes half a minute on an idle machine",
    r"penstock bench": "it takes minutes",
    r"penstock .*--device gpu": "it needs a GPU",
}
"""The only commands that are not run, and why."""
SMALL = 8
"""The scale of graphs that would take longer than they are worth here, if a page has them larger than 14."""


@dataclass(frozen=True)
class Block:
    """One fenced block: what is on the lines after `line`."""

    language: str
    line: int
    text: str


def blocks_of(page: Path) -> list[Block]:
    found: list[Block] = []
    fence: re.Match[str] | None = None
    lines: list[str] = []
    for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1):
        if fence is None:
            fence = re.match(r"(\s*)(```+)(\w*)", line)
            lines, at = [], number
        elif line.strip() == fence[2]:
            found.append(Block(fence[3], at, "\n".join(lines)))
            fence = None
        else:
            lines.append(line.removeprefix(fence[1]))
    assert fence is None, f"{page.name}: a block is not closed"
    return found


def commands_of(block: Block) -> list[str]:
    """What is typed: lines that go on are joined, comments left out."""
    text = block.text
    if block.language == "console":
        text = "\n".join(line[2:] for line in text.splitlines() if line.startswith("$ "))
    joined = text.replace("\\\n", " ")
    lines = (re.sub(r"(^|\s)#.*", "", line).strip() for line in joined.splitlines())
    return [" ".join(line.split()) for line in lines if line]


def excuse(command: str) -> str | None:
    """Why this one is not run, if it is not. What it names must be there all the same."""
    found = next((why for pattern, why in NOT_RUN.items() if re.match(pattern, command)), None)
    words = command.split()
    if found and words[0] == "make":
        targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.M)
        assert words[1] in targets, f"{command}: there is no such target"
    if found and len(words) > 1 and re.match(r"(benchmarks|examples)/", words[1]):
        assert (ROOT / words[1]).is_file(), f"{command}: there is no such file"
    return found


def smaller(scale: re.Match[str]) -> str:
    return scale[0] if int(scale[1]) <= 14 else scale[0].replace(scale[1], str(SMALL))


class Reader:
    """Somebody who goes through a page in a folder, with the files at hand that pages speak of."""

    def __init__(self, page: Path, folder: Path, names: dict[str, Any] | None = None) -> None:
        self.page, self.folder = page, folder
        self.module = types.ModuleType("page_" + re.sub(r"\W", "_", page.stem))
        self.module.__dict__.update(names or {})
        self.module.__dict__["print"] = self._print
        self.printed: dict[int, list[str]] = {}

    def read(self) -> None:
        script = self.folder / f"{self.module.__name__}.py"
        blocks = blocks_of(self.page)
        self.module.__file__ = str(script)
        lines = [""] * self.page.read_text(encoding="utf-8").count("\n")
        for block in (block for block in blocks if block.language == "python"):
            text = block.text.splitlines()
            lines[block.line : block.line + len(text)] = text
        script.write_text("\n".join(lines))  # where errors, and the compiler, look for what a line says
        sys.modules[self.module.__name__] = self.module
        try:
            for block in blocks:
                if block.language == "python":
                    self._python(block, script)
                elif block.language in COMMANDS:
                    for command in commands_of(block):
                        self._type(command, block)
                else:
                    assert block.language in SHOWN, f"{self._at(block)}: nothing runs {block.language!r}"
        finally:
            del sys.modules[self.module.__name__]
        self._kept(script.read_text().splitlines())

    def _at(self, block: Block) -> str:
        return f"{self.page.name}:{block.line}"

    def _print(self, *values: Any, **options: Any) -> None:
        at = sys._getframe(1).f_lineno
        self.printed.setdefault(at, []).append(" ".join(map(str, values)))
        print(*values, **options)

    def _kept(self, lines: list[str]) -> None:
        """What stands behind a `print` is what it printed."""
        for number, line in enumerate(lines, 1):
            if promise := re.match(r"\s*print\(.*\)  # (.*)$", line):
                assert self.printed.get(number) == [promise[1]], f"{self.page.name}:{number}: {line.strip()}"

    def _python(self, block: Block, script: Path) -> None:
        for made in re.findall(r"""(?:ingest|generate)\([^()]*["'](\w+\.pen)["']""", block.text):
            self._remove(made)
        code = re.sub(r"\bscale=(\d+)", smaller, block.text)
        exec(compile("\n" * block.line + code, str(script), "exec"), self.module.__dict__)

    def _type(self, command: str, block: Block) -> None:
        if excuse(command):
            return
        command = re.sub(r"--scale (\d+)", smaller, command)
        command = re.sub(r"(-n|-m|--rows|--columns) \d{4,}", r"\1 100", command)
        command = re.sub(r"--samples \d+", f"--samples {SMALL}", command)
        command = re.sub(r"^penstock doctor$", "penstock doctor --no-measure", command)
        written = r"-o|--output|--json|--trace|--report" if re.search(r"penstock (run|mr) ", command) else "-o|--output"
        for target in re.findall(rf" (?:{written}) (\S+)", command):
            self._remove(target)
        if (simple := re.match(r"((?:\w+=\S+ )*)penstock ", command)) and not re.search(r"[|<>]", command):
            given = dict(each.split("=", 1) for each in simple[1].split())
            done = CliRunner().invoke(app(), shlex.split(command[simple.end() :]), env=given)
            assert done.exit_code == 0, f"{self._at(block)}: {command}\n{done.output}"
            return
        assert re.search(r"\bpenstock\b", command) or command.startswith("python "), (
            f"{self._at(block)}: {command!r} is no command that the tests know; is the block `text`?"
        )
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        typed = subprocess.run(
            ["bash", "-c", f"set -o pipefail; {command}"], env=os.environ | {"PATH": path}, capture_output=True,
            text=True, check=False,
        )  # fmt: skip
        assert typed.returncode == 0, f"{self._at(block)}: {command}\n{typed.stderr}"

    def _remove(self, name: str) -> None:
        """Every page begins where nothing of what it makes is there."""
        target = self.folder / name
        if target.is_dir():
            shutil.rmtree(target)
        else:
            target.unlink(missing_ok=True)


def app() -> Any:
    """The command line, which is loaded when the first command is typed."""
    from penstock.interfaces.cli.app import app

    return app


def prepare(folder: Path) -> Path:
    """The files that pages speak of, small. Ids are 0 to 49, among them 7 and 42."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.csv as csv
    import pyarrow.parquet as pq

    import penstock as pk

    rng = np.random.default_rng(7)
    source, target = np.concatenate([np.array([[7, 42, 42, 0], [42, 7, 0, 42]]), rng.integers(0, 50, (2, 196))], axis=1)
    length = rng.integers(1, 9, 200)
    lines = "".join(f"{u}\t{v}\n" for u, v in zip(source.tolist(), target.tolist(), strict=True))
    (folder / "edges.txt").write_text("# FromNodeId\tToNodeId\n" + lines)
    measured = (f"{u}\t{v}\t{w}\t{w}.0\n" for u, v, w in zip(source, target, length, strict=True))
    head = "source\ttarget\tlength\tweight\n"
    (folder / "edges.txt.gz").write_bytes(gzip.compress((head + "".join(measured)).encode()))
    (folder / "log.gz").write_bytes(
        gzip.compress("".join(f"x\t{u}\ty\tz\t{v}\n" for u, v in zip(source, target, strict=True)).encode())
    )
    edges = pa.table({"source": source, "target": target, "weight": length.astype(float), "length": length})
    pq.write_table(edges, folder / "edges.parquet")
    csv.write_csv(edges, folder / "edges.csv")
    csv.write_csv(edges.select(["source", "target"]), folder / "friends.csv")
    csv.write_csv(pa.table({"id": np.arange(60), "age": np.arange(60) % 80}), folder / "people.csv")
    (folder / "parts").mkdir()
    (folder / "parts" / "_SUCCESS").touch()  # as Spark leaves it
    pay = edges.rename_columns(["payer", "payee", "amount", "length"])
    for number in range(2):
        pq.write_table(pay.slice(100 * number, 100), folder / "parts" / f"part-{number}.parquet")
    (folder / "program.py").write_text("import networkx as nx\nprint(len(nx.pagerank(nx.path_graph(9))))\n")
    (folder / "ids.txt").write_text("7\n42\n")
    (folder / "books").mkdir()
    for name, text in (("one.txt", "the pipe and the water\n"), ("two.txt", "the water and the turbine\nthe end\n")):
        (folder / "books" / name).write_text(text)
    pq.write_table(pa.table({"country": ["at", "de", "at", "fr"]}), folder / "visits.parquet")
    np.save(folder / "points.npy", np.concatenate([rng.normal(c, 0.1, (20, 2)) for c in (0, 5, 9)]))
    with pk.ingest(folder / "edges.parquet", folder / "web.pen", columns=["weight", "length"]) as graph:
        pk.pagerank(graph).write(folder / "ranks.parquet")
        pk.bfs(graph, source=42).write(folder / "levels.parquet")
    shutil.copytree(folder / "web.pen", folder / "roads.pen")
    genes = edges.append_column("correlation", pa.array(rng.random(200)))
    pk.ingest(genes, folder / "genes.pen", undirected=True, columns=["correlation"], merge="max").close()
    figures = ["run", "pagerank", f"{folder}/web.pen", "--json", f"{folder}/run.json", "--trace", f"{folder}/run.trace"]
    assert CliRunner().invoke(app(), figures).exit_code == 0
    return folder


def read(page: Path, prepared: Path, folder: Path, monkeypatch: pytest.MonkeyPatch, **names: Any) -> None:
    """Go through a page in a copy of the prepared folder."""
    shutil.copytree(prepared, folder, dirs_exist_ok=True)
    monkeypatch.chdir(folder)
    with unchanged():
        Reader(page, folder, names).read()


@contextlib.contextmanager
def unchanged() -> Iterator[None]:
    """What a page may tell NetworkX and its logger is forgotten at its end."""
    import networkx as nx

    # Where Penstock is on the path but not installed, NetworkX does not know of it.
    ours, logger = getattr(nx.config.backends, "penstock", None), logging.getLogger("networkx")
    before, level, handlers = dict(ours or {}), logger.level, list(logger.handlers)
    try:
        yield
    finally:
        for name, value in before.items():
            setattr(ours, name, value)
        logger.setLevel(level)
        logger.handlers[:] = handlers


__all__ = ["COMMANDS", "NOT_RUN", "ROOT", "SHOWN", "Block", "Reader", "blocks_of", "commands_of", "prepare", "read"]
