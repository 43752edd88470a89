"""What `--help` ends with: lines to copy. A word in capitals or a name like web.pen is the reader's own."""

from __future__ import annotations

EXAMPLES: dict[str, tuple[tuple[str, str], ...]] = {
    "": (
        ("penstock run pagerank edges.txt", "the ten highest ranks of a file of edges"),
        ("penstock ingest edges.txt.gz -o web.pen", "build a store once, run on it often"),
        ("penstock run pagerank web.pen --memory-limit 2GB -o ranks.parquet", ""),
        ("penstock explain pagerank web.pen", "will it fit, and how long will it take?"),
    ),
    "generate": (
        ("penstock generate kron --scale 20 --undirected -o kron20.pen", "Graph500"),
        ("penstock generate uniform -n 1000000 -m 16000000 --weights 1:255 -o u.pen", ""),
        ("penstock generate grid --rows 1000 --columns 1000 -o grid.pen", ""),
    ),
    "ingest": (
        ("penstock ingest edges.txt.gz -o web.pen --memory-limit 2GB", ""),
        ("penstock ingest parts/ -o pay.pen --source payer --target payee", "Parquet"),
        ("penstock ingest friends.csv -o friends.pen --undirected --vertices people.csv", ""),
        ("zcat log.gz | cut -f 2,5 | penstock ingest - -o log.pen", "edges on stdin"),
    ),
    "info": (("penstock info web.pen", ""), ("penstock info web.pen --json", "for a script")),
    "check": (("penstock check web.pen", "exit 0: sound; exit 1: damaged, and where"),),
    "run": (
        ("penstock run pagerank web.pen", "the ten highest ranks"),
        ("penstock run pagerank edges.txt", "a file of edges, read for this run only"),
        ("penstock run bfs web.pen --source 42 -o levels.parquet", ""),
        ("penstock run pagerank --help", "the options of one algorithm"),
    ),
    "explain": (
        ("penstock explain pagerank web.pen --memory-limit 2GB", ""),
        ("penstock explain bfs web.pen --source 42 --analyze", "run it, and compare"),
    ),
    "verify": (
        ("penstock verify bfs web.pen levels.parquet --source 42", ""),
        ("penstock verify pagerank web.pen ranks.parquet", ""),
    ),
    "export": (
        ("penstock export web.pen -o edges.parquet", ""),
        ("penstock export web.pen -o edges.csv --columns weight", ""),
        ("penstock export web.pen -o vertices.parquet --vertices", ""),
    ),
    "plot": (
        ("penstock plot degree web.pen -o degree.png", ""),
        ("penstock plot correlation web.pen --x degree --y pagerank -o c.svg", ""),
        ("penstock plot values levels.parquet -o levels.png", "what run wrote"),
    ),
    "report": (
        ("penstock run pagerank web.pen --report run.html", "while it runs"),
        ("penstock report run.json --trace run.trace -o run.html", "later"),
    ),
    "bench": (
        ("penstock bench", "PageRank, BFS, components; generated graph"),
        ("penstock bench web.pen --algorithms pagerank,wcc --trials 5", ""),
        ("penstock bench --scale 22 --tier disk --memory-limit 512MB --json", ""),
    ),
    "config": (
        ("penstock config", ""),
        ("PENSTOCK_MEMORY_LIMIT=2GB penstock config", "what a variable changes"),
    ),
    "doctor": (("penstock doctor", ""), ("penstock doctor --no-measure --json", "quickly, for a script")),
}
OF_RUN: dict[str, tuple[tuple[str, str], ...]] = {
    "pagerank": (
        ("penstock run pagerank web.pen", "the ten highest ranks"),
        ("penstock run pagerank web.pen --memory-limit 2GB -o ranks.parquet", ""),
        ("penstock run pagerank web.pen --stop fixed --max-iter 20 --dtype float32", ""),
    ),
    "ppr": (("penstock run ppr web.pen --source 42 --top 20", ""),),
    "bfs": (("penstock run bfs web.pen --source 42 -o levels.parquet", ""),),
    "sssp": (
        ("penstock run sssp roads.pen --source 42 --weight length -o far.parquet", ""),
        ("penstock run sssp roads.pen --source @ids.txt", "ids from a file"),
    ),
    "wcc": (("penstock run wcc web.pen -o components.parquet", ""),),
    "scan": (
        ("penstock run scan web.pen --epsilon 0.6 --mu 3 -o clusters.parquet", ""),
        ("penstock run scan genes.pen --similarity correlation --epsilon 0.8", ""),
    ),
    "betweenness": (("penstock run betweenness web.pen --samples 64", "from 64 random vertices"),),
    "egonet": (("penstock run egonet web.pen --source 42 --hops 2 -o around.csv", ""),),
}


def epilog(name: str) -> str:
    """The examples of a command, as Typer prints them below its options."""
    return _lines(EXAMPLES[name])


def run_epilog(algorithm: str) -> str:
    """Those of an algorithm."""
    return _lines(OF_RUN.get(algorithm, ((f"penstock run {algorithm} web.pen -o result.parquet", ""),)))


def _lines(examples: tuple[tuple[str, str], ...]) -> str:
    shown = [f"[bold]{line}[/]" + (f"  [dim]# {what}[/]" if what else "") for line, what in examples]
    return "\n".join(["[dim]Examples[/]" if len(shown) > 1 else "[dim]Example[/]", *shown])


__all__ = ["EXAMPLES", "OF_RUN", "epilog", "run_epilog"]
