"""Where a program runs: on the GPU where there is one and it can, else on the CPU, with the reason."""

from __future__ import annotations

from penstock.config import Settings
from penstock.engine.program import Combine, Program
from penstock.errors import UsageError
from penstock.observe.gpus import seen, uninstalled
from penstock.store.reader import Store

FORMS = {"combine", "sweep", "row", "pair", "common"}
"""What the GPU has kernels for."""


SMALL = 1 << 24
"""Arcs that a CPU is through with before a GPU has loaded its first kernel."""


def place(program: Program, store: Store, settings: Settings, *, loaded: bool = False) -> tuple[str, str]:
    """(`cpu`, `gpu` or `reference`, why not the GPU). `loaded`: the graph is on a GPU already.

    Who did not ask for a GPU and has none need not be told why.
    """
    if settings.device in ("cpu", "reference"):
        return settings.device, ""
    asked = settings.device.startswith("gpu") or loaded
    if not asked and (reason := uninstalled()):
        return "cpu", reason if seen() else ""
    if not asked and store.direction("out" if store.has_direction("out") else "in").arcs < SMALL:
        return "cpu", f"a graph of fewer than {SMALL:,} arcs runs on the CPU unless device='gpu'"
    from penstock.memory import gpu

    reason = gpu.unusable(int(settings.device.partition(":")[2] or 0))
    if reason and asked:
        raise UsageError(f"device {settings.device}: {reason}")
    if reason or (gpu.SIMULATED and not asked):
        return "cpu", reason if reason and seen() else ""
    why = unfit(program, store)
    return ("cpu", why) if why else ("gpu", "")


def unfit(program: Program, store: Store) -> str:
    """Why a program cannot be run on a GPU, wherever there is one."""
    if program.form not in FORMS:
        return f"{program.form} programs run on the CPU"
    if store.vertices >= 1 << 32:
        return "a graph of 2**32 vertices or more runs on the CPU"
    return ""


def unprogrammed(name: str) -> str:
    """Why what an algorithm looks at without a program is looked at by the CPU."""
    return f"{name} runs no program, and what it reads is not worth the way to a GPU"


def sharing(devices: int, gpus: int) -> str:
    """What to say of devices that share GPUs; nothing where each has its own."""
    if devices <= gpus:
        return ""
    there = f"{gpus} GPU{'s' if gpus > 1 else ''}"
    return f"{devices} devices share {there}, for there are no more: that is slower than one for each"


def one_gpu(program: Program) -> str:
    """Why a program runs on one GPU, however many it is given."""
    if program.form != "combine":
        return f"{program.form} programs run on one GPU"
    if isinstance(program, Combine) and program.edge_state:
        return "programs with edge_state run on one GPU"
    return ""


__all__ = ["one_gpu", "place", "sharing", "unfit", "unprogrammed"]
