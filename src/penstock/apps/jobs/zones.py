"""Connected components, as zones that grow together.

Returns   (vertex, component), by ascending vertex; a component is called by its smallest vertex
Phases    edges meet the zones of their ends at the vertices; an edge between two zones makes the larger number give
          way to the smaller; vertices meet the new number of their zone; again until no edge joins two zones.
Ref       Cohen 2009; Plimpton and Devine 2011 (cc_find)
"""

from __future__ import annotations

from typing import Any

import numpy as np

from penstock.apps.grouped import arrays_of, mapped, reduced
from penstock.apps.jobs.edges import VERTEX, edges_of
from penstock.mapreduce.keyvalue import KeyValue
from penstock.mapreduce.session import MapReduce

TAGGED = np.dtype([("value", np.uint64), ("zone", np.bool_)])
"""What meets at a vertex or at a zone: something that waits there, or the zone it is told."""


def components(mr: MapReduce, edges: Any) -> KeyValue:
    """The smallest vertex that is connected with each vertex of an edge."""
    pairs = edges_of(mr, edges)
    zones = _every(pairs)
    joined = _numbered(mr, pairs)
    while True:
        links = _links(_met(joined, zones))
        if not links.total:
            return zones.sort_keys()
        zones = _relabelled(zones, links)


def _every(pairs: KeyValue) -> KeyValue:
    """Every vertex as a zone of its own."""

    def ends(keys: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        both = np.concatenate([keys, values])
        return both, both

    return mapped(pairs, ends, VERTEX, VERTEX, combine="min").collate().reduce("min")


def _numbered(mr: MapReduce, pairs: KeyValue) -> KeyValue:
    """(vertex, number of an edge) of both ends of each edge; loops join nothing."""
    rank, ranks = mr.communicator.rank, mr.communicator.size
    with mr.writer(VERTEX, TAGGED) as writer:
        first = 0
        for keys, values in arrays_of(pairs):
            apart = keys != values
            count = int(apart.sum())
            numbers = np.arange(first, first + count, dtype=np.uint64) * np.uint64(ranks) + np.uint64(rank)
            first += count
            ends = np.concatenate([keys[apart], values[apart]])
            writer.add_chunk(ends, _tagged(np.concatenate([numbers, numbers]), False))
        return writer.done()


def _tagged(values: np.ndarray, zone: bool) -> np.ndarray:
    made = np.empty(len(values), TAGGED)
    made["value"], made["zone"] = values, zone
    return made


def _met(waiting: KeyValue, zones: KeyValue) -> KeyValue:
    """What waits at a key, with the zone that the key is told. Where there is none, the key is its own."""
    told = mapped(zones, lambda keys, values: (keys, _tagged(values, True)), VERTEX, TAGGED)

    def meet(keys: np.ndarray, offsets: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        sizes, zone = np.diff(offsets), keys.copy()
        found, is_zone = values["value"], values["zone"]
        zone[np.repeat(np.arange(len(sizes)), sizes)[is_zone]] = found[is_zone]
        return found[~is_zone], np.repeat(zone, sizes)[~is_zone]

    return reduced(waiting.add(told).collate(), meet, VERTEX, VERTEX)


def _links(told: KeyValue) -> KeyValue:
    """(zone, smaller zone) of the edges that join two; the smallest for each zone."""

    def join(keys: np.ndarray, offsets: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        least, most = (extreme.reduceat(values, offsets[:-1]) for extreme in (np.minimum, np.maximum))
        joins = least != most
        return most[joins], least[joins]

    found = reduced(told.collate(), join, VERTEX, VERTEX)
    return found.compress("min").collate().reduce("min")


def _relabelled(zones: KeyValue, links: KeyValue) -> KeyValue:
    """(vertex, zone) after zones have given way."""
    waiting = mapped(zones, lambda keys, values: (values, _tagged(keys, False)), VERTEX, TAGGED)
    return _met(waiting, links)


__all__ = ["components"]
