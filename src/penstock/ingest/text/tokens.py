"""Kernels that turn lines of text into arrays.

They take the bytes of whole lines, the last of which ends with a newline, so that no loop needs a bounds check.
They stop at the first line they cannot read and say where; the sentence for the user is made in Python. Fields that
are rare or need care (nulls, 20 digits, odd spellings) go to the `slow` list, which Python settles one by one.
"""

# A chain of comparisons compiles to a better loop than membership in a tuple.
# ruff: noqa: PLR1714, SIM109

from __future__ import annotations

from typing import Any

import numpy as np

from penstock.ingest.text.decimal import NOT_A_NUMBER, PARSED, parse_decimal
from penstock.memory.device import kernel

SKIP, IDENTIFIER, INTEGER, UNSIGNED, REAL, BOOLEAN, SPAN, TAG = range(8)
"""What a field holds. A span is text; a tag must be one given letter, as the `a` of DIMACS."""
FINE, TOO_FEW, TOO_MANY, BAD_QUOTE, NUL_BYTE, BAD_TAG, JUNK = range(7)
"""Why a kernel stopped."""
ROWS, SLOW, CODE, ERROR_AT, ERROR_FIELD, NEGATIVE, BIG, STATE_SIZE = range(8)
"""What the kernels keep in their `state` array; of negative ids and of those above int64 the first row, plus one."""

_U = np.uint64
_ZERO, _ONE, _NINE, _TEN, _CHAR0 = _U(0), _U(1), _U(9), _U(10), _U(48)
_TEN19 = _U(10**19)
_HALF = _U(1 << 63)
_RUN = _U(64)
"""Odd lines (negative ids, 19 digits) come in runs: the general kernel takes so many before the fast one resumes."""
_QUOTE, _SPACE, _TAB, _LF, _CR = 34, 32, 9, 10, 13


@kernel()
def count_lines(buffer: np.ndarray, begin: Any, end: Any) -> Any:
    """Newlines in buffer[begin:end]."""
    count = 0
    for byte in buffer[begin:end]:
        count += byte == 10
    return count


@kernel()
def gather(buffer: np.ndarray, starts: np.ndarray, lengths: np.ndarray, offsets: np.ndarray, out: np.ndarray) -> Any:
    """Copy spans one after the other; a negative length marks doubled quotes, which become one."""
    at = _ZERO
    for k in range(starts.size):
        offsets[k] = at
        span = np.int64(lengths[k])
        source = _U(starts[k])
        stop = source + _U(abs(span))
        if span >= 0:
            while source < stop:
                out[at] = buffer[source]
                at += _ONE
                source += _ONE
        while source < stop:
            byte = buffer[source]
            out[at] = byte
            at += _ONE
            source += _ONE
            if byte == _QUOTE:
                source += _ONE
    offsets[starts.size] = at
    return at


@kernel()
def _is_comment(buffer: np.ndarray, at: Any, marks: np.ndarray) -> Any:
    for k in range(marks.shape[0]):
        if buffer[at] == marks[k, 0] and (marks[k, 1] == 0 or buffer[at + _ONE] == marks[k, 1]):
            return True
    return False


@kernel()
def _truth(buffer: np.ndarray, start: Any, stop: Any) -> Any:
    """1 for true or 1, 0 for false or 0, -1 for anything else; in any case of letters."""
    length = stop - start
    if length == _ONE:
        letter = buffer[start]
        return 1 if letter in (49, 84, 116) else 0 if letter in (48, 70, 102) else -1
    word = _ZERO
    if length <= _U(5):
        for k in range(start, stop):
            word = (word << _U(8)) | _U(buffer[k] | 32)
    if word == _U(0x74727565):
        return 1
    return 0 if word == _U(0x66616C7365) else -1


