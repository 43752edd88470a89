"""The checkers by the name of the algorithm."""

from __future__ import annotations

from penstock.verify.centrality import check_betweenness, check_closeness, check_radius
from penstock.verify.common import Checker
from penstock.verify.communities import check_cdlp
from penstock.verify.components import check_scc, check_wcc
from penstock.verify.degrees import check_degree, check_kcore
from penstock.verify.ranking import check_hits, check_pagerank, check_ppr
from penstock.verify.scan import check_scan
from penstock.verify.traversal import check_bfs, check_neighborhood, check_sssp
from penstock.verify.triangles import check_lcc, check_triangles

CHECKERS: dict[str, Checker] = {
    "pagerank": check_pagerank,
    "ppr": check_ppr,
    "bfs": check_bfs,
    "sssp": check_sssp,
    "wcc": check_wcc,
    "scc": check_scc,
    "cdlp": check_cdlp,
    "degree": check_degree,
    "kcore": check_kcore,
    "betweenness": check_betweenness,
    "closeness": check_closeness,
    "radius": check_radius,
    "hits": check_hits,
    "triangles": check_triangles,
    "lcc": check_lcc,
    "scan": check_scan,
    "neighborhood": check_neighborhood,
}
"""By the name of the algorithm. All take the graph, the result as an Arrow table, and the options of the run."""

__all__ = ["CHECKERS"]
