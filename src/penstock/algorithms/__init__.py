"""6. Algorithms, one short file each."""
