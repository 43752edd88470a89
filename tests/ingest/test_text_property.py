"""Random edge lists, oddly written, parse to the same arrays for every block size and thread count."""

from __future__ import annotations

import contextlib
import gzip
import struct

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from penstock.errors import InputError
from penstock.ingest.text.decimal import FIVES, PARSED, parse_decimal
from penstock.ingest.text.formats import open_text
from penstock.ingest.text.layout import COMMENTS, INTEGER, Layout

QUICK = settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture]
)
BLOCKS = st.sampled_from([64, 65, 97, 200, 4096, None])
THREADS = st.integers(1, 3)
SIGNED = st.integers(-(2**63), 2**63 - 1) | st.integers(0, 50)
UNSIGNED = st.integers(0, 2**64 - 1) | st.integers(0, 50)
FLOATS = st.floats(allow_nan=False, width=64)
BLANK = st.sampled_from([" ", "\t", "  ", " \t ", "\t\t"])
NOISE = st.sampled_from(["", "", "", "# note\n", "\n", "  \n", "% 1 2\n", "//\n", "\r\n", "# long " + "x" * 150 + "\n"])
NAMES = st.text(st.characters(codec="utf-8", exclude_categories=["C", "Z"]), min_size=1, max_size=12)


def collect(path, threads, **options):
    source = open_text(path, **options)
    chunks = list(source.chunks(threads=threads, memory=1 << 20))
    join = lambda end: [x for c in chunks for x in getattr(c, end).tolist()]  # noqa: E731
    columns = {name: np.concatenate([c.columns[name] for c in chunks]) for name in source.columns}
    return join("source"), join("target"), columns


def write(folder, lines, packed, final):
    text = "".join(lines)
    text = text if final else text.rstrip("\r\n")
    path = folder / ("e.txt.gz" if packed else "e.txt")
    path.write_bytes(gzip.compress(text.encode(), 1) if packed else text.encode())
    return path


@QUICK
@given(st.data(), st.booleans(), BLOCKS, THREADS, st.booleans(), st.booleans())
def test_pairs_of_integers(tmp_path, data, unsigned, block, threads, packed, final):
    ids = UNSIGNED if unsigned else SIGNED
    edges = data.draw(st.lists(st.tuples(ids, ids), min_size=1, max_size=40))
    mark = data.draw(st.sampled_from([None, ",", ";", "|"]))
    end = data.draw(st.sampled_from(["\n", "\r\n"]))
    lines = []
    for u, v in edges:
        lines.append(data.draw(NOISE))
        between = data.draw(BLANK) if mark is None else data.draw(st.sampled_from([mark, f" {mark}", f"{mark}\t "]))
        around = data.draw(st.sampled_from(["", " ", "\t"])), data.draw(st.sampled_from(["", " ", "\t"]))
        lines.append(f"{around[0]}{u}{between}{v}{around[1]}{end}")
    path = write(tmp_path, lines, packed, final)
    sources, targets, columns = collect(path, threads, block_size=block)
    assert (sources, targets, columns) == ([u for u, _ in edges], [v for _, v in edges], {})


@QUICK
@given(
    st.lists(st.tuples(SIGNED, SIGNED, FLOATS, st.integers(-(2**63), 2**63 - 1)), min_size=1, max_size=40),
    BLOCKS,
    THREADS,
    st.booleans(),
    st.sampled_from(["r", ".17g", ".5f", ".25e", "g", "quoted"]),
)
def test_columns_bit_for_bit(tmp_path, rows, block, threads, packed, how):
    texts = [repr(f) if how in ("r", "quoted") else format(f, how) for _, _, f, _ in rows]
    wrap = '"' if how == "quoted" else ""
    lines = ["u,v,f,i\n"]
    lines += [f"{wrap}{u}{wrap},{v},{wrap}{t}{wrap},{i}\n" for (u, v, _, i), t in zip(rows, texts, strict=True)]
    path = write(tmp_path, lines, packed, True)
    sources, targets, columns = collect(path, threads, block_size=block, types={"f": "float64"})
    assert (sources, targets) == ([r[0] for r in rows], [r[1] for r in rows])
    assert columns["i"].tolist() == [r[3] for r in rows]
    assert columns["f"].tobytes() == np.array([float(t) for t in texts]).tobytes()


