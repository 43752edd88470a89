"""SuiteSparse:GraphBLAS through python-graphblas, with LAGraph's algorithms written in its operations.

PageRank is LAGr_PageRankGAP with the rank of sinks spread, BFS LG_BreadthFirstSearch_SSGrB, components
LG_CC_FastSV6, shortest paths LAGr_SingleSourceShortestPath, betweenness LAGr_Betweenness, triangles Sandia_LL after a
sort by falling degree (which degree order does without): on these graphs it took half of Sandia_LUT. SuiteSparse 9
has 64-bit indices only; values are 32-bit where LAGraph's are, and signed: its wheels have no compiled kernels for
UINT32, nor the compiler to make them.
"""

from __future__ import annotations

from typing import Any

import graphblas as gb  # type: ignore[import-not-found,import-untyped,unused-ignore]
import numpy as np
from graphblas import (  # type: ignore[import-not-found,import-untyped,unused-ignore]
    Matrix,
    Vector,
    binary,
    monoid,
    select,
    semiring,
    unary,
)
from peers_check import DAMPING, FAR, ITERATIONS
from peers_graph import Arrays
from peers_kernels import first_entries, outside_entries, outside_sizes

PACKAGES = ("python-graphblas", "suitesparse-graphblas")
DELTA = 32
"""Width of a bucket of SSSP; the fastest of 16, 32, 64, 128 and 256 on Kronecker 20 with weights 1..255."""
_SAMPLES = 4


def _rows(indptr: np.ndarray, indices: np.ndarray, values: np.ndarray, iso: bool = False, ordered: bool = True) -> Any:
    """A matrix that takes these arrays (64-bit) for its own."""
    n, own = len(indptr) - 1, {"is_iso": iso, "sorted_cols": ordered, "take_ownership": True}
    return Matrix.ss.import_csr(nrows=n, ncols=n, indptr=indptr, col_indices=indices, values=values, **own)


