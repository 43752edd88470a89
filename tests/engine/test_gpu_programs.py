"""Every function of every program compiles for a GPU. None is needed: the code is made for one and looked at."""

from __future__ import annotations

import os
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from penstock.algorithms import (
    betweenness,
    bfs,
    cdlp,
    closeness,
    hits,
    kcore,
    lcc,
    pagerank,
    ppr,
    radius,
    scc,
    sssp,
    tight,
    triangles,
    wcc,
)  # fmt: skip
from penstock.engine import atomics
from penstock.engine.compile import adapters, usable
from penstock.engine.program import Combine, Pair, Program, Row, Sweep
from penstock.errors import ProgramError

pytest.importorskip("numba_cuda")
if os.environ.get("NUMBA_ENABLE_CUDASIM", "0") not in ("", "0"):
    pytest.skip("the simulator compiles nothing", allow_module_level=True)

N32, N64 = np.dtype(np.uint32), np.dtype(np.uint64)
LANE = np.uint64(0)


def programs() -> Iterator[tuple[str, Program, str]]:
    """(what, program, the type of its edge columns)."""
    for number in (N32, N64):
        yield f"wcc {number}", wcc.program(number), ""
        yield f"bfs {number}", bfs.program(number), ""
        yield f"cdlp {number}", cdlp.program(number), ""
        for program in scc.Programs(number, np.dtype(np.uint32)).all():
            yield f"scc {program.name} {program.along} {number}", program, ""
        for kind, weight in (("int64", "int64"), ("float32", "float32"), ("float64", "float64"), ("float64", "uint8")):
            for program in tight.parent_programs(kind, "weight", number):
                yield f"{program.name} {kind} {weight} {number}", program, weight
    for kind, weight in (
        ("uint32", "uint32"), ("uint32", "int8"), ("int64", "uint16"), ("float32", "float32"), ("float64", "float64"),
    ):  # fmt: skip
        for bounded in (False, True):
            yield f"sssp {kind} {weight} {bounded}", sssp.program(kind, "weight", bounded=bounded), weight
    yield "sssp parents narrow", tight.parents_narrow("weight"), "uint32"
    for kind in ("float32", "float64"):
        for dangling in ("spread", "drop"):
            for stop in ("l1", "max", "vertex"):
                yield f"pagerank {kind} {dangling} {stop}", pagerank.program(kind, dangling, stop), ""
        yield f"ppr {kind}", ppr.program(kind), ""
    for each in (kcore.DEGREES, kcore.PEEL, hits.AUTHORITIES, hits.HUBS, betweenness.DOWN, betweenness.UP):
        yield each.name, each, ""
    for flag in (False, True):
        yield f"closeness {flag}", closeness.program(flag), ""
        yield f"lcc {flag}", lcc.program(flag), ""
    yield "radius", radius.program(32), ""
    yield "triangles", triangles.program(), ""


@pytest.fixture(scope="module")
def ptx() -> Iterator[Any]:
    """Compile a function of some arguments, of which only the types count, for a GPU that need not be there."""
    import numba
    from numba.cuda import api, compiler
    from numba.cuda.cudadrv import devices

    from penstock.engine.gpu import atomics as given  # noqa: F401
    from penstock.engine.gpu import mode  # noqa: F401
    from penstock.memory import gpu

    device = SimpleNamespace(compute_capability=(9, 0), id=0, name="none")
    patch = pytest.MonkeyPatch()
    if not gpu.count():
        context = SimpleNamespace(device=device)
        patch.setattr(devices, "get_context", lambda devnum=None: context)
        patch.setattr(devices._runtime, "get_or_create_context", lambda devnum=None: context)
        for module in (api, compiler, gpu.cuda):
            if hasattr(module, "get_current_device"):
                patch.setattr(module, "get_current_device", lambda: device)

    def make(function: Any, *args: Any) -> str:
        kinds = tuple(numba.typeof(value) for value in args)
        return str(gpu.cuda.compile_ptx(function, kinds, cc=(9, 0))[0])

    yield make
    patch.undo()


def arguments(program: Program, number: np.dtype, weight: str) -> tuple[Any, ...]:
    """state, reads, params, columns, numbers: arrays of the right types."""
    shape = (1, 1) if getattr(program, "lanes", 1) > 1 else (1,)
    state = tuple(np.zeros(shape, kind) for kind in program.fields().values())
    reads = tuple(np.zeros(1, np.uint32) for _ in program.stored_reads())
    params = (*program.params.values(), 1, 0, 0.0)
    kept = program.edge_fields().values() if isinstance(program, Combine) else ()
    columns = (*(np.zeros(1, weight) for _ in program.columns), *(np.zeros(1, kind) for kind in kept))
    return state, reads, params, columns, np.zeros(1, number)


