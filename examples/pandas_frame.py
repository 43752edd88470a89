"""A pandas frame of payments: who is central, and how far the money of one of them gets."""

import pandas as pd

import penstock as pk

payments = pd.DataFrame(
    {
        "payer": ["ann", "ann", "bob", "cat", "dan"],
        "payee": ["bob", "cat", "cat", "dan", "bob"],
        "amount": [20.0, 5.0, 8.0, 2.0, 1.0],
    }
)

graph = pk.from_edges(payments, source="payer", target="payee", columns=["amount"])
ranks = pk.pagerank(graph).to_pandas().set_index("vertex")
hops = pk.bfs(graph, source="ann").to_pandas().set_index("vertex")

print(ranks.join(hops[["level"]]).sort_values("rank", ascending=False).round(3).to_string())