class Peer:
    def __init__(self, graph: Arrays, task: str, degree_order: bool, threads: int) -> None:
        gb.ss.config["nthreads"] = threads
        self.n, self.graph, self.degree_order = graph.n, graph, degree_order
        weighted = task == "sssp"
        values = graph.weight.astype(np.int32) if weighted else np.ones(1, bool)
        self.A = _rows(np.array(graph.indptr, np.uint64), np.array(graph.indices, np.uint64), values, iso=not weighted)
        self.degree = Vector.from_dense(graph.degree.astype(np.int64))
        if task == "wcc":  # LAGraph takes them out of A without a copy
            self.indptr, self.indices = np.array(graph.indptr), np.array(graph.indices)

    def pagerank(self) -> Any:
        A, n = self.A, self.n
        sinks = select.valueeq(self.degree, 0).new()
        d = Vector.from_scalar(1 / DAMPING, n, "FP32")
        d(binary.max) << self.degree.dup("FP32").apply(binary.truediv["FP32"], right=DAMPING)
        r, w, lost = Vector.from_scalar(1 / n, n, "FP32"), Vector("FP32", n), Vector("FP32", n)
        for _ in range(ITERATIONS):
            lost(sinks.S, replace=True) << r
            teleport = (1 - DAMPING + DAMPING * float(lost.reduce(monoid.plus).get(0))) / n
            w << r.ewise_mult(d, binary.truediv["FP32"])
            r[:] << teleport
            r(binary.plus) << A.mxv(w, semiring.plus_second["FP32"])
        return r

    def bfs(self, source: int) -> Any:
        """Parents, direction-optimised."""
        A, n, any_secondi = self.A, self.n, semiring.any_secondi["INT32"]
        alpha, beta1, beta2 = 8.0, 8.0, 512.0
        pi, q, w = Vector("INT32", n), Vector("INT32", n), Vector("INT64", n)
        pi.ss.config["sparsity_control"] = {"bitmap", "full"}
        pi[source] << source
        q[source] << source
        nq, last_nq, visited, unexplored = 1, 0, 1, A.nvals
        push, any_pull, push_pull = True, False, True
        while visited < n:
            if push_pull:
                if push:
                    growing = nq > last_nq
                    if unexplored < n:
                        push_pull = False
                    elif any_pull:
                        push = not (growing and nq > n / beta1)
                    else:
                        w(q.S, replace=True) << self.degree
                        frontier = w.reduce(monoid.plus).get(0)
                        unexplored -= frontier
                        push = not (growing and frontier > unexplored / alpha)
                else:
                    push = nq < last_nq and nq <= n / beta2
                any_pull |= not push
            q.ss.config["sparsity_control"] = "sparse" if push else "bitmap"
            q(~pi.S, replace=True) << (q.vxm(A, any_secondi) if push else A.mxv(q, any_secondi))
            last_nq, nq = nq, q.nvals
            if nq == 0:
                break
            pi(q.S) << q
            visited += nq
        return pi

    def wcc(self) -> Any:
        A, n = self.A, self.n
        parent = Vector.from_dense(np.arange(n, dtype=np.int32))
        parent(binary.min) << A.mxv(Vector.from_scalar(0, n, "INT32"), semiring.min_secondi["INT32"])
        state = _FastSV(parent)
        if A.nvals > n * _SAMPLES * 2:
            starts = np.zeros(n + 1, np.uint64)
            np.cumsum(np.minimum(np.diff(self.indptr), _SAMPLES), out=starts[1:].view(np.int64))
            kept = np.empty(int(starts[-1]), np.uint64)
            first_entries(self.indptr, self.indices, starts, kept)
            labels = state.run(_rows(starts, kept, np.zeros(1, bool), iso=True))
            picked, counts = np.unique(labels[np.random.default_rng(n).integers(n, size=864)], return_counts=True)
            key = picked[counts.argmax()]
            sizes, starts = np.empty(n, np.int64), np.zeros(n + 1, np.uint64)
            outside_sizes(self.indptr, self.indices, labels, key, sizes)
            np.cumsum(sizes, out=starts[1:].view(np.int64))
            if starts[-1] == 0:
                return parent
            kept = np.empty(int(starts[-1]), np.uint64)
            outside_entries(self.indptr, self.indices, labels, key, starts, kept)
            A = _rows(starts, kept, np.zeros(1, bool), iso=True, ordered=False)
        state.run(A)
        return parent

    def sssp(self, source: int) -> Any:
        """Delta-stepping. The split into light and heavy arcs is part of it, as in LAGraph."""
        A, n, min_plus = self.A, self.n, semiring.min_plus["INT32"]
        t = Vector.from_scalar(int(FAR), n, "INT32")
        t.ss.config["sparsity_control"] = "bitmap"
        reach, s, less = Vector(bool, n), Vector(bool, n), Vector(bool, n)
        reach.ss.config["sparsity_control"] = "bitmap"
        empty, inside, request = Vector(bool, n), Vector("INT32", n), Vector("INT32", n)
        for v in (inside, request, less, s):
            v.ss.config["sparsity_control"] = "sparse"
        t[source] << 0
        reach[source] << True
        s[source] << True
        light, heavy = select.valuele(A, DELTA).new(), select.valuegt(A, DELTA).new()
        bound = 0
        while reach.nvals:
            bound += DELTA
            inside.clear()
            inside(reach.V) << t
            inside << select.valuelt(inside, bound)
            while inside.nvals:
                request << inside.vxm(light, min_plus)
                s(inside.S) << True
                if request.nvals == 0:
                    break
                less << request.ewise_mult(t, binary.lt["INT32"])
                less << select.valuene(less, False)
                if less.nvals == 0:
                    break
                reach(less.S) << True
                inside.clear()
                inside(less.S) << select.valuelt(request, bound)
                t(less.S) << request
            inside.clear()
            inside(s.S) << t
            request << inside.vxm(heavy, min_plus)
            less << request.ewise_mult(t, binary.lt["INT32"])
            t(less.V) << request
            reach(less.V) << True
            reach(s.S) << empty
            s.clear()
        return t

    def bc(self, sources: np.ndarray) -> Any:
        """Brandes for a batch of sources."""
        A, n, ns, plus_first = self.A, self.n, len(sources), semiring.plus_first["FP64"]
        paths = Matrix.from_coo(np.arange(ns), sources, np.ones(ns), nrows=ns, ncols=n)
        frontier = paths.dup()
        paths.ss.config["sparsity_control"] = {"bitmap", "full"}
        frontier(~paths.S, replace=True) << frontier.mxm(A, plus_first)
        levels, pull = [], False
        while frontier.nvals:
            levels.append(unary.one["BOOL"](frontier).new())
            paths(binary.plus)[:, :] << frontier
            pull = frontier.nvals / (ns * n) > (0.06 if pull else 0.10)
            frontier.ss.config["sparsity_control"] = "bitmap" if pull else "sparse"
            frontier(~paths.S, replace=True) << frontier.mxm(A.T if pull else A, plus_first)
        update, W = Matrix("FP64", ns, n), Matrix("FP64", ns, n)
        update[:, :] << 1
        for nearer, here in zip(levels[-2::-1], levels[:0:-1], strict=True):
            W(here.S, replace=True) << update.ewise_mult(paths, binary.truediv["FP64"])
            density, ratio = W.nvals / (ns * n), W.nvals / nearer.nvals
            pull = (density > 0.1 and ratio > 1) or (density > 0.01 and ratio > 10)
            W.ss.config["sparsity_control"] = "bitmap" if pull else "sparse"
            W(nearer.S, replace=True) << W.mxm(A.T if pull else A, plus_first)
            update(binary.plus) << W.ewise_mult(paths, binary.times["FP64"])
        centrality = Vector.from_scalar(-ns, n, "FP64")
        centrality(binary.plus) << update.reduce_columnwise(monoid.plus)
        return centrality

    def triangles(self) -> int:
        A, plus_pair = self.A, semiring.plus_pair["INT64"]
        if not self.degree_order:
            order = np.argsort(-self.graph.degree, kind="stable").astype(np.uint64)
            A = A[order, order].new()
        L, C = select.tril(A, -1).new(), Matrix("INT64", self.n, self.n)
        C(L.S) << L.mxm(L, plus_pair)
        return int(C.reduce_scalar(monoid.plus).get(0))

    def values(self, task: str, answer: Any) -> Any:
        if task == "triangles":
            return answer
        return {"parent": answer.to_dense(-1)} if task == "bfs" else answer.to_dense()


