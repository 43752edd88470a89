"""5. Edges in: files, tables, objects and generators, renumbered, sorted and cut into pages under a budget."""
