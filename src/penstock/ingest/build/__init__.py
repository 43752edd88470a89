"""Edges to store: numbered, merged, ordered, sorted and cut into pages, inside the budget."""
