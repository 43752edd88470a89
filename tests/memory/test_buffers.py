from __future__ import annotations

import os
import sys

import numpy as np
import pytest

from penstock.memory.buffers import HUGE, PAGE, Frames, allocate, allocated_size

MIB = 1 << 20


def resident() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.parametrize("nbytes", [0, 1, 4095, 4096, 4097, 2 * MIB - 1, 2 * MIB, 5 * MIB + 3])
@pytest.mark.parametrize("huge", [True, False])
def test_size_alignment_and_zeros(nbytes: int, huge: bool) -> None:
    array = allocate(nbytes, huge)
    assert array.dtype == np.uint8
    assert array.shape == (nbytes,)
    assert array.flags.writeable
    assert array.ctypes.data % (HUGE if nbytes >= HUGE else PAGE) == 0
    assert not array.any()
    array[:] = 7
    assert (array == 7).all()


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize("nbytes", [64 * MIB, 33 * MIB + 5000])
def test_resident_size_is_what_is_reported_and_goes_back_at_once(nbytes: int) -> None:
    before = resident()
    array = allocate(nbytes)
    assert resident() - before < 4 * MIB, "nothing is touched by the allocation itself"
    array[::PAGE] = 1
    grown = resident() - before
    assert abs(grown - allocated_size(nbytes)) < 2 * MIB
    view = array[5:].view()
    del array
    assert resident() - before > nbytes // 2, "a view keeps the memory"
    del view
    assert resident() - before < 4 * MIB


def test_memory_that_the_system_refuses_is_a_memory_error() -> None:
    with pytest.raises(MemoryError, match="refused"):
        allocate(1 << 60)


def test_frames_are_aligned_and_disjoint() -> None:
    frames = Frames(5, 10_000)
    assert frames.frame_bytes == 12_288
    assert frames.nbytes == 5 * 12_288
    for k in range(5):
        assert frames[k].ctypes.data % PAGE == 0
        frames[k][:] = k + 1
    assert [int(frames[k].sum()) for k in range(5)] == [(k + 1) * 12_288 for k in range(5)]
