"""LDBC Graphalytics: sorted vertices in `.v`, sorted edges in `.e`, and `.properties`, which describes them."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pyarrow as pa

from penstock.errors import UsageError
from penstock.export.job import Job
from penstock.export.lines import lines
from penstock.export.ordered import ordered_arcs
from penstock.export.sink import open_sink
from penstock.store.arrow import plain_array, typed_array
from penstock.store.whole import whole_file


def write_ldbc(job: Job, path: Path, *, overwrite: bool) -> None:
    graph = job.graph
    job.integer_ids("an LDBC graph")
    kinds = [_kind(name, kind) for name, kind in zip(job.columns, job.types, strict=True)]
    for name in job.columns:
        if set(name) & set(",\n\r"):
            raise UsageError(f"an LDBC property cannot be called {name!r}: leave the column out with columns=")
    stem = job.target.with_suffix("")
    # The description is renamed into place by the caller, after these: who finds it finds all three.
    with contextlib.ExitStack() as stack:
        edges, vertices = (
            stack.enter_context(whole_file(stem.with_name(stem.name + end), overwrite=overwrite))
            for end in (".e", ".v")
        )
        _write_vertices(job, vertices)
        _write_edges(job, edges)
        about = {
            "vertex-file": f"{stem.name}.v",
            "edge-file": f"{stem.name}.e",
            "meta.vertices": graph.vertices,
            "meta.edges": graph.edges,
            "directed": str(graph.directed).lower(),
        }
        if job.columns:
            about |= {"edge-properties.names": ", ".join(job.columns), "edge-properties.types": ", ".join(kinds)}
        text = "".join(f"graph.{stem.name}.{key} = {value}\n" for key, value in about.items())
        path.write_text(f"# {stem.name}\n{text}", encoding="utf-8")


def _kind(name: str, kind: pa.DataType) -> str:
    if pa.types.is_floating(kind):
        return "real"
    if pa.types.is_integer(kind):
        return "uint64" if pa.types.is_uint64(kind) else "integer"
    raise UsageError(f"an LDBC property is integer or real, but column {name!r} is {kind}: leave it out with columns=")


def _write_vertices(job: Job, path: Path) -> None:
    with open_sink(path, None) as sink:
        for batch in job.graph.vertex_batches([]):
            sink.write(lines(batch.columns, ["id"], " "))


def _write_edges(job: Job, path: Path) -> None:
    graph = job.graph
    users = graph.users().to_numpy()[graph.store.ids.order.read()]
    arcs = job.shown(ordered_arcs(job, both_ways=False), lambda piece: len(piece[0]), graph.edges)
    with contextlib.closing(arcs), open_sink(path, None) as sink:
        for source, target, values in arcs:
            columns = [plain_array(users[end]) for end in (source, target)]
            columns += [typed_array(values[name], graph.columns[name]) for name in job.columns]
            sink.write(lines(columns, ["source", "target", *job.columns], " "))


__all__ = ["write_ldbc"]
