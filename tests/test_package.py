"""The installed package: light to import, typed, and of one version."""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
from importlib import metadata, resources
from pathlib import Path

import penstock

PROBE = """
import json, sys, time
began = time.perf_counter()
import penstock
seconds = time.perf_counter() - began
print(json.dumps({"seconds": seconds, "modules": sorted({name.partition(".")[0] for name in sys.modules})}))
"""


def probe() -> dict:
    done = subprocess.run([sys.executable, "-c", PROBE], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def test_import_is_light() -> None:
    heavy = {"numba", "llvmlite", "cupy", "pyarrow", "typer", "rich", "networkx", "mpi4py"}
    assert heavy.isdisjoint(probe()["modules"])


def test_import_takes_well_under_half_a_second() -> None:
    assert min(probe()["seconds"] for _ in range(3)) < 0.5


def test_one_version() -> None:
    assert penstock.__version__ == metadata.version("penstock")


def test_types_are_shipped() -> None:
    assert (resources.files("penstock") / "py.typed").is_file()


def test_networkx_metadata() -> None:
    code = "import sys, _penstock, json; print(json.dumps([_penstock.get_info(), 'penstock' in sys.modules]))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    info, engine_loaded = json.loads(done.stdout)
    assert not engine_loaded
    assert info["backend_name"] == "penstock"
    assert {"pagerank", "triangles"} <= set(info["functions"])
    assert {"memory_limit", "device"} <= {
        name.split()[0] for name in info["functions"]["pagerank"]["additional_parameters"]
    }


def test_small_graphs_are_left_to_a_networkx_that_can() -> None:
    """Its own pagerank needs SciPy, and the extra brings it."""
    code = "import sys; sys.modules['scipy'] = None; import networkx as nx; nx.pagerank(nx.path_graph(3))"
    done = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True)
    assert "scipy" in done.stderr.splitlines()[-1]
    project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"]
    assert any(each.startswith("scipy") for each in project["optional-dependencies"]["networkx"])
