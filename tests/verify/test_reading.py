"""Result files are read back as they were written."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graphs import make_graph
from penstock.errors import InputError, UsageError
from penstock.result import Result
from penstock.verify import CHECKERS, read_result

ENDINGS = ["parquet", "csv", "tsv", "json", "arrow"]


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("ids", [[3, 1, 2, 9], ["10", "007", "null", ""], [(1 << 63) + 1, (1 << 63) + 2, 4, 5]])
def test_there_and_back(tmp_path: Path, ending: str, ids: list[Any]) -> None:
    a, b, c, _ = ids  # the last has no edges
    with make_graph(tmp_path, [a, b], [b, c], vertices=ids) as graph:
        none = np.iinfo(np.uint32).max
        numbers = [graph.store.ids.number(vertex) for vertex in (a, b, c)]
        levels, parents = np.full(3, none, np.uint32), np.full(3, none, np.uint32)
        levels[numbers], parents[numbers] = [0, 1, 2], [numbers[0], numbers[0], numbers[1]]
        values = {"level": levels, "parent": parents}
        result = Result(graph.store.ids, values, dict.fromkeys(values), {}, references=["parent"])
        table = read_result(result.write(tmp_path / f"r.{ending}"), graph)
        assert table["vertex"].to_pylist() == result.table["vertex"].to_pylist()
        assert table["parent"].to_pylist() == result.table["parent"].to_pylist()
        assert CHECKERS["bfs"](graph, table, source=[a]) == []
        assert CHECKERS["bfs"](graph, table, source=[b]) != []


def test_what_is_no_result(tmp_path: Path) -> None:
    with make_graph(tmp_path, [1], [2]) as graph:
        with pytest.raises(UsageError, match=r"does not end in one of \.parquet"):
            read_result(tmp_path / "r.doc", graph)
        with pytest.raises(InputError, match="no such file"):
            read_result(tmp_path / "r.csv", graph)
        for ending in ENDINGS:
            path = tmp_path / f"bad.{ending}"
            path.write_text("vertex,rank\n1,2\nx\n".replace(",", "\t" if ending == "tsv" else ","))
            with pytest.raises(InputError, match=r"no readable result|no JSON"):
                read_result(path, graph)
