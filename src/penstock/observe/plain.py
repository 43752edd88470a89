"""Values in JSON's own types."""

from __future__ import annotations

import math
from typing import Any


def plain(value: Any) -> Any:
    """What `json.dumps` takes: lists for arrays and sets, Python's numbers for NumPy's, text for anything else."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, dict):
        return {str(name): plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(item) for item in value]
    if hasattr(value, "tolist"):  # NumPy scalars and arrays
        return value.tolist()
    return str(value)


def strict(value: Any) -> Any:
    """The same for readers that hold JSON to its word, which knows no infinity and no NaN: they become text."""
    value = plain(value)
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, dict):
        return {name: strict(item) for name, item in value.items()}
    if isinstance(value, list):
        return [strict(item) for item in value]
    return value


__all__ = ["plain", "strict"]
