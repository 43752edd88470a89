"""Where bytes go: a file, compressed as its name says."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Protocol

CODECS = {".gz": "gzip", ".zst": "zstd", ".bz2": "bz2"}
_GZIP_LEVEL = 4
"""Python's default, 9, takes four times as long for text and saves a twentieth."""


class Sink(Protocol):
    def write(self, data: Any, /) -> int | None: ...


def codec_of(path: Path) -> str | None:
    """The compression a file name stands for."""
    return CODECS.get(path.suffix.lower())


def plain_name(path: Path) -> Path:
    """The name without the ending that says how it is compressed."""
    return path.with_suffix("") if codec_of(path) else path


@contextlib.contextmanager
def open_sink(path: Path, codec: str | None) -> Iterator[Sink]:
    """The file, open for writing."""
    with path.open("wb") as file:
        if codec is None:
            yield file
        elif codec == "gzip":
            import gzip

            # No name and no time inside: the same graph gives the same bytes.
            with gzip.GzipFile("", "wb", _GZIP_LEVEL, file, mtime=0) as stream:
                yield stream
        elif codec == "bz2":
            import bz2

            with bz2.BZ2File(file, "wb") as packed:
                yield packed
        else:
            import pyarrow as pa

            with pa.CompressedOutputStream(pa.PythonFile(file, "w"), codec) as output:
                yield output


__all__ = ["CODECS", "Sink", "codec_of", "open_sink", "plain_name"]