def combine(program: Combine, number: np.dtype) -> tuple[Any, tuple[Any, ...]]:
    c = adapters(program, flagged=program.frontier)
    load, store, unpack, arc_values, store_arc = c.load, c.store, c.unpack, c.arc_values, c.store_arc
    init, update, join = usable(program.init), usable(program.update), usable(program.combine.combine)
    emit, edge, wants = (usable(f) if f else None for f in (program.emit, program.edge, program.wants))
    tally, change = (usable(f) if f else None for f in (program.tally, program.change))
    fold, zero = usable(program.change_by.combine), program.combine.zero(program.contribution_dtype(number))
    emits, edges, wanted, tallies, changes = (
        f is not None for f in (program.emit, program.edge, program.wants, program.tally, program.change)
    )

    # A program that goes on with what others found has no use for its init.
    initial = "seed" in program.reads or "seed" not in program.init.__code__.co_names

    def kernel(state, reads, params, columns, numbers, messages, totals, sums):
        i, n = np.uint64(0), numbers[0]
        p = unpack(params)
        v = load(state, reads, i, n, LANE)
        if initial:
            store(state, i, LANE, init(v, p))
        if emits:
            messages[0] = emit(v, p)
        if tallies:
            sums[0] += tally(v, p)
        if wanted and not wants(v, p):
            return
        total = zero
        if edges:
            total = join(total, store_arc(columns, i, edge(messages[0], arc_values(columns, i), p)))
        else:
            total = join(total, messages[0])
        totals[0] = total
        new = update(v, totals[0], p)
        store(state, i, LANE, new)
        if changes:
            sums[1] = fold(sums[1], change(v, new, p))

    message = number if program.numbered else np.dtype(program.message)
    total = np.zeros(1, program.contribution_dtype(number))
    return kernel, (np.zeros(1, message), total, np.zeros(2))


def sweep(program: Sweep, number: np.dtype) -> tuple[Any, tuple[Any, ...]]:
    c = adapters(program, flagged=False)
    load, store, unpack, arc_values, whole = c.load, c.store, c.unpack, c.arc_values, c.whole
    init, arc, vertex, settled = (usable(f) for f in (program.init, program.arc, program.vertex, program.settled))

    def kernel(state, reads, params, columns, numbers):
        i, n = np.uint64(0), numbers[0]
        p, s = unpack(params), whole(state)
        store(state, i, LANE, init(load(state, reads, i, n, LANE), p))
        if not settled(n, s, p):
            arc(n, n, arc_values(columns, i), s, p)
        vertex(n, s, p)

    return kernel, ()


def row(program: Row, number: np.dtype) -> tuple[Any, tuple[Any, ...]]:
    c = adapters(program, flagged=False)
    load, store, unpack = c.load, c.store, c.unpack
    init, emit, take, change = (usable(f) for f in (program.init, program.emit, program.row, program.change))

    def kernel(state, reads, params, columns, numbers, messages, sums):
        i, n = np.uint64(0), numbers[0]
        p = unpack(params)
        v = load(state, reads, i, n, LANE)
        store(state, i, LANE, init(v, p))
        messages[0] = emit(v, p)
        new = take(v, messages[n:], p)
        store(state, i, LANE, new)
        sums[0] += change(v, new, p)

    return kernel, (np.zeros(1, program.message), np.zeros(1))


def pair(program: Pair, number: np.dtype) -> tuple[Any, tuple[Any, ...]]:
    c = adapters(program, flagged=False)
    load, store, unpack = c.load, c.store, c.unpack
    init, update = usable(program.init), usable(program.update)
    corner = usable(program.corner) if program.corner else None
    corners = corner is not None

    def kernel(state, reads, params, columns, numbers, totals):
        i, n = np.uint64(0), numbers[0]
        p = unpack(params)
        v = load(state, reads, i, n, LANE)
        store(state, i, LANE, init(v, p))
        if corners:
            totals[0] += corner(np.uint64(n), p)
        store(state, i, LANE, update(v, totals[0], p))

    return kernel, (np.zeros(1, program.total),)


def atomic(name: str) -> Any:
    function = getattr(atomics, name)

    def loading(state, places, values):
        while function(state, places[0]) != values[0]:
            places[1] += 1

    def swapping(state, places, values):
        places[1] = function(state, places[0], values[0], values[1])

    def changing(state, places, values):
        values[0] = function(state, places[0], values[1])

    return {"load": loading, "compare_and_swap": swapping}.get(name, changing)


