"""`penstock info` and `penstock check`: what a store holds, and whether it still holds it."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Annotated, Any

import typer

from penstock.config import format_size
from penstock.errors import StoreError, meant_path
from penstock.interfaces.cli.options import Limits, Store, limits, with_options
from penstock.interfaces.cli.summary import disk_bytes, tell

if TYPE_CHECKING:
    from penstock.store.reader import Direction
    from penstock.store.reader import Store as Reader


def info(
    store: Store,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """Show what a store holds. Only its index is read."""
    from penstock.store.reader import Store as Reader

    facts = describe(Reader(store))
    if as_json:
        typer.echo(json.dumps(facts, indent=2))
    else:
        _show(facts)


@with_options(limits=limits)
def check(store: Store, limits: Limits) -> None:
    """Compare every byte of a store with its checksums, and its parts with one another; exit 1 if it is damaged."""
    from penstock import api

    if not store.exists():  # nothing to be damaged
        raise StoreError(f"{store} does not exist{meant_path(store)}")
    problems = api.check(store, **limits.settings)
    for problem in problems:
        typer.echo(problem)
    if problems:
        count = len(problems)
        tell(f"{store} is damaged: {count} problem{'s' if count > 1 else ''}", quiet=limits.quiet)
        raise typer.Exit(1)
    typer.echo(f"{store}: sound")


def describe(store: Reader) -> dict[str, Any]:
    """All that is known without reading pages."""
    meta = store.meta
    out = store.direction("out")
    size = disk_bytes(store.path)
    return {
        "path": str(store.path),
        "uuid": meta["uuid"],
        "format": meta["format"]["version"],
        "written_by": meta["written_by"],
        "vertices": store.vertices,
        "isolated": store.vertices - store.active,
        "edges": store.edges,
        "arcs": out.arcs,
        "directed": store.directed,
        "order": meta["order"],
        "ids": store.ids.kind,
        "page_size": store.page_size,
        "encoding": _encoding(out),
        "bytes": size,
        "bytes_per_arc": size / out.arcs if out.arcs else None,
        "stripes": [str(root) for root in store.roots],
        "directions": {name: _direction(store, name) for name in meta["directions"]},
        "columns": {name: _column(out, name) for name in out.columns},
        "vertex_columns": {name: entry["type"] for name, entry in meta["vertex"].items()},
    }


def _encoding(direction: Direction) -> str:
    from penstock.store.encodings import BY_CODE

    return BY_CODE[int(direction.records["encoding"][0])].name if len(direction) else "plain"


def _direction(store: Reader, name: str) -> dict[str, Any]:
    from penstock.store.index import LARGE

    direction = store.direction(name)
    records = direction.records
    large = int((records["kind"] == LARGE).sum())
    some = len(records) > 0
    smallest = int(records["smallest_degree"].min()) if some and store.active == store.vertices else 0
    return {
        "arcs": direction.arcs,
        "small_pages": len(records) - large,
        "large_pages": large,
        "page_bytes": len(records) * store.page_size,
        "degree": {
            "min": smallest,
            "mean": direction.arcs / store.vertices if store.vertices else 0.0,
            "max": int(records["largest_degree"].max()) if some else 0,
        },
    }


def _column(direction: Direction, name: str) -> dict[str, Any]:
    from penstock.store.columns import from_extreme, type_dtype

    kind, records = direction.columns[name], direction.column_records[name]
    dtype = type_dtype(kind)
    low = high = None
    if len(records):
        low = min((from_extreme(int(bits), dtype) for bits in records["minimum"]), default=None)
        high = max((from_extreme(int(bits), dtype) for bits in records["maximum"]), default=None)
    return {"type": kind, "min": _value(low, kind), "max": _value(high, kind)}


def _value(stored: Any, kind: str) -> Any:
    """A stored number in the words of its type: a date is no count of microseconds."""
    if stored is None:
        return None
    plain = stored.item() if hasattr(stored, "item") else stored
    if kind == "bool":
        return bool(plain)
    if isinstance(plain, float):
        return None if math.isnan(plain) else plain  # NaN is not JSON
    if "[" in kind:
        import pyarrow as pa

        from penstock.graph import arrow_type

        wanted = arrow_type(kind)
        width = pa.int32() if wanted.bit_width == 32 else pa.int64()
        return str(pa.array([plain], width).view(wanted).cast(pa.string())[0].as_py())
    return plain


def _show(facts: dict[str, Any]) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    for name, text in rows(facts):
        table.add_row(name, text)
    console = Console(highlight=False)
    # A pipe has no width: nothing in it is to be folded.
    console.print(table, width=None if console.is_terminal else 10_000, soft_wrap=not console.is_terminal)


def rows(facts: dict[str, Any]) -> list[tuple[str, str]]:
    """The table's lines."""
    # Of a graph smaller than a page or two the ratio says nothing.
    per_arc = f" ({facts['bytes_per_arc']:.2f} bytes per arc)" if facts["arcs"] > 100_000 else ""
    kind = "directed" if facts["directed"] else "undirected"
    found = [
        ("store", f"{facts['path']}  [format {facts['format']}, {facts['written_by']}]".replace("[", r"\[")),
        ("vertices", f"{facts['vertices']:,}, of them {facts['isolated']:,} isolated"),
        ("edges", f"{facts['edges']:,} {kind}"),
        ("arcs", f"{facts['arcs']:,}"),
        ("ids", f"{facts['ids']}, vertices in order of {'falling degree' if facts['order'] == 'degree' else 'ids'}"),
        ("on disk", f"{format_size(facts['bytes'])}{per_arc}"),
        ("pages", f"{format_size_binary(facts['page_size'])} each, {facts['encoding']}"),
    ]
    for name, direction in facts["directions"].items():
        label = name if facts["directed"] else "both ways"
        degree = direction["degree"]
        found.append(
            (
                f"  {label}",
                f"{direction['small_pages']:,} small and {direction['large_pages']:,} large pages, "
                f"{format_size(direction['page_bytes'])}; degree {degree['min']:,} to {degree['max']:,}, "
                f"mean {degree['mean']:.1f}",
            )
        )
    if len(facts["stripes"]) > 1:
        found += [("stripes" if not at else "", stripe) for at, stripe in enumerate(facts["stripes"])]
    for at, (name, column) in enumerate(facts["columns"].items()):
        extent = "" if column["min"] is None else f", {column['min']} to {column['max']}"
        found.append(("edge columns" if not at else "", f"{name}: {column['type']}{extent}".replace("[", r"\[")))
    for at, (name, type_) in enumerate(facts["vertex_columns"].items()):
        found.append(("vertex columns" if not at else "", f"{name}: {type_}".replace("[", r"\[")))
    return found


def format_size_binary(size: int) -> str:
    """Page sizes are powers of two: `1 MiB`."""
    for unit, scale in (("MiB", 1 << 20), ("KiB", 1 << 10)):
        if size >= scale:
            return f"{size // scale} {unit}"
    return f"{size} B"


__all__ = ["check", "describe", "info", "rows"]
