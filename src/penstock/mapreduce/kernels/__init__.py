"""Compiled loops of MapReduce. Imported when the first of them runs."""
