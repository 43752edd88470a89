"""Edges out of Python objects: which kind of object is this, and which source reads it."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

import numpy as np

from penstock.errors import InputError, UsageError
from penstock.ingest.source import EdgeSource
from penstock.ingest.tables.host import on_host
from penstock.ingest.tables.schema import TableOptions

ENDS = ("source", "target", "weight")


def open_object(obj: Any, **options: Any) -> EdgeSource | None:
    """Edges of an in-memory object; None if it is none that we know.

    NumPy, or anything that speaks DLPack (PyTorch, CuPy): `(source, target)` or `(source, target, weight)` as a tuple
    of arrays, an array of two or three columns; of NumPy also a structured array. A list of pairs, a dict of columns.
    scipy.sparse: a square matrix. NetworkX, igraph: any graph. Anything that offers an Arrow stream: pandas, Polars,
    DuckDB, pyarrow; a Polars LazyFrame is computed in batches. Options are those of `TableOptions`; a NetworkX graph
    also takes `vertex_columns`.
    """
    if _is_instance(obj, "networkx", "Graph"):
        from penstock.ingest.tables.networks import NetworkSource

        vertex_columns = options.pop("vertex_columns", None)
        return NetworkSource(obj, _without_ends(options, "a NetworkX graph"), vertex_columns)
    if _is_instance(obj, "igraph", "Graph"):
        from penstock.ingest.tables.igraphs import IgraphSource

        return IgraphSource(obj, _without_ends(options, "an igraph graph"))
    if _is_instance(obj, "polars", "LazyFrame"):
        from penstock.ingest.tables.arrow import StreamSource

        return StreamSource(_computed(obj), TableOptions.of(options), "polars LazyFrame")
    if "scipy.sparse" in sys.modules and sys.modules["scipy.sparse"].issparse(obj):
        from penstock.ingest.tables.matrices import MatrixSource

        return MatrixSource(obj, _without_ends(options, "a sparse matrix"))
    if any(hasattr(obj, name) for name in ("__arrow_c_stream__", "__arrow_c_array__")) or _is_instance(
        obj, "pyarrow.dataset", "Dataset"
    ):
        from penstock.ingest.tables.arrow import open_arrow

        return open_arrow(obj, **options)
    columns = _columns(obj)
    if columns is None:
        return None
    from penstock.ingest.tables.arrays import ArraysSource

    return ArraysSource(columns, TableOptions.of(options), "dict of columns" if isinstance(obj, Mapping) else "arrays")


def _computed(frame: Any) -> Any:
    """The rows of a lazy frame as they are computed, where Polars knows how to; otherwise all of them."""
    if not hasattr(frame, "collect_batches"):
        return frame.collect()
    import pyarrow as pa

    schema = frame.head(0).collect().to_arrow().schema
    batches = (batch for part in frame.collect_batches() for batch in part.to_arrow().cast(schema).to_batches())
    return pa.RecordBatchReader.from_batches(schema, batches)


def _is_instance(obj: Any, module: str, name: str) -> bool:
    """Without importing the module: whoever holds such an object has done so."""
    kind = getattr(sys.modules.get(module), name, None)
    return kind is not None and isinstance(obj, kind)


def _without_ends(options: dict[str, Any], what: str) -> TableOptions:
    for name in ("source", "target"):
        if options.get(name) is not None:
            raise UsageError(f"{what} knows its ends: {name}= has no meaning here")
    return TableOptions.of(options)


def _columns(obj: Any) -> dict[str, Any] | None:
    if isinstance(obj, Mapping):
        return {str(name): values for name, values in obj.items()}
    if isinstance(obj, tuple) or (isinstance(obj, list) and obj and all(_is_column(part) for part in obj)):
        if len(obj) not in (2, 3):
            raise InputError(f"a tuple of {len(obj)} is no graph: give (source, target) or (source, target, weight)")
        return dict(zip(ENDS, obj, strict=False))
    if isinstance(obj, list):
        widths = {len(row) if isinstance(row, list | tuple) else 0 for row in obj}
        if not obj:
            return {name: np.empty(0, np.int64) for name in ENDS[:2]}
        if len(widths) > 1 or not widths <= {2, 3}:
            raise InputError("a list of edges holds (source, target) pairs or (source, target, weight) triples")
        return dict(zip(ENDS, map(list, zip(*obj, strict=True)), strict=False))
    if any(hasattr(obj, name) for name in ("__array__", "__array_interface__", "__dlpack__")):
        array = np.asarray(on_host(obj, "arrays"))
        if array.dtype.names:
            return {name: array[name] for name in array.dtype.names}
        if array.ndim != 2 or array.shape[1] not in (2, 3):
            shape = " x ".join(map(str, array.shape)) or "a scalar"
            rows = array.ndim == 2 and array.shape[0] in (2, 3)
            hint = "its rows are the ends: give them as a tuple, (a[0], a[1])" if rows else None
            raise InputError(f"an array of edges has two or three columns, this one is {shape}", hint=hint)
        return {name: array[:, i] for i, name in enumerate(ENDS[: array.shape[1]])}
    return None


def _is_column(part: Any) -> bool:
    return isinstance(part, np.ndarray) and part.ndim == 1


__all__ = ["open_object"]
