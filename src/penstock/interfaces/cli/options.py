"""Options that several commands share. A group is a function: its parameters are the options, what it returns is
what the command gets.

    @with_options(limits=limits)
    def pagerank(store: Path, limits: Limits) -> None: ...
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from penstock.errors import InputError, UsageError
from penstock.interfaces.cli.wording import reachable

Order = StrEnum("Order", ["degree", "input"])
Loops = StrEnum("Loops", ["keep", "drop"])
Duplicates = StrEnum("Duplicates", ["keep", "drop", "merge"])
RULES = ("first", "sum", "min", "max")

Target = Annotated[Path, typer.Option("--output", "-o", metavar="NAME.pen", help="The store to write.")]
Store = Annotated[Path, typer.Argument(metavar="NAME.pen", help="The store.", show_default=False)]
Given = Annotated[
    Path,
    typer.Argument(
        metavar="GRAPH", help="A store; or a file or folder of edges, read for this time only.", show_default=False
    ),
]
Undirected = Annotated[
    bool | None,
    typer.Option("--undirected", help="Of a file of edges: take each both ways.", show_default=False),
]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace the target if it exists.")]


def _option(*names: str, panel: str, help: str, metavar: str | None = None, **rest: Any) -> Any:
    return typer.Option(*names, rich_help_panel=panel, help=help, metavar=metavar, show_default=False, **rest)


def with_options(**groups: Callable[..., Any]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Put the options of each group in the place of the parameter that has its name."""

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        parts = {name: inspect.signature(group, eval_str=True).parameters for name, group in groups.items()}
        own = inspect.signature(command, eval_str=True).parameters
        merged = [
            parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY)
            for name, mine in own.items()
            for parameter in (parts[name].values() if name in parts else (mine,))
        ]

        @functools.wraps(command)
        def call(**values: Any) -> None:
            made = {name: group(**{p: values.pop(p) for p in parts[name]}) for name, group in groups.items()}
            try:
                command(**values, **made)
            except InputError as error:
                raise reachable(error, call.__annotations__) from error

        call.__signature__ = inspect.Signature(merged)  # type: ignore[attr-defined]
        call.__annotations__ = {parameter.name: parameter.annotation for parameter in merged}
        return call

    return decorate


# ---- settings

SETTINGS = "Settings"
CHECKPOINTS = "Checkpoints"
GPU = "GPU"
SPILL = "Spill files"
"""A panel of its own: beside --no-progress the long name of the quota would be cut off at 80 columns."""


GpuMemory = Annotated[
    str | None,
    _option("--gpu-memory-limit", panel=GPU, metavar="SIZE", help="Its memory to stay inside; 90 % of what is free."),
]


@dataclass(frozen=True)
class Limits:
    """The settings given to this call, by name; and how much to say."""

    settings: dict[str, Any] = field(default_factory=dict)
    quiet: bool = False
    verbose: bool = False


def limits(
    memory_limit: Annotated[
        str | None,
        _option("--memory-limit", panel=SETTINGS, metavar="SIZE", help="Memory to stay inside, as 2GB, 512MiB."),
    ] = None,
    threads: Annotated[
        int | None, _option("--threads", panel=SETTINGS, metavar="N", help="Compute threads.", min=1)
    ] = None,
    progress: Annotated[
        bool | None,
        _option("--progress/--no-progress", panel=SETTINGS, help="Show bars (the default on a terminal) or none."),
    ] = None,
    quiet: Annotated[bool, _option("--quiet", "-q", panel=SETTINGS, help="Say nothing but errors.")] = False,
    verbose: Annotated[
        bool, _option("--verbose", "-v", panel=SETTINGS, help="Say also what was planned and where the time went.")
    ] = False,
) -> Limits:
    if quiet and verbose:
        raise UsageError("--quiet and --verbose are opposites: give one of them")
    given = {"memory_limit": memory_limit, "threads": threads, "progress": False if quiet else progress}
    return Limits({name: value for name, value in given.items() if value is not None}, quiet, verbose)


def placement(
    device: Annotated[
        str | None,
        _option(
            "--device",
            panel=SETTINGS,
            metavar="NAME",
            help="Who computes: auto, cpu, gpu, gpu:N or the slow reference.",
        ),
    ] = None,
    tier: Annotated[
        str | None,
        _option("--tier", panel=SETTINGS, metavar="NAME", help="Where the arcs lie: auto, memory or disk."),
    ] = None,
    checkpoint: Annotated[
        Path | None,
        _option(
            "--checkpoint", panel=CHECKPOINTS, metavar="DIR", help="Save the state there; go on from what is there."
        ),
    ] = None,
    checkpoint_every: Annotated[
        str | None,
        _option(
            "--checkpoint-every",
            panel=CHECKPOINTS,
            metavar="N|TIME",
            help="10 for supersteps, 30s or 5m; 60s if not given.",
        ),
    ] = None,
    gpu_memory_limit: GpuMemory = None,
    gpu_streams: Annotated[
        int | None, _option("--gpu-streams", panel=GPU, metavar="N", help="Streams that copy and compute; 2.", min=1)
    ] = None,
    gpu_devices: Annotated[
        int | None, _option("--gpu-devices", panel=GPU, metavar="N", help="Spread over so many; 1.", min=1)
    ] = None,
    gpu_strategy: Annotated[
        str | None,
        _option("--gpu-strategy", panel=GPU, metavar="P|S", help="Spread the pages (P) or the state (S) over them."),
    ] = None,
) -> dict[str, Any]:
    given = {
        "device": device,
        "tier": tier,
        "checkpoint": checkpoint,
        "checkpoint_every": checkpoint_every,
        "gpu_memory_limit": gpu_memory_limit,
        "gpu_streams": gpu_streams,
        "gpu_devices": gpu_devices,
        "gpu_strategy": gpu_strategy,
    }
    return {name: value for name, value in given.items() if value is not None}


