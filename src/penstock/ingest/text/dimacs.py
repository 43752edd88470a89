"""DIMACS shortest-path files: `c` comments, `p sp n m`, then `a u v weight` for each arc, ids 1 to n."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa

from penstock.errors import InputError
from penstock.ingest.source import VertexTable
from penstock.ingest.text.layout import Column, Layout
from penstock.ingest.text.lines import LineSource
from penstock.ingest.text.rows import quote
from penstock.ingest.text.sniff import infer
from penstock.ingest.text.textfile import TextFile

_SAMPLE = 1000


class DimacsSource(LineSource):
    """A `.gr` file."""

    def __init__(
        self,
        path: str | Path,
        *,
        columns: Sequence[str] | None = None,
        allow_empty: bool = False,
        block_size: int | None = None,
    ) -> None:
        file = TextFile(path)
        lines = file.lines(file.start)
        number, start = 1, None
        for number, offset, text in lines:
            if text.strip() and not text.lstrip().startswith(b"c"):
                self.vertex_count, arcs = _read_problem(file.path, number, text)
                start = offset + len(text) + 1
                break
        if start is None:
            raise InputError("ends before the problem line `p sp n m`", path=file.path, line=number)
        weights = []
        for _, _, text in lines:
            words = text.split()
            if len(words) == 4 and words[0] == b"a":
                weights.append(words[3])
            if len(weights) == _SAMPLE:
                break
        kind = infer(weights) or pa.int64()
        layout = Layout(
            4,
            source=1,
            target=2,
            columns={"weight": Column(3, pa.float64() if pa.types.is_floating(kind) else pa.int64())},
            comments=("c",),
            tag="a",
            lowest=1,
            highest=self.vertex_count,
            bounds=f"the declared range 1 to {self.vertex_count}",
        )
        super().__init__(
            [(file, start)],
            layout,
            declared=arcs,
            noun="arcs",
            columns=columns,
            allow_empty=allow_empty or self.vertex_count > 0,
            block_size=block_size,
        )
        self.undirected = False
        self.id_bounds = (1, self.vertex_count)

    def vertices(self) -> VertexTable:
        return VertexTable(range(1, self.vertex_count + 1))


def _read_problem(path: Path, number: int, text: bytes) -> tuple[int, int]:
    words = text.split()
    if words[0] != b"p":
        reason = f"begins with {quote(words[0])} where the problem line `p sp n m` is expected"
        raise InputError(reason, path=path, line=number)
    if len(words) > 1 and words[1] != b"sp":
        reason = f"the problem is {quote(words[1])}: only shortest-path files, `p sp n m`, are read"
        raise InputError(reason, path=path, line=number)
    if len(words) != 4 or not all(word.isdigit() for word in words[2:]):
        reason = f"{quote(text.strip())} is no problem line: it must be `p sp n m`"
        raise InputError(reason, path=path, line=number)
    return int(words[2]), int(words[3])


__all__ = ["DimacsSource"]
