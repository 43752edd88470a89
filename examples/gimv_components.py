"""Connected components by GIM-V, as PEGASUS has them: fused on the engine, and in its two MapReduce stages."""

import penstock as pk

graph = pk.from_edges([1, 2, 10, 11, 20], [2, 3, 11, 12, 20], undirected=True)

found = {method: pk.gimv.components(graph, method=method) for method in ("fused", "mapreduce")}
for method, result in found.items():
    print(f"{method}: {result.to_dict()} in {result.stats['iterations']} iterations")
print("the same:", found["fused"].table.equals(found["mapreduce"].table))


def least(m, label, p):  # combine2: what an edge makes of a neighbour's label
    return label


def smaller(v, best, p):  # assign: the own label, unless a smaller one has come
    return min(v.value, best)


def own(v, p):
    return v.number


labels = pk.gimv.multiply(graph, least, "min", smaller, own, dtype="int64", along="both", monotone=True)
print("by three functions of one's own:", len(set(labels.to_dict().values())), "components")
