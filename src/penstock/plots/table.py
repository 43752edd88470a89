"""A table of a result that was written and read again, for those who draw results."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.errors import InputError
from penstock.profile import PIECE

LABELS = frozenset({"cluster", "component", "label", "parent"})
"""Columns that hold vertices: files do not say so."""


class TableOfValues:
    """Columns of values beside the column `vertex`."""

    def __init__(self, table: pa.Table, name: str) -> None:
        if table.num_columns < 2 or table.column_names[0] != "vertex":
            there = ", ".join(table.column_names) or "none"
            raise InputError(f"a result has a column vertex and values beside it; the columns are {there}", path=name)
        self._table, self._name = table, name

    @property
    def schema(self) -> Any:
        return self._table.schema

    @property
    def references(self) -> frozenset[str]:
        return LABELS & frozenset(self._table.column_names)

    def pieces_of(self, name: str) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Values and which are not null; of labels, numbers that tell them apart."""
        values = self._table.column(name).combine_chunks()
        if name in self.references:
            values = values.dictionary_encode().indices
        elif not (pa.types.is_integer(values.type) or pa.types.is_floating(values.type)):
            if not pa.types.is_boolean(values.type):
                raise InputError(f"column {name} is {values.type}: no numbers to draw", path=self._name)
            values = values.cast(pa.uint8())
        for at in range(0, len(values), PIECE):
            piece = values[at : at + PIECE]
            valid = piece.is_valid().to_numpy(zero_copy_only=False)
            yield piece.fill_null(0).to_numpy(zero_copy_only=False), valid


__all__ = ["TableOfValues"]
