"""Sparse matrices over a semiring, and what is made of their products."""

from __future__ import annotations

from penstock.apps.matrix.matrix import Matrix
from penstock.apps.matrix.multiply import power, spgemm, spmv
from penstock.apps.matrix.paths import shortest_paths
from penstock.apps.matrix.semiring import MAX_MIN, MIN_PLUS, OR_AND, PLUS_TIMES, Semiring
from penstock.apps.matrix.similarity import similarity

__all__ = [
    "MAX_MIN",
    "MIN_PLUS",
    "OR_AND",
    "PLUS_TIMES",
    "Matrix",
    "Semiring",
    "power",
    "shortest_paths",
    "similarity",
    "spgemm",
    "spmv",
]
