"""Widest paths from a source: an algorithm of one's own, in memory and from disk."""

import penstock as pk


def init(v, p):
    return (float("inf"), True) if v.seed else (0.0, False)


def emit(v, p):
    return v.width


def edge(width, e, p):
    return min(width, e.weight)


def update(v, best, p):
    return max(best, v.width), best > v.width


WIDEST = pk.Combine(
    name="widest", state={"width": "float64"}, reads=("seed",), columns=("weight",), init=init, message="float64",
    emit=emit, edge=edge, combine=pk.MAX, update=update, frontier=True,
)  # fmt: skip

if __name__ == "__main__":
    graph = pk.from_edges([0, 0, 1, 2], [1, 2, 3, 3], weight=[5.0, 3.0, 2.0, 4.0])
    for tier in ("memory", "disk"):
        print(tier, pk.run(WIDEST, graph, source=0, tier=tier).to_dict())