def spill(
    temp_directory: Annotated[
        Path | None,
        _option("--temp-directory", panel=SPILL, metavar="DIR", help="Where spill files go, if not beside the target."),
    ] = None,
    max_temp_directory_size: Annotated[
        str | None, _option("--max-temp-directory-size", panel=SPILL, metavar="SIZE", help="Quota for spill files.")
    ] = None,
) -> dict[str, Any]:
    given = {"temp_directory": temp_directory, "max_temp_directory_size": max_temp_directory_size}
    return {name: value for name, value in given.items() if value is not None}


# ---- building a store

BUILD = "Building the store"


def build(
    undirected: Annotated[
        bool | None,
        _option(
            "--undirected/--directed",
            panel=BUILD,
            help="Store every edge both ways, or as it is (the default for most).",
        ),
    ] = None,
    self_loops: Annotated[
        Loops | None, _option("--self-loops", panel=BUILD, help="What to do with edges from a vertex to itself.")
    ] = None,
    duplicates: Annotated[
        Duplicates | None,
        _option(
            "--duplicates",
            panel=BUILD,
            help="What to do with equal edges; undirected graphs merge, directed ones keep.",
        ),
    ] = None,
    merge: Annotated[
        list[str] | None,
        _option(
            "--merge",
            panel=BUILD,
            metavar="RULE",
            help="Merge equal edges, columns by: first, sum, min or max; COLUMN=RULE for one column. Repeatable.",
        ),
    ] = None,
    order: Annotated[
        Order | None, _option("--order", panel=BUILD, help="Number vertices by falling degree, or in the order of ids.")
    ] = None,
    drop_isolated: Annotated[
        bool, _option("--drop-isolated", panel=BUILD, help="Forget vertices that have no edges.")
    ] = False,
    no_incoming: Annotated[
        bool,
        _option("--no-incoming", panel=BUILD, help="Store no incoming arcs: half the size, but PageRank needs them."),
    ] = False,
    page_size: Annotated[
        str | None,
        _option("--page-size", panel=BUILD, metavar="SIZE", help="4KiB to 64MiB, a power of two; 1MiB if not given."),
    ] = None,
    encoding: Annotated[
        str | None,
        _option(
            "--encoding",
            panel=BUILD,
            metavar="NAME",
            help="plain, logical6, physical22, physical33, physical24 or physical42.",
        ),
    ] = None,
    stripe: Annotated[
        list[Path] | None,
        _option("--stripe", panel=BUILD, metavar="DIR", help="Spread pages over these folders. Repeatable."),
    ] = None,
    overwrite: Annotated[bool, _option("--overwrite", panel=BUILD, help="Replace the target if it exists.")] = False,
) -> dict[str, Any]:
    given = {
        "undirected": undirected,
        "self_loops": None if self_loops is None else str(self_loops),
        "duplicates": None if duplicates is None else str(duplicates),
        "merge": merge_rules(merge or []),
        "order": None if order is None else str(order),
        "keep_isolated": not drop_isolated,
        "incoming": not no_incoming,
        "page_size": page_size,
        "encoding": encoding,
        "stripes": stripe or None,
        "overwrite": overwrite,
    }
    return {name: value for name, value in given.items() if value is not None}


def merge_rules(words: Sequence[str]) -> str | dict[str, str] | None:
    """`["sum"]` -> `"sum"`; `["weight=sum", "time=min"]` -> a rule for each column."""
    if not words:
        return None
    plain = [word for word in words if "=" not in word]
    if plain and len(words) > 1:
        raise UsageError("--merge is either one rule for all columns or COLUMN=RULE for each")
    if plain:
        return plain[0]
    return assignments("--merge", words)


def assignments(option: str, words: Sequence[str]) -> dict[str, str]:
    """`["weight=1"]` -> `{"weight": "1"}`."""
    found: dict[str, str] = {}
    for word in words:
        name, sign, value = word.partition("=")
        if not sign or not name:
            raise UsageError(f"{option} {word!r} is not of the form COLUMN=VALUE")
        found[name] = value
    return found


def names(words: Sequence[str]) -> list[str]:
    """`["a,b", "c"]` -> `["a", "b", "c"]`."""
    return [name for word in words for name in word.split(",") if name]


__all__ = [
    "Given",
    "GpuMemory",
    "Limits",
    "Overwrite",
    "Store",
    "Target",
    "Undirected",
    "assignments",
    "build",
    "limits",
    "merge_rules",
    "names",
    "placement",
    "spill",
    "with_options",
]
