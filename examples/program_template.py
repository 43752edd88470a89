"""Copy this file, keep what you need, and say what your algorithm returns, needs and means.

Returns   hops, an integer per vertex: how far the nearest source is.
Needs     arcs, followed forwards; more parts than this algorithm needs are shown.
Defined   hops(v) = 0 for a source, else 1 + the least hops of those with an arc to v.
"""

import penstock as pk

FAR = 1 << 30


def init(v, p):
    """The state of a vertex before the first superstep, and (frontier=True) whether it is active."""
    return (0, True) if v.seed else (FAR, False)


def emit(v, p):
    """The message of an active vertex, once per superstep."""
    return v.hops


def edge(message, e, p):
    """What the message becomes on one edge. `e.weight` would be its column, if `columns=("weight",)`."""
    return message + p.step_length


def wants(v, p):
    """Whether the vertex still takes contributions; leave it out if all do."""
    return v.hops == FAR


def update(v, total, p):
    """The new state from the old and what arrived, and (frontier=True) whether the vertex is active now."""
    return min(v.hops, total), total < v.hops


def change(v, new, p):
    """How much the update moved the vertex: summed (or change_by=pk.MAX), for runs with tol=."""
    return 1.0


HOPS = pk.Combine(
    name="hops",
    state={"hops": "int64"},  # the result: a column per field
    reads=("seed",),  # also out_degree, in_degree, number, columns of the vertices
    columns=(),  # edge columns that `edge` reads
    params={"step_length": 1},  # pk.run(HOPS, graph, source=7, step_length=2)
    along="out",  # with the arcs; "in": against them; "both"
    init=init,
    message="int64",
    emit=emit,
    edge=edge,
    combine=pk.MIN,
    wants=wants,
    update=update,
    change=change,
    frontier=True,
)

if __name__ == "__main__":
    graph = pk.from_edges([0, 1, 2, 0], [1, 2, 3, 4])
    print(pk.run(HOPS, graph, source=0).to_dict())
