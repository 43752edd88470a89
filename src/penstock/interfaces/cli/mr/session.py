"""Options of a session of key-value work."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from penstock.interfaces.cli.options import GpuMemory

PANEL = "Key-value work"


def _option(*names: str, **rest: Any) -> Any:
    return typer.Option(*names, rich_help_panel=PANEL, show_default=False, **rest)


def session(
    force_out_of_core: Annotated[
        bool, _option("--force-out-of-core", help="Keep no chunk in memory: to see what a small budget would do.")
    ] = False,
    chunk_size: Annotated[
        str | None, _option("--chunk-size", metavar="SIZE", help="What is worked on at a time; from the budget if not.")
    ] = None,
    device: Annotated[
        str | None, _option("--device", metavar="NAME", help="Who computes: auto (the default), cpu, gpu or gpu:N.")
    ] = None,
    gpu_memory_limit: GpuMemory = None,
) -> dict[str, Any]:
    given = {
        "force_out_of_core": force_out_of_core or None,
        "chunk_size": chunk_size,
        "device": device,
        "gpu_memory_limit": gpu_memory_limit,
    }
    return {name: value for name, value in given.items() if value is not None}


__all__ = ["session"]
