"""A GPU that is not there: kernels as numba-cuda compiles them, with all their types, run by the host's processor.

Numba's own simulator runs the Python source of a kernel, whose numbers are Python's: what overflows, what becomes a
float, what does not compile it does not see. Here numba-cuda makes LLVM's code of a kernel, `host` turns that into code
for this processor, `threads` runs the threads of a block, `scheduler` what was put into streams, in any order that CUDA
allows, and `driver` puts all that where the driver would be. `cupy` is what there is of CuPy.
"""
