"""The contract of everything edges can come from: files, tables, objects, generators.

A source yields chunks in input order, however many threads parse them, so that the store is the same for every
thread count. It speaks the user's ids; renumbering happens later.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, TypeAlias

import numpy as np
import pyarrow as pa

Ids: TypeAlias = np.ndarray | pa.Array
"""Integer ids: an int64, uint64 or uint32 array. String ids: an Arrow string or large_string array."""


@dataclass(frozen=True)
class EdgeChunk:
    """Some edges in input order. Column values in storage form: bool as uint8, timestamps as int64."""

    source: Ids
    target: Ids
    columns: Mapping[str, np.ndarray] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.source)


@dataclass(frozen=True)
class VertexTable:
    """Vertices that exist whether or not an edge names them, and what is known of them."""

    ids: range | Ids
    columns: Mapping[str, np.ndarray] = field(default_factory=dict)
    types: Mapping[str, pa.DataType] = field(default_factory=dict)


class EdgeSource(ABC):
    """Where edges come from."""

    name: str = "edges"
    """What error messages call it: a path, or `NumPy arrays`."""
    string_ids: bool = False
    columns: Mapping[str, pa.DataType]
    """The edge columns, all of fixed width: integers, floats, bool, timestamps."""
    left_out: Sequence[str] = ()
    """Columns that hold what no edge can carry, where nobody asked for them."""
    undirected: bool | None = None
    """What the format itself says; None when it says nothing. Each undirected edge comes once."""
    estimated_edges: int | None = None
    """About how many edges will come, for buffer sizes and the estimate of disk space; None: nobody knows."""
    unit: ClassVar[str] = "edges"
    """What `position` and `size` count, for the progress bar: `edges` or `bytes`."""
    position: int = 0
    size: int | None = None
    closed: bool = False
    """Whether edges may name declared vertices only."""
    repeats: bool = False
    """Whether edges are sure to come more than once; nobody knows otherwise."""
    id_bounds: tuple[int, int] | None = None
    """Smallest and largest integer id, declared vertices included, when that is known before reading; else None."""

    @abstractmethod
    def chunks(self, *, threads: int, memory: int) -> Iterator[EdgeChunk]:
        """The edges, using at most about `memory` bytes for buffers and the chunks in flight. May be called once."""

    def vertices(self) -> VertexTable | None:
        """The declared vertices, if the format declares any. Valid once `chunks` is used up."""
        return None


STORAGE: dict[str, np.dtype] = {
    name: np.dtype(name) for name in ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
} | {"float": np.dtype(np.float32), "double": np.dtype(np.float64)}


def storage_dtype(kind: pa.DataType) -> np.dtype | None:
    """How a column of this Arrow type lies in memory and on disk; None: it has no fixed width we store."""
    if pa.types.is_boolean(kind):
        return np.dtype(np.uint8)
    if (
        pa.types.is_timestamp(kind)
        or pa.types.is_date64(kind)
        or pa.types.is_time64(kind)
        or pa.types.is_duration(kind)
    ):
        return np.dtype(np.int64)
    if pa.types.is_date32(kind) or pa.types.is_time32(kind):
        return np.dtype(np.int32)
    if pa.types.is_integer(kind) or pa.types.is_floating(kind):
        return STORAGE.get(str(kind))
    return None
