from __future__ import annotations

import datetime
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import InputError, UsageError
from penstock.ingest.source import EdgeSource
from penstock.ingest.tables.arrow import open_arrow, open_table

MEMORY = 1 << 20


def edges(source: EdgeSource, *, threads: int = 2, memory: int = MEMORY) -> dict[str, list]:
    """Everything a source yields, as lists."""
    out: dict[str, list] = {"source": [], "target": [], **{name: [] for name in source.columns}}
    for chunk in source.chunks(threads=threads, memory=memory):
        assert len(chunk) == len(chunk.source) == len(chunk.target)
        assert set(chunk.columns) == set(source.columns)
        for name, values in {"source": chunk.source, "target": chunk.target, **chunk.columns}.items():
            assert isinstance(values, pa.Array) == (source.string_ids and name in ("source", "target"))
            out[name] += values.to_pylist() if isinstance(values, pa.Array) else values.tolist()
    assert source.position == len(out["source"])
    return out


def parquet(path: Path, columns: Any, **options: Any) -> Path:
    table = columns if isinstance(columns, pa.Table) else pa.table(columns)
    pq.write_table(table, path, **options)
    return path


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "edges.parquet"


# Which columns


@pytest.mark.parametrize(
    ("names", "ends"),
    [
        (["w", "source", "target"], ("source", "target")),
        (["from", "to", "src", "dst"], ("src", "dst")),
        (["destination", "source"], ("source", "destination")),
        (["v", "u"], ("u", "v")),
        (["end", "start"], ("start", "end")),
        (["Source", "TARGET"], ("Source", "TARGET")),
        (["a", "source", "b"], ("a", "source")),
        (["__index_level_0__", "x", "y"], ("x", "y")),
    ],
)
def test_ends_are_recognised(path: Path, names: list[str], ends: tuple[str, str]) -> None:
    parquet(path, {name: [i, i + 10] for i, name in enumerate(names)})
    got = edges(open_table(path))
    assert (got["source"], got["target"]) == tuple([names.index(end), names.index(end) + 10] for end in ends)
    assert set(got) - {"source", "target"} == set(names) - set(ends) - {"__index_level_0__"} - {"source", "target"}


def test_ends_and_columns_by_option(path: Path) -> None:
    parquet(path, {"a": [1], "b": [2], "c": [3.5], "d": ["text"]})
    source = open_table(path, source="b", target="a", columns=["c"])
    assert source.columns == {"c": pa.float64()}
    assert edges(source) == {"source": [2], "target": [1], "c": [3.5]}
    assert edges(open_table(path, columns=())) == {"source": [1], "target": [2]}
    with pytest.raises(InputError, match=r"column 'd' is of type string.*columns="):
        open_table(path)
    with pytest.raises(InputError, match=r"column 'd' is of type string.*leave it out"):
        open_table(path, columns=["d"])


@pytest.mark.parametrize("options", [{"columns": ["weight"]}, {"source": "weight", "target": "b"}])
def test_a_missing_column_is_named(path: Path, options: dict) -> None:
    parquet(path, {"a": [1], "b": [2]})
    with pytest.raises(InputError, match=r"edges.parquet: there is no column 'weight'; the columns are 'a', 'b'"):
        open_table(path, **options)


def test_bad_options(path: Path) -> None:
    parquet(path, {"a": [1], "b": [2], "c": [3]})
    with pytest.raises(UsageError, match="both source= and target="):
        open_table(path, source="a")
    with pytest.raises(UsageError, match="both 'a'"):
        open_table(path, source="a", target="a")
    with pytest.raises(UsageError, match="no option 'colums'"):
        open_table(path, colums=[])
    with pytest.raises(UsageError, match="fill names the column 'x'"):
        open_table(path, fill={"x": 1})
    with pytest.raises(UsageError, match=r"'many' is no int64"):
        open_table(path, fill={"c": "many"})
    with pytest.raises(InputError, match="needs two columns"):
        open_table(parquet(path, {"a": [1]}))
    with pytest.raises(InputError, match="2 columns named 'a'"):
        open_arrow(pa.table([[1], [2], [3]], names=["a", "b", "a"]))


