"""Bad edge lists: each names its line and says what is wrong, however the file is cut into blocks."""

from __future__ import annotations

import gzip

import pytest

from penstock.errors import InputError, UsageError
from penstock.ingest.text.formats import open_text

BAD = {
    "too few fields": ("1 2\n3\n", {}, 2, "has 1 field where 2 are expected: target is missing"),
    "too many fields": ("1 2\n3 4 5\n", {}, 2, "has 3 fields where 2 are expected"),
    "missing column": ("1,2,3\n1,2\n", {}, 2, "weight is missing"),
    "one field only": ("# a\n12\n", {}, 2, "a source and a target are expected"),
    "a word": ("1 2\n\n# c\n3 x\n", {}, 4, "x is not an integer id"),
    "fractional first": ("1.5 2\n", {}, 1, "1.5 is not an integer id"),
    "fractional later": ("1 2\n1 2.0\n", {}, 2, "2.0 is not an integer id"),
    "scientific": ("1 2\n1e3 2\n", {}, 2, "1e3 is not an integer id"),
    "two words in a field": ("1,2\n1 2,3\n", {}, 2, "'1 2' is not an integer id"),
    "missing id": ("1,2\n,3\n", {}, 2, "an id is missing"),
    "null id": ("1,2\nNA,3\n", {}, 2, "an id is missing"),
    "above uint64": ("1 2\n1 18446744073709551616\n", {}, 2, "does not fit 64 bits"),
    "below int64": ("1 2\n1 -9223372036854775809\n", {}, 2, "does not fit 64 bits"),
    "far above": ("1 2\n1 99999999999999999999999\n", {}, 2, "does not fit 64 bits"),
    "negative then big": ("-1 2\n5 6\n1 9223372036854775808\n", {}, 3, "negative ids and ids above"),
    "big then negative": ("1 9223372036854775808\n5 6\n-1 2\n", {}, 3, "negative ids and ids above"),
    "fraction in integers": ("1 2 3\n1 2 3.5\n", {"types": {"weight": "int64"}}, 2, "'weight': 3.5 is not an integer"),
    "word in a column": ("1 2 3\n1 2 x\n", {"types": {"weight": "float64"}}, 2, "'weight': x is not a number"),
    "not a truth value": ("1,2,true\n1,2,maybe\n", {"types": {"weight": "bool"}}, 2, "maybe is not true or false"),
    "not a time": ("1,2,2024-01-01\n1,2,soon\n", {"types": {"weight": "timestamp"}}, 2, "soon is not a timestamp"),
    "does not fit int8": ("1 2 3\n1 2 128\n", {"types": {"weight": "int8"}}, 2, "128 does not fit int8"),
    "does not fit int64": ("1 2 3\n1 2 9223372036854775808\n", {"types": {"weight": "int64"}}, 2, "does not fit int64"),
    "negative uint64": ("1 2 3\n1 2 -1\n", {"types": {"weight": "uint64"}}, 2, "does not fit uint64"),
    "does not fit float32": ("1 2 3\n1 2 1e39\n", {"types": {"weight": "float32"}}, 2, "does not fit float"),
    "empty value": ("1,2,3\n1,2,\n", {}, 2, "column 'weight' is empty or NaN"),
    "NaN": ("1 2 0.5\n1 2 nan\n", {}, 2, "column 'weight' is empty or NaN"),
    "empty timestamp": ("1,2,2024-01-01\n1,2,\n", {}, 2, "column 'weight' is empty or NaN"),
    "quote over lines": ('a,b\n"c\nd",e\n', {"header": False}, 2, "a quoted field does not end on its line"),
    "text after a quote": ('a,b\n"c"d,e\n', {"header": False}, 2, "cannot be read"),
    "empty name": ("a,b\n,d\n", {"header": False}, 2, "the source id is empty"),
    "empty quoted name": ('a,b\nc,""\n', {"header": False}, 2, "the target id is empty"),
    "not UTF-8": (b"a b\nc \xff\xfe\n", {}, 2, "is not UTF-8"),
    "NUL in a name": (b"a b\nc d\0e\n", {}, 2, "NUL byte"),
    "NUL in a number": (b"1 2\n3 \0\n", {}, 2, "NUL byte"),
    "empty": ("", {}, None, "holds no edges"),
    "only comments": ("# nothing\n\n", {}, None, "holds no edges"),
    "only a header": ("source,target\n", {}, None, "holds no edges"),
    "two names alike": ("u,v,w,w\n1,2,3,4\n", {}, 1, "two columns are called 'w'"),
    "text column asked for": ("u,v,w\n1,2,x\n", {"columns": ["w"]}, None, "holds no number"),
}


