"""The `cpu` executor: Numba kernels, in memory or from disk."""
