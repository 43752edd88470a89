"""Run the benchmarks: `make bench`, or `python benchmarks/run.py disk --scale 20 --rounds 1`."""

from __future__ import annotations

import argparse
import shutil
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import balance
import building
import chunks
import disk
import gimv
import networkx_backend
import predictions
import wordcount

import gpu
import sorting
from penstock.observe.gpus import missing

BENCHMARKS = {
    "balance": balance.main,
    "building": building.main,
    "chunks": chunks.main,
    "disk": disk.main,
    "gimv": gimv.main,
    "networkx": networkx_backend.main,
    "predictions": predictions.main,
    "sorting": sorting.main,
    "wordcount": wordcount.main,
}
if missing() is None:
    BENCHMARKS["gpu"] = gpu.bench


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", default=list(BENCHMARKS), help=f"which of {', '.join(BENCHMARKS)}; all")
    parser.add_argument("--scale", type=int, default=22)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--folder", type=Path, default=Path("bench-data"))
    parser.add_argument("--keep", action="store_true", help="keep the graphs and files")
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    try:
        for name in arguments.names:
            BENCHMARKS[name](arguments.folder, arguments.scale, arguments.rounds)
    finally:
        if not arguments.keep:
            shutil.rmtree(arguments.folder, ignore_errors=True)


if __name__ == "__main__":
    main()
