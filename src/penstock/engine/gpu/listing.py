"""Lists of neighbours for a run: all of them on the device, which makes them; or made by the host, and passing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.engine.gpu.lists import Lists, Sizes
from penstock.engine.gpu.passing import ENTRY, Passing, least_bytes, share_out, shared_bytes
from penstock.engine.gpu.plan import SLACK, DevicePlan
from penstock.engine.plan import Plan
from penstock.errors import DoesNotFit
from penstock.memory.card import Card
from penstock.memory.frames import DevicePages
from penstock.store.reader import Store

if TYPE_CHECKING:
    from penstock.engine.engine import Engine


def plan_lists(
    name: str, store: Store, sizes: Sizes, limit: int, *, fixed: int, reads: int = 0, longest: int, ranges: int | None
) -> DevicePlan:
    """All lists, beside `fixed` bytes of vectors, `reads` bytes of what they begin with and a few pages; or, where that
    does not fit, as many ranges of lists as it takes, or `ranges`. Refuse what cannot fit."""
    side, active, longest = store.direction("out"), store.active, max(1, longest)
    state = fixed + 8 * (active + 1) + 4 * (active if sizes.ranked else 1) + 2 * SLACK
    in_ranges, whole = state + max(reads, least_bytes(longest)), fixed + reads + sizes.nbytes
    least = DevicePages.least(side, ())
    smallest = in_ranges if ranges else min(in_ranges, whole + least)
    if smallest > limit:
        what = f"the state of {name} with its longest lists on the GPU"
        raise DoesNotFit(what, needed=smallest, limit=limit, setting="gpu_memory_limit")
    if whole + least <= limit and not ranges:
        return DevicePlan(1, 1, whole, DevicePages.needed(side, ()), least, limit, smallest)
    held, passing = share_out(limit - state, sizes.entries, longest, ranges)
    lists = shared_bytes(held, passing)
    return DevicePlan(
        max(1, -(-sizes.entries // held)), 1, state + lists, ENTRY * sizes.entries, 0, limit, smallest,
        lists_bytes=lists, reads_bytes=reads,
    )  # fmt: skip


def lists_for(
    engine: Engine, device: Card, name: str, plan: Plan, planned: DevicePlan, sizes: Sizes, *, ways: bool = False
) -> Lists | Passing:
    """What was planned, before it takes any memory."""
    if not planned.lists_bytes:
        side = engine.store.direction("out")
        device.make_room(planned.state_bytes, planned.least_bytes, [side], (), "resident")
        return Lists(engine, device, sizes, ways=ways)
    device.close_pages()  # who has no room for all lists, and for pages to make them of, has none to spare
    forced, what = engine.settings.state_ranges, f"{name} on the GPU"
    return Passing(engine, device, plan, ways=ways, everyone=sizes.everyone, ranges=forced, what=what)


__all__ = ["lists_for", "plan_lists"]