# Ids


@pytest.mark.parametrize(
    ("kind", "dtype"),
    [
        (pa.int8(), np.int64),
        (pa.int32(), np.int64),
        (pa.int64(), np.int64),
        (pa.uint8(), np.uint32),
        (pa.uint32(), np.uint32),
        (pa.uint64(), np.uint64),
        (pa.float32(), np.int64),
        (pa.float64(), np.int64),
        (pa.decimal128(20, 0), np.int64),
        (pa.dictionary(pa.int8(), pa.int64()), np.int64),
    ],
)
def test_integer_ids(kind: pa.DataType, dtype: type) -> None:
    ids = pa.array([1, 2, 100], pa.int64())
    column = ids.dictionary_encode().cast(kind) if pa.types.is_dictionary(kind) else ids.cast(kind)
    source = open_arrow(pa.table({"u": column, "v": column}))
    chunk = next(source.chunks(threads=1, memory=MEMORY))
    assert chunk.source.dtype == chunk.target.dtype == dtype
    assert chunk.source.tolist() == [1, 2, 100]
    assert not source.string_ids


@pytest.mark.parametrize(
    "kind",
    [
        pa.string(),
        pa.large_string(),
        pa.string_view(),
        pa.dictionary(pa.int32(), pa.string()),
        pa.dictionary(pa.int8(), pa.large_string()),
    ],
)
def test_string_ids(kind: pa.DataType) -> None:
    words = ["a", "", "long enough to leave the view inline", "\u00e9", "a"]
    column = pa.array(words).dictionary_encode().cast(kind) if pa.types.is_dictionary(kind) else pa.array(words, kind)
    source = open_arrow(pa.table({"u": column, "v": column}))
    assert source.string_ids
    for chunk in source.chunks(threads=1, memory=MEMORY):
        assert chunk.source.type in (pa.string(), pa.large_string())
        assert chunk.source.to_pylist() == chunk.target.to_pylist() == words


def test_large_and_mixed_integers() -> None:
    top = 2**64 - 1
    big = pa.array([top, 5], pa.uint64())
    assert edges(open_arrow(pa.table({"u": big, "v": pa.array([1, 2], pa.int8())}))) == {
        "source": [top, 5],
        "target": [1, 2],
    }
    with pytest.raises(InputError, match="row 2: column 'v' holds -2, but the ids are unsigned"):
        edges(open_arrow(pa.table({"u": big, "v": pa.array([1, -2])})))
    assert edges(open_arrow(pa.table({"u": pa.array([7], pa.uint32()), "v": [-3]}))) == {"source": [7], "target": [-3]}


@pytest.mark.parametrize(
    ("column", "words"),
    [
        (pa.array([1, 1.5]), "row 2: column 'src' holds 1.5, ids must be integers or strings"),
        (pa.array([1, float("inf")]), "row 2: column 'src' holds inf"),
        (pa.array([1, float("nan")]), "row 2: column 'src' is NaN"),
        (pa.array([1, 2.0**60]), r"beyond 2\*\*53"),
        (pa.array([1, None]), "row 2: column 'src' is null"),
        (pa.array([None, None]), "row 1: column 'src' is null"),
        (pa.array([True, False]), "column 'src' is of type bool, ids must be integers or strings"),
        (pa.array([datetime.date(2020, 1, 1)] * 2), "column 'src' is of type date32"),
        (pa.array(["a", "b"]), "ids are of two kinds"),
        (pa.array([10**30, 1], pa.decimal128(38, 0)), "do not fit in 64 bits"),
        (pa.array(["a", None]).dictionary_encode(), "ids are of two kinds"),
        (pa.array([5, None]).dictionary_encode(), "row 2: column 'src' is null"),
    ],
)
def test_bad_ids(column: pa.Array, words: str) -> None:
    with pytest.raises(InputError, match=words):
        edges(open_arrow(pa.table({"src": column, "dst": [1, 2]})))


