"""A column of a result as one array: shared with NumPy, PyTorch, CuPy and all others that speak DLPack, not copied."""

from __future__ import annotations

from typing import Any

import numpy as np


class Vector:
    """Values side by side in host memory. Whoever takes them shares them: what is written there is written here.

    >>> torch.from_dlpack(result.vector("rank"))   # doctest: +SKIP
    """

    def __init__(self, name: str, values: np.ndarray) -> None:
        self.name, self._values = name, values

    def __dlpack__(self, **options: Any) -> Any:
        return self._values.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._values.__dlpack_device__()

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.array(self._values, dtype, copy=copy)

    def __len__(self) -> int:
        return len(self._values)

    def __getitem__(self, at: Any) -> Any:
        return self._values[at]

    @property
    def dtype(self) -> np.dtype:
        return self._values.dtype

    @property
    def shape(self) -> tuple[int, ...]:
        return self._values.shape

    def numpy(self) -> np.ndarray:
        """The same memory as a NumPy array."""
        return self._values

    def __repr__(self) -> str:
        return f"<penstock.Vector: {self.name} of {len(self)} vertices, {self.dtype}>"


__all__ = ["Vector"]
