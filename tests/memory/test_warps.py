"""What is counted of a task is what its threads do, one by one; its width is one that none does better."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.memory.warps import ROUND, fit, walk

WIDTHS = (1, 2, 4, 8, 16, 32)
DEGREES = st.lists(st.one_of(st.integers(0, 9), st.integers(0, 1024)), max_size=200)


def threads(degrees: list[int], width: int, block: int) -> tuple[int, int]:
    """As `engine.gpu.kernels.combine` walks: arcs that each thread has in each round; those of a warp go together."""
    steps, slowest = 0, 0
    for warp in range(block // 32):
        own = 0
        places = [tid // width for tid in range(32 * warp, 32 * warp + 32)]
        lanes = [tid % width for tid in range(32 * warp, 32 * warp + 32)]
        while places[0] < len(degrees):
            arcs = [
                len(range(lane, degrees[r], width)) if r < len(degrees) else 0
                for r, lane in zip(places, lanes, strict=True)
            ]
            steps += max(arcs)
            own += max(arcs) + ROUND
            places = [r + block // width for r in places]
        slowest = max(slowest, own)
    return steps, slowest


def counted(degrees: list[int], width: int, block: int) -> tuple[int, int]:
    found = walk(np.array(degrees, np.uint32), np.uint64(width), np.uint64(32), np.uint64(block // 32))
    return int(found[0]), int(found[1])


@given(DEGREES, st.sampled_from(WIDTHS), st.sampled_from([32, 96, 256]))
def test_what_is_counted_is_what_threads_do(degrees: list[int], width: int, block: int) -> None:
    assert counted(degrees, width, block) == threads(degrees, width, block)


@given(st.lists(DEGREES, min_size=1, max_size=4), st.sampled_from([32, 256]), st.sampled_from([1, 64, 1000]))
def test_tasks_have_the_best_width_and_about_as_many_arcs(pages: list[list[int]], block: int, arcs: int) -> None:
    pages = [page or [0] for page in pages]
    degrees = np.array([d for page in pages for d in page], np.uint32)
    vertices = np.array([len(page) for page in pages])
    first = np.cumsum(vertices) - vertices
    room = sum((sum(page) + len(page)) // arcs + 1 for page in pages)
    tasks, work = np.empty((room, 4), np.uint32), np.empty(room, np.int64)
    numbers = np.arange(5, 5 + len(pages))
    count = fit(degrees, numbers, first, vertices, np.uint64(32), np.uint64(block // 32), np.uint64(arcs), tasks, work)
    ends = {5 + k: 0 for k in range(len(pages))}
    for (page, begin, size, width), held in zip(tasks[:count].tolist(), work[:count].tolist(), strict=True):
        assert begin == ends[page]
        own = pages[page - 5][begin : begin + size]
        ends[page] += size
        assert held == sum(own) + size
        assert sum(own[:-1]) < arcs
        assert size <= arcs
        assert sum(own) >= arcs or size == arcs or ends[page] == len(pages[page - 5])
        slowest = {each: threads(own, each, block)[1] for each in WIDTHS}
        assert width == min(slowest, key=lambda each: (slowest[each], each))
    assert list(ends.values()) == vertices.tolist()
    assert (np.diff(tasks[:count, 0].astype(int)) >= 0).all()


@pytest.mark.parametrize(
    ("degrees", "width"), [([1] * 256, 1), ([16] * 256, 1), ([1] * 255 + [1000], 16), ([90] * 8, 32)]
)
def test_one_vertex_of_many_arcs_makes_a_task_wide(degrees: list[int], width: int) -> None:
    tasks, work = np.empty((9, 4), np.uint32), np.empty(9, np.int64)
    whole = np.array([len(degrees)])
    sizes = np.uint64(32), np.uint64(8), np.uint64(4096)
    assert fit(np.array(degrees, np.uint32), np.array([0]), np.array([0]), whole, *sizes, tasks, work) == 1
    assert tasks[0].tolist() == [0, 0, len(degrees), width]
