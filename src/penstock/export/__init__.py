"""6. Edges out: files and objects of other libraries."""
