"""METIS graph files: line i lists the neighbours of vertex i, so every edge stands on two lines.

A line is as long as its vertex has neighbours, so the file is read as a stream of words, not by lines: blocks are cut
at any blank and the kernel keeps its place in `state`. Each edge is yielded where its smaller end lists it; sums of
hashes over both triangles tell whether every edge is listed from both ends with one weight.
"""

# A chain of comparisons compiles to a better loop than membership in a tuple.
# ruff: noqa: PLR1714

from __future__ import annotations

import queue
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from penstock.errors import InputError
from penstock.ingest.source import EdgeChunk, EdgeSource, VertexTable
from penstock.ingest.text.blocks import Block, ahead, block_size, read_stream
from penstock.ingest.text.lines import chosen, no_edges
from penstock.ingest.text.rows import quote
from penstock.ingest.text.textfile import TextFile
from penstock.memory.device import kernel

_LINES, _WORD, _NEIGHBOUR, _BEGIN, _COMMENT, _FOUND, _CODE, _AT, _LOWER, _UPPER, _LOOPS, _SIZE = range(12)
_FINE, _NOT_A_NUMBER, _OUT_OF_RANGE, _TOO_MANY_LINES, _NO_WEIGHT, _MISSING, _NEGATIVE = range(7)
_REASONS = {
    _NOT_A_NUMBER: "{word} is not an integer",
    _OUT_OF_RANGE: "neighbour {word} is outside the declared range 1 to {n}",
    _TOO_MANY_LINES: "there are more lines than the {n} vertices declared",
    _NO_WEIGHT: "the last neighbour has no weight, but the header declares edge weights",
    _MISSING: "the line lacks the vertex size or weights that the header declares",
    _NEGATIVE: "the vertex size or weight {word} is negative",
}
_U = np.uint64
_ONE, _NINE, _TEN, _CHAR0 = _U(1), _U(9), _U(10), _U(48)
_A, _B, _C = _U(0x9E3779B97F4A7C15), _U(0xBF58476D1CE4E5B9), _U(0x94D049BB133111EB)


@kernel()
def _hash(u: Any, v: Any, w: Any) -> Any:
    word = (_U(u) * _A + _U(v)) * _B + _U(w) * _C
    word = (word ^ (word >> _U(30))) * _B
    word = (word ^ (word >> _U(27))) * _C
    return word ^ (word >> _U(31))


@kernel()
def _parse_words(
    buffer: np.ndarray,
    begin: Any,
    end: Any,
    vertices: Any,
    lead: Any,
    weighted: Any,
    about: np.ndarray,
    sources: np.ndarray,
    targets: np.ndarray,
    weights: np.ndarray,
    sums: np.ndarray,
    state: np.ndarray,
) -> Any:
    """Take in whole words; `lead` words of each line describe the vertex. Returns the number of edges."""
    at = _U(begin)
    stop = _U(end)
    found = 0
    while at < stop:
        byte = buffer[at]
        if byte == 10:
            if state[_COMMENT] == 0:
                if state[_NEIGHBOUR] != 0:
                    state[_CODE] = _NO_WEIGHT
                elif state[_WORD] < lead and state[_LINES] < vertices:
                    state[_CODE] = _MISSING
                if state[_CODE] != _FINE:
                    break
                state[_LINES] += 1
            state[_WORD] = 0
            state[_COMMENT] = 0
            state[_BEGIN] = 1
            at += _ONE
            continue
        if state[_COMMENT] != 0 or byte == 32 or byte == 9 or byte == 13:
            at += _ONE
            continue
        if state[_BEGIN] == 1 and byte == 37:
            state[_COMMENT] = 1
            continue
        state[_BEGIN] = 0
        start = at
        minus = byte == 45
        if minus:
            at += _ONE
        first = at
        value = _U(0)
        digit = _U(buffer[at]) - _CHAR0
        while digit <= _NINE:
            value = value * _TEN + digit
            at += _ONE
            digit = _U(buffer[at]) - _CHAR0
        byte = buffer[at]
        number = -np.int64(value) if minus else np.int64(value)
        if at - first - _ONE >= _U(18) or not (byte == 10 or byte == 32 or byte == 9 or byte == 13):
            state[_CODE] = _NOT_A_NUMBER
        elif state[_LINES] >= vertices:
            state[_CODE] = _TOO_MANY_LINES
        elif state[_WORD] < lead:
            if number < 0:
                state[_CODE] = _NEGATIVE
            else:
                about[state[_WORD], state[_LINES]] = number
        elif state[_NEIGHBOUR] == 0 and (number < 1 or number > vertices):
            state[_CODE] = _OUT_OF_RANGE
        elif state[_NEIGHBOUR] == 0 and weighted:
            state[_NEIGHBOUR] = number
        else:
            here = state[_LINES] + 1
            there = state[_NEIGHBOUR] if weighted else number
            weight = number if weighted else np.int64(0)
            if here <= there:
                sources[found] = here
                targets[found] = there
                if weighted:
                    weights[found] = weight
                found += 1
            if here < there:
                sums[0] += _hash(here, there, weight)
                state[_UPPER] += 1
            elif here > there:
                sums[1] += _hash(there, here, weight)
                state[_LOWER] += 1
            else:
                state[_LOOPS] += 1
            state[_NEIGHBOUR] = 0
        if state[_CODE] != _FINE:
            at = start
            break
        state[_WORD] += 1
    state[_AT] = at
    return found


