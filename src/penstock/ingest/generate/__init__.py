"""Graphs made, not read."""
