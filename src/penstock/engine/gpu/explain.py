"""What a program would do on a GPU: whether it runs there, what lies there, and what a pass takes by measured rates.

A pass takes as long as the pages that are not kept on the device need to get there, or as long as its fetches need,
whichever is more; and the host's time to start its kernels.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from penstock.config import Settings, format_size
from penstock.engine.model import TRAVERSAL, Prediction, fetched_bytes, heat
from penstock.engine.place import one_gpu, place, sharing, unfit
from penstock.engine.plan import Plan, keeping
from penstock.engine.program import Combine, Common, Pair, Program, Row, Sweep
from penstock.engine.rates import GpuRates, Rates, load_gpu
from penstock.errors import DoesNotFit, UsageError
from penstock.store.reader import Store

if TYPE_CHECKING:
    from penstock.memory.card import Card

BATCH = 32 << 20
"""Bytes of pages that a stream is given at a time, about."""
KERNELS = 5
"""Kernels of a superstep besides those of each batch: emit, update, finish, pack, and a copy of scalars."""

PREDICTED = ("combine", "sweep")
"""Forms whose passes take what their pages and their fetches take."""


@dataclass(frozen=True)
class OnDevice:
    """One program: where it would run and why; what it would hold on the device, and what it would take."""

    device: str
    """`gpu`, or `cpu` with the reason."""
    why: str = ""
    not_here: str = ""
    """Why it could not be run on this machine, though the plan stands."""
    name: str | None = None
    limit: int | None = None
    """Bytes that it may use there, if they are known."""
    plan: Any = None
    source: str | None = None
    """Where streamed pages come from: `device` if none are streamed, `host` or `disk`."""
    cached: int = 0
    """Bytes of pages that stay on the device."""
    streamed: int = 0
    """Bytes that a pass copies there."""
    devices: int = 1
    strategy: str = "P"
    shared: str = ""
    """What to say of devices that share GPUs here."""
    prediction: Prediction | None = None
    refused: str = ""
    smallest: int = 0
    form: str = "combine"

    def as_dict(self) -> dict[str, Any]:
        plain = ("device", "why", "not_here", "name", "limit", "source", "cached", "streamed", "devices", "strategy")
        return {name: getattr(self, name) for name in plain} | {
            "plan": None if self.plan is None else self.plan.as_dict(),
            "smallest_gpu_memory_limit": self.smallest,
            "shared": self.shared or None,
            "refused": self.refused or None,
            "prediction": None if self.prediction is None else self.prediction.as_dict(),
        }


def on_device(
    program: Program,
    plan: Plan,
    store: Store,
    settings: Settings,
    slots: int,
    passes: int,
    rates: Rates,
    *,
    seeds: int = 0,
    loaded: bool = False,
    card: Card | None = None,
) -> OnDevice | None:
    """None where nobody asked for a GPU, and none would be used. `loaded`: the pages are on the device already; `card`:
    the one that the graph was loaded to."""
    if settings.device in ("cpu", "reference"):
        return None
    not_here = ""
    try:
        device, why = place(program, store, settings, loaded=card is not None)
    except UsageError as error:
        not_here, why = str(error).removeprefix(f"device {settings.device}: "), unfit(program, store)
        device = "cpu" if why else "gpu"
    if device != "gpu":
        return OnDevice(device, why, not_here) if why or not_here else None
    devices = 1 if one_gpu(program) else settings.gpu_devices
    name, limit = _which(settings, devices, card, here=not not_here)
    if limit is None:
        return OnDevice("gpu", "", not_here, name)
    if isinstance(program, Pair):
        from penstock.engine.gpu.pair import unfit as unfit_there

        if why := unfit_there(program, store):
            return OnDevice("cpu", why, not_here, name, limit)
    try:
        found = device_plan(program, store, slots, limit, settings, seeds)
    except DoesNotFit as refused:
        if settings.device == "auto":
            return OnDevice("cpu", str(refused), not_here, name, limit)
        return OnDevice("gpu", "", not_here, name, limit, refused=str(refused), smallest=refused.needed)
    cached, source = _share(program, found, plan, settings)
    streamed = (found.pages_bytes - cached) * found.ranges
    if found.lists_bytes and source != "device":  # each range is held once, and meets the lists from its own on
        streamed = found.pages_bytes * (found.ranges + 3) // 2
    kept = load_gpu(name)
    told = None
    if kept is not None and program.form in PREDICTED:
        told = _predict(program, plan, found, store, kept, rates, passes, streamed, source, loaded=loaded)
    return OnDevice(
        "gpu", "", not_here, name, limit, found, source, cached, streamed, devices, settings.gpu_strategy,
        "" if not_here else _shared(devices), told, smallest=found.smallest, form=program.form,
    )  # fmt: skip


def _which(settings: Settings, devices: int, card: Card | None, *, here: bool) -> tuple[str | None, int | None]:
    """(name, bytes that a run would take of it): of the GPU that is here, else of one that was measured."""
    limit = settings.gpu_memory_limit
    if not here:
        kept = load_gpu()
        return (kept.name, limit or kept.total * 9 // 10) if kept is not None else (None, limit)
    from penstock.memory import gpu
    from penstock.memory.card import spread

    if card is not None and devices == 1:
        return gpu.name(card.number), card.ledger.limit
    number = card.number if card is not None else int(settings.device.partition(":")[2] or 0)
    # Those that are on the same GPU share it, if nobody says what each may take.
    sharers = spread(number, devices).count(number) if limit is None else 1
    with gpu.using(number):
        return gpu.name(number), gpu.usable_memory(limit) // sharers


def _shared(devices: int) -> str:
    """Of so many devices, on the GPUs that are here."""
    if devices == 1:
        return ""
    from penstock.memory.card import spread

    return sharing(devices, len(set(spread(0, devices))))


def device_plan(program: Program, store: Store, slots: int, limit: int, settings: Settings, seeds: int = 0) -> Any:
    """What the program would hold on a device. What cannot fit is refused."""
    from penstock.engine.gpu import plan

    if isinstance(program, Combine) and settings.gpu_devices > 1 and not one_gpu(program):
        from penstock.engine.gpu.layout import Layout

        return Layout(program, store, slots, settings.gpu_devices, settings.gpu_strategy, seeds=seeds).plan(limit)
    if isinstance(program, Combine):
        return plan.make_device_plan(program, store, slots, limit, settings.state_ranges, seeds=seeds)
    if isinstance(program, Sweep):
        return plan.make_sweep_plan(program, store, slots, limit, seeds=seeds)
    if isinstance(program, Row):
        from penstock.engine.gpu.rows import rows_of

        return plan.make_row_plan(program, store, rows_of(program, store, slots), limit, seeds=seeds)
    if isinstance(program, Common):
        from penstock.engine.gpu.common import make_common_plan

        return make_common_plan(program, store, slots, limit, settings.state_ranges, seeds=seeds)
    from penstock.engine.gpu.pair import make_pair_plan

    assert isinstance(program, Pair)
    return make_pair_plan(program, store, slots, limit, settings.state_ranges)


def _share(program: Program, found: Any, plan: Plan, settings: Settings) -> tuple[int, str]:
    """(bytes of pages that stay on the device, where the others come from)."""
    if isinstance(program, Common) and found.lists_bytes and found.ranges == 1:
        return found.pages_bytes, "device"
    if found.lists_bytes:
        return 0, "disk" if plan.tier == "disk" and plan.ranges > 1 else "host"
    if found.resident:
        return found.pages_bytes, "device"
    from penstock.memory.frames import RING

    room = found.limit - found.state_bytes
    kept = keeping(program) if isinstance(program, Combine) else "resident"
    ring = max(found.least_bytes, min(settings.gpu_streams * BATCH, room // RING[kept]))
    cached = max(0, room - ring)
    host = settings.memory_limit - plan.state_bytes
    return cached, "host" if found.pages_bytes - cached <= host else "disk"


def _predict(
    program: Program,
    plan: Plan,
    found: Any,
    store: Store,
    kept: GpuRates,
    rates: Rates,
    passes: int,
    streamed: int,
    source: str,
    *,
    loaded: bool,
) -> Prediction:
    traverses = isinstance(program, Combine) and program.frontier
    fetch, curve = 0.0, kept.curve()
    for side in plan.sides:
        width = fetched_bytes(program, store)
        arcs, vertices = heat(store, side)
        fetch += curve.seconds(arcs, vertices * width) if width else store.direction(side).arcs * curve.nearest
    fetch *= found.ranges
    fetch += 2 * found.arcs_bytes / kept.memory  # read and written
    share = 1.0
    if traverses:
        share, passes = TRAVERSAL["memory" if found.resident else "disk"], 1
    pace = kept.copy if source != "disk" else min(kept.copy, rates.disk)
    copy = streamed / pace * share
    windows = found.ranges * found.windows
    launches = (KERNELS * windows + 2 * (windows + streamed // BATCH)) * kept.launch
    state = 2 * windows * found.vector_bytes / kept.copy if found.windows > 1 else 0.0
    # What arcs keep comes before their pages' kernels and goes after them; beside files that is quick.
    state += found.arcs_passing * share * (2 / kept.copy if plan.tier == "memory" else rates.part)
    once = max(copy, fetch * min(1.0, share)) + launches + state
    read = 0 if loaded and source == "device" else found.pages_bytes if source != "disk" else int(streamed * passes)
    phases = {"load": 0.0 if source == "disk" else read / rates.load, "run": passes * once}
    bound = {"host": "copying to the GPU", "disk": "disk"}[source] if copy > fetch else "memory of the GPU"
    if launches > max(copy, fetch):
        bound = "starting kernels"
    if state > max(copy, fetch, launches):
        bound = "copying state"
    parts = {"copy": copy, "fetch": fetch, "launch": launches, "state": state}
    return Prediction(sum(phases.values()), phases, int(read), bound, passes, estimate=traverses, parts=parts)


# ---- words


def lines(told: OnDevice, unmeasured: str) -> list[Any]:
    """The branch of a tree that says where it runs."""
    if told.device != "gpu":
        where = f"on the CPU: {told.why}" if told.why else "on the CPU"
        return [(where, [(f"not here: {told.not_here}", [])] if told.not_here else [])]
    below: list[Any] = [(f"not here: {told.not_here}", [])] if told.not_here else []
    if told.refused:
        below.append((f"does not fit: {told.refused}", []))
    if told.plan is not None:
        below += _held(told)
        if told.form in PREDICTED and told.prediction is None:
            below.append((f"how long a pass takes is {unmeasured}", []))
        elif told.prediction is None:
            below.append((f"how long a {told.form} program takes there is not predicted", []))
    elif told.limit is None:
        below.append(("its memory is not known here: give gpu_memory_limit to see the plan", []))
    return [(f"on the GPU{f', {told.name}' if told.name else ''}", below)]


def _held(told: OnDevice) -> list[Any]:
    plan = told.plan
    parts = f" at a time, in {plan.windows} windows" if plan.windows > 1 else ""
    parts = f" at a time, in {plan.ranges} ranges" if plan.ranges > 1 and not plan.lists_bytes else parts
    found: list[Any] = [(f"state {format_size(plan.vector_bytes)}{parts}", [])]
    if plan.arcs_bytes:
        found.append((f"state of the arcs {format_size(plan.arcs_bytes)}", _passing(plan)))
    if plan.rows_bytes:
        found.append((f"rows {format_size(plan.rows_bytes)} at a time", []))
    if plan.lists_bytes and told.source == "device":
        found.append((f"all lists on the device, {format_size(plan.pages_bytes)}", []))
    elif plan.lists_bytes:
        where = "host memory" if told.source == "host" else "a temporary file"
        below = [(f"they stream from {where}, {format_size(told.streamed)} in all", list[Any]())]
        found.append((f"lists {format_size(plan.lists_bytes)} at a time, in {plan.ranges} ranges", below))
    elif told.source == "device":
        found.append((f"all pages on the device, {format_size(plan.pages_bytes)}", []))
    else:
        where = "pinned host memory" if told.source == "host" else "disk"
        share = told.cached / plan.pages_bytes if plan.pages_bytes else 0.0
        kept = f"{format_size(told.cached)} of pages stay there, {share:.0%}"
        found.append((f"pages streamed from {where}, {format_size(told.streamed)} a pass", [(kept, [])]))
    if told.devices > 1:
        below = [(told.shared, list[Any]())] if told.shared else []
        found.append((f"over {told.devices} devices, strategy {told.strategy}", below))
    found.append((f"device memory: {format_size(plan.limit)} allowed", []))
    found.append((f"smallest gpu_memory_limit: {format_size(plan.smallest, math.ceil)}", []))
    return found


def _passing(plan: Any) -> list[Any]:
    """What arcs keep and has no room on the device."""
    if not plan.arcs_passing:
        return []
    stays, window = format_size(plan.arcs_kept_bytes), format_size(plan.arcs_window_bytes)
    rest = f"the rest comes with its pages, {window} at a time, {format_size(plan.arcs_passing)} a pass there and back"
    return [(f"{stays} stay there", []), (rest, [])]


__all__ = ["OnDevice", "device_plan", "lines", "on_device"]
