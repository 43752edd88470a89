"""What a graph and a result look like: distributions of degrees and values, and where in the matrix the arcs are."""

from penstock.profile.density import Density, density
from penstock.profile.distribution import Distribution, Valued, degree_distribution, group_sizes, value_distribution
from penstock.profile.stored import PIECE, Stored

__all__ = [
    "PIECE",
    "Density",
    "Distribution",
    "Stored",
    "Valued",
    "degree_distribution",
    "density",
    "group_sizes",
    "value_distribution",
]