def test_null_string_id_deep_in_a_file(path: Path) -> None:
    words: list[str | None] = [str(i) for i in range(5000)]
    words[4321] = None
    parquet(path, {"src": words, "dst": ["x"] * 5000}, row_group_size=1000)
    with pytest.raises(InputError, match=r"edges.parquet: row 4322: column 'src' is null"):
        edges(open_table(path), memory=1 << 16)


# Columns


def test_column_types_in_storage_form() -> None:
    day = datetime.date(1970, 1, 3)
    moment = datetime.datetime(1970, 1, 1, 0, 0, 1)
    table = pa.table(
        {
            "u": [1, 2],
            "v": [3, 4],
            "flag": [True, False],
            "day": [day, day],
            "at": pa.array([moment, moment], pa.timestamp("ms", "UTC")),
            "small": pa.array([-1, 1], pa.int8()),
            "half": pa.array([0.5, 0.25], pa.float32()),
            "word": pa.array([7, 8], pa.int64()).dictionary_encode(),
        }
    )
    source = open_arrow(table)
    assert source.columns["at"] == pa.timestamp("ms", "UTC")
    assert source.columns["flag"] == pa.bool_()
    assert source.columns["word"] == pa.int64()
    chunk = next(source.chunks(threads=1, memory=MEMORY))
    assert {name: (values.dtype.name, values.tolist()) for name, values in chunk.columns.items()} == {
        "flag": ("uint8", [1, 0]),
        "day": ("int32", [2, 2]),
        "at": ("int64", [1000, 1000]),
        "small": ("int8", [-1, 1]),
        "half": ("float32", [0.5, 0.25]),
        "word": ("int64", [7, 8]),
    }


def test_nulls_and_nan_in_columns() -> None:
    table = pa.table({"u": [1, 2, 3], "v": [4, 5, 6], "n": [1, None, 3], "x": [0.5, None, float("nan")]})
    with pytest.raises(InputError, match=r"row 2: column 'n' is null \(pass fill=\{'n': value\}\)"):
        edges(open_arrow(table))
    with pytest.raises(InputError, match="row 2: column 'x' is null"):
        edges(open_arrow(table, fill={"n": 0}))
    assert edges(open_arrow(table, fill={"n": 9, "x": 1}))["x"] == [0.5, 1.0, 1.0]
    assert edges(open_arrow(table, fill={"n": 9, "x": 1}))["n"] == [1, 9, 3]
    nan = table.slice(2)
    with pytest.raises(InputError, match=r"row 1: column 'x' is NaN .*allow_nan"):
        edges(open_arrow(nan))
    assert np.isnan(edges(open_arrow(nan, allow_nan=True))["x"][0])
    flags = pa.table({"u": [1, 2], "v": [4, 5], "f": [None, False]})
    assert edges(open_arrow(flags, fill={"f": True}))["f"] == [1, 0]


# Parquet files


@pytest.mark.parametrize("row_group_size", [100, 1000, 100_000])
@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("memory", [1, 1 << 16, 1 << 26])
def test_order_is_kept_for_all_threads_and_memories(path: Path, row_group_size: int, threads: int, memory: int) -> None:
    n = 5000
    table = pa.table({"src": np.arange(n), "dst": np.arange(n)[::-1].copy(), "w": np.arange(n) / 8})
    parquet(path, table, row_group_size=row_group_size)
    source = open_table(path)
    assert source.size == source.estimated_edges == n
    got = edges(source, threads=threads, memory=memory)
    assert got == {"source": table["src"].to_pylist(), "target": table["dst"].to_pylist(), "w": table["w"].to_pylist()}


