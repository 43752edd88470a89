"""KeyMultiValue: keys with all their values, in the compact form: unique keys, offsets, values."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from penstock.mapreduce.chunk import Groups
from penstock.mapreduce.columns import Column, concat, slice, to_list
from penstock.mapreduce.data import Data

if TYPE_CHECKING:
    from penstock.mapreduce.keyvalue import KeyValue


class KeyMultiValue(Data):
    """Keys with their values. `len` is the number of keys of this rank, `values_count` that of their values."""

    name = "KeyMultiValue"

    @property
    def values_count(self) -> int:
        """How many values there are, of all keys of this rank."""
        return sum(kept.values for kept in self.kept)

    def groups(self) -> Iterator[Groups]:
        """The chunks one after the other; each is valid until the next."""
        return self.mr.room.stream(self.kept)

    def blocks(self) -> Iterator[tuple[Any, Column, bool]]:
        """Key, values, and whether they continue those of the block before: a key that has more values than a chunk
        holds has several blocks, any other one."""
        for chunk in self.groups():
            at = chunk.offsets.tolist()
            for row, key in enumerate(to_list(chunk.keys)):
                yield key, slice(chunk.values, at[row], at[row + 1]), chunk.continues and row == 0

    def __iter__(self) -> Iterator[tuple[Any, Any]]:
        """Key and values: an array of its own, or a list where they are strings, bytes or nothing."""
        key: Any = None
        parts: list[Column] = []
        for following, values, continues in self.blocks():
            if parts and not continues:
                yield key, _plain(parts)
                parts = []
            key = following
            parts.append(_copied(values))
        if parts:
            yield key, _plain(parts)

    def reduce(self, f: Any, kind: str = "auto", **options: Any) -> KeyValue:
        """What `f` makes of every key and its values: by name, of columns, compiled, or plain Python."""
        from penstock.mapreduce.reduce import reduce_groups

        with self.mr.operation("reduce"):
            return reduce_groups(self, f, kind, **options)

    def scan(self, f: Any) -> None:
        """Call `f(key, values)` for every key."""
        with self.mr.operation("scan"):
            for key, values in self:
                f(key, values)

    def sort_multivalues(self, descending: bool = False, compare: Any = None) -> KeyMultiValue:
        """The values of each key sorted, stably."""
        from penstock.mapreduce.order import sort_multivalues

        with self.mr.operation("sort_multivalues"):
            found: KeyMultiValue = sort_multivalues(self, descending, compare)
            found.partitioned, found.order = self.partitioned, self.order
            return found

    def pairs(self) -> KeyValue:
        """One pair for each value: what `convert` undoes."""
        with self.mr.operation("pairs"), self.mr.writer(self.key, self.value) as writer:
            for chunk in self.groups():
                with self.mr.room.reserve(chunk.nbytes + 8 * len(chunk.values), "groups as pairs"):
                    some = chunk.pairs()
                    writer.add_chunk(some.keys, some.values)
            found = writer.done()
            found.partitioned, found.order = self.partitioned, self.order
            return found

    def add(self, *others: KeyMultiValue) -> KeyMultiValue:
        """These keys and those of others; keys in several of them stay apart. It costs nothing."""
        return self._with(others)


def _copied(values: Column) -> Column:
    return values.copy() if isinstance(values, np.ndarray) else values.slice(0, len(values))


def _plain(parts: list[Column]) -> Any:
    whole = concat(parts)
    return whole if isinstance(whole, np.ndarray) and whole.dtype.itemsize else to_list(whole)


__all__ = ["KeyMultiValue"]
