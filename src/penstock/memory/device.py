"""The one door to Numba: its flags, its atomics. Nothing else in Penstock imports `numba`."""

from __future__ import annotations

import contextlib
import ctypes
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba
from llvmlite import binding, ir
from numba import njit, prange, set_num_threads, types
from numba.core import cgutils
from numba.core.caching import FunctionCache, IndexDataCacheFile
from numba.core.errors import NumbaError
from numba.extending import intrinsic, overload, register_jitable

# tbb survives concurrent use and has cheap regions; workqueue aborts when two threads meet in it. Its wheel puts the
# library into the environment's lib folder, where the loader does not look.
numba.config.THREADING_LAYER_PRIORITY = ["tbb", "omp", "workqueue"]
with contextlib.suppress(OSError):
    ctypes.CDLL(str(Path(sys.prefix, "lib", "libtbb.so.12")), mode=ctypes.RTLD_GLOBAL)


def kernel(**flags: Any) -> Callable[[Any], Any]:
    """A serial kernel: called from worker threads, so it holds no GIL; cached on disk; divides like NumPy."""
    return njit(nogil=True, cache=True, error_model="numpy", **flags)


def parallel_kernel(**flags: Any) -> Callable[[Any], Any]:
    """A kernel with `prange`, called from one thread at a time. Pass thread counts in: asking defeats the cache."""
    return njit(nogil=True, cache=True, parallel=True, error_model="numpy", **flags)


class Keyed:
    """Makes of a cache of Numba's one for kernels made from a template and functions of a program.

    Numba would tell programs apart by pickling what the template closes over: by name, so that an edited function
    goes unseen, or in a way that differs between processes. Here a key made from the functions' code does it, and
    each key has a file of its own, so that processes that compile different programs do not meet.
    """

    index: Any = None
    """Numba's class of files; that of numba-cuda is another."""
    _cache_path: Any
    _impl: Any

    def __init__(self, function: Any, key: str) -> None:
        super().__init__(function)  # type: ignore[call-arg]
        self._key = key
        self._cache_file = self.index(
            cache_path=self._cache_path,
            filename_base=f"{self._impl.filename_base}.{key[:24]}",
            source_stamp=self._impl.locator.get_source_stamp(),
        )

    def _index_key(self, sig: Any, codegen: Any) -> Any:
        return (sig, codegen.magic_tuple(), self._key)

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """What is kept names the modules of the program's functions; one that cannot be imported here is compiled."""
        try:
            return super().load_overload(sig, target_context)  # type: ignore[misc]
        except ImportError:
            return None


class _KeyedCache(Keyed, FunctionCache):
    index = IndexDataCacheFile


def template_kernel(function: Any, key: str, **flags: Any) -> Any:
    """A serial kernel from a function that closes over a program's functions, cached under `key`. C calls none of
    these: a wrapper for it would be 7 % of what compiling takes."""
    made = njit(nogil=True, error_model="numpy", no_cfunc_wrapper=True, **flags)(function)
    made._cache = _KeyedCache(function, key)
    return made


def inlined(function: Any, **flags: Any) -> Any:
    """A plain Python function that kernels may call: compiled into each of them, and still callable from Python."""
    return register_jitable(error_model="numpy", no_cfunc_wrapper=True, **flags)(function)


_REPLACED: set[Any] = set()


def compiled_as(replacement: Any) -> Callable[[Any], Any]:
    """A plain Python function that kernels replace by another of the same parameters: one made of intrinsics."""

    def register(function: Any) -> Any:
        def typing(*types: Any) -> Any:
            return replacement

        overload(function, strict=False)(typing)
        _REPLACED.add(function)
        return function

    return register


def is_replaced(function: Any) -> bool:
    """Whether kernels have something of their own for this function."""
    return function in _REPLACED


def foreign(name: str, result: str, *arguments: str, library: str | None = None) -> Any:
    """A function of a C library, with Numba's names for its types, that kernels call by its name: kernels that do are
    cached like others. `library`: the file it is in, unless the process has it already."""
    if library is not None:
        binding.load_library_permanently(library)
    return types.ExternalFunction(name, getattr(types, result)(*(getattr(types, each) for each in arguments)))


CompileError = NumbaError
"""What is raised when a kernel does not compile."""