@pytest.mark.parametrize("groups", [1, 2, 40])
def test_memory_stays_bounded(path: Path, groups: int) -> None:
    n = 2_000_000
    rng = np.random.default_rng(0)
    columns = {name: rng.integers(0, 2**60, n) for name in ("src", "dst", "unused")}
    parquet(path, columns, row_group_size=n // groups)
    del columns
    source, before, most, rows = open_table(path, columns=()), pa.total_allocated_bytes(), 0, 0
    for chunk in source.chunks(threads=2, memory=4 << 20):
        rows += len(chunk)
        most = max(most, pa.total_allocated_bytes() - before)
    assert rows == n
    # Pages (1 MiB) and dictionaries in use come on top of the chunks; a whole row group would be 32 MB.
    assert most < 16 << 20


def test_folder_and_list_of_files(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    (folder / "more").mkdir(parents=True)
    parquet(folder / "b.parquet", {"src": [3], "dst": [4]})
    parquet(folder / "a.parquet", {"dst": [2], "src": [1]})
    parquet(folder / "more" / "c.pq", {"src": pa.array([5], pa.int32()), "dst": [6]})
    (folder / "_metadata").write_bytes(b"no data")
    (folder / ".hidden.parquet").write_bytes(b"no data")
    (folder / "_SUCCESS").touch()
    assert edges(open_table(folder)) == {"source": [1, 3, 5], "target": [2, 4, 6]}
    assert edges(open_table([folder / "b.parquet", str(folder / "a.parquet")])) == {"source": [3, 1], "target": [4, 2]}
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="no Parquet files"):
        open_table(tmp_path / "empty")


def test_files_that_disagree(tmp_path: Path) -> None:
    parquet(tmp_path / "a.parquet", {"src": [1], "dst": [2], "w": [1]})
    parquet(tmp_path / "b.parquet", {"src": [1], "dst": [2]})
    with pytest.raises(InputError, match=r"b.parquet: there is no column 'w'"):
        open_table(tmp_path)
    parquet(tmp_path / "b.parquet", {"src": ["x"], "dst": ["y"], "w": [1]})
    with pytest.raises(InputError, match=r"b.parquet: column 'src' is string here and a number elsewhere"):
        edges(open_table(tmp_path))
    parquet(tmp_path / "b.parquet", {"src": [1], "dst": [2], "w": [1.5]})
    with pytest.raises(InputError, match=r"b.parquet: column 'w' is double here and int64 elsewhere"):
        edges(open_table(tmp_path))
    parquet(tmp_path / "b.parquet", {"src": [1], "dst": pa.array([2**64 - 1], pa.uint64()), "w": [1]})
    with pytest.raises(InputError, match=r"b.parquet: row 1: column 'dst' holds 18446744073709551615, too large"):
        edges(open_table(tmp_path))


def test_partition_folders(tmp_path: Path) -> None:
    for year, day, ids in ((2021, "2021-01-02", [3]), (2020, "2020-12-31", [1, 2])):
        folder = tmp_path / f"year={year}" / f"day={day}" / "kind=a%20b"
        folder.mkdir(parents=True)
        parquet(folder / "part.parquet", {"src": ids, "dst": ids})
    got = edges(open_table(tmp_path, columns=["year", "day"]))
    assert got == {"source": [1, 2, 3], "target": [1, 2, 3], "year": [2020, 2020, 2021], "day": [18627, 18627, 18629]}
    with pytest.raises(InputError, match="column 'kind' is of type string"):
        open_table(tmp_path)
    assert edges(open_table(tmp_path, columns=())) == {"source": [1, 2, 3], "target": [1, 2, 3]}
    missing = tmp_path / "year=__HIVE_DEFAULT_PARTITION__" / "day=2020-01-01" / "kind=c"
    missing.mkdir(parents=True)
    parquet(missing / "part.parquet", {"src": [4], "dst": [4]})
    with pytest.raises(InputError, match="row 1: column 'year' is null"):
        edges(open_table(tmp_path, columns=["year"]))
    assert edges(open_table(tmp_path, columns=["year"], fill={"year": 0}))["year"] == [2020, 2020, 2021, 0]


def test_damaged_parquet(path: Path) -> None:
    n = 20_000
    parquet(path, {"src": np.arange(n), "dst": np.arange(n)}, use_dictionary=False, write_page_checksum=True)
    data = path.read_bytes()
    for cut in (0, 3, 100, len(data) // 2, len(data) - 1):
        path.write_bytes(data[:cut])
        with pytest.raises(InputError, match=r"edges.parquet: "):
            edges(open_table(path))
    for at in (0, 1000, len(data) // 2, len(data) - 20):
        broken = bytearray(data)
        broken[at : at + 8] = b"\xff" * 8
        path.write_bytes(broken)
        with pytest.raises(InputError, match=r"edges.parquet: "):
            edges(open_table(path))


def test_no_file(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"none.parquet: cannot be read: No such file"):
        open_table(tmp_path / "none.parquet")
    with pytest.raises(InputError, match=r"none.arrow: cannot be read: No such file"):
        open_table(tmp_path / "none.arrow")
    (tmp_path / "text.parquet").write_text("source target\n1 2\n")
    with pytest.raises(InputError, match="no readable Parquet file"):
        open_table(tmp_path / "text.parquet")


def test_empty_tables(path: Path) -> None:
    nothing = pa.table({"src": pa.array([], pa.int64()), "dst": pa.array([], pa.int64())})
    parquet(path, nothing)
    with pytest.raises(InputError, match="holds no edges"):
        open_table(path)
    assert edges(open_table(path, allow_empty=True)) == {"source": [], "target": []}
    with pytest.raises(InputError, match="holds no edges"):
        edges(open_arrow(nothing))
    assert edges(open_arrow(nothing, allow_empty=True)) == {"source": [], "target": []}


def test_leaving_early_ends_the_workers(path: Path) -> None:
    parquet(path, {"src": np.arange(100_000), "dst": np.arange(100_000)}, row_group_size=1000)
    stream = open_table(path).chunks(threads=2, memory=1 << 18)
    next(stream)
    stream.close()


# Arrow files


@pytest.mark.parametrize("compression", ["uncompressed", "lz4", "zstd"])
def test_feather(tmp_path: Path, compression: str) -> None:
    n = 5000
    table = pa.table({"name": ["x"] * n, "src": np.arange(n), "dst": np.arange(n) * 2, "w": np.arange(n) / 4})
    feather.write_feather(table, tmp_path / "e.feather", compression=compression, chunksize=3000)
    got = edges(open_table(tmp_path / "e.feather", columns=["w"]), memory=1 << 14)
    assert got["target"] == table["dst"].to_pylist()
    assert got["w"] == table["w"].to_pylist()


def test_feather_with_dictionaries_and_stream_files(tmp_path: Path) -> None:
    table = pa.table({"src": pa.array(["a", "b"] * 50).dictionary_encode(), "dst": ["c", "d"] * 50})
    feather.write_feather(table, tmp_path / "e.arrow")
    assert edges(open_table(tmp_path / "e.arrow"))["source"] == ["a", "b"] * 50
    (tmp_path / "e.arrow").rename(tmp_path / "by_content")
    assert edges(open_table(tmp_path / "by_content"))["source"] == ["a", "b"] * 50
    with pa.OSFile(str(tmp_path / "e.arrows"), "wb") as sink, pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    assert edges(open_table(tmp_path / "e.arrows"))["target"] == ["c", "d"] * 50


def test_large_arrow_batches_are_not_copied(tmp_path: Path) -> None:
    n = 1_000_000
    file = tmp_path / "e.arrow"
    feather.write_feather(
        pa.table({"src": np.arange(n), "dst": np.arange(n)}), file, compression="uncompressed", chunksize=n
    )
    source, before = open_table(file), pa.total_allocated_bytes()
    for chunk in source.chunks(threads=1, memory=1 << 20):
        assert len(chunk) <= 1 << 15
        assert pa.total_allocated_bytes() - before < 1 << 20


def test_damaged_arrow_file(tmp_path: Path) -> None:
    file = tmp_path / "e.arrow"
    feather.write_feather(pa.table({"src": np.arange(1000), "dst": np.arange(1000)}), file)
    data = file.read_bytes()
    for cut in (0, 5, 100, len(data) // 2, len(data) - 3):
        file.write_bytes(data[:cut])
        with pytest.raises(InputError, match=r"e.arrow: "):
            edges(open_table(file))
    file.write_bytes(b"FEA1" + data[4:])
    with pytest.raises(InputError, match="version 1"):
        open_table(file)


# Objects with an Arrow stream


def test_pyarrow_objects(path: Path) -> None:
    table = pa.table({"src": [1, 2], "dst": [3, 4]})
    expected = {"source": [1, 2], "target": [3, 4]}
    for obj in (table, table.to_batches()[0], table.to_reader(), ds.dataset(parquet(path, table))):
        source = open_arrow(obj)
        assert edges(source) == expected


def test_pandas() -> None:
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"src": [1, 2, 3], "dst": [4, 5, 6], "w": [0.5, 1, 2]})
    kept = frame[frame.dst > 4]
    source = open_arrow(kept)
    assert source.size == 2
    assert source.name == "pandas DataFrame"
    assert edges(source) == {"source": [2, 3], "target": [5, 6], "w": [1, 2]}
    widened = pd.DataFrame({"src": [1, None], "dst": [1, 2]})
    with pytest.raises(InputError, match="row 2: column 'src' is null"):
        edges(open_arrow(widened))
    assert edges(open_arrow(widened.dropna())) == {"source": [1], "target": [1]}
    named = pd.DataFrame({"src": ["a", "b"], "dst": pd.Categorical(["x", "y"])})
    assert edges(open_arrow(named)) == {"source": ["a", "b"], "target": ["x", "y"]}


def test_polars() -> None:
    pl = pytest.importorskip("polars")
    frame = pl.DataFrame({"from": ["a", "b"], "to": ["c", "d"], "at": [datetime.date(1970, 1, 2)] * 2})
    assert edges(open_arrow(frame)) == {"source": ["a", "b"], "target": ["c", "d"], "at": [1, 1]}
    frame = pl.DataFrame({"u": [1, 2], "v": [3, 4]}, schema={"u": pl.UInt32, "v": pl.Int16})
    assert edges(open_arrow(frame)) == {"source": [1, 2], "target": [3, 4]}


def test_duckdb() -> None:
    duckdb = pytest.importorskip("duckdb")
    relation = duckdb.sql("select i as src, i + 1 as dst, i / 2 as w from range(5000) t(i)")
    got = edges(open_arrow(relation), memory=1 << 14)
    assert got["source"] == list(range(5000))
    assert got["w"][3] == 1.5
    total = duckdb.sql("select sum(i) as src, 1 as dst from range(10) t(i)")
    assert edges(open_arrow(total)) == {"source": [45], "target": [1]}


def test_a_stream_that_breaks() -> None:
    schema = pa.schema([("src", pa.int64()), ("dst", pa.int64())])

    def batches() -> Any:
        yield pa.record_batch([[1], [2]], schema=schema)
        raise OSError("the line went dead.")

    with pytest.raises(InputError, match=r"row 2 or later: .*the line went dead"):
        edges(open_arrow(pa.RecordBatchReader.from_batches(schema, batches())))


def test_reading_does_not_import_pandas(path: Path) -> None:
    parquet(path, {"src": [1, 2], "dst": [3, 4], "w": [0.5, 1]})
    code = (
        "import sys, numpy as np\n"
        "from penstock.ingest.tables.arrow import open_table\n"
        "from penstock.ingest.tables.objects import open_object\n"
        f"assert sum(map(len, open_table({str(path)!r}).chunks(threads=2, memory=1 << 20))) == 2\n"
        "a = np.arange(3)\n"
        "assert sum(map(len, open_object((a, a, a / 2)).chunks(threads=2, memory=1 << 20))) == 3\n"
        "assert 'pandas' not in sys.modules and 'numba' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@given(
    st.lists(st.tuples(st.integers(0, 2**63 - 1), st.integers(0, 2**63 - 1), st.floats(allow_nan=False)), min_size=1),
    st.integers(1, 20),
    st.integers(1, 1 << 12),
)
def test_any_table_comes_back(tmp_path_factory: Any, rows: list, group: int, memory: int) -> None:
    file = tmp_path_factory.mktemp("any") / "e.parquet"
    heads, tails, weights = (list(column) for column in zip(*rows, strict=True))
    parquet(file, {"u": heads, "v": tails, "w": pa.array(weights, pa.float64())}, row_group_size=group)
    assert edges(open_table(file), memory=memory) == {"source": heads, "target": tails, "w": weights}
