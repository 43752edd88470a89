"""Tables and objects in: Parquet, Arrow, arrays, sparse matrices, networks."""