def _pointer(context: Any, builder: Any, array_type: Any, array: Any, index: Any) -> Any:
    """Where `array[index]` lies, for intrinsics."""
    struct = context.make_array(array_type)(context, builder, array)
    return cgutils.get_item_pointer(context, builder, array_type, struct, [index], wraparound=False)


@intrinsic
def atomic_add(typing_context: Any, array: Any, index: Any, value: Any) -> Any:
    """`old = array[index]; array[index] += value`, relaxed."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        pointer = _pointer(context, builder, signature.args[0], args[0], args[1])
        op = "fadd" if isinstance(signature.args[0].dtype, types.Float) else "add"
        return builder.atomic_rmw(op, pointer, args[2], "monotonic")

    return array.dtype(array, types.intp, array.dtype), codegen


@intrinsic
def atomic_or(typing_context: Any, array: Any, index: Any, value: Any) -> Any:
    """`old = array[index]; array[index] |= value`, relaxed."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        pointer = _pointer(context, builder, signature.args[0], args[0], args[1])
        return builder.atomic_rmw("or", pointer, args[2], "monotonic")

    return array.dtype(array, types.intp, array.dtype), codegen


@intrinsic
def atomic_swap(typing_context: Any, array: Any, index: Any, old: Any, new: Any) -> Any:
    """Compare and swap, relaxed: whether `array[index]` was bitwise `old` and is `new` now. Numbers of 1 to 8 bytes."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        pointer = _pointer(context, builder, signature.args[0], args[0], args[1])
        kind = signature.args[0].dtype
        before, after = args[2], args[3]
        if isinstance(kind, types.Float):
            word = ir.IntType(kind.bitwidth)
            pointer = builder.bitcast(pointer, word.as_pointer())
            before, after = builder.bitcast(before, word), builder.bitcast(after, word)
        elif isinstance(kind, types.Boolean):
            before, after = (context.data_model_manager[kind].as_data(builder, value) for value in (before, after))
        return builder.extract_value(builder.cmpxchg(pointer, before, after, "monotonic", "monotonic"), 1)

    return types.boolean(array, types.intp, array.dtype, array.dtype), codegen


def _atomic_extreme(name: str) -> Any:
    @intrinsic
    def extreme(typing_context: Any, array: Any, index: Any, value: Any) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            pointer = _pointer(context, builder, signature.args[0], args[0], args[1])
            kind = signature.args[0].dtype
            prefix = "f" if isinstance(kind, types.Float) else "" if kind.signed else "u"
            return builder.atomic_rmw(prefix + name, pointer, args[2], "monotonic")

        return array.dtype(array, types.intp, array.dtype), codegen

    return extreme


atomic_min = _atomic_extreme("min")
"""`old = array[index]; array[index] = min(old, value)`, relaxed."""
atomic_max = _atomic_extreme("max")
"""`old = array[index]; array[index] = max(old, value)`, relaxed."""


@intrinsic
def atomic_load(typing_context: Any, array: Any, index: Any) -> Any:
    """`array[index]` as another thread last wrote it; a plain read may be moved out of a loop."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        pointer = _pointer(context, builder, signature.args[0], args[0], args[1])
        kind = signature.return_type
        if isinstance(kind, types.Float):
            word = ir.IntType(kind.bitwidth)
            loaded = builder.load_atomic(builder.bitcast(pointer, word.as_pointer()), "monotonic", kind.bitwidth // 8)
            return builder.bitcast(loaded, context.get_value_type(kind))
        if isinstance(kind, types.Boolean):
            return context.data_model_manager[kind].from_data(builder, builder.load_atomic(pointer, "monotonic", 1))
        return builder.load_atomic(pointer, "monotonic", kind.bitwidth // 8)

    return array.dtype(array, types.intp), codegen


def width_of(kind: Any) -> int:
    """Bits of a number of this type in memory; 0 of what is no number."""
    return 8 if isinstance(kind, types.Boolean) else getattr(kind, "bitwidth", 0)


@intrinsic
def relaxed_load(typing_context: Any, array: Any, index: Any) -> Any:
    """`array[index]` as another thread of a GPU last wrote it: from the cache that all share, at each call."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        kind = signature.return_type
        width = width_of(kind)
        # No register has 8 bits.
        word = ir.IntType(32 if width == 8 else width)
        pointer = _pointer(context, builder, signature.args[0], args[0], args[1])
        load = ir.InlineAsm(
            ir.FunctionType(word, [pointer.type]),
            f"ld.relaxed.gpu.b{width} $0, [$1];",
            f"={'h' if width == 16 else 'l' if width == 64 else 'r'},l,~{{memory}}",
            side_effect=True,
        )
        loaded = builder.call(load, [pointer])
        if width == 8:
            loaded = builder.trunc(loaded, ir.IntType(8))
        if isinstance(kind, types.Boolean):
            return context.data_model_manager[kind].from_data(builder, loaded)
        return builder.bitcast(loaded, context.get_value_type(kind))

    return array.dtype(array, types.intp), codegen


@intrinsic
def swap_narrow(typing_context: Any, array: Any, index: Any, old: Any, new: Any) -> Any:
    """Like `atomic_swap` of numbers of 1 or 2 bytes on a GPU, which has it for words only: by the 4 bytes around."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        kind, word, size = signature.args[0].dtype, ir.IntType(32), ir.IntType(64)
        pointer = _pointer(context, builder, signature.args[0], args[0], args[1])
        model = context.data_model_manager[kind]
        before, after = (builder.zext(model.as_data(builder, value), word) for value in args[2:])
        place = builder.ptrtoint(pointer, size)
        around = builder.inttoptr(builder.and_(place, ir.Constant(size, ~3)), word.as_pointer())
        shift = builder.trunc(builder.shl(builder.and_(place, ir.Constant(size, 3)), ir.Constant(size, 3)), word)
        mask = builder.shl(ir.Constant(word, (1 << width_of(kind)) - 1), shift)
        before, after = builder.shl(before, shift), builder.shl(after, shift)
        start = builder.atomic_rmw("or", around, ir.Constant(word, 0), "monotonic")
        begin, loop, done = builder.block, builder.append_basic_block("again"), builder.append_basic_block("done")
        attempt = builder.append_basic_block("attempt")
        builder.branch(loop)
        builder.position_at_end(loop)
        held = builder.phi(word)
        held.add_incoming(start, begin)
        builder.cbranch(builder.icmp_unsigned("==", builder.and_(held, mask), before), attempt, done)
        builder.position_at_end(attempt)
        changed = builder.or_(builder.and_(held, builder.not_(mask)), after)
        swapped = builder.cmpxchg(around, held, changed, "monotonic", "monotonic")
        held.add_incoming(builder.extract_value(swapped, 0), attempt)
        builder.cbranch(builder.extract_value(swapped, 1), done, loop)
        builder.position_at_end(done)
        found = builder.phi(ir.IntType(1))
        found.add_incoming(ir.Constant(ir.IntType(1), 0), loop)
        found.add_incoming(ir.Constant(ir.IntType(1), 1), attempt)
        return found

    return types.boolean(array, types.intp, array.dtype, array.dtype), codegen


@intrinsic
def lowest_bit(typing_context: Any, word: Any) -> Any:
    """The number of the lowest bit that is set in a word that is not 0."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.cttz(args[0], ir.Constant(ir.IntType(1), 1))

    return types.uint64(types.uint64), codegen


@intrinsic
def count_bits(typing_context: Any, word: Any) -> Any:
    """How many bits of a word are set."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.ctpop(args[0])

    return types.uint64(types.uint64), codegen


def use_threads(threads: int) -> None:
    """Run parallel kernels on this many threads, or on as many as Numba was started with."""
    set_num_threads(max(1, min(threads, numba.config.NUMBA_NUM_THREADS)))


@njit(parallel=True, cache=True)
def _first_region(n):
    total = 0
    for i in prange(n):
        total += i
    return total


def threading_layer() -> str:
    """The layer that runs parallel kernels: `tbb`, `omp` or `workqueue`. Known once one has run."""
    _first_region(4)
    return str(numba.threading_layer())


__all__ = [
    "CompileError",
    "Keyed",
    "atomic_add",
    "atomic_load",
    "atomic_max",
    "atomic_min",
    "atomic_or",
    "atomic_swap",
    "compiled_as",
    "count_bits",
    "foreign",
    "inlined",
    "is_replaced",
    "kernel",
    "lowest_bit",
    "parallel_kernel",
    "prange",
    "relaxed_load",
    "swap_narrow",
    "template_kernel",
    "threading_layer",
    "use_threads",
    "width_of",
]
