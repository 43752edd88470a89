"""What KeyValue and KeyMultiValue have in common: chunks in a room, their kinds, and what is known of them."""

from __future__ import annotations

import os
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar

from penstock.errors import UsageError
from penstock.mapreduce.columns import Kind, kind_name
from penstock.mapreduce.room import Kept

if TYPE_CHECKING:
    from penstock.mapreduce.session import MapReduce

Self = TypeVar("Self", bound="Data")


class Data:
    """A list of chunks. Chunks may belong to several lists; nobody changes them."""

    name = "data"

    def __init__(
        self,
        mr: MapReduce,
        kept: list[Kept],
        key: Kind,
        value: Kind,
        *,
        partitioned: tuple[Any, ...] | None = None,
        order: str | None = None,
    ) -> None:
        self.mr, self.key, self.value = mr, key, value
        self._kept: list[Kept] | None = kept
        self.partitioned = partitioned
        """The identity of the splitter whose parts the ranks hold; None where any rank may hold any key."""
        self.order = order
        """What this rank's chunks are sorted by: "keys", "keys descending", "values", "values descending", or None."""
        self.records: list[int] | None = None
        """How many pairs each part has, after `aggregate(parts=...)`."""
        self.note: Any = None
        """What was saved beside the pairs."""

    @property
    def kept(self) -> list[Kept]:
        """The chunks, wherever they are."""
        if self._kept is None or self.mr.closed:
            raise UsageError(f"this {self.name} was closed")
        return self._kept

    @property
    def nbytes(self) -> int:
        """Of all chunks, in memory and on disk."""
        return sum(kept.nbytes for kept in self.kept)

    @property
    def total(self) -> int:
        """The length of all ranks' lists together."""
        return int(self.mr.communicator.allreduce(len(self)))

    def __len__(self) -> int:
        return sum(kept.rows - kept.continues for kept in self.kept)

    def __bool__(self) -> bool:
        return True

    def __repr__(self) -> str:
        if self._kept is None or self.mr.closed:
            return f"<{type(self).__name__}, closed>"
        count = f"{len(self):,} {'pairs' if self.name == 'KeyValue' else 'keys'}"
        return f"<{type(self).__name__} {kind_name(self.key)} -> {kind_name(self.value)}, {count}>"

    def copy(self: Self) -> Self:
        """The same once more: chunks are shared, so it costs nothing."""
        other = type(self)(
            self.mr, [kept.share() for kept in self.kept], self.key, self.value,
            partitioned=self.partitioned, order=self.order,
        )  # fmt: skip
        other.records = None if self.records is None else list(self.records)
        return other

    def _with(self: Self, others: tuple[Self, ...]) -> Self:
        """This list and the others, one after the other."""
        for other in others:
            if type(other) is not type(self) or other.mr is not self.mr:
                raise UsageError(f"only a {type(self).__name__} of the same MapReduce can be added")
        full = [each for each in (self, *others) if each.kept]
        first = full[0] if full else self
        for each in full[1:]:
            if (each.key, each.value) != (first.key, first.value):
                raise UsageError(
                    f"pairs of ({kind_name(each.key)}, {kind_name(each.value)}) cannot be added to pairs of "
                    f"({kind_name(first.key)}, {kind_name(first.value)}): map one of them to the kinds of the other"
                )
        alike = all(each.partitioned == first.partitioned for each in full)
        return type(self)(
            self.mr, [kept.share() for each in full for kept in each.kept], first.key, first.value,
            partitioned=first.partitioned if alike else None, order=first.order if len(full) <= 1 else None,
        )  # fmt: skip

    def close(self) -> None:
        """Give the chunks up; those that nobody else holds are gone from memory and disk."""
        kept, self._kept = self._kept, None
        for each in kept or ():
            each.release()

    def __enter__(self: Self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.close()

    def stats(self, level: int = 1) -> dict[str, Any]:
        """Counts and bytes of all ranks (1), and how they are spread over ranks (2)."""
        from penstock.mapreduce.statistics import describe

        return describe(self, level)

    def save(self, path: str | os.PathLike[str], *, overwrite: bool = False, note: Any = None) -> None:
        """Write everything to a folder, complete or not at all; `MapReduce.load` reads it. `note`, anything that JSON
        holds, is kept beside it: how far a loop has come."""
        from penstock.mapreduce.saved import save

        with self.mr.operation("save"):
            save(self, path, overwrite=overwrite, note=note)

    def print(
        self,
        file: Any = None,
        *,
        stride: int = 1,
        key: Any = None,
        value: Any = None,
        separator: str = " ",
        overwrite: bool = False,
    ) -> int:
        """Print every `stride`-th entry as a line, to stdout, a path or an open file; how many were printed. `key` and
        `value` say how: a format such as ".3f", a function, or False for not at all."""
        from penstock.mapreduce.show import show

        with self.mr.operation("print"):
            return show(self, file, stride=stride, key=key, value=value, separator=separator, overwrite=overwrite)


__all__ = ["Data"]
