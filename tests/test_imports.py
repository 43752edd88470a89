"""Imports point only to lower layers or into their own folder, and only one module knows Numba and CUDA."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

SRC = Path(__file__).parents[1] / "src"

# In the order of the data flow. A module may import lower numbers, and its own folder.
LAYERS = {
    "config": 0,
    "errors": 0,
    "options": 0,
    "version": 0,
    "observe": 0,
    "store": 1,
    "memory": 2,
    "cluster": 3,
    "profile": 3,
    "sorting": 4,
    "rows": 4,
    "networks": 4,
    "plots": 4,
    "vector": 4,
    "graph": 5,
    "result": 5,
    "edges": 5,
    "ingest": 5,
    "engine": 5,
    "mapreduce": 5,
    "algorithms": 6,
    "export": 6,
    "given": 6,
    "apps": 6,
    "verify": 6,
    "api": 7,
    "interfaces": 8,
}
FREE = 0  # free to all, and to one another
TOP = 9  # the package itself: it gathers the public names

COMPILERS = {"numba", "llvmlite", "cupy", "cupyx", "numba_cuda", "numba_cuda_mlir"}
DOOR = "penstock.memory.device"
"""Free to all like config: every layer has kernels. It may therefore import no other part of Penstock."""
GPU_DOOR = "penstock.memory.gpu"
"""It may import what is free to all, and is part of its layer to others: only executors open it."""
STAGING = "penstock.memory.staging"
"""A part of that door in a file of its own, under the same rule."""


def imported(tree: ast.AST, package: str) -> Iterator[tuple[int, str]]:
    """Line and full name of all that is imported anywhere in the tree: in functions, too, and by `import_module`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                around = package.split(".")[: len(package.split(".")) - node.level + 1]
                base = ".".join([*around, base] if base else around)
            yield from ((node.lineno, f"{base}.{alias.name}") for alias in node.names)
        elif isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant):
            called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if called in ("import_module", "__import__") and isinstance(node.args[0].value, str):
                yield node.lineno, node.args[0].value


def within(module: str, package: str) -> bool:
    return module == package or module.startswith(f"{package}.")


def layer(module: str) -> tuple[str, int]:
    """The folder a module of Penstock belongs to, and its number. Names of the package itself are on top."""
    if within(module, DOOR):
        return DOOR, FREE
    part = module.split(".")[1] if "." in module else ""
    return (part, LAYERS[part]) if part in LAYERS else ("", TOP)


def violations(source: str, module: str, *, is_package: bool = False) -> list[str]:
    """What is wrong with the imports of a module, one sentence each."""
    package = module if is_package else module.rpartition(".")[0]
    folder, number = layer(module)
    found = []
    for line, name in imported(ast.parse(source), package):
        if name.split(".")[0] in COMPILERS and module != DOOR and not within(module, GPU_DOOR):
            found.append(f"{module}, line {line}: imports {name}; only {DOOR} and {GPU_DOOR} may")
        if name.split(".")[0] == "penstock" and number != TOP:
            other, other_number = layer(name)
            allowed = other == folder or other_number < number or number == other_number == FREE
            if within(module, GPU_DOOR) or module == STAGING:
                allowed = other_number == FREE or within(name, GPU_DOOR) or name == STAGING
            if not allowed:
                found.append(f"{module} (layer {number}), line {line}: imports {name} (layer {other_number})")
    return found


def modules() -> list[tuple[str, Path]]:
    paths = sorted((SRC / "penstock").rglob("*.py"))
    names = [".".join(path.relative_to(SRC).with_suffix("").parts).removesuffix(".__init__") for path in paths]
    return list(zip(names, paths, strict=True))


def test_the_package_has_modules() -> None:
    assert {"penstock", "penstock.config", DOOR} <= {name for name, _ in modules()}


def test_every_module_has_a_layer() -> None:
    allowed = {"", "__main__", *LAYERS}
    strangers = [name for name, _ in modules() if (name.split(".")[1] if "." in name else "") not in allowed]
    assert not strangers, f"not in the table of layers: {strangers}"


@pytest.mark.parametrize(("name", "path"), modules(), ids=[name for name, _ in modules()])
def test_imports_point_down(name: str, path: Path) -> None:
    assert not violations(path.read_text(), name, is_package=path.name == "__init__.py")


