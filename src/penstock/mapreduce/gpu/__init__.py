"""MapReduce on a GPU: the same operations on the same chunks. Imported when the first of them runs there."""
