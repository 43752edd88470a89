"""The user's ids: by internal number, and the permutation that sorts them. Both ways without holding them in memory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.errors import DamagedStore, VertexNotFound
from penstock.store.arrow import plain_array
from penstock.store.blob import Blob

INTEGER_KINDS = ("int64", "uint64")


class Ids:
    """The ids of one store. `order[k]` is the internal number of the k-th smallest id."""

    def __init__(self, store: Path, meta: dict[str, Any]) -> None:
        self.kind: str = meta["ids"]["kind"]
        self.count: int = meta["vertices"]
        blobs = meta["blobs"]
        self.order = Blob(store / "ids/order", meta["ids"]["order"], blobs["ids/order"])
        if self.kind == "string":
            self.offsets = Blob(store / "ids/offsets", np.uint64, blobs["ids/offsets"])
            self.text = Blob(store / "ids/text", np.uint8, blobs["ids/text"])
            lengths = {len(self.order), len(self.offsets) - 1}
        else:
            self.values = Blob(store / "ids/values", self.kind, blobs["ids/values"])
            lengths = {len(self.order), len(self.values)}
        if lengths != {self.count}:
            held = " and ".join(map(str, sorted(lengths)))
            raise DamagedStore(f"{store}/ids holds {held} ids for {self.count} vertices")

    @property
    def arrow_type(self) -> pa.DataType:
        return {"int64": pa.int64(), "uint64": pa.uint64(), "string": pa.large_string()}[self.kind]

    def read(self, start: int, stop: int) -> pa.Array:
        """The ids of vertices `start:stop`."""
        stop = max(start, min(stop, self.count))
        if self.kind != "string":
            return plain_array(self.values.read(start, stop))
        offsets = self.offsets.read(start, stop + 1).astype(np.int64)
        text = self.text.read(int(offsets[0]), int(offsets[-1]))
        return pa.LargeStringArray.from_buffers(stop - start, pa.py_buffer(offsets - offsets[0]), pa.py_buffer(text))

    def all(self) -> pa.Array:
        """Every id by internal number: 8 bytes a vertex, or the text."""
        return self.read(0, self.count)

    @property
    def nbytes(self) -> int:
        """What `all` would hold in memory."""
        if self.kind != "string":
            return self.count * 8
        return self.count * 8 + 8 + len(self.text)

    def of(self, number: int) -> Any:
        """The id of one vertex."""
        return self.read(number, number + 1)[0].as_py()

    def number(self, user_id: Any) -> int:
        """The internal number of one id, by binary search."""
        wanted = self._wanted(user_id)
        low, high = 0, self.count
        # Where ids are 0, 1, 2 ... the first look finds it: every look reads and checks a MiB.
        middle = wanted if self.kind != "string" and 0 <= wanted < high else high // 2
        while low < high:
            number = self._at(middle)
            found = self._key(number)
            if found == wanted:
                return number
            if found < wanted:
                low = middle + 1
            else:
                high = middle
            middle = (low + high) // 2
        raise VertexNotFound(f"there is no vertex {user_id!r} in this graph (ids are {self.kind})")

    def _at(self, rank: int) -> int:
        return int(self.order.read(rank, rank + 1)[0])

    def _key(self, number: int) -> Any:
        if self.kind != "string":
            return int(self.values.read(number, number + 1)[0])
        begin, end = self.offsets.read(number, number + 2)
        return self.text.read(int(begin), int(end)).tobytes()

    def _wanted(self, user_id: Any) -> Any:
        if self.kind == "string":
            if isinstance(user_id, str):
                return user_id.encode()
        elif isinstance(user_id, str):
            # From the command line every id is a string.
            try:
                return int(user_id)
            except ValueError:
                pass
        elif isinstance(user_id, (int, np.integer)) and not isinstance(user_id, bool):
            return int(user_id)
        raise VertexNotFound(f"there is no vertex {user_id!r} in this graph (ids are {self.kind})")
