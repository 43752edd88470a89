"""The emulated GPU allows no more order than CUDA promises."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from emulator.devices import Device
from emulator.memory import NONSENSE, Memory, device_at
from emulator.scheduler import SCHEDULER, Order, Queue


@pytest.fixture
def done() -> Iterator[list[str]]:
    """What was done, in its order, where nothing is before somebody waits for it."""
    SCHEDULER.choose(Order.LAZY, 0)
    yield []
    SCHEDULER.choose(Order.EAGER, 0)


def test_a_stream_is_in_order_and_knows_no_other(done: list[str]) -> None:
    one, other = SCHEDULER.queue(), SCHEDULER.queue()
    SCHEDULER.put(one, lambda: done.append("first"))
    SCHEDULER.put(other, lambda: done.append("elsewhere"))
    second = SCHEDULER.put(one, lambda: done.append("second"))
    assert done == []
    SCHEDULER.finish(second)
    assert done == ["first", "second"]


def test_the_null_stream_waits_for_all_of_its_device_and_they_for_it(done: list[str]) -> None:
    streams: list[Queue] = []
    for number in range(2):
        with Device(number):
            streams += [SCHEDULER.queue(), SCHEDULER.find(0)]
    one, null, _, other = streams
    SCHEDULER.put(one, lambda: done.append("one"))
    SCHEDULER.put(other, lambda: done.append("other device"))
    SCHEDULER.put(null, lambda: done.append("null"))
    SCHEDULER.finish(SCHEDULER.position(one))
    assert done == ["one", "null"]


def test_memory_is_nonsense_and_its_end_waits_for_its_device(done: list[str]) -> None:
    with Device(1):
        memory, stream = Memory(5000), SCHEDULER.queue()
    with Device(0):
        SCHEDULER.put(SCHEDULER.queue(), lambda: done.append("other device"))
    SCHEDULER.put(stream, lambda: done.append("its device"))
    place = memory.ptr
    assert device_at(place + 4999) == 1
    assert NONSENSE != 0
    del memory
    SCHEDULER.put(stream, None)
    assert done == ["its device"]
    assert device_at(place) is None


@pytest.mark.parametrize("seed", range(3))
def test_random_orders_keep_what_is_promised(done: list[str], seed: int) -> None:
    SCHEDULER.choose(Order.RANDOM, seed)
    one, other = SCHEDULER.queue(), SCHEDULER.queue()
    for number in range(20):
        SCHEDULER.put(one, lambda number=number: done.append(f"one {number}"))
        SCHEDULER.put(other, lambda number=number: done.append(f"other {number}"))
    SCHEDULER.finish_all()
    assert [each for each in done if "one" in each] == [f"one {number}" for number in range(20)]
    assert done != sorted(done, key=lambda each: int(each.split()[1]))