class _FastSV:
    """Hooking and shortcutting until the grandparents stay."""

    def __init__(self, parent: Any) -> None:
        n = parent.size
        self.parent, self.gp, self.least, self.gp_new = parent, parent.dup(), parent.dup(), parent.dup()
        # C(i, j) is present where i is the parent of j: C * v reduces v over the children of each vertex.
        self.C = Matrix(bool, n, n)
        self.packed = {"indptr": np.arange(n + 1, dtype=np.uint64), "values": np.zeros(1, bool)}
        self.labels = parent.to_dense().astype(np.uint64)

    def run(self, A: Any) -> np.ndarray:
        parent, least, C, min_second = self.parent, self.least, self.C, semiring.min_second["INT32"]
        while True:
            least(binary.min) << A.mxv(self.gp, min_second)
            own = {"is_iso": True, "sorted_rows": True, "take_ownership": True}
            C.ss.pack_csc(**self.packed, row_indices=self.labels, **own)
            parent(binary.min) << C.mxv(least, min_second)
            out = C.ss.unpack("csc")
            self.packed = {"indptr": out["indptr"], "values": out["values"]}
            parent(binary.min) << least.ewise_add(self.gp, binary.min)
            self.labels = parent.to_dense().astype(np.uint64)
            self.gp_new << parent[self.labels]
            if self.gp_new.isequal(self.gp):
                return self.labels
            self.gp, self.gp_new = self.gp_new, self.gp
