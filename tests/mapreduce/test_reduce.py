"""Reduce and compress against plain Python, also where the values of a key are cut over several chunks."""

from __future__ import annotations

import math
import operator
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from functools import reduce
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from penstock.errors import DoesNotFit, ProgramError, UsageError
from penstock.mapreduce.chunk import Chunk, Groups
from penstock.mapreduce.columns import NOTHING, Bytes, as_column, as_kind
from penstock.mapreduce.combiner import Combiner, from_codes
from penstock.mapreduce.combining import local_groups
from penstock.mapreduce.functions import chunk, emit
from penstock.mapreduce.multivalue import KeyMultiValue
from penstock.mapreduce.reduce import LongValues
from penstock.mapreduce.session import MapReduce

PLACES = {"memory": {"memory_limit": "256MB"}, "disk": {"memory_limit": "2MB", "force_out_of_core": True}}
checked = settings(max_examples=25, suppress_health_check=list(HealthCheck))


@pytest.fixture(scope="module", params=PLACES)
def mr(request: pytest.FixtureRequest) -> Iterator[MapReduce]:
    with MapReduce(threads=2, chunk_size=4096 if request.param == "disk" else None, **PLACES[request.param]) as made:
        yield made


ORACLES: dict[str, Callable[[list], Any]] = {
    "sum": sum, "min": min, "max": max, "count": len, "first": lambda v: v[0], "last": lambda v: v[-1],
    "any": lambda v: any(map(bool, v)), "all": lambda v: all(map(bool, v)), "mean": lambda v: sum(v) / len(v),
    "or": lambda v: reduce(operator.or_, v),
}  # fmt: skip


def grouped(mr: MapReduce, groups: list[tuple[Any, list]], cuts: int, key: Any, value: Any) -> KeyMultiValue:
    """Keys and their values in chunks of `cuts` values, wherever that cuts them."""
    key, value = as_kind(key), as_kind(value)
    flat = [(number, each) for number, (_, values) in enumerate(groups) for each in values]
    kept = []
    before = -1
    for at in range(0, len(flat), cuts):
        some = flat[at : at + cuts]
        numbers = sorted({number for number, _ in some})
        counts = Counter(number for number, _ in some)
        offsets = np.cumsum([0, *(counts[number] for number in numbers)])
        keys = as_column([groups[number][0] for number in numbers], None, key)
        kept.append(
            mr.room.put(Groups(keys, offsets, as_column([v for _, v in some], None, value), numbers[0] == before))
        )
        before = numbers[-1]
    return KeyMultiValue(mr, kept, key, value)


GROUPS = st.lists(st.lists(st.integers(-9, 9), min_size=1, max_size=12), max_size=12)


@checked
@given(GROUPS, st.sampled_from([1, 2, 3, 5, 1000]), st.sampled_from(sorted(ORACLES)))
def test_reductions_by_name(mr: MapReduce, values: list, cuts: int, name: str) -> None:
    kmv = grouped(mr, list(enumerate(values)), cuts, "int64", "int64")
    assert list(kmv.reduce(name)) == [(k, ORACLES[name](each)) for k, each in enumerate(values)]


TEXTS = st.lists(st.lists(st.binary(max_size=4), min_size=1, max_size=6), max_size=8)


@checked
@given(TEXTS, st.sampled_from([1, 2, 1000]), st.sampled_from(["min", "max", "count", "first", "last"]))
def test_reductions_of_bytes(mr: MapReduce, values: list, cuts: int, name: str) -> None:
    kmv = grouped(mr, [(b"k%d" % k, each) for k, each in enumerate(values)], cuts, "bytes", "bytes")
    assert list(kmv.reduce(name)) == [(b"k%d" % k, ORACLES[name](each)) for k, each in enumerate(values)]


def total_and_count(key, values, out):
    total = 0
    for each in values:
        total += each
    emit(out, key, total)
    if values.size > 2:
        emit(out, -key, values.size)


def total(key, values):
    return values.sum()


