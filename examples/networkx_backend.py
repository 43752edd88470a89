"""NetworkX's own functions, computed by Penstock; and a stored graph where NetworkX expects one of its own."""

import networkx as nx

import penstock as pk

club = nx.karate_club_graph()
ours = nx.pagerank(club, backend="penstock")
theirs = nx.pagerank(club, backend="networkx")
best = max(ours, key=ours.get)
print(f"member {best} has rank {ours[best]:.4f}; NetworkX says {theirs[best]:.4f}")

stored = pk.from_networkx(club)  # or pk.open("club.pen"), which may be larger than memory
print("components:", nx.number_connected_components(stored, backend="penstock"))
print("triangles at member 33:", nx.triangles(stored, 33, backend="penstock"))
