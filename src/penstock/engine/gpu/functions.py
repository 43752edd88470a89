"""A program's functions as the GPU's templates want them, and the kernels made of them."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np

from penstock.engine.compile import _made, adapters, edge_class, explained, params_class, usable
from penstock.engine.defaults import always, nothing, same, still
from penstock.engine.gpu.kernels import combine as along
from penstock.engine.gpu.kernels import merge as between
from penstock.engine.gpu.kernels import slots as each
from penstock.engine.monoid import MAX
from penstock.engine.program import GIVEN, Combine, Program
from penstock.memory import gpu
from penstock.memory.device import inlined
from penstock.memory.fingerprint import fingerprint
from penstock.memory.gpu import SIMULATED, cuda, inside

# ---- totals that many threads add to


def held_dtype(kind: np.dtype) -> np.dtype:
    """How totals of this type are held: as numbers that the GPU can change in one step."""
    if kind.itemsize >= 4:
        return kind
    return np.dtype(np.float32 if kind.kind == "f" else np.int32 if kind.kind == "i" else np.uint32)


def _bits(kind: np.dtype) -> tuple[Any, Any, np.dtype]:
    """(to bits, from bits, their dtype) for the totals of a monoid that the GPU does not know."""
    if kind.kind != "f":
        return None, None, kind
    word = np.dtype(np.int32 if kind.itemsize == 4 else np.int64)
    real, whole = kind.type, word.type
    if SIMULATED:
        return (lambda x: np.asarray(x, kind).view(word)[()]), (lambda b: np.asarray(b, word).view(kind)[()]), word
    pairs = {
        4: (cuda.libdevice.float_as_int, cuda.libdevice.int_as_float),
        8: (cuda.libdevice.double_as_longlong, cuda.libdevice.longlong_as_double),
    }
    to, back = pairs[kind.itemsize]
    return inlined(lambda x: to(real(x))), inlined(lambda b: back(whole(b))), word


def totals_dtype(program: Combine, number: np.dtype) -> np.dtype:
    """The dtype of the array of totals on the device."""
    kind = held_dtype(program.contribution_dtype(number))
    return kind if program.combine.known else _bits(kind)[2]


def _totals(program: Combine, number: np.dtype) -> SimpleNamespace:
    """`of_total`, `set_total`, `into` for this program's monoid and type."""
    kind = program.contribution_dtype(number)
    held, name, combine = held_dtype(kind), program.combine.known or "plain", usable(program.combine.combine)
    at = "i, j" if program.lanes > 1 else "i"
    index = "(i, j)" if program.lanes > 1 else "i"
    names: dict[str, Any] = {"kind": kind.type, "held": held.type, "combine": combine, "cuda": inside}
    into = {
        "sum": f"    cuda.atomic.add(totals, {index}, held(value))\n",
        "or": f"    cuda.atomic.or_(totals, {index}, held(value))\n",
        "any": f"    totals[{at}] = held(value)\n",
    }
    # Most values change nothing: a read is cheaper than a write that others wait for.
    lower = f"    if held(value) < totals[{at}]:\n        cuda.atomic.min(totals, {index}, held(value))\n"
    into |= dict.fromkeys(("min", "first", "argmin"), lower)
    into["max"] = f"    if held(value) > totals[{at}]:\n        cuda.atomic.max(totals, {index}, held(value))\n"
    read, write = f"kind(totals[{at}])", "held(value)"
    if name == "plain":
        to, back, word = _bits(held)
        names |= {"to": to, "back": back, "word": word.type}
        read = f"kind(back(totals[{at}]))" if to else read
        write = "word(to(held(value)))" if to else write
        old = "kind(back(old))" if to else "kind(old)"
        new = "word(to(held(new)))" if to else "held(new)"
        into["plain"] = (
            f"    old = totals[{at}]\n"
            "    while True:\n"
            f"        new = combine({old}, value)\n"
            f"        wished = {new}\n"
            "        if wished == old:\n            return\n"
            f"        seen = cuda.atomic.cas(totals, {index}, old, wished)\n"
            "        if seen == old:\n            return\n"
            "        old = seen\n"
        )
    sources = {
        "of_total": f"def of_total(totals, i, j):\n    return {read}\n",
        "set_total": f"def set_total(totals, i, j, value):\n    totals[{at}] = {write}\n",
        "into": "def into(totals, i, j, value):\n" + into[name],
    }
    return SimpleNamespace(**{key: inlined(_made(key, source, **names)) for key, source in sources.items()})


# ---- adapters


def gpu_adapters(program: Program, *, flagged: bool) -> SimpleNamespace:
    """As `penstock.engine.compile.adapters`, for state on the device: the tally is read where it was added up, and the
    values of an arc lie in its page's frame."""
    found = adapters(program, flagged=flagged)
    names = [*program.params, *GIVEN]
    passed = [f"s[{along.TALLY}]" if name == "tally" else f"t[{k}]" for k, name in enumerate(names)]
    unpack = f"def unpack(t, s):\n    return Params({', '.join(passed)})\n"
    columns = [f"c[{k}][np.uint64(f) * s[{k}] + np.uint64(a)]" for k in range(len(program.columns))]
    value = f"Edge({', '.join(columns)})" if columns else "()"
    values_of = f"def arc_values(c, s, f, a):\n    return {value}\n"
    found.unpack = inlined(_made("unpack", unpack, Params=params_class(program)))
    found.arc_values = inlined(_made("arc_values", values_of, Edge=edge_class(program), np=np))
    return found


