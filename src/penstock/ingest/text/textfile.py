"""One text file, plain or compressed, as a stream of bytes; and which line of it a byte is on."""

from __future__ import annotations

import contextlib
import glob
import lzma
from collections.abc import Callable, Iterator, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import pyarrow as pa

from penstock.errors import InputError, UsageError, meant_path

MAGIC = {
    b"\x1f\x8b": "gzip",
    b"\x28\xb5\x2f\xfd": "zstd",
    b"BZh": "bz2",
    b"\x04\x22\x4d\x18": "lz4",
    b"\xfd7zXZ\x00": "xz",
}
SUFFIXES = {".gz": "gzip", ".zst": "zstd", ".bz2": "bz2", ".lz4": "lz4", ".xz": "xz"}
_FOREIGN = {
    b"PK\x03\x04": "is a zip archive, which may hold several files: unpack it first",
    b"PAR1": "is a Parquet file, not text",
    b"\xff\xfe": "is UTF-16 text: convert it to UTF-8 first",
    b"\xfe\xff": "is UTF-16 text: convert it to UTF-8 first",
}
_PIECE = 1 << 20


def expand(paths: str | PathLike[str] | Sequence[str | PathLike[str]]) -> list[Path]:
    """The files behind a path, a glob such as `part-*.txt`, a directory of part files, or a list of these."""
    if not isinstance(paths, str | PathLike):
        files = [file for path in paths for file in expand(path)]
        if not files:
            raise UsageError("there is no file to read: the list of paths is empty")
        return files
    path = Path(paths).expanduser()
    if path.is_dir():
        files = sorted(file for file in path.iterdir() if file.is_file() and file.name[0] not in "._")
        if not files:
            raise InputError("the directory holds no files", path=path)
        return files
    if not path.exists() and any(letter in str(path) for letter in "*?["):
        files = [Path(name) for name in sorted(glob.glob(str(path), recursive=True)) if Path(name).is_file()]
        if not files:
            raise InputError("no file matches", path=path)
        return files
    return [path]


def strip_compression(path: Path) -> Path:
    """`edges.txt.gz` -> `edges.txt`."""
    return path.with_suffix("") if path.suffix.lower() in SUFFIXES else path


