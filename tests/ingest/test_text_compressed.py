"""Compressed edge lists: by name or by bytes, in several members, and what is said of damaged ones."""

from __future__ import annotations

import bz2
import gzip
import lzma

import pyarrow as pa
import pytest

from penstock.errors import InputError
from penstock.ingest.text.formats import open_text


def _arrow(codec):
    def pack(data):
        sink = pa.BufferOutputStream()
        with pa.CompressedOutputStream(sink, codec) as stream:
            stream.write(data)
        return sink.getvalue().to_pybytes()

    return pack


PACK = {
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
    ".zst": _arrow("zstd"),
    ".lz4": _arrow("lz4"),
    ".xz": lzma.compress,
}
EDGES = [(k * 7919 % 10007, k * 104729 % 10007) for k in range(20000)]
CONTENT = "".join(f"{u}\t{v}\n" for u, v in EDGES).encode()


def edges(path, **options):
    chunks = open_text(path, **options).chunks(threads=2, memory=1 << 20)
    return [pair for c in chunks for pair in zip(c.source.tolist(), c.target.tolist(), strict=True)]


@pytest.mark.parametrize("suffix", PACK)
def test_by_name_and_by_bytes(tmp_path, suffix):
    for name in (f"e.txt{suffix}", "e.txt", "e"):
        (tmp_path / name).write_bytes(PACK[suffix](CONTENT))
        assert edges(tmp_path / name) == EDGES
    assert edges(tmp_path / f"e.txt{suffix}", block_size=100) == EDGES


@pytest.mark.parametrize("suffix", PACK)
def test_several_members(tmp_path, suffix):
    cut = len(CONTENT) // 3 + 2  # in the middle of a line
    (tmp_path / f"e.txt{suffix}").write_bytes(PACK[suffix](CONTENT[:cut]) + PACK[suffix](CONTENT[cut:]))
    assert edges(tmp_path / f"e.txt{suffix}") == EDGES


@pytest.mark.parametrize("keep", [0.2, 0.5, 0.99])
@pytest.mark.parametrize("suffix", PACK)
def test_truncated(tmp_path, suffix, keep):
    path = tmp_path / f"e.txt{suffix}"
    data = PACK[suffix](CONTENT)
    path.write_bytes(data[: int(len(data) * keep)])
    with pytest.raises(InputError, match="truncated") as caught:
        edges(path)
    assert caught.value.path == str(path)


@pytest.mark.parametrize("suffix", PACK)
def test_garbage_after(tmp_path, suffix):
    path = tmp_path / f"e.txt{suffix}"
    path.write_bytes(PACK[suffix](CONTENT) + b"and some more that is no member")
    with pytest.raises(InputError, match=r"damaged|truncated") as caught:
        edges(path)
    assert caught.value.path == str(path)


@pytest.mark.parametrize("suffix", [".gz", ".bz2", ".xz"])
def test_a_flipped_byte(tmp_path, suffix):
    path = tmp_path / f"e.txt{suffix}"
    data = bytearray(PACK[suffix](CONTENT))
    data[len(data) // 2] ^= 0x55
    path.write_bytes(data)
    with pytest.raises(InputError) as caught:
        edges(path)
    assert caught.value.path == str(path)


def test_a_name_that_promises_too_much(tmp_path):
    (tmp_path / "e.txt.gz").write_text("1 2\n")
    with pytest.raises(InputError, match="its name says gzip, but its bytes do not"):
        edges(tmp_path / "e.txt.gz")


def test_compressed_and_plain_together(tmp_path):
    (tmp_path / "part-0.txt.gz").write_bytes(gzip.compress(b"1 2\n"))
    (tmp_path / "part-1.txt").write_bytes(b"3 4\n")
    (tmp_path / "part-2.txt.zst").write_bytes(PACK[".zst"](b"5 6\n"))
    (tmp_path / "part-3.txt.gz").write_bytes(gzip.compress(b""))
    (tmp_path / "part-4.txt.gz").write_bytes(gzip.compress(b"7 8"))
    assert edges(tmp_path / "part-*") == [(1, 2), (3, 4), (5, 6), (7, 8)]
