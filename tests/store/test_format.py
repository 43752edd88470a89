"""FORMAT.md says what is: its tables of fields, and every byte of its example."""

from __future__ import annotations

import re
from importlib.resources import files
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from penstock.store.columns import COLUMN_RECORD
from penstock.store.index import RECORD
from penstock.store.manifest import FEATURES, read_manifest

from .graphs import make

TEXT = (files("penstock.store") / "FORMAT.md").read_text()
KINDS = {"<u8": "u64", "<u4": "u32", "<u2": "u16", "|u1": "u8"}


def section(title: str) -> str:
    return TEXT.split(f"\n## {title}\n")[1].split("\n## ")[0]


@pytest.mark.parametrize(("title", "dtype"), [("The index", RECORD), ("Edge columns", COLUMN_RECORD)])
def test_tables_of_fields(title: str, dtype: np.dtype) -> None:
    rows = re.findall(r"^\| (\d+) \| `(\w+)` \| (u\d+) \|", section(title), re.MULTILINE)
    assert dtype.fields is not None
    told = [(str(place), name, KINDS[kind.str]) for name, (kind, place, *_) in dtype.fields.items()]
    assert rows == told


def test_the_example(tmp_path: Path) -> None:
    store = make(
        tmp_path / "g.pen",
        np.array([10, 10, 20]),
        np.array([20, 30, 30]),
        columns={"w": np.array([1.5, -2.0, 0.25])},
        types={"w": pa.float64()},
    )
    lines = re.findall(r"^(\S+)\s+0x(\w+)  ((?:[0-9a-f]{2} ?)+)$", section("An example"), re.MULTILINE)
    assert len(lines) == 17
    for name, place, told in lines:
        data, at = (store / name).read_bytes(), int(place, 16)
        assert data[at : at + len(bytes.fromhex(told))].hex(" ") == told, (name, place)


def test_every_field_of_a_manifest_is_explained(tmp_path: Path) -> None:
    explained = section("meta.json")
    assert all(f"`{field}`" in explained for field in read_manifest(make(tmp_path / "g.pen")))
    assert all(f"`{feature}`" in explained for feature in FEATURES)