class MetisSource(EdgeSource):
    """A `.graph` file: vertices 1 to n, undirected."""

    unit: ClassVar[str] = "bytes"
    undirected = True

    def __init__(
        self,
        path: str | Path,
        *,
        columns: Sequence[str] | None = None,
        allow_empty: bool = False,
        block_size: int | None = None,
    ) -> None:
        self.file = TextFile(path)
        self.name, self.size, self.allow_empty, self.block_size = str(path), self.file.size, allow_empty, block_size
        number, start = 1, None
        for number, offset, text in self.file.lines(self.file.start):
            if text.strip() and not text.startswith(b"%"):
                self._read_header(number, text)
                start = offset + len(text) + 1
                break
        if start is None:
            raise InputError("ends before the header line `n m [fmt [ncon]]`", path=path, line=number)
        head = self.file.head(start)
        self.start = start if head.endswith(b"\n") else start + 1
        self.columns = chosen({"weight": pa.int64()} if self.weighted else {}, columns, self.name)
        self.estimated_edges = self.edges
        self._about = np.zeros((0, 0), np.int64)

    def _read_header(self, number: int, text: bytes) -> None:
        words = text.split()
        if not 2 <= len(words) <= 4 or not all(word.isdigit() for word in words):
            reason = f"{quote(text.strip())} is no METIS header: it must be `n m [fmt [ncon]]`"
            raise InputError(reason, path=self.name, line=number)
        self.vertex_count, self.edges = int(words[0]), int(words[1])
        code = words[2].decode().zfill(3) if len(words) > 2 else "000"
        if len(code) != 3 or set(code) - {"0", "1"}:
            reason = f"the fmt '{code}' must be up to three digits 0 or 1: sizes, vertex weights, edge weights"
            raise InputError(reason, path=self.name, line=number)
        sizes, constrained, self.weighted = (digit == "1" for digit in code)
        given = int(words[3]) if len(words) > 3 else int(constrained)
        if len(words) > 3 and (given > 0) != constrained:
            reason = f"ncon is {given}, but fmt says there are {'' if constrained else 'no '}vertex weights"
            raise InputError(reason, path=self.name, line=number)
        weights = ["weight"] if given == 1 else [f"weight{k}" for k in range(given)]
        self.vertex_columns = ["size"] * sizes + weights

    def chunks(self, *, threads: int, memory: int) -> Iterator[EdgeChunk]:
        del threads  # the place of a word depends on all before it: one thread reads, one parses
        size = block_size(1, memory, 12, self.block_size)
        buffers: queue.SimpleQueue[bytearray | None] = queue.SimpleQueue()
        for _ in range(2):
            buffers.put(bytearray(size + 1))
        stop = threading.Event()
        state, sums = np.zeros(_SIZE, np.int64), np.zeros(2, np.uint64)
        state[_BEGIN] = 1
        lead = len(self.vertex_columns)
        self._about = np.zeros((lead, self.vertex_count if lead else 0), np.int64)
        blocks = ahead(read_stream(self.file, self.start, size, buffers, stop, b"\n \t"), stop)
        try:
            for block in blocks:
                room = (block.end - block.begin + 1) // 2
                sources, targets = np.empty(room, np.int64), np.empty(room, np.int64)
                weights = np.empty(room if self.weighted else 0, np.int64)
                found = _parse_words(
                    block.array, block.begin, block.end, self.vertex_count, lead, self.weighted,
                    self._about, sources, targets, weights, sums, state,
                )  # fmt: skip
                if state[_CODE] != _FINE:
                    raise self._wrong(block, int(state[_CODE]), int(state[_AT]))
                self.position = block.position
                buffers.put(block.data)
                if found:
                    columns = {name: weights[:found].copy() for name in self.columns}
                    yield EdgeChunk(sources[:found].copy(), targets[:found].copy(), columns)
        finally:
            stop.set()
            blocks.close()
        self._check(state, sums)

    def _wrong(self, block: Block, code: int, at: int) -> InputError:
        word = bytes(block.data[at : min(block.end, at + 60)]).split(None, 1)
        reason = _REASONS[code].format(word=quote(word[0] if word else b""), n=self.vertex_count)
        return InputError(reason, path=self.name, line=self.file.line_number(block.offset + at - block.begin))

    def _check(self, state: np.ndarray, sums: np.ndarray) -> None:
        lines, edges = int(state[_LINES]), int(state[_UPPER] + state[_LOOPS])
        if lines < self.vertex_count:
            reason = f"declares {self.vertex_count} vertices but has lines for {lines}"
            raise InputError(reason, path=self.name, line=self.file.line_number(1 << 62))
        if state[_UPPER] != state[_LOWER] or sums[0] != sums[1]:
            what = " with one weight" if self.weighted else ""
            reason = f"some edge is not listed by both of its ends{what}"
            hint = f"listed by the smaller end: {state[_UPPER]}, by the larger: {state[_LOWER]}"
            raise InputError(reason, path=self.name, hint=hint)
        if edges != self.edges:
            raise InputError(f"declares {self.edges} edges but lists {edges}", path=self.name)
        if not edges and not self.vertex_count and not self.allow_empty:
            raise no_edges(self.name)

    def vertices(self) -> VertexTable:
        columns = dict(zip(self.vertex_columns, self._about, strict=True))
        return VertexTable(range(1, self.vertex_count + 1), columns, {name: pa.int64() for name in columns})


__all__ = ["MetisSource"]
