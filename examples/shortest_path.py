"""A breadth-first search keeps over whom each vertex was reached: follow the parents, and there is the path."""

import penstock as pk

GRID = 5  # streets from corner to corner: vertex = GRID * row + column
right = [(v, v + 1) for v in range(GRID * GRID) if v % GRID < GRID - 1]
down = [(v, v + GRID) for v in range(GRID * (GRID - 1))]
graph = pk.from_edges(right + down, undirected=True)

start, goal = 0, 13
found = pk.bfs(graph, source=start).to_dict()  # vertex -> (level, parent)

path = [goal]
while path[-1] != start:
    path.append(found[path[-1]][1])
print(f"from {start} to {goal} in {found[goal][0]} steps:", " -> ".join(map(str, reversed(path))))