@QUICK
@given(st.lists(st.tuples(NAMES, NAMES), min_size=1, max_size=30), BLOCKS, THREADS, st.booleans())
def test_names(tmp_path, edges, block, threads, packed):
    quoted = [[f'"{name}"' for name in (u.replace('"', '""'), v.replace('"', '""'))] for u, v in edges]
    path = write(tmp_path, ["a;b\n"] + [";".join(pair) + "\n" for pair in quoted], packed, True)
    options = {"delimiter": ";", "ids": "string", "header": True, "comment": None, "block_size": block}
    sources, targets, _ = collect(path, threads, **options)
    assert (sources, targets) == ([u for u, _ in edges], [v for _, v in edges])


def parsed_bits(text):
    buffer = np.frombuffer(text.encode() + b"\n", np.uint8)
    value = np.zeros((1, 1))
    at, how = parse_decimal(buffer, np.uint64(0), value, value.view(np.uint64), 0, 0, FIVES)
    assert at == len(text)
    return how, value.tobytes()


@settings(max_examples=500, deadline=None)
@given(st.integers(0, 2**64 - 1), st.integers(-360, 320), st.booleans())
def test_decimals_are_nearest(digits, power, negative):
    text = f"{'-' if negative else ''}{digits}e{power}"
    how, bits = parsed_bits(text)
    if digits < 10**19:
        assert how == PARSED
    if how == PARSED:
        assert bits == struct.pack("d", float(text))


def test_decimals_half_way_and_at_the_edges():
    for text in (
        "9007199254740993", "9007199254740995", "9007199254740993e1", "4503599627370496.5", "4503599627370497.5",
        "1e23", "8.5e22", "5e-324", "2.4703282292062327e-324", "2.4703282292062328e-324", "2.2250738585072011e-308",
        "1.7976931348623157e308", "1.7976931348623159e308", "1e309", "1e-400", "-0", "0.0", "-0e10", ".5", "5.", "1E5",
        "0000000000000000000000000.25", "6.631236846766476e-316",
    ):  # fmt: skip
        assert parsed_bits(text) == (PARSED, struct.pack("d", float(text))), text


def reference(text, mark, comments, fields):
    """The rows of a text, or the number of its first bad line, by Python alone."""
    layout = Layout(fields, delimiter=mark, comments=comments)
    rows = []
    for number, line in enumerate(text.split(b"\n"), 1):
        if not layout.is_row(line):
            continue
        quotes = line.count(b'"')
        tokens = layout.split(line)
        good = len(tokens) == fields and all(INTEGER.fullmatch(t.strip()) for t in tokens) and not quotes
        if not good or b"\r" in line.removesuffix(b"\r"):
            return number
        row = tuple(int(t) for t in tokens)
        if not all(-(2**63) <= value < 2 ** (63 if k == 2 else 64) for k, value in enumerate(row)):
            return number
        rows.append(row)
        ids = [value for row in rows for value in row[:2]]
        if min(ids) < 0 and max(ids) >= 2**63:
            return number
    return rows


@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.text(st.sampled_from(list("0123456789  ,,\t\n\n\n-#%/x.e\0")), max_size=200),
    st.sampled_from([None, ",", "\t"]),
    st.sampled_from([2, 3]),
    st.sampled_from([64, 70, None]),
)
def test_any_text_is_read_or_refused_as_by_python(tmp_path, text, mark, fields, block):
    path = tmp_path / "e.txt"
    start = (mark or " ").join(["1"] * fields).encode() + b"\n"
    path.write_bytes(start + text.encode())
    expected = reference(start + text.encode(), mark, COMMENTS, fields)
    kinds = {"weight": "int64"} if fields == 3 else {}
    options = {"delimiter": mark or "whitespace", "ids": "integer", "header": False, "types": kinds}
    if isinstance(expected, int):
        with pytest.raises(InputError) as caught:
            collect(path, 2, block_size=block, **options)
        assert caught.value.line == expected
    else:
        sources, targets, columns = collect(path, 2, block_size=block, **options)
        values = [sources, targets] + [column.tolist() for column in columns.values()]
        assert list(zip(*values, strict=True)) == expected


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.binary(max_size=300), st.sampled_from(["e.txt", "e.mtx", "e.graph", "e.gr", "e.wel", "e.csv"]), st.booleans())
def test_any_bytes_are_read_or_refused(tmp_path, data, name, banner):
    heads = {"e.mtx": b"%%MatrixMarket matrix coordinate real general\n9 9 3\n", "e.graph": b"3 2 111 2\n"}
    heads |= {"e.gr": b"p sp 9 3\n", "e.wel": b"1 2 3\n", "e.csv": b"source,target,w\n1,2,3\n", "e.txt": b"1 2 3.5 x\n"}
    (tmp_path / name).write_bytes((heads[name] if banner else b"") + data)
    for block in (64, None):
        with contextlib.suppress(InputError):
            collect(tmp_path / name, 2, block_size=block)
