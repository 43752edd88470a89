"""Templates of GPU kernels."""
