"""2. Disk -> host -> device: the byte ledger, the page stream, caches, spill files, and the door to Numba."""
