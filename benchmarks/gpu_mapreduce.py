"""MapReduce on the GPU: sorting, in core and out of core."""

from __future__ import annotations

import gpu_sorting
from gpu_section import Section


def run(section: Section) -> None:
    gpu_sorting.run(section)
