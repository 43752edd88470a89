"""Text edge lists: what is found out from the first lines, and what the options change."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from penstock.errors import InputError, UsageError
from penstock.ingest.text.edge_list import TextSource
from penstock.ingest.text.formats import open_text


def read(source, threads=2, memory=1 << 20):
    """All edges of a source as (sources, targets, columns) in plain lists."""
    chunks = list(source.chunks(threads=threads, memory=memory))
    ids = [[value for c in chunks for value in getattr(c, end).tolist()] for end in ("source", "target")]
    columns = {name: [value for c in chunks for value in c.columns[name].tolist()] for name in source.columns}
    return ids[0], ids[1], columns


def parse(folder: Path, content: str | bytes, name="edges.txt", **options):
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return read(open_text(path, **options))


@pytest.mark.parametrize(
    "content",
    [
        "1 2\n3 4\n",
        "1\t2\n3\t4\n",
        "1 2\n3 4",
        "1 2\r\n3 4\r\n",
        "\ufeff1 2\n3 4\n",
        "# SNAP\n% other\n// and this\n1\t2\n\n   \n#x\n3 \t 4   \n",
        "1,2\n3,4\n",
        "1, 2\n 3 ,4\n",
        "1;2\n3;4\n",
        "1|2\r\n3|4\r\n",
        '"1","2"\n"3","4"\n',
        "source,target\n1,2\n3,4\n",
        "\ufeffsource,target\r\n1,2\r\n3,4\r\n",
        "# comment\nsrc dst\n1 2\n3 4\n",
        "follows,followed\n1,2\n3,4\n",
        "1 2 # why\n3 4 % not\n",
        "  1 2\n\t3 4\n",
        "+1 2\n3 0000000000000000000000004\n",
    ],
)
def test_the_same_two_edges(tmp_path, content):
    assert parse(tmp_path, content) == ([1, 3], [2, 4], {})


def test_header_chooses_the_ends_by_their_usual_names(tmp_path):
    content = "weight,dst,time,src\n0.5,2,7,1\n1.5,4,8,3\n"
    assert parse(tmp_path, content) == ([1, 3], [2, 4], {"weight": [0.5, 1.5], "time": [7, 8]})


def test_ends_by_name_and_by_position(tmp_path):
    content = "a,b,c\n1,2,3\n4,5,6\n"
    assert parse(tmp_path, content, source="c", target="a") == ([3, 6], [1, 4], {"b": [2, 5]})
    assert parse(tmp_path, content, source=1, target=2) == ([2, 5], [3, 6], {"a": [1, 4]})
    with pytest.raises(UsageError, match=r"no column 'z'; the columns are a, b, c"):
        parse(tmp_path, content, source="z")
    with pytest.raises(UsageError, match="same column"):
        parse(tmp_path, content, source="a", target="a")


def test_names_of_columns_without_a_header(tmp_path):
    assert parse(tmp_path, "1 2 3\n")[2] == {"weight": [3]}
    assert parse(tmp_path, "1 2 3 4.5\n")[2] == {"c2": [3], "c3": [4.5]}
    assert parse(tmp_path, "1 2 3 4.5\n", columns=())[2] == {}
    assert parse(tmp_path, "1 2 3 4.5\n", columns=["c3"])[2] == {"c3": [4.5]}
    assert parse(tmp_path, "1 2 3 4.5\n", columns=[3, 2])[2] == {"c3": [4.5], "c2": [3]}


def test_header_can_be_said(tmp_path):
    assert parse(tmp_path, "1,2\n3,4\n", header=True) == ([3], [4], {})
    assert parse(tmp_path, "source,target\na,b\n", header=False)[0] == ["source", "a"]


@pytest.mark.parametrize(
    ("content", "first"),
    [
        ("u v\nv w\n", "u"),
        ("u v\n1 2\n", 1),
        ("u,v,w\nann,bob,3\n", "ann"),
        ("start,end\nann,bob\n", "ann"),
        ("id,Source,Target\n7,ann,bob\n", "ann"),
        ("ann bob\nbob 7\n", "ann"),
        ("ann bob\n", "ann"),
        ("1 x\n2 y\n", "1"),
    ],
)
def test_header_is_told_from_edges(tmp_path, content, first):
    assert parse(tmp_path, content)[0][0] == first


def test_types_are_inferred(tmp_path):
    content = (
        "u,v,i,big,f,flag,day,stamp,name\n"
        "1,2,-3,18446744073709551615,1e3,true,2024-01-31,2024-01-31T12:00:00Z,ann\n"
        "1,2,4,0,-inf,FALSE,1969-12-31,1970-01-01 00:00:00.000001Z,bob\n"
    )
    (tmp_path / "e.csv").write_text(content)
    source = TextSource(tmp_path / "e.csv")
    assert source.columns == {
        "i": pa.int64(),
        "big": pa.uint64(),
        "f": pa.float64(),
        "flag": pa.bool_(),
        "day": pa.timestamp("us"),
        "stamp": pa.timestamp("us", "UTC"),
    }
    (chunk,) = source.chunks(threads=1, memory=1 << 20)
    kinds = {name: values.dtype.name for name, values in chunk.columns.items()}
    expected = {"i": "int64", "big": "uint64", "f": "float64", "flag": "uint8", "day": "int64", "stamp": "int64"}
    assert kinds == expected
    columns = {name: values.tolist() for name, values in chunk.columns.items()}
    assert columns["i"] == [-3, 4]
    assert columns["big"] == [2**64 - 1, 0]
    assert columns["f"] == [1000.0, -np.inf]
    assert columns["flag"] == [1, 0]
    assert columns["day"] == [1706659200 * 10**6, -86400 * 10**6]
    assert columns["stamp"] == [1706702400 * 10**6, 1]


def test_types_can_be_given(tmp_path):
    types = {"weight": "float32"}
    (tmp_path / "e.txt").write_text("1 2 3\n4 5 6.25\n")
    source = TextSource(tmp_path / "e.txt", types=types)
    (chunk,) = source.chunks(threads=1, memory=1 << 20)
    assert chunk.columns["weight"].dtype == np.float32
    assert chunk.columns["weight"].tolist() == [3, 6.25]
    for kind, value in [("int8", -128), ("uint16", 65535), ("uint64", 2**64 - 1), ("bool", 1), (pa.int32(), 7)]:
        assert parse(tmp_path, f"1 2 {value}\n", types={"weight": kind})[2] == {"weight": [value]}
    assert parse(tmp_path, "1,2,1970-01-01T00:00:01\n", types={"weight": "timestamp[ms]"})[2] == {"weight": [1000]}
    with pytest.raises(UsageError, match="not a type"):
        parse(tmp_path, "1 2 3\n", types={"weight": "furlong"})
    with pytest.raises(UsageError, match="cannot be string"):
        parse(tmp_path, "1 2 3\n", types={"weight": "string"})
    with pytest.raises(UsageError, match="types names column 'w'"):
        parse(tmp_path, "1 2 3\n", types={"w": "int8"})


def test_fill_replaces_what_is_missing(tmp_path):
    content = "u,v,w,n,b,t\n1,2,0.5,1,true,2024-01-01\n3,4,,,,\n5,6,NaN,NULL,NA,null\n"
    fill = {"w": -1.0, "n": -2, "b": True, "t": "1970-01-01"}
    assert parse(tmp_path, content, fill=fill)[2] == {
        "w": [0.5, -1.0, -1.0],
        "n": [1, -2, -2],
        "b": [1, 1, 1],
        "t": [1704067200 * 10**6, 0, 0],
    }
    assert parse(tmp_path, "1,2,\n1,2,\n", fill={"weight": 2.5})[2] == {"weight": [2.5, 2.5]}
    assert parse(tmp_path, "1,2,\n1,2,\n")[2] == {}
    with pytest.raises(UsageError, match="no column 'x'"):
        parse(tmp_path, content, fill={"x": 1})
    with pytest.raises(UsageError, match="no value for column 'n'"):
        parse(tmp_path, content, fill={"n": "many"})
    with pytest.raises(UsageError, match="NaN"):
        parse(tmp_path, content, fill={"w": float("nan")})


def test_many_fills_grow_the_list_of_slow_fields(tmp_path):
    content = "u,v,w\n1,2,3\n" + "1,2,\n" * 5000
    assert parse(tmp_path, content, fill={"w": 9})[2]["w"] == [3] + [9] * 5000


def test_string_ids(tmp_path):
    content = 'from,to,w\n"a, ""b""",c d,1\n\u00e9\u00e8,\u4e16\u754c,2\n'
    sources, targets, columns = parse(tmp_path, content)
    assert sources == ['a, "b"', "\u00e9\u00e8"]
    assert targets == ["c d", "\u4e16\u754c"]
    assert columns == {"w": [1, 2]}
    assert parse(tmp_path, "1 2\n", ids="string")[:2] == (["1"], ["2"])
    assert parse(tmp_path, "ann bob\nbob 7\n")[:2] == (["ann", "bob"], ["bob", "7"])
    assert parse(tmp_path, "ann\tbob smith\n")[:2] == (["ann"], ["bob smith"])