@checked
@given(GROUPS, st.sampled_from([1, 3, 1000]))
def test_functions_see_all_values_of_a_key(mr: MapReduce, values: list, cuts: int) -> None:
    kmv = grouped(mr, list(enumerate(values)), cuts, "int64", "int64")
    sums = [(k, sum(each)) for k, each in enumerate(values)]
    both = [pair for k, each in enumerate(values) for pair in [(k, sum(each)), (-k, len(each))][: 1 + (len(each) > 2)]]
    assert list(kmv.reduce(total_and_count)) == both
    assert list(kmv.reduce(total, kind="compiled")) == sums
    assert list(kmv.reduce(lambda key, values: int(values.sum()))) == sums
    assert list(kmv.reduce(lambda key, values: [(key, int(values.sum()))])) == sums
    assert list(kmv.reduce(lambda key, values, emit: emit(key, int(sum(values))))) == sums
    by_columns = kmv.reduce(lambda keys, offsets, values: (keys, np.add.reduceat(values, offsets[:-1])))
    assert list(by_columns) == sums


def test_many_keys_on_several_threads(mr: MapReduce) -> None:
    rng = np.random.default_rng(3)
    keys, values = rng.integers(0, 5000, 60_000), rng.integers(-100, 100, 60_000)
    kmv = mr.keyvalue(keys, values).collate()
    wanted = dict(enumerate(np.bincount(keys, values, minlength=5000).astype(int).tolist()))
    for f in ("sum", chunk(lambda keys, offsets, values: (keys, np.add.reduceat(values, offsets[:-1])), parallel=True)):
        assert dict(kmv.reduce(f)) == wanted
    assert dict(kmv.reduce(total, kind="compiled")) == wanted


def test_what_reductions_make() -> None:
    with MapReduce(memory_limit="64MB") as mr:
        kv = mr.keyvalue(np.zeros(4, np.int64), np.array([1, 2, 3, 250], np.uint8)).convert()
        kinds = {name: str(kv.reduce(name).value) for name in ORACLES}
        assert kinds["sum"] == "uint64"
        assert kinds["count"] == "int64"
        assert kinds["mean"] == "float64"
        assert kinds["any"] == "bool"
        assert {kinds[name] for name in ("min", "max", "first", "last", "or")} == {"uint8"}
        assert list(kv.reduce("sum")) == [(0, 256)]
        with pytest.raises(UsageError, match="no reduction 'median'"):
            kv.reduce("median")
        with pytest.raises(UsageError, match="'sum' does not take values of string"):
            mr.keyvalue([1], ["a"]).convert().reduce("sum")
        with pytest.raises(UsageError, match="'or' does not take values of float64"):
            mr.keyvalue([1], [0.5]).compress("or")
        times = np.array(["2026-01-02", "2026-01-01"], "M8[s]")
        assert mr.keyvalue([1, 1], times).compress("min").to_arrow()["value"].to_pylist()[0].day == 1
        assert list(mr.keyvalue([1, 1], np.array([1j, 2])).convert().reduce("mean")) == [(1, 1 + 0.5j)]


def test_no_number_wins(mr: MapReduce) -> None:
    values = np.array([1.0, np.nan, 3.0, 2.0])
    kv = mr.keyvalue(np.array([1, 1, 2, 2]), values)
    for found in (dict(kv.convert().reduce("max")), dict(kv.compress("max"))):
        assert math.isnan(found[1])
        assert found[2] == 3.0


def test_of_nothing_comes_nothing(mr: MapReduce) -> None:
    kv = mr.keyvalue(key="string", value="int32")
    assert (len(kv.compress("sum")), kv.compress("sum").key, kv.compress("sum").value) == (0, "string", "int64")
    assert len(kv.convert().reduce("max")) == 0
    assert len(kv.convert().reduce(lambda key, values: None)) == 0
    assert len(kv.compress(lambda key, values: 1)) == 0


