"""KeyValue: pairs of a key and a value, in chunks, and what can be done with them."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.mapreduce.chunk import Chunk
from penstock.mapreduce.columns import empty, to_arrow, to_list
from penstock.mapreduce.data import Data

if TYPE_CHECKING:
    import pyarrow as pa

    from penstock.mapreduce.multivalue import KeyMultiValue
    from penstock.mapreduce.table import Table


class KeyValue(Data):
    """Pairs. Operations make new ones and leave this as it is; `len` is that of this rank, `total` that of all."""

    name = "KeyValue"

    def chunks(self) -> Iterator[Chunk]:
        """The chunks one after the other; each is valid until the next."""
        return self.mr.room.stream(self.kept)

    def __iter__(self) -> Iterator[tuple[Any, Any]]:
        for chunk in self.chunks():
            yield from zip(to_list(chunk.keys), to_list(chunk.values), strict=True)

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Arrow batches with the columns `key` and `value`; each is valid until the next."""
        import pyarrow as pa

        for chunk in self.chunks():
            yield pa.RecordBatch.from_arrays([to_arrow(chunk.keys), to_arrow(chunk.values)], ["key", "value"])

    def to_arrow(self) -> pa.Table:
        """Everything as one table, in memory."""
        import pyarrow as pa

        none = pa.RecordBatch.from_arrays([to_arrow(empty(self.key)), to_arrow(empty(self.value))], ["key", "value"])
        return pa.Table.from_batches(self.batches(), none.schema)

    def to_pandas(self) -> Any:
        """Everything as one data frame, in memory."""
        return self.to_arrow().to_pandas()

    def table(self, names: Sequence[str] | None = None) -> Table:
        """The pairs of this rank as rows, for data frames and files: named columns, one for each field of a struct."""
        from penstock.mapreduce.table import Table

        return Table(self, names)

    def write(
        self, path: str | os.PathLike[str], names: Sequence[str] | None = None, *, overwrite: bool = False
    ) -> Path:
        """Write the pairs of this rank as .parquet, .csv, .tsv, .txt, .json or .arrow, by the ending; complete or not
        at all. `names` are those of the columns."""
        with self.mr.operation("write"):
            return self.table(names).write(path, overwrite=overwrite)

    def map(self, f: Any, kind: str = "auto", **options: Any) -> KeyValue:
        """What `f` makes of every pair: of columns, compiled, or plain Python."""
        from penstock.mapreduce.mapping import map_pairs

        with self.mr.operation("map"):
            return map_pairs(self, f, kind, **options)

    def filter(self, f: Any, kind: str = "auto", **options: Any) -> KeyValue:
        """The pairs for which `f` is true. Order and partitioning stay."""
        from penstock.mapreduce.mapping import filter_pairs

        with self.mr.operation("filter"):
            found = filter_pairs(self, f, kind, **options)
            found.partitioned, found.order = self.partitioned, self.order
            return found

    def scan(self, f: Any, **options: Any) -> None:
        """Call `f` for every pair."""
        from penstock.mapreduce.mapping import scan_pairs

        with self.mr.operation("scan"):
            scan_pairs(self, f, **options)

    def add(self, *others: KeyValue) -> KeyValue:
        """These pairs and those of others. Chunks are shared: it costs nothing."""
        return self._with(others)

    def aggregate(self, splitter: Any = "range", *, parts: int | None = None) -> KeyValue:
        """All pairs of one key to one rank. `splitter` is "range", "hash", "lpt" (by the number of pairs, longest
        first), or a function that makes of a column of keys an integer for each. With `parts` the pairs of this rank
        are cut into so many parts instead, one after the other; `records` has their lengths."""
        from penstock.mapreduce.shuffle import aggregate

        with self.mr.operation("aggregate"):
            return aggregate(self, splitter, parts)

    shuffle = aggregate

    def partition(self, parts: int, splitter: Any = "range") -> list[KeyValue]:
        """The pairs of this rank in so many parts, each for itself."""
        from penstock.mapreduce.shuffle import partition

        with self.mr.operation("partition"):
            return partition(self, splitter, parts)

    def convert(self) -> KeyMultiValue:
        """This rank's pairs by key: every key once, with all its values."""
        from penstock.mapreduce.group import convert

        with self.mr.operation("convert"):
            found = convert(self)
            found.partitioned = self.partitioned
            return found

    group = convert

    def collate(self, splitter: Any = "range") -> KeyMultiValue:
        """`aggregate`, then `convert`: every key once, on one rank, with all its values."""
        with self.aggregate(splitter) as moved:
            return moved.convert()

    def compress(self, f: Any, kind: str = "auto", **options: Any) -> KeyValue:
        """Reduce this rank's pairs of each key before they are sent or kept: a combiner."""
        from penstock.mapreduce.reduce import compress

        with self.mr.operation("compress"):
            return compress(self, f, kind, **options)

    def clone(self) -> KeyMultiValue:
        """Every pair as a key with one value; equal keys are not brought together."""
        from penstock.mapreduce.collapse import clone

        with self.mr.operation("clone"):
            return clone(self)

    def collapse(self, key: Any) -> KeyMultiValue:
        """One key whose values are key, value, key, value, ... of all pairs of this rank."""
        from penstock.mapreduce.collapse import collapse

        with self.mr.operation("collapse"):
            return collapse(self, key)

    def scrunch(self, ranks: int, key: Any) -> KeyMultiValue:
        """`gather`, then `collapse`."""
        with self.gather(ranks) as gathered:
            return gathered.collapse(key)

    def gather(self, ranks: int = 1) -> KeyValue:
        """All pairs to the lowest `ranks` ranks."""
        from penstock.mapreduce.shuffle import gather

        with self.mr.operation("gather"):
            return gather(self, ranks)

    def broadcast(self, root: int = 0) -> KeyValue:
        """The pairs of rank `root` on every rank."""
        from penstock.mapreduce.shuffle import broadcast

        with self.mr.operation("broadcast"):
            return broadcast(self, root)

    def sort_keys(self, descending: bool = False, compare: Any = None) -> KeyValue:
        """This rank's pairs by their keys, stably. `compare(a, b)` below, at or above 0 may say what order means."""
        from penstock.mapreduce.order import sort_keys

        return self._sorted("keys", sort_keys, descending, compare)

    def sort_values(self, descending: bool = False, compare: Any = None) -> KeyValue:
        """This rank's pairs by their values, stably."""
        from penstock.mapreduce.order import sort_values

        return self._sorted("values", sort_values, descending, compare)

    def _sorted(self, by: str, sort: Any, descending: bool, compare: Any) -> KeyValue:
        wanted = f"{by} descending" if descending else by
        with self.mr.operation(f"sort_{by}"):
            if compare is None and self.order == wanted:
                self.mr.skipped(f"sort_{by}")
                return self.copy()
            found: KeyValue = sort(self, descending, compare)
            found.partitioned, found.order = self.partitioned, wanted if compare is None else None
            return found


__all__ = ["KeyValue"]