@pytest.mark.parametrize("block_size", [64, None])
@pytest.mark.parametrize("packed", [False, True], ids=["plain", "gzip"])
@pytest.mark.parametrize("case", BAD)
def test_bad_files(tmp_path, case, packed, block_size):
    content, options, line, phrase = BAD[case]
    content = content if isinstance(content, bytes) else content.encode()
    path = tmp_path / ("edges.txt.gz" if packed else "edges.txt")
    path.write_bytes(gzip.compress(content) if packed else content)
    with pytest.raises(InputError) as caught:
        for _ in open_text(path, block_size=block_size, **options).chunks(threads=2, memory=1 << 22):
            pass
    assert phrase in str(caught.value)
    assert caught.value.line == line
    assert caught.value.path == str(path)


@pytest.mark.parametrize("block_size", [64, 100, 1000, None])
@pytest.mark.parametrize("packed", [False, True], ids=["plain", "gzip"])
@pytest.mark.parametrize("bad", [0, 1, 17, 400, 999])
def test_line_numbers_deep_in_the_file(tmp_path, bad, packed, block_size):
    lines = [f"{k} {k + 1}" for k in range(1000)]
    lines[::7] = ["# comment"] * len(lines[::7])
    lines[3::11] = [""] * len(lines[3::11])
    lines[bad] = "12 thirteen"
    content = "\r\n".join(lines).encode()
    path = tmp_path / "e.txt"
    path.write_bytes(gzip.compress(content) if packed else content)
    with pytest.raises(InputError, match="thirteen is not an integer id") as caught:
        list(open_text(path, ids="integer", header=False, block_size=block_size).chunks(threads=3, memory=1 << 20))
    assert caught.value.line == bad + 1


@pytest.mark.parametrize("packed", [False, True], ids=["plain", "gzip"])
def test_a_line_without_end(tmp_path, packed):
    content = b"1 2\n" * 3 + b"1" * (3 << 20)
    (tmp_path / "e.txt").write_bytes(gzip.compress(content) if packed else content)
    with pytest.raises(InputError, match="line 4: this line is longer than"):
        list(open_text(tmp_path / "e.txt").chunks(threads=2, memory=1 << 22))


def test_the_first_error_of_the_file_is_reported(tmp_path):
    (tmp_path / "e.txt").write_text("1 2\n" * 500 + "1 a\n" + "1 2\n" * 500 + "1 b\n")
    for _ in range(5):
        with pytest.raises(InputError, match="line 501: a is not"):
            list(open_text(tmp_path / "e.txt", block_size=64).chunks(threads=3, memory=1 << 20))


def test_hints(tmp_path):
    path = tmp_path / "e.txt"
    for content, hint in [
        ("1.5 2\n", "use ids='string'"),
        ("1,2,3\n1,2,\n", "give fill={'weight': VALUE}"),
    ]:
        path.write_text(content)
        with pytest.raises(InputError) as caught:
            list(open_text(path).chunks(threads=1, memory=1 << 20))
        assert hint in caught.value.hint
    path.write_text("1 2 3\n" * 5000 + "1 2 3.5\n")
    with pytest.raises(InputError, match=r"line 5001: column 'weight': 3.5 .* types=\{'weight': 'float64'\}"):
        list(open_text(path).chunks(threads=2, memory=1 << 20))


def test_empty_may_be_allowed(tmp_path):
    for content in ("", "# nothing\n", "source,target\n"):
        (tmp_path / "e.txt").write_text(content)
        assert list(open_text(tmp_path / "e.txt", allow_empty=True).chunks(threads=2, memory=1 << 20)) == []


def test_paths_that_are_no_text(tmp_path):
    with pytest.raises(InputError, match="no such file"):
        open_text(tmp_path / "nothing.txt")
    with pytest.raises(InputError, match="holds no files"):
        open_text(tmp_path)
    for content, phrase in [
        (b"PK\x03\x04rest", "zip archive"),
        (b"PAR1rest", "Parquet"),
        ("1 2\n".encode("utf-16"), "UTF-16"),
    ]:
        (tmp_path / "e.txt").write_bytes(content)
        with pytest.raises(InputError, match=phrase):
            open_text(tmp_path / "e.txt")


def test_options_that_are_none(tmp_path):
    (tmp_path / "e.txt").write_text("1 2\n")
    with pytest.raises(UsageError, match="has no option 'seperator'"):
        open_text(tmp_path / "e.txt", seperator=",")
    with pytest.raises(UsageError, match="no text format 'gml'"):
        open_text(tmp_path / "e.txt", format="gml")
    with pytest.raises(UsageError, match="ids='int'"):
        open_text(tmp_path / "e.txt", ids="int")