@kernel()
def parse_rows(
    buffer: np.ndarray,
    begin: Any,
    end: Any,
    limit: Any,
    delimiter: Any,
    marks: np.ndarray,
    kinds: np.ndarray,
    slots: np.ndarray,
    tag: Any,
    integers: np.ndarray,
    reals: np.ndarray,
    bits: np.ndarray,
    starts: np.ndarray,
    lengths: np.ndarray,
    slow: np.ndarray,
    fives: np.ndarray,
    state: np.ndarray,
) -> Any:
    """Parse lines until there are `limit` rows, the end or an error; returns where it stopped.

    delimiter 0: runs of blanks. Row r of field f goes to slot slots[f] of the array its kind asks for.
    """
    at = _U(begin)
    stop = _U(end)
    row = _U(state[ROWS])
    pending = state[SLOW]
    fields = kinds.size
    blank_tab = _SPACE if delimiter == _TAB else _TAB
    code = FINE
    field = 0
    line = at
    while at < stop and row < _U(limit):
        line = at
        byte = buffer[at]
        while byte == _SPACE or byte == blank_tab:
            at += _ONE
            byte = buffer[at]
        if byte == _CR and buffer[at + _ONE] == _LF:
            at += _ONE
            byte = buffer[at]
        if byte == _LF:
            at += _ONE
            continue
        if _is_comment(buffer, at, marks):
            while buffer[at] != _LF:
                at += _ONE
            at += _ONE
            continue
        field = 0
        while True:
            while byte == _SPACE or byte == blank_tab:
                at += _ONE
                byte = buffer[at]
            if byte == _CR and buffer[at + _ONE] == _LF:
                at += _ONE
                byte = buffer[at]
            if delimiter == 0:
                if byte == _LF:
                    break
                if field > 0 and _is_comment(buffer, at, marks):
                    while buffer[at] != _LF:
                        at += _ONE
                    break
            if field == fields:
                code = TOO_MANY
                break
            kind = kinds[field]
            slot = slots[field]
            quoted = byte == _QUOTE
            if quoted:
                at += _ONE
            start = at
            known: Any = False
            if kind == IDENTIFIER or kind == INTEGER or kind == UNSIGNED:
                minus = buffer[at] == 45
                if minus:
                    at += _ONE
                first = at
                value = _ZERO
                digit = _U(buffer[at]) - _CHAR0
                while digit <= _NINE:
                    value = value * _TEN + digit
                    at += _ONE
                    digit = _U(buffer[at]) - _CHAR0
                count = at - first
                # 20 digits fit if they begin with 1 and did not wrap: 2**64 is less than 2 * 10**19
                known = count - _ONE < _U(19) or (count == _U(20) and buffer[first] == 49 and value >= _TEN19)
                big = value >= _HALF
                if minus:
                    known = known and kind != UNSIGNED and value <= _HALF
                    value = _ZERO - value
                else:
                    known = known and not (big and kind == INTEGER)
                if known:
                    integers[slot, row] = value
                    if kind == IDENTIFIER:
                        if minus and value != _ZERO and state[NEGATIVE] == 0:
                            state[NEGATIVE] = row + _ONE
                        if big and not minus and state[BIG] == 0:
                            state[BIG] = row + _ONE
            elif kind == REAL:
                at, how = parse_decimal(buffer, at, reals, bits, slot, row, fives)
                known = how == PARSED
                if how == NOT_A_NUMBER:
                    at = start
            byte = buffer[at]
            if quoted:
                known = known and byte == _QUOTE
            else:
                known = known and (byte == _LF or byte == _SPACE or byte == _TAB or byte == _CR or byte == delimiter)
            escaped = False
            if not known:
                at = start
                byte = buffer[at]
                if quoted:
                    while byte != _LF:
                        if byte == _QUOTE:
                            if buffer[at + _ONE] != _QUOTE:
                                break
                            escaped = True
                            at += _ONE
                        elif byte == 0:
                            code = NUL_BYTE
                        at += _ONE
                        byte = buffer[at]
                    if byte == _LF:
                        code = BAD_QUOTE
                elif delimiter == 0:
                    while byte != _SPACE and byte != _TAB and byte != _LF and byte != _CR:
                        if byte == 0:
                            code = NUL_BYTE
                        at += _ONE
                        byte = buffer[at]
                else:
                    while byte != delimiter and byte != _LF:
                        if byte == 0:
                            code = NUL_BYTE
                        at += _ONE
                        byte = buffer[at]
                tail = at
                if not quoted:
                    while tail > start and (
                        buffer[tail - _ONE] == _SPACE or buffer[tail - _ONE] == blank_tab or buffer[tail - _ONE] == _CR
                    ):
                        tail -= _ONE
                if kind == SPAN:
                    starts[slot, row] = start
                    lengths[slot, row] = np.int64(tail - start) * (-1 if escaped else 1)
                elif kind == TAG:
                    if tail - start != _ONE or buffer[start] != tag:
                        code = BAD_TAG
                elif kind != SKIP and code == FINE:
                    truth = -1
                    if kind == BOOLEAN:
                        truth = _truth(buffer, start, tail)
                    if truth >= 0:
                        integers[slot, row] = _U(truth)
                    else:
                        if pending < slow.shape[0]:
                            slow[pending, 0] = row
                            slow[pending, 1] = field
                            slow[pending, 2] = start
                            slow[pending, 3] = tail
                        pending += 1
                if code != FINE:
                    break
            if quoted:
                if buffer[at] != _QUOTE:
                    code = JUNK
                    break
                at += _ONE
            byte = buffer[at]
            field += 1
            if delimiter == 0:
                if byte != _LF and byte != _SPACE and byte != _TAB and byte != _CR:
                    field -= 1
                    code = JUNK
                    break
                continue
            while byte == _SPACE or byte == blank_tab:
                at += _ONE
                byte = buffer[at]
            if byte == _CR and buffer[at + _ONE] == _LF:
                at += _ONE
                byte = buffer[at]
            if byte == delimiter:
                at += _ONE
                byte = buffer[at]
                continue
            if byte != _LF:
                field -= 1
                code = JUNK
            break
        if code == FINE and field < fields:
            code = TOO_FEW
        if code != FINE:
            break
        at += _ONE
        row += _ONE
    state[ROWS] = row
    state[SLOW] = pending
    state[CODE] = code
    state[ERROR_AT] = line
    state[ERROR_FIELD] = field
    return at