def test_the_door_to_the_gpu_stays_shut() -> None:
    # CUDA's libraries take a second: whoever wants no GPU does not pay for it.
    code = (
        "import sys, penstock.api, penstock.engine.engine, penstock.engine.atomics, penstock.algorithms.wcc\n"
        "assert not [name for name in sys.modules if name.split('.')[0] in ('cupy', 'numba_cuda')]\n"
        "assert not {'penstock.memory.gpu', 'numba.cuda', 'pynvml'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_door_opens_on_nothing_else() -> None:
    # Python runs memory/__init__.py before device.py: what stands there would be loaded by the layers below, too.
    source = (SRC / "penstock" / "memory" / "__init__.py").read_text()
    assert not [name for _, name in imported(ast.parse(source), "penstock.memory") if name.startswith("penstock")]


def test_networkx_metadata_imports_nothing() -> None:
    for path in (SRC / "_penstock").rglob("*.py"):
        names = {name.split(".")[0] for _, name in imported(ast.parse(path.read_text()), "_penstock")}
        assert names <= {"__future__", "typing", "_penstock"}


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("penstock.store.page", "import penstock.memory.ledger"),
        ("penstock.store.page", "from penstock.memory import ledger"),
        ("penstock.store.page", "from penstock import memory"),
        ("penstock.store.page", "from ..memory.ledger import Ledger"),
        ("penstock.store.page", "from .. import memory"),
        ("penstock.store.page", "def late():\n    from penstock.sorting import radix"),
        ("penstock.store.page", "if TYPE_CHECKING:\n    from penstock.graph import Graph"),
        ("penstock.store.page", "importlib.import_module('penstock.ingest.text.edge_list')"),
        ("penstock.store.page", "import penstock"),
        ("penstock.store.page", "from penstock import pagerank"),
        ("penstock.graph", "from penstock.ingest.text.edge_list import parse"),
        ("penstock.ingest.text.edge_list", "from penstock.graph import Graph"),
        ("penstock.config", "from penstock.store import page"),
        ("penstock.observe.stats", "from penstock.store import page"),
        ("penstock.memory.device", "from penstock.memory.ledger import Ledger"),
        ("penstock.memory.gpu.arrays", "from penstock.memory.ledger import Ledger"),
        ("penstock.memory.gpu", "from penstock.store.page import Page"),
        ("penstock.store.page", "from penstock.memory import gpu"),
        ("penstock.memory.frames", "import cupy"),
        ("penstock.algorithms.pagerank", "from numba import njit"),
        ("penstock.memory.stream", "import numba.core"),
        ("penstock.interfaces.cli", "def gpu():\n    import cupy"),
        ("penstock", "from llvmlite import ir"),
    ],
)
def test_a_violation_is_found(module: str, source: str) -> None:
    assert len(violations(source, module)) == 1


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("penstock.memory.stream", "from penstock.store.page import Page\nfrom .ledger import Ledger"),
        ("penstock.memory.device", "from numba import njit\nfrom llvmlite import ir"),
        ("penstock.memory.gpu.door", "import cupy\nfrom numba import cuda\nfrom penstock.memory.device import inlined"),
        ("penstock.memory.gpu", "from penstock.errors import UsageError\nfrom penstock.observe.gpus import missing"),
        ("penstock.engine.gpu.combine", "from penstock.memory.gpu import cuda"),
        ("penstock.store.encodings", "from penstock.memory.device import kernel"),
        ("penstock.store.encodings", "from penstock.memory import device"),
        ("penstock.store.page", "from penstock import config, errors\nfrom penstock.observe.progress import progress"),
        ("penstock.errors", "def late():\n    from penstock.config import format_size"),
        ("penstock.interfaces.cli", "from penstock.algorithms.pagerank import pagerank"),
        ("penstock", "from penstock.interfaces import cli\nfrom penstock.graph import Graph"),
        ("penstock.store.page", "import numpy\nfrom numbagg import move_mean"),
    ],
)
def test_what_is_allowed_passes(module: str, source: str) -> None:
    assert not violations(source, module)


def test_relative_imports_of_a_package_start_at_itself() -> None:
    assert not violations("from .page import Page", "penstock.store", is_package=True)
    assert violations("from ..memory import ledger", "penstock.store", is_package=True)
