"""LLVM's code of a kernel, which numba-cuda made for a GPU, as code for this processor."""

from __future__ import annotations

import re
from typing import Any

from llvmlite import binding as llvm
from numba.cuda import compiler
from numba.cuda.cudadrv import nvvm

CAPABILITY = 9, 0
REGISTERS = ("tid", "ctaid", "ntid", "nctaid")
"""Of a thread: its number in its block, that of its block, how many there are of each."""
STATE = "emulated.state"
"""Where a thread notes that it waits, or is done."""
SHARED = "_cudapy_smem"
"""How names of shared memory begin."""
BLOCK, WARP, DONE = 1, 2, 3
"""What it waits for: all threads of its block; those of its warp. 0: nothing."""


def _support() -> str:
    """What kernels call where a GPU has instructions."""
    code = f"@{STATE} = external global i32\n@emulated.arguments = external global ptr\n"
    code += "declare void @emulated.wait(i32)\n"
    for name in REGISTERS:
        code += f"@emulated.{name} = external global i32\n"
        code += f"define linkonce_odr i32 @emulated.nvvm.read.ptx.sreg.{name}.x() {{\n"
        code += f"  %found = load volatile i32, ptr @emulated.{name}\n  ret i32 %found\n}}\n"
        for axis in "yz":
            code += f"define linkonce_odr i32 @emulated.nvvm.read.ptx.sreg.{name}.{axis}() {{\n"
            code += f"  ret i32 {int(name.startswith('n'))}\n}}\n"
    for kind, bits in (("float", 32), ("double", 64)):
        name = f"emulated.nvvm.atomic.load.add.f{bits}.p0f{bits}"
        code += f"define linkonce_odr {kind} @{name}(ptr %at, {kind} %by) {{\n"
        code += f"  %old = atomicrmw fadd ptr %at, {kind} %by monotonic\n  ret {kind} %old\n}}\n"
    for name, of, to in (
        ("float_as_int", "float", "i32"),
        ("int_as_float", "i32", "float"),
        ("double_as_longlong", "double", "i64"),
        ("longlong_as_double", "i64", "double"),
    ):
        code += f"define linkonce_odr {to} @__nv_{name}({of} %x) {{\n"
        code += f"  %y = bitcast {of} %x to {to}\n  ret {to} %y\n}}\n"
    for name, kind in (("barrier0()", BLOCK), ("bar.warp.sync(i32 %mask)", WARP)):
        code += f"define linkonce_odr void @emulated.nvvm.{name} {{\n"
        code += f"  call void @emulated.wait(i32 {kind})\n  ret void\n}}\n"
    return code


_SUPPORT = _support()

_TARGET = re.compile(r'^target (?:triple|datalayout) = ".*"$', re.MULTILINE)
_LOAD_BYTE = re.compile(r'(%\S+) = call i32 asm sideeffect "ld\.\S+\.b8 [^"]*", "[^"]*"\((ptr \S+)\)')
_LOAD = re.compile(r'call (\w+) asm (?:sideeffect )?"ld\.[^"]*", "[^"]*"\((ptr \S+)\)')
_CAST = re.compile(r"addrspacecast (\(?)ptr addrspace\(3\) (\S+) to ptr")
_SHARED = re.compile(r"^(@\S+) = addrspace\(3\) global (\S.*) undef", re.MULTILINE)
_MATHS = re.compile(r"@__nv_(?!\w*_as_)(\w+)")


def _renamed(code: str) -> str:
    """Before LLVM sees it, for it knows some of these names, and puts others in their place."""
    return _TARGET.sub("", nvvm.llvm_replace(code)).replace("llvm.nvvm.", "emulated.nvvm.")


def _rewritten(code: str) -> str:
    """Instructions of a GPU as those of any processor. Shared memory is that of all: blocks run one after the other."""
    code = _LOAD_BYTE.sub(r"\1.byte = load volatile i8, \2\n  \1 = zext i8 \1.byte to i32", code)
    code = _LOAD.sub(r"load volatile \1, \2", code)
    code = _SHARED.sub(r"\1 = global \2 zeroinitializer", code)
    code = _CAST.sub(r"getelementptr \1i8, ptr \2, i64 0", code)
    return _MATHS.sub(r"@\1", code)


def _entry(kernel: Any) -> str:
    """A function without parameters that calls a kernel with arguments that lie where the driver would read them."""
    kinds = [str(each.type) for each in kernel.arguments]
    code = f"declare void @{kernel.name}({', '.join(kinds)})\n@{STATE} = external global ptr\n"
    code += "@emulated.arguments = external global ptr\n@emulated.tid = external global i32\n"
    code += "define void @emulated.entry() {\n  %all = load ptr, ptr @emulated.arguments\n"
    for k, kind in enumerate(kinds):
        code += f"  %where{k} = getelementptr ptr, ptr %all, i64 {k}\n  %at{k} = load ptr, ptr %where{k}\n"
        code += f"  %value{k} = load {kind}, ptr %at{k}\n"
    code += f"  call void @{kernel.name}({', '.join(f'{kind} %value{k}' for k, kind in enumerate(kinds))})\n"
    code += f"  call void @emulated.wait(i32 {DONE})\n  unreachable\n}}\ndeclare void @emulated.wait(i32)\n"
    return code


class Untranslatable(AssertionError):
    """A kernel wants of a GPU what this has nothing for."""


def translate(function: Any, kinds: tuple[Any, ...]) -> tuple[Any, int]:
    """(LLVM's module of a kernel, the number of its arguments): `emulated.entry` calls it for one thread."""
    library, _ = compiler._compile_pyfunc_with_fixup(function, kinds, device=False, abi="numba", cc=CAPABILITY)
    module, *others = [llvm.parse_assembly(_renamed(code)) for code in library.llvm_strs]
    for other in others:
        module.link_in(other)
    made = llvm.parse_assembly(_rewritten(str(module)))
    kernel = made.get_function(library._entry_name)
    for more in (_SUPPORT, _entry(kernel)):
        made.link_in(llvm.parse_assembly(more))
    missing = [each.name for each in made.functions if each.is_declaration and not _known(each.name)]
    if missing or " asm " in str(made):
        raise Untranslatable(f"{function.__name__} wants what the emulator has nothing for: {missing or 'assembly'}")
    return made, len(list(kernel.arguments))


def _known(name: str) -> bool:
    return name.startswith("llvm.") or name == "emulated.wait" or llvm.address_of_symbol(name) is not None


__all__ = ["BLOCK", "CAPABILITY", "DONE", "REGISTERS", "SHARED", "STATE", "WARP", "Untranslatable", "translate"]