def test_string_chunks_are_arrow(tmp_path):
    (tmp_path / "e.txt").write_text("a b\n")
    source = TextSource(tmp_path / "e.txt")
    assert source.string_ids
    (chunk,) = source.chunks(threads=1, memory=1 << 20)
    assert chunk.source.type == pa.string()


def test_empty_fields_need_the_right_delimiter(tmp_path):
    assert parse(tmp_path, "1\t2\t\tx\n3\t4\t\ty\n", name="e.tsv") == ([1, 3], [2, 4], {})


def test_extreme_ids(tmp_path):
    assert parse(tmp_path, "-9223372036854775808 9223372036854775807\n")[:2] == ([-(2**63)], [2**63 - 1])
    content = "0 18446744073709551615\n9223372036854775808 9999999999999999999\n10000000000000000000 1\n"
    assert parse(tmp_path, content)[:2] == ([0, 2**63, 10**19], [2**64 - 1, 10**19 - 1, 1])


def test_kind_of_ids_by_chunk(tmp_path):
    (tmp_path / "e.txt").write_text("1 2\n" * 100 + "1 18446744073709551615\n")
    kinds = [c.source.dtype.name for c in TextSource(tmp_path / "e.txt", block_size=64).chunks(threads=2, memory=1)]
    assert set(kinds[:-1]) == {"int64"}
    assert kinds[-1] == "uint64"


