"""MapReduce on the GPU: sorting, in core and out of core, and the other operations beside the CPU."""

from __future__ import annotations

import gpu_operations
import gpu_sorting
from gpu_section import Section


def run(section: Section) -> None:
    gpu_sorting.run(section)
    gpu_operations.run(section)
