"""Generalised iterated matrix-vector multiplication (GIM-V), by one of two methods: `fused`, a program on the engine,
or `mapreduce`, the two published MapReduce stages."""

from __future__ import annotations

from penstock.algorithms.gimv.jobs import components, diameter, pagerank, rwr
from penstock.algorithms.gimv.operation import gimv

multiply = gimv

__all__ = ["components", "diameter", "gimv", "multiply", "pagerank", "rwr"]
