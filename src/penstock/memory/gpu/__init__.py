"""The door to the GPU: numba-cuda for kernels, CuPy for memory, streams and events. Nothing else in Penstock imports
them, and this package is imported only when a GPU is wanted: it takes a second.

With `NUMBA_ENABLE_CUDASIM=1` Numba's simulator stands in for both: arrays are NumPy's, streams do nothing, and what
runs is slow, in order, and the same code. Kernels find `cuda` as a global of their own module, as the simulator needs.
"""

from penstock.memory.gpu.arrays import (
    STAGED,
    address,
    contiguous,
    download,
    empty,
    fill,
    is_there,
    part,
    stretch,
    upload,
    view,
    zeros,
)
from penstock.memory.gpu.devices import (
    bus,
    count,
    current,
    device_of,
    free_memory,
    multiprocessors,
    name,
    synchronize,
    unusable,
    usable_memory,
    use,
    using,
    versions,
    why_not,
)
from penstock.memory.gpu.door import DRIVER, SIMULATED, WARP, cuda, cupy, inside, once
from penstock.memory.gpu.kernels import Launcher, compiled_as, errors, template_kernel
from penstock.memory.gpu.pinning import pin, pinned, pool_size, reads_host, unpin
from penstock.memory.gpu.primitives import limited_pool, pooled, running_sum, scan, sort, sort_order, sort_scratch
from penstock.memory.gpu.streams import Event, Stream

__all__ = [
    "DRIVER",
    "SIMULATED",
    "STAGED",
    "WARP",
    "Event",
    "Launcher",
    "Stream",
    "address",
    "bus",
    "compiled_as",
    "contiguous",
    "count",
    "cuda",
    "cupy",
    "current",
    "device_of",
    "download",
    "empty",
    "errors",
    "fill",
    "free_memory",
    "inside",
    "is_there",
    "limited_pool",
    "multiprocessors",
    "name",
    "once",
    "part",
    "pin",
    "pinned",
    "pool_size",
    "pooled",
    "reads_host",
    "running_sum",
    "scan",
    "sort",
    "sort_order",
    "sort_scratch",
    "stretch",
    "synchronize",
    "template_kernel",
    "unpin",
    "unusable",
    "upload",
    "usable_memory",
    "use",
    "using",
    "versions",
    "view",
    "why_not",
    "zeros",
]
