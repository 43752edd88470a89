"""The threads of a block on one thread of the host.

Each has a stack of its own and runs until it waits for others or is done; then the next one does. To go from one stack
to another takes a few instructions, which differ by processor: there are some for x86-64. What the C library has for
this calls the kernel each time, and made tests twice as slow.
"""

from __future__ import annotations

import ctypes
import mmap
import platform
from typing import Any

import numpy as np
from llvmlite import binding as llvm
from numba import njit, types

from emulator.host import BLOCK, DONE, REGISTERS, SHARED, STATE, WARP
from emulator.memory import NONSENSE

MOST = 1024
STACK = 128 << 10
_SAVED = ("rbp", "rbx", "r12", "r13", "r14", "r15")
"""What a function leaves as it found it."""
_TOP = 64
"""Bytes at the far end of a stack, where its first function would return to."""

_switch = types.ExternalFunction("emulated.switch", types.void(types.uintp, types.uintp))
"""(Where to note the stack that is left, the one to go on with.)"""

_stacks = np.frombuffer(mmap.mmap(-1, MOST * STACK), np.uint64)
_places = np.zeros(MOST + 1, np.uint64)
"""How far the stacks are filled of the threads, and of who runs them."""
_states = np.zeros(MOST, np.int32)
_registers = {name: np.zeros(1, np.int32) for name in REGISTERS}
_arguments = np.zeros(1, np.uint64)

_SWITCH = [".globl emulated.switch", "emulated.switch:", *(f"pushq %{name}" for name in _SAVED)]
_SWITCH += ["movq %rsp, (%rdi)", "movq %rsi, %rsp", *(f"popq %{name}" for name in reversed(_SAVED)), "retq"]

_WAIT = "\n".join(f'module asm "{line}"' for line in _SWITCH)
_WAIT += f"""
@{STATE} = external global [{MOST} x i32]
@emulated.places = external global [{MOST + 1} x ptr]
@emulated.tid = external global i32
declare void @emulated.switch(ptr, ptr)
define void @emulated.wait(i32 %for) noinline {{
  %thread = load volatile i32, ptr @emulated.tid
  %state = getelementptr i32, ptr @{STATE}, i32 %thread
  store volatile i32 %for, ptr %state
  %mine = getelementptr ptr, ptr @emulated.places, i32 %thread
  %runner = getelementptr ptr, ptr @emulated.places, i32 {MOST}
  %back = load volatile ptr, ptr %runner
  call void @emulated.switch(ptr %mine, ptr %back)
  ret void
}}
"""


@njit(cache=True)
def _run(entry, blocks, order, stacks, base, places, where, states, thread, block):
    """Run all blocks. Returns how many threads of one wait for others that are done, or wait for something else."""
    count, runner = len(order), where + np.uint64(8 * MOST)
    for each in blocks:
        block[0] = each
        for t in range(count):
            states[t] = 0
            top = ((t + 1) * STACK - _TOP) // 8
            stacks[top - len(_SAVED) : top] = 0
            stacks[top] = entry
            places[t] = base + np.uint64(8 * (top - len(_SAVED)))
        left = count
        while left > 0:
            for t in order:
                if states[t] == 0:
                    thread[0] = t
                    _switch(runner, places[t])
                    if states[t] == DONE:
                        left -= 1
            freed = left == 0
            whole = True
            for first in range(0, count, 32):
                last = min(first + 32, count)
                warp = True
                for t in range(first, last):
                    whole = whole and states[t] in (BLOCK, DONE)
                    warp = warp and states[t] in (WARP, DONE)
                if warp:
                    for t in range(first, last):
                        if states[t] == WARP:
                            states[t] = 0
                            freed = True
            if whole:
                for t in range(count):
                    if states[t] == BLOCK:
                        states[t] = 0
                        freed = True
            if not freed:
                return left
    return 0


class Stuck(AssertionError):
    """Threads of a block wait for others that will not come."""


class Kernel:
    """A kernel for some types of arguments, ready to be run."""

    def __init__(self, module: Any, name: str, arguments: int) -> None:
        self.name, self.arguments = name, arguments
        self._engine = llvm.create_mcjit_compiler(module, _machine())
        self._engine.finalize_object()
        self._entry = self._engine.get_function_address("emulated.entry")
        assert self._entry
        self._shared = [
            (
                self._engine.get_global_value_address(each.name),
                self._engine.target_data.get_abi_size(each.global_value_type),
            )
            for each in module.global_variables
            if each.name.startswith(SHARED)
        ]

    def run(self, blocks: int, threads: int, pointers: int, rng: np.random.Generator) -> None:
        """`pointers`: the address of the addresses of its arguments. In any order."""
        assert 0 < threads <= MOST
        for place, size in self._shared:
            ctypes.memset(place, NONSENSE, size)
        _registers["ntid"][0], _registers["nctaid"][0], _arguments[0] = threads, blocks, pointers
        left = _run(
            np.uint64(self._entry), rng.permutation(blocks), rng.permutation(threads), _stacks,
            np.uint64(_stacks.ctypes.data), _places, np.uint64(_places.ctypes.data), _states, _registers["tid"],
            _registers["ctaid"],
        )  # fmt: skip
        if left:
            raise Stuck(f"{left} threads of a block of {self.name} wait for others that are done or wait elsewhere")


def _machine() -> Any:
    # Objects are kept while the process lives: code of one kernel is called by threads of another's.
    return llvm.Target.from_default_triple().create_target_machine(opt=1, codemodel="large", jit=True)


def _prepare() -> Any:
    assert platform.machine() == "x86_64", "the emulator knows how to change stacks on x86-64 alone"
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    llvm.initialize_native_asmparser()
    for name, array in _registers.items():
        llvm.add_symbol(f"emulated.{name}", array.ctypes.data)
    for name, array in ((STATE, _states), ("emulated.places", _places), ("emulated.arguments", _arguments)):
        llvm.add_symbol(name, array.ctypes.data)
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(_WAIT), _machine())
    engine.finalize_object()
    for name in ("emulated.wait", "emulated.switch"):
        llvm.add_symbol(name, engine.get_function_address(name))
    return engine


_engine = _prepare()

__all__ = ["Kernel", "Stuck"]