WIDE = ["int32", "uint32", "int64", "uint64", "float32", "float64"]
NARROW = ["bool", "uint8", "int8", "uint16"]


@pytest.mark.parametrize("kind", [*WIDE, *NARROW])
@pytest.mark.parametrize("name", atomics.__all__)
def test_atomics(ptx: Any, name: str, kind: str) -> None:
    args = np.zeros(1, kind), np.zeros(2, np.uint32), np.zeros(2, kind)
    if kind in NARROW and name not in ("load", "compare_and_swap"):
        with pytest.raises(ProgramError, match=f"on a GPU {name} takes an array of numbers of 4 or 8 bytes"):
            ptx(atomic(name), *args)
        return
    code = ptx(atomic(name), *args)
    words = {"load": "ld.relaxed.gpu", "compare_and_swap": ".cas.", "atomic_add": ".add."}
    if name in words:
        assert any(words[name] in line for line in code.splitlines() if "atom" in line or "relaxed" in line)
    if name == "load":  # asked again in each round
        loop = code[code.index("$L__BB") :]
        assert "ld.relaxed.gpu" in loop[: loop.rindex("bra")]


def test_measuring_compiles(ptx: Any) -> None:
    from penstock.engine.gpu import calibrate

    words, numbers = np.zeros(1, np.uint32), np.zeros(1, np.float32)
    assert "ld.global" in ptx(calibrate._gather.py_func, words, np.uint32(1), numbers, numbers)
    assert ".entry" in ptx(calibrate._nothing.py_func, numbers)


# ---- whole kernels over what arcs keep: the simulator, which runs them, knows no types


def news(message, e, p):
    return message * e.weight - e.last, message, not e.shut, e.times + 1


def number(v, p):
    return np.float32(v.number), True


def first(v, p):
    return np.float32(v.number)


def sent(v, p):
    return v.x


def taken(v, total, p):
    return v.x + total, total > 1


def some(v, p):
    return v.x > 0


ARC = {"last": "float32", "shut": "bool", "times": "uint16"}


@pytest.mark.parametrize("ranged", [False, True])
@pytest.mark.parametrize("frontier", [False, True])
@pytest.mark.parametrize("name", ["pull", "pull_segments", "push", "push_segments"])
def test_kernels_over_what_arcs_keep(ptx: Any, name: str, frontier: bool, ranged: bool) -> None:
    from penstock.engine.gpu.functions import GpuKernels
    from penstock.engine.gpu.kernels import combine as along

    program = Combine(
        "news", {"x": "float32"}, number if frontier else first, ("number",), columns=("weight",), message="float32",
        emit=sent, edge=news, update=taken if frontier else sum_up, wants=some, frontier=frontier, edge_state=ARC,
    )  # fmt: skip
    fused = name == "pull" and not ranged
    parts = GpuKernels(program, N32, 256)._functions(ranged, fused, False)
    parts.windowed = ranged
    words, wide, marks, reals = np.zeros(1, np.uint32), np.zeros(1, np.uint64), np.zeros(1, np.uint8), np.zeros(1)
    table, single, one = np.zeros((1, 4), np.uint32), np.zeros(1, np.float32), np.uint32(1)
    arcs = (wide, np.uint64(0), *(np.zeros(1, kind) for kind in program.edge_fields().values()))
    params = (1, 0, 0.0)
    work = (words, table, words) if "segments" in name else (words, table, one)
    pages = (words, np.uint64(1), (np.zeros(1, np.int64),), wide, arcs)
    pages += (words,) if "segments" in name else (words, words, words)
    if "pull" in name:
        more = (single, one, one, words, one, one, (single,), (), params, reals)
        more += (np.zeros((1, 1), np.float32), marks) if "segments" in name else (marks, single, marks)
    else:
        more = (single, words, one, one, (single,), (), params, reals, one, one, single, marks)
    code = ptx(getattr(along, name)(parts), *work, *pages, *more)
    assert "st.global.b16" in code or "st.global.u16" in code  # nothing else than `times` has two bytes


def sum_up(v, total, p):
    return v.x + total


FORMS: dict[str, Any] = {"combine": combine, "sweep": sweep, "row": row, "pair": pair}
FOUND = list(programs())


@pytest.mark.parametrize(("what", "program", "weight"), FOUND, ids=[what for what, _, _ in FOUND])
def test_functions_compile(ptx: Any, what: str, program: Program, weight: str) -> None:
    number = N64 if what.endswith("uint64") else N32
    kernel, more = FORMS[program.form](program, number)
    assert ".entry" in ptx(kernel, *arguments(program, number, weight), *more)
