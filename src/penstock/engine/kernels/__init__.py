"""Templates of kernels: loops over arcs and vertices that a program's functions are compiled into."""
