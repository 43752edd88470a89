"""Sorting pairs on the GPU, beside CuPy's sort of keys, beside the CPU, and beside the bus.

The pairs, a uint64 key and a uint64 payload, lie in pinned host memory, sorted ones go to other such memory. Out of
core they cross the bus twice each way: to be sorted chunk by chunk, and bucket by bucket. Two bounds are set by that:
`serial`, one copy at a time; and `overlapped`, copies both ways at the same time, at the rates found when both ways
are busy. Time to pin memory is measured apart, and so are pairs in memory that is not pinned at all. The CPU sorts the
same pairs by its radix sort, on all threads, and all results are compared.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from common import median
from gpu_section import Section, table

from penstock.config import available_threads
from penstock.memory import gpu
from penstock.memory.buffers import allocate
from penstock.memory.ledger import Ledger
from penstock.memory.staging import Ring
from penstock.sorting.gpu import Slot, Workspace
from penstock.sorting.radix import sort_pairs
from penstock.sorting.streamed import sort_on_gpu


def run(section: Section) -> None:
    """All of it; figures are kept one by one."""
    bus = section.step("bus", bus_rates, section.sizes.pinned)
    pairs = Pairs(section.sizes.sort_times * section.sizes.sort_limit // 16)
    try:
        section.step("sort on CPU", on_cpu, pairs, section)
        section.step("pinning", pairs.pin)
        section.step("sort in core", in_core, pairs, section)
        section.step("sort out of core", out_of_core, pairs, section)
    finally:
        pairs.close()
    if bus and "sort out of core" in section.figures:
        section.step("sort shares", shares, section)
    _show(section)


class Pairs:
    """Random keys, numbered; where they are sorted from and to, and what the CPU made of them."""

    def __init__(self, count: int) -> None:
        self.count, self.nbytes = count, 16 * count
        arrays = [allocate(8 * count).view(np.uint64) for _ in range(7)]
        self.key, self.source, self.target, self.right = arrays[0], arrays[1:3], arrays[3:5], arrays[5:7]
        parts = 64
        edges = [count * k // parts for k in range(parts + 1)]
        with ThreadPoolExecutor(available_threads()) as team:
            list(team.map(self._make, range(parts), edges, edges[1:]))
        self._pinned: list[np.ndarray] = []

    def _make(self, part: int, begin: int, end: int) -> None:
        self.key[begin:end] = np.random.default_rng(part).integers(0, 1 << 64, end - begin, dtype=np.uint64)
        for array in (*self.source, *self.target, *self.right):
            array[begin:end] = 0  # memory is there from its first touch on

    def fill(self) -> None:
        """Make the source what it was at first: a sort leaves sorted chunks there."""
        parts, count = 4 * available_threads(), self.count
        edges = [count * k // parts for k in range(parts + 1)]

        def one(begin: int, end: int) -> None:
            self.source[0][begin:end] = self.key[begin:end]
            self.source[1][begin:end] = np.arange(begin, end, dtype=np.uint64)

        with ThreadPoolExecutor(available_threads()) as team:
            list(team.map(one, edges, edges[1:]))

    def pin(self) -> dict[str, Any]:
        began = time.perf_counter()
        arrays = [*self.source, *self.target]
        self._pinned = [array for array in arrays if gpu.pin(array)]
        seconds = time.perf_counter() - began
        if len(self._pinned) < len(arrays) and not gpu.SIMULATED:
            raise RuntimeError("the system refuses to pin memory")
        return {"seconds": seconds, "bytes": 2 * self.nbytes, "seconds_per_gb": seconds / (2 * self.nbytes / 1e9)}

    def unpin(self) -> None:
        while self._pinned:
            gpu.unpin(self._pinned.pop())

    def check(self) -> None:
        """Both sorts are stable: the same keys, and the same payload with each."""
        for found, right in zip(self.target, self.right, strict=True):
            if not np.array_equal(found, right):
                raise AssertionError("the GPU's order is not the CPU's")

    def close(self) -> None:
        self.unpin()


def bus_rates(nbytes: int, copies: int = 8, rounds: int = 3) -> dict[str, float]:
    """Bytes per second between pinned memory and the device: each way alone, and each way while both are busy."""
    hosts = [allocate(nbytes) for _ in range(2)]
    for host in hosts:
        host[:] = 1
    there = [gpu.empty(nbytes, np.uint8) for _ in range(2)]
    one, other = gpu.Stream(), gpu.Stream()
    pinned = [host for host in hosts if gpu.pin(host)]
    if len(pinned) < 2 and not gpu.SIMULATED:
        raise RuntimeError("the system refuses to pin memory")

    def copy_in() -> None:
        for _ in range(copies):
            one.copy(there[0], hosts[0])

    def copy_out() -> None:
        for _ in range(copies):
            other.fetch(hosts[1], there[1])

    def both() -> None:
        for _ in range(copies):
            one.copy(there[0], hosts[0])
            other.fetch(hosts[1], there[1])

    try:
        rates = {name: copies * nbytes / min(times(work, rounds)) for name, work in
                 (("to_device", copy_in), ("to_host", copy_out), ("each_of_both", both))}  # fmt: skip
    finally:
        for host in pinned:
            gpu.unpin(host)
    return rates


def times(work: Callable[[], Any], rounds: int, before: Callable[[], Any] | None = None) -> list[float]:
    """Seconds of some runs, after a first one that compiles and allocates; of that one where there are no others."""
    found = []
    for _ in range(rounds + 1):
        if before is not None:
            before()
        gpu.synchronize()
        began = time.perf_counter()
        work()
        gpu.synchronize()
        found.append(time.perf_counter() - began)
    return found[1:] or found


def on_cpu(pairs: Pairs, section: Section) -> dict[str, Any]:
    """The radix sort in core, on all threads."""
    threads = available_threads()
    few = [np.arange(1000, dtype=np.uint64)[::-1].copy() for _ in range(4)]
    sort_pairs(few[0], few[1], few[2], few[3], threads)  # compiles
    found: list[tuple[np.ndarray, ...]] = []

    def sort() -> None:
        found[:] = [sort_pairs(pairs.source[0], pairs.source[1], pairs.target[0], pairs.target[1], threads)]

    seconds = times(sort, section.sizes.repeats, pairs.fill)
    for right, made in zip(pairs.right, found[0][:2], strict=True):
        right[:] = made
    return _rates(pairs, seconds) | {"threads": threads}


def in_core(pairs: Pairs, section: Section) -> dict[str, Any]:
    """Pairs that fit: on the device, where CuPy sorts keys alone; and from host to host."""
    device = Ledger(8 * pairs.nbytes + (64 << 20), "gpu_memory_limit")
    figures: dict[str, Any] = {"resident": _resident(pairs, section, device)}

    def sort() -> None:
        sort_on_gpu(pairs.source[0], [pairs.source[1]], pairs.target[0], [pairs.target[1]], device, pin=False)

    pairs.fill()  # once: in core the source stays as it is
    figures["host to host"] = _rates(pairs, times(sort, section.sizes.repeats))
    pairs.check()
    return figures


def _resident(pairs: Pairs, section: Section, device: Ledger) -> dict[str, Any]:
    rounds, count = section.sizes.repeats, pairs.count
    slot, workspace = Slot(device, 0, count, [8]), Workspace(device, count)
    held = device.reserve(8 * count, "keys as they were")
    keys = gpu.upload(pairs.key)

    def fill() -> None:
        slot.stream.move(slot.keys, keys)

    def sort() -> None:
        workspace.sort(slot.stream, slot.keys)
        source, target, words = slot.args[0]
        workspace.gather(slot.stream, source, target, count, words)
        workspace.done(slot.stream)

    def keys_alone() -> None:
        slot.keys.sort()

    try:
        found = {"pairs": _rates(pairs, times(sort, rounds, fill))}
        found["CuPy, keys alone"] = _rates(pairs, times(keys_alone, rounds, fill), 8)
        return found
    finally:
        slot.stream.synchronize()
        slot.close()
        workspace.close()
        held.release()
        if not gpu.SIMULATED:
            gpu.cupy.get_default_memory_pool().free_all_blocks()


def out_of_core(pairs: Pairs, section: Section) -> dict[str, Any]:
    """Under a quarter of the data: pinned before, and once more pinned by the sort itself."""
    device = Ledger(section.sizes.sort_limit, "gpu_memory_limit")
    found: list[Any] = []

    def sort(**options: Any) -> None:
        pairs.fill()
        source, target = pairs.source, pairs.target
        found.append(sort_on_gpu(source[0], [source[1]], target[0], [target[1]], device, **{"pin": False} | options))

    sort()
    pairs.check()
    for _ in range(section.sizes.repeats):
        sort()
    figures = found[-1]
    seconds = [one.seconds for one in found[min(1, len(found) - 1) :]]
    made: dict[str, Any] = _rates(pairs, seconds) | {
        "limit": section.sizes.sort_limit, "chunks": figures.chunks, "buckets": figures.buckets,
        "recut": figures.recut, "bytes_copied": figures.copied, "peak": device.peak, "verified": True,
    }  # fmt: skip
    pairs.unpin()
    if not section.tiny:
        sort(pin=True)
        pairs.check()
    whole = found[-1].seconds + found[-1].pinning
    made |= {
        "pinning_seconds": found[-1].pinning, "seconds_with_pinning": whole,
        "pairs_per_second_with_pinning": pairs.count / whole,
    }  # fmt: skip
    rings = Ring(section.sizes.ring), Ring(section.sizes.ring)
    for _ in range(max(1, min(2, section.sizes.repeats))):
        sort(rings=rings)
    pairs.check()
    return made | {
        "seconds_not_pinned": found[-1].seconds,
        "pairs_per_second_not_pinned": pairs.count / found[-1].seconds,
    }


def _rates(pairs: Pairs, seconds: list[float], width: int = 16) -> dict[str, Any]:
    middle = median(seconds)
    return {
        "pairs": pairs.count, "seconds": middle, "all_seconds": seconds, "pairs_per_second": pairs.count / middle,
        "bytes_per_second": width * pairs.count / middle,
    }  # fmt: skip


def shares(section: Section) -> dict[str, Any]:
    """Against the bus and against the CPU."""
    found = section.figures
    bus, sort = found["bus"], found["sort out of core"]
    nbytes = 16 * sort["pairs"]
    serial = 2 * (nbytes / bus["to_device"] + nbytes / bus["to_host"])
    overlapped = 2 * nbytes / bus["each_of_both"]
    made = {
        "serial_bound_seconds": serial, "overlapped_bound_seconds": overlapped,
        "of_serial_bound": serial / sort["seconds"], "of_overlapped_bound": overlapped / sort["seconds"],
    }  # fmt: skip
    if "sort on CPU" in found:
        cpu = found["sort on CPU"]["pairs_per_second"]
        made |= {
            "times_the_cpu": sort["pairs_per_second"] / cpu,
            "times_the_cpu_with_pinning": sort["pairs_per_second_with_pinning"] / cpu,
            "times_the_cpu_not_pinned": sort["pairs_per_second_not_pinned"] / cpu,
            "most_times_the_cpu": sort["pairs"] / overlapped / cpu,
        }
    return made


def _show(section: Section) -> None:
    found = section.figures
    core = found.get("sort in core", {})
    named = {
        "CPU, all threads": found.get("sort on CPU"),
        "GPU, resident": core.get("resident", {}).get("pairs"),
        "CuPy, resident, keys alone": core.get("resident", {}).get("CuPy, keys alone"),
        "GPU, in core, host to host": core.get("host to host"),
        "GPU, out of core, 1/4 limit": found.get("sort out of core"),
    }
    rows = [
        (name, f"{one['seconds'] * 1e3:.1f}", f"{one['pairs_per_second'] / 1e6:.0f}",
         f"{one['bytes_per_second'] / 1e9:.1f}")
        for name, one in named.items() if one
    ]  # fmt: skip
    if rows:
        table("Sorting pairs of 16 bytes", ("", "ms", "M pairs/s", "GB/s"), rows)
    if "sort shares" in found:
        lines = [(name.replace("_", " "), f"{value:.3g}") for name, value in found["sort shares"].items()]
        table("Out of core, beside the bus and the CPU", ("", "found"), lines)