def test_a_key_with_more_values_than_fit() -> None:
    with MapReduce(memory_limit="1MiB", chunk_size="8KiB", threads=2) as mr:
        n = 200_000
        kmv = mr.keyvalue(np.zeros(n, np.int64), np.arange(n)).add(mr.keyvalue([1, 2], [5, 6])).convert()
        seen = []

        def by_values(key, values):
            seen.append(type(values))
            return key, int(sum(values))

        assert sorted(kmv.reduce(by_values)) == [(0, n * (n - 1) // 2), (1, 5), (2, 6)]
        assert LongValues in seen
        sums = kmv.reduce(lambda key, values: sum(int(block.sum()) for block in values.blocks()) if key == 0 else None)
        assert list(sums) == [(0, n * (n - 1) // 2)]
        assert sorted(kmv.reduce(lambda key, values: (key, 1))) == [(0, 1), (1, 1), (2, 1)]  # reads none of them
        assert dict(kmv.reduce("mean"))[0] == (n - 1) / 2
        with pytest.raises(DoesNotFit, match="the values of one key"):
            kmv.reduce(total, kind="compiled")


# ---- compress


def combined(name: str, pairs: list) -> dict:
    """What is left when all that a combiner lets through several times is reduced once more."""
    again = "sum" if name == "count" else name
    groups: dict = {}
    for key, value in pairs:
        groups.setdefault(key, []).append(value)
    return {key: ORACLES[again](values) for key, values in groups.items()}


def oracle(name: str, pairs: list) -> dict:
    groups: dict = {}
    for key, value in pairs:
        groups.setdefault(key, []).append(value)
    return {key: ORACLES[name](values) for key, values in groups.items()}


PARTIAL = sorted(set(ORACLES) - {"mean"})


@checked
@given(st.lists(st.tuples(st.integers(-20, 20), st.integers(-9, 9)), max_size=200), st.sampled_from(PARTIAL))
def test_compress_numbers(mr: MapReduce, pairs: list, name: str) -> None:
    kv = mr.keyvalue([k for k, _ in pairs], [v for _, v in pairs], key="int64", value="int64")
    assert combined(name, list(kv.compress(name))) == oracle(name, pairs)


KEYS = st.one_of(
    st.binary(max_size=3), st.binary(min_size=7, max_size=9), st.sampled_from([b"\0" * n for n in range(20)])
)
LONG = st.sampled_from(
    [b"0123456789abcdef", b"0123456789abcdefg", b"0123456789abcdefh", b"x" * 500, b"x" * 500 + b"\0"]
)


@checked
@given(st.lists(st.tuples(st.one_of(KEYS, LONG), st.integers(-9, 9)), max_size=200), st.sampled_from(PARTIAL))
def test_compress_bytes(mr: MapReduce, pairs: list, name: str) -> None:
    kv = mr.keyvalue([k for k, _ in pairs], [v for _, v in pairs], key="bytes", value="int64")
    assert combined(name, list(kv.compress(name))) == oracle(name, pairs)


@checked
@given(st.lists(st.tuples(st.integers(0, 5), st.integers(-9, 9)), max_size=200))
def test_compress_by_functions(mr: MapReduce, pairs: list) -> None:
    kv = mr.keyvalue([k for k, _ in pairs], [v for _, v in pairs], key="int64", value="int64")
    for f, kind in ((lambda key, values: int(max(values)), "auto"), (total, "compiled")):
        name = "max" if kind == "auto" else "sum"
        assert combined(name, list(kv.compress(f, kind))) == oracle(name, pairs)


@checked
@given(
    st.lists(st.tuples(st.sampled_from("abc"), st.text(max_size=3)), max_size=100), st.sampled_from(["max", "first"])
)
def test_compress_strings(mr: MapReduce, pairs: list, name: str) -> None:
    kv = mr.keyvalue([k for k, _ in pairs], [v for _, v in pairs], key="string", value="string")
    by_code = [(k, v.encode()) for k, v in pairs]
    assert combined(name, [(k, v.encode()) for k, v in kv.compress(name)]) == oracle(name, by_code)


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_tables_that_are_full_are_written_out(threads: int) -> None:
    rng = np.random.default_rng(5)
    numbers = rng.zipf(1.2, 50_000) % 20_000
    words = [b"a word of some length %d" % k if k % 3 else b"w%d" % k for k in numbers.tolist()]
    with MapReduce(memory_limit="4MB", threads=threads) as mr:
        combiner = Combiner(mr, "count", "bytes", NOTHING, nbytes=1 << 19)
        combiner.add_chunk(Bytes.of(words), None)
        flushes, kv = combiner.flushes, combiner.done()
        assert flushes
        assert combined("count", list(kv)) == Counter(words)
        numbers = rng.integers(-20_000, 20_000, 50_000)
        combiner = Combiner(mr, "sum", np.dtype(np.int64), np.dtype(np.float64), nbytes=1 << 18)
        combiner.add_chunk(numbers, np.ones(len(numbers)))
        flushes, kv = combiner.flushes, combiner.done()
        assert flushes
        assert combined("sum", list(kv)) == Counter(numbers.tolist())
        assert mr.budget.heartbeat()["what"].keys() <= {"chunks", "buffers for reading and writing spilled chunks"}


def test_a_key_that_no_table_holds_goes_alone() -> None:
    with MapReduce(memory_limit="8MB", threads=2) as mr:
        long = b"y" * 300_000
        combiner = Combiner(mr, "sum", "bytes", np.dtype(np.int64), nbytes=1 << 18)
        combiner.add_chunk(Bytes.of([b"a", long, b"a", long]), np.array([1, 2, 3, 4]))
        assert combined("sum", list(combiner.done())) == {b"a": 4, long: 6}


def test_compress_of_a_mean_is_refused(mr: MapReduce) -> None:
    with pytest.raises(UsageError, match="a mean of means"):
        mr.keyvalue([1], [2]).compress("mean")


def test_struct_keys_are_combined(mr: MapReduce) -> None:
    keys = np.array([(1, 2), (3, 4), (1, 2)], [("a", "i4"), ("b", "i4")])
    assert combined("sum", list(mr.keyvalue(keys, [1, 2, 3]).compress("sum"))) == {(1, 2): 4, (3, 4): 2}


@pytest.mark.parametrize("kind", ["int64", "uint8", "float32", "float64", "bool", "M8[s]"])
def test_keys_come_back_from_their_codes(kind: str) -> None:
    from penstock.mapreduce.columns import codes

    numbers = np.array([0, 1, 2, 100], np.int64).astype(kind)
    if kind.startswith("float"):
        numbers = np.array([0.0, -0.0, -1.5, np.inf, -np.inf, np.nan, 3e-40], kind)
    elif kind == "int64":
        numbers = np.array([0, -1, 2**63 - 1, -(2**63)])
    assert np.array_equal(from_codes(codes(numbers), np.dtype(kind)), numbers, equal_nan=kind[0] in "fM")


def test_local_groups_keep_the_order(mr: MapReduce) -> None:
    some = Chunk(Bytes.of(["b", "a", "b", ""]), np.arange(4))
    groups = local_groups(mr, some)
    assert groups.keys.to_list() == ["b", "a", ""]
    assert groups.offsets.tolist() == [0, 2, 3, 4]
    assert groups.values.tolist() == [0, 2, 1, 3]


def test_wrong_results_name_the_function(mr: MapReduce) -> None:
    kmv = mr.keyvalue([1], [2]).convert()
    with pytest.raises(ProgramError, match=r"<lambda> \(.*test_reduce.py:\d+\): .*is no pair"):
        kmv.reduce(lambda key, values: [5])
    with pytest.raises(ProgramError, match=r"returns \(keys, values\)"):
        kmv.reduce(lambda keys, offsets, values: keys)
    with pytest.raises(UsageError, match="for compress takes 2 arguments"):
        mr.keyvalue([1], [2]).compress(lambda a: a)


_WEIGHED = """
import numpy as np
from pathlib import Path
from penstock.mapreduce.functions import chunk, emit
from penstock.mapreduce.session import MapReduce

def status(name):
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith(name)).split()[1]) << 10

def both(key, value, out):
    emit(out, key, value)
    emit(out, key + 1, value)

@chunk
def drawn(number):
    return np.random.default_rng(number).integers(0, 2_000_000, 50_000), np.ones(50_000, np.int64)

def run(tasks):
    with MapReduce(memory_limit=LIMIT, threads=2) as mr:
        made = mr.map_tasks(tasks, drawn).map(both).compress("sum")
        total = sum(int(each.values.sum()) for each in made.chunks())
        return total, mr.spill.written

run(1)  # compiles
Path("/proc/self/clear_refs").write_text("5")
before = status("VmRSS")
total, spilled = run(80)
print(total, spilled, status("VmHWM") - before)
"""


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="the peak cannot be measured here")
def test_memory_stays_inside_the_budget() -> None:
    # 64 MB of pairs, 128 MB once mapped.
    limit = 24 << 20
    done = subprocess.run(
        [sys.executable, "-c", f"LIMIT = {limit}\n{_WEIGHED}"], check=True, capture_output=True, text=True
    )
    total, spilled, grown = map(int, done.stdout.split())
    assert total == 80 * 50_000 * 2
    assert spilled > limit
    assert grown < limit + (8 << 20)
