"""k-means in MapReduce: points of three heaps find their centers."""

import numpy as np

import penstock as pk

rng = np.random.default_rng(3)
points = np.concatenate([rng.normal(center, 0.5, (200, 2)) for center in ((0, 0), (5, 5), (0, 6))])

with pk.MapReduce(memory_limit="64MB") as mr:
    clusters = list(pk.jobs.kmeans(mr, points, 3, seed=1))

for cluster, (center, size) in clusters:
    print(f"cluster {cluster}: {size} points around {np.round(center, 1).tolist()}")