class TextFile:
    """A file to read as text. Offsets count decompressed bytes."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        try:
            if not self.path.is_file():
                reason = "is a directory" if self.path.is_dir() else f"no such file{meant_path(self.path)}"
                raise InputError(reason, path=self.path)
            self.size = self.path.stat().st_size
            with self.path.open("rb") as file:
                magic = file.read(8)
        except OSError as error:
            raise InputError(f"cannot be read: {error.strerror or error}", path=self.path) from error
        for mark, reason in _FOREIGN.items():
            if magic.startswith(mark):
                raise InputError(reason, path=self.path)
        self.codec = next((codec for mark, codec in MAGIC.items() if magic.startswith(mark)), None)
        promised = SUFFIXES.get(self.path.suffix.lower())
        if self.size and promised and self.codec is None:
            raise InputError(f"its name says {promised}, but its bytes do not", path=self.path)
        if self.codec is None and magic.startswith(b"\xef\xbb\xbf"):
            self.start = 3
        else:
            self.start = 3 if self.codec and self.head(3) == b"\xef\xbb\xbf" else 0

    @contextlib.contextmanager
    def open(self) -> Iterator[Stream]:
        """The decompressed bytes from the beginning."""
        try:
            with contextlib.ExitStack() as stack:
                if self.codec is None:
                    raw = stack.enter_context(self.path.open("rb", buffering=0))
                    yield Stream(self, raw, raw.readinto)
                elif self.codec == "xz":
                    raw = stack.enter_context(self.path.open("rb", buffering=0))
                    yield Stream(self, raw, _XzReader(raw).readinto)
                else:
                    packed = stack.enter_context(pa.OSFile(str(self.path)))
                    stream = stack.enter_context(pa.CompressedInputStream(packed, self.codec))
                    yield Stream(self, packed, stream.readinto)
        except OSError as error:
            raise self.unreadable(error) from error

    def unreadable(self, error: BaseException) -> InputError:
        """What reading told, as a sentence."""
        text = str(error)
        if "Truncated" in text or isinstance(error, EOFError):
            return InputError(f"the {self.codec} data ends too early: the file is truncated", path=self.path)
        if self.codec and getattr(error, "errno", None) is None:
            return InputError(f"the {self.codec} data is damaged or followed by something else: {text}", path=self.path)
        return InputError(f"cannot be read: {getattr(error, 'strerror', None) or text}", path=self.path)

    def head(self, size: int) -> bytes:
        """The first `size` bytes, or all there are."""
        with self.open() as stream:
            return stream.read(size)

    def line_number(self, offset: int) -> int:
        """The number of the line that holds the byte at `offset`."""
        number, at = 1, 0
        with self.open() as stream:
            while at < offset and (piece := stream.read(min(_PIECE, offset - at))):
                number += piece.count(b"\n")
                at += len(piece)
        return number

    def lines(self, offset: int = 0) -> Iterator[tuple[int, int, bytes]]:
        """(number, offset, text without line end) of each line from `offset`, which begins a line."""
        number, at, tail = 1, 0, b""
        with self.open() as stream:
            while at < offset:
                piece = stream.read(min(_PIECE, offset - at))
                if not piece:
                    return
                number += piece.count(b"\n")
                at += len(piece)
            while piece := stream.read(1 << 16):
                *lines, tail = (tail + piece).split(b"\n")
                for line in lines:
                    yield number, at, line.removesuffix(b"\r")
                    number += 1
                    at += len(line) + 1
            if tail:
                yield number, at, tail.removesuffix(b"\r")

    def line_of_row(self, offset: int, row: int, is_row: Callable[[bytes], bool]) -> tuple[int, bytes]:
        """Number and text of the row-th data line after `offset`: counted only once something is wrong."""
        number, line = 0, b""
        for number, _, line in self.lines(offset):
            if is_row(line):
                if row == 0:
                    return number, line
                row -= 1
        return number, line


class _XzReader:
    """Arrow does not know xz, and Python's own LZMAFile ignores what follows the last stream."""

    def __init__(self, raw: Any) -> None:
        self._raw, self._decoder, self._rest = raw, lzma.LZMADecompressor(), b""

    def readinto(self, view: memoryview) -> int:
        while True:
            if self._decoder.eof:
                self._rest = self._decoder.unused_data.lstrip(b"\0") or self._raw.read(_PIECE).lstrip(b"\0")
                if not self._rest:
                    return 0
                self._decoder = lzma.LZMADecompressor()
            elif not self._rest and self._decoder.needs_input:
                self._rest = self._raw.read(_PIECE)
                if not self._rest:
                    raise EOFError
            data = self._decoder.decompress(self._rest, max_length=len(view))
            self._rest = b""
            if data:
                view[: len(data)] = data
                return len(data)


class Stream:
    """Sequential bytes; damage becomes an InputError."""

    def __init__(self, file: TextFile, raw: Any, readinto: Callable[[Any], int | None]) -> None:
        self.file, self._raw, self._readinto = file, raw, readinto

    def readinto(self, view: memoryview) -> int:
        """Fill `view`; less only at the end of the file."""
        filled = 0
        try:
            while filled < len(view):
                count = self._readinto(view[filled:])
                if not count:
                    break
                filled += count
        except (OSError, EOFError, lzma.LZMAError) as error:
            raise self.file.unreadable(error) from error
        return filled

    def read(self, size: int) -> bytes:
        buffer = bytearray(size)
        return bytes(buffer[: self.readinto(memoryview(buffer))])

    @property
    def position(self) -> int:
        """Bytes of the file itself used so far."""
        return int(self._raw.tell())


__all__ = ["SUFFIXES", "Stream", "TextFile", "expand", "strip_compression"]