def arc_adapters(program: Combine) -> SimpleNamespace:
    """`arc_values`, `store_arc`, `arcs_from` where arcs may keep something: `k` is what `ArcFields` gives kernels, or
    nothing, `b` where that of a page begins."""
    kept = range(len(program.edge_state))
    values = [f"c[{n}][np.uint64(f) * s[{n}] + np.uint64(a)]" for n in range(len(program.columns))]
    values += [f"k[{n + 2}][b + np.uint64(a)]" for n in kept]
    edge = f"Edge({', '.join(values)})" if values else "()"
    stored = "".join(f"    k[{n + 2}][b + np.uint64(a)] = new[{n + 1}]\n" for n in kept)
    sources = {
        "arc_values": f"def arc_values(c, s, f, k, b, a):\n    return {edge}\n",
        "store_arc": f"def store_arc(k, b, a, new):\n{stored}    return new{'[0]' if kept else ''}\n",
        "arcs_from": f"def arcs_from(k, page):\n    return {'k[0][page] - k[1]' if kept else 'np.uint64(0)'}\n",
    }
    names = {"Edge": edge_class(program), "np": np}
    return SimpleNamespace(**{key: inlined(_made(key, source, **names)) for key, source in sources.items()})


class GpuKernels:
    """`kernels.make("pull", fused=True)`: the kernels of one combine program, made when first used. Those that are not
    `telling` do not add up by how much vertices change."""

    def __init__(self, program: Combine, number: np.dtype, block: int, *, telling: bool = True) -> None:
        self.program, self.number, self.block = program, number, block
        self._change = program.change if telling else None
        self._made: dict[tuple[Any, ...], Any] = {}

    def make(
        self, name: str, *, ranged: bool = False, windowed: bool = False, fused: bool = False, empty: bool = False
    ) -> Any:
        key = (name, ranged, windowed, fused, empty)
        if key not in self._made:
            template = getattr(along, name, None) or getattr(each, name, None) or getattr(between, name)
            parts = self._functions(ranged, fused, empty)
            parts.windowed = ranged or windowed
            about = (ranged, windowed, fused, empty, str(self.number), self._change is None)
            self._made[key] = make_kernel(template, parts, self.program, *about)
        return self._made[key]

    def _functions(self, ranged: bool, fused: bool, empty: bool) -> SimpleNamespace:
        program, laned = self.program, self.program.lanes > 1
        found = gpu_adapters(program, flagged=program.frontier)
        found.init, found.update = usable(program.init), usable(program.update)
        found.emit = usable(program.emit or nothing)
        found.edge = usable(program.edge or same)
        found.wants, found.wanted = usable(program.wants or always), program.wants is not None
        found.tally, found.tallied = usable(program.tally or nothing), program.tally is not None
        found.change, found.changing = usable(self._change or still), self._change is not None
        found.fold, found.change_largest = usable(program.change_by.combine), program.change_by == MAX
        found.combine = usable(program.combine.combine)
        kind = program.contribution_dtype(self.number)
        found.zero, found.kind, found.held = program.combine.zero(kind), kind.type, held_dtype(kind).type
        found.message_kind = self.number.type if program.numbered else np.dtype(program.message).type
        found.first, found.numbered, found.frontier = program.combine.first, program.numbered, program.frontier
        found.ranged, found.fused, found.empty_totals = ranged, fused, empty
        found.lanes, found.loops, found.block = program.lanes, program.loops, self.block
        at = "i, j" if laned else "i"
        found.get = inlined(_made("get", f"def get(m, i, j):\n    return m[{at}]\n"))
        found.put = inlined(_made("put", f"def put(m, i, j, value):\n    m[{at}] = value\n"))
        found.__dict__.update(_totals(program, self.number).__dict__)
        found.__dict__.update(arc_adapters(program).__dict__)
        found.kept = bool(program.edge_state)
        if program.bucketed is not None:
            field = program.fields()[program.bucketed.field]
            found.field = list(program.state).index(program.bucketed.field)
            to, _, word = _bits(held_dtype(field))
            found.bits_of = to or inlined(_made("same", "def same(x):\n    return x\n"))
            found.order_kind = word.type
        return found


class Kernel:
    """A kernel that is launched by `kernel(stream, blocks, threads, *args)`, and says where in a program's source it
    did not compile."""

    __slots__ = ("launch", "made", "program")

    def __init__(self, made: Any, program: Program | None = None) -> None:
        self.made, self.launch, self.program = made, gpu.Launcher(made), program

    def __call__(self, stream: gpu.Stream, blocks: int, threads: int, *args: Any) -> None:
        if blocks <= 0:
            return
        try:
            self.launch(stream, blocks, threads, *args)
        except gpu.errors() as error:
            if self.program is None:
                raise
            raise explained(error, self.program) from error


def make_kernel(template: Callable[..., Any], parts: SimpleNamespace, program: Program, *about: Any) -> Kernel:
    """A kernel from a template and the functions in `parts`; what it is made of is its key."""
    key = fingerprint("gpu", template.__module__, template.__qualname__, parts.block, program.makeup(), *about)
    return Kernel(gpu.template_kernel(template(parts), key), program)


_PLAIN: dict[tuple[str, int], Kernel] = {}


def plain_kernel(template: Callable[..., Any], block: int) -> Kernel:
    """A kernel without a program."""
    key = (template.__qualname__, block)
    if key not in _PLAIN:
        made = gpu.template_kernel(
            template(block), fingerprint("gpu", template.__module__, template.__qualname__, block)
        )
        _PLAIN[key] = Kernel(made)
    return _PLAIN[key]


_KEPT: dict[str, GpuKernels] = {}


def gpu_kernels(program: Combine, number: np.dtype, block: int, *, telling: bool = True) -> GpuKernels:
    """The kernels of a program; the same ones for a program that does the same."""
    key = fingerprint(program.makeup(), str(number), block, telling)
    if key not in _KEPT:
        _KEPT[key] = GpuKernels(program, number, block, telling=telling)
    return _KEPT[key]
