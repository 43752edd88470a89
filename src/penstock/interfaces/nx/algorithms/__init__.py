"""NetworkX's algorithms that Penstock has, under NetworkX's module names. Importing this registers them all."""

from penstock.interfaces.nx.algorithms import cluster, core, dag, distance_measures, wiener
from penstock.interfaces.nx.algorithms.centrality import betweenness, closeness, degree_alg, harmonic
from penstock.interfaces.nx.algorithms.components import connected, strongly_connected, weakly_connected
from penstock.interfaces.nx.algorithms.link_analysis import pagerank_alg
from penstock.interfaces.nx.algorithms.shortest_paths import generic, unweighted, weighted
from penstock.interfaces.nx.algorithms.traversal import breadth_first_search

__all__ = [
    "betweenness",
    "breadth_first_search",
    "closeness",
    "cluster",
    "connected",
    "core",
    "dag",
    "degree_alg",
    "distance_measures",
    "generic",
    "harmonic",
    "pagerank_alg",
    "strongly_connected",
    "unweighted",
    "weakly_connected",
    "weighted",
    "wiener",
]