def test_comment_option(tmp_path):
    assert parse(tmp_path, "; x\n1 2\n", comment=";") == ([1], [2], {})
    assert parse(tmp_path, "--x\n1 2\n", comment=["--", "#"]) == ([1], [2], {})
    assert parse(tmp_path, "#a #b\n", comment=None)[:2] == (["#a"], ["#b"])
    with pytest.raises(UsageError, match="one or two"):
        parse(tmp_path, "1 2\n", comment="///")


def test_delimiter_option(tmp_path):
    assert parse(tmp_path, "1:2\n", delimiter=":") == ([1], [2], {})
    assert parse(tmp_path, "a,b c,d\n", delimiter="whitespace")[:2] == (["a,b"], ["c,d"])
    with pytest.raises(UsageError, match="one ASCII character"):
        parse(tmp_path, "1 2\n", delimiter="::")


def test_several_files_are_one(tmp_path):
    (tmp_path / "part-0.csv").write_text("src,dst,w\n1,2,3\n")
    (tmp_path / "part-1.csv").write_text("src,dst,w\n")
    (tmp_path / "part-2.csv").write_text("src,dst,w\n4,5,6\n")
    (tmp_path / "part-3.csv").write_text("7,8,9")
    (tmp_path / "_SUCCESS").write_text("")
    expected = ([1, 4, 7], [2, 5, 8], {"w": [3, 6, 9]})
    assert read(open_text(tmp_path / "part-*.csv")) == expected
    assert read(open_text(tmp_path)) == expected
    assert read(open_text(sorted(tmp_path.glob("part-*")))) == expected
    with pytest.raises(InputError, match="no file matches"):
        open_text(tmp_path / "nothing-*.csv")


def test_error_in_a_later_file_names_it(tmp_path):
    (tmp_path / "a.txt").write_text("1 2\n")
    (tmp_path / "b.txt").write_text("1 2\nx 3\n")
    with pytest.raises(InputError) as caught:
        read(open_text([tmp_path / "a.txt", tmp_path / "b.txt"]))
    assert caught.value.path == str(tmp_path / "b.txt")
    assert caught.value.line == 2


def test_position_and_size_count_bytes(tmp_path):
    path = tmp_path / "e.txt"
    path.write_text("1 2\n" * 1000)
    source = TextSource(path, block_size=100)
    assert (source.unit, source.size, source.position) == ("bytes", 4000, 0)
    assert 900 <= source.estimated_edges <= 1100
    seen = [source.position for _ in source.chunks(threads=2, memory=1 << 20)]
    assert seen == sorted(seen)
    assert source.position == 4000


def test_an_abandoned_source_leaves_no_threads(tmp_path):
    import gzip
    import threading

    metis = b"3000 9\n" + b"2 3\n" * 3000
    for name, content in [
        ("e.txt", b"1 2\n" * 10000),
        ("e.txt.gz", gzip.compress(b"1 2\n" * 10000)),
        ("e.graph", metis),
    ]:
        (tmp_path / name).write_bytes(content)
        chunks = open_text(tmp_path / name, block_size=64).chunks(threads=2, memory=1 << 20)
        next(chunks)
        chunks.close()
        assert not [thread for thread in threading.enumerate() if thread.name.startswith("penstock")]


def test_blocks_shrink_with_the_memory():
    from penstock.ingest.text.blocks import BLOCK, block_size

    assert block_size(2, 1 << 30) == BLOCK
    assert block_size(2, 1 << 20) * 5 * 4 < 1 << 20
    assert block_size(8, 1 << 20) * 5 * 10 < 1 << 20
    assert block_size(2, 1 << 20, overhead=10) <= block_size(2, 1 << 20) // 2
