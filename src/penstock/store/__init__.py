"""1. What lies on disk: pages, their index, columns, ids. The byte layout is in FORMAT.md."""