@kernel()
def parse_pairs(
    buffer: np.ndarray,
    begin: Any,
    end: Any,
    delimiter: Any,
    marks: np.ndarray,
    kinds: np.ndarray,
    slots: np.ndarray,
    tag: Any,
    integers: np.ndarray,
    reals: np.ndarray,
    bits: np.ndarray,
    starts: np.ndarray,
    lengths: np.ndarray,
    slow: np.ndarray,
    fives: np.ndarray,
    state: np.ndarray,
) -> Any:
    """`parse_rows` for lines of two integers, the commonest file: twice as fast; odd lines go to `parse_rows`."""
    at = _U(begin)
    stop = _U(end)
    row = _U(state[ROWS])
    sources = integers[0]
    targets = integers[1]
    blanks = delimiter == 0
    while at < stop:
        line = at
        source = _ZERO
        digit = _U(buffer[at]) - _CHAR0
        while digit <= _NINE:
            source = source * _TEN + digit
            at += _ONE
            digit = _U(buffer[at]) - _CHAR0
        count = at - line
        byte = buffer[at]
        if blanks:
            while byte == _SPACE or byte == _TAB:
                at += _ONE
                byte = buffer[at]
        elif byte == delimiter:
            at += _ONE
        first = at
        target = _ZERO
        digit = _U(buffer[at]) - _CHAR0
        while digit <= _NINE:
            target = target * _TEN + digit
            at += _ONE
            digit = _U(buffer[at]) - _CHAR0
        other = at - first
        byte = buffer[at]
        if byte == _CR:
            at += _ONE
            byte = buffer[at]
        # The subtraction turns zero digits into a huge count; 18 digits stay below 2**63.
        if byte == _LF and count - _ONE < _U(18) and other - _ONE < _U(18):
            sources[row] = source
            targets[row] = target
            row += _ONE
            at += _ONE
        else:
            state[ROWS] = row
            at = _U(
                parse_rows(
                    buffer, line, stop, row + _RUN, delimiter, marks, kinds, slots, tag,
                    integers, reals, bits, starts, lengths, slow, fives, state,
                )
            )  # fmt: skip
            row = _U(state[ROWS])
            if state[CODE] != FINE:
                break
    state[ROWS] = row
    return at


__all__ = [
    "BAD_QUOTE",
    "BAD_TAG",
    "BIG",
    "BOOLEAN",
    "CODE",
    "ERROR_AT",
    "ERROR_FIELD",
    "FINE",
    "IDENTIFIER",
    "INTEGER",
    "JUNK",
    "NEGATIVE",
    "NUL_BYTE",
    "REAL",
    "ROWS",
    "SKIP",
    "SLOW",
    "SPAN",
    "STATE_SIZE",
    "TAG",
    "TOO_FEW",
    "TOO_MANY",
    "UNSIGNED",
    "count_lines",
    "gather",
    "parse_pairs",
    "parse_rows",
]
