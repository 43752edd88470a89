"""What forms without a frontier share on a GPU: kernels made once, the state on the device, its first values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from types import ModuleType
from typing import Any

import numpy as np

from penstock.engine.compile import usable
from penstock.engine.gpu.functions import Kernel, gpu_adapters, make_kernel
from penstock.engine.gpu.held import blocks
from penstock.engine.gpu.kernels import slots as each
from penstock.engine.program import Program
from penstock.engine.vectors import Slots
from penstock.memory import gpu
from penstock.memory.card import Array, Card
from penstock.memory.fingerprint import fingerprint
from penstock.memory.tasks import BLOCK


class Kernels:
    """The kernels of one program by the names of their templates, made when first used."""

    def __init__(self, program: Program, templates: tuple[ModuleType, ...], functions: Mapping[str, Any]) -> None:
        # It makes them known to kernels, for which CUDA's compiler must be there: plans are made without it.
        from penstock.engine.gpu import atomics  # noqa: F401

        self.program, self.templates = program, (*templates, each)
        self._parts = gpu_adapters(program, flagged=False)
        for name, function in functions.items():
            setattr(self._parts, name, usable(function))
        self._parts.frontier, self._parts.lanes, self._parts.block = False, 1, BLOCK
        self._made: dict[str, Kernel] = {}

    def __getattr__(self, name: str) -> Kernel:
        if name not in self._made:
            template = next(getattr(module, name) for module in self.templates if hasattr(module, name))
            self._made[name] = make_kernel(template, self._parts, self.program)
        return self._made[name]


_KEPT: dict[str, Kernels] = {}


def kernels_of(program: Program, *templates: ModuleType, **functions: Any) -> Kernels:
    """The kernels of a program; the same ones for a program that does the same."""
    key = fingerprint(program.form, program.makeup(), BLOCK)
    if key not in _KEPT:
        _KEPT[key] = Kernels(program, templates, functions)
    return _KEPT[key]


def nothing(u, state, p):
    """The vertex function of a program that has none."""
    return


class State:
    """The fields of a program on the device, and what its functions get beside them."""

    def __init__(self, device: Card, kernels: Kernels, host: tuple[np.ndarray, ...], slots: Slots) -> None:
        self.device, self.kernels, self.host, self.slots = device, kernels, host, slots
        self._arrays: list[Array] = []
        self.fields = [self._kept(device.empty(array.shape, array.dtype, "state")) for array in host]
        self.args = tuple(array.arg for array in self.fields)
        self.scalars = self._kept(device.full(2, 0, np.float64, "scalars"))
        self._unused = self._kept(device.full(1, 0, np.uint8, "unused"))

    def _kept(self, array: Array) -> Array:
        self._arrays.append(array)
        return array

    def upload(self) -> None:
        """What the host has."""
        for mine, array in zip(self.fields, self.host, strict=True):
            gpu.fill(mine.array, array)

    def initialise(self, reads: Iterable[np.ndarray | Array], params: tuple[Any, ...]) -> None:
        """Give all slots their first values, then the seeds theirs. `reads`, which may be there already, go."""
        slots, stream = self.slots, self.device.stream
        with ExitStack() as leaving:

            def there(array: np.ndarray | Array, what: str) -> Any:
                held = array if isinstance(array, Array) else self.device.upload(array, what)
                leaving.callback(held.release)
                return held.arg

            given = tuple(there(array, "reads") for array in reads)
            args = (self.args, given, params, self.scalars.arg, self._unused.arg)
            count, zero = slots.count, np.uint32(0)
            self.kernels.initialise(stream, blocks(count), BLOCK, zero, np.uint32(count), zero, *args)
            if slots.seeds:
                places = np.array([slots.of(number) for number in slots.seeds], np.uint32)
                seeds = there(places, "seeds"), there(np.arange(1, len(places) + 1, dtype=np.uint32), "seeds")
                self.kernels.initialise_seeds(
                    stream, blocks(len(places)), BLOCK, *seeds, zero, np.uint32(count), *args
                )  # fmt: skip
            stream.synchronize()

    def download(self) -> None:
        """To where the host has it."""
        self.device.stream.synchronize()
        for mine, array in zip(self.fields, self.host, strict=True):
            gpu.download(mine.array, array)

    def close(self) -> None:
        self.device.stream.synchronize()
        for array in self._arrays:
            array.release()


__all__ = ["Kernels", "State", "kernels_of", "nothing"]
