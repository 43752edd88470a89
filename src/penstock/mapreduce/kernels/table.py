"""Hash tables that reduce as they are filled: open addressing on a hash, entries one after the other as they come.

A table is three arrays. `slots` holds, in 8 bytes, the upper half of a hash and the number of an entry plus one.
`words` holds the entries, from the front: the key, then the reduced value; and, from the back, the bytes of keys longer
than 16. `state` counts the entries and the words at the back. What is at most 16 bytes long lies in its entry: to find
such a key is to read one slot and one entry.
"""

from __future__ import annotations

import numpy as np

from penstock.mapreduce.kernels.columns import mixed
from penstock.memory.device import inlined, kernel

COUNT, SUM, MIN, MAX, FIRST, LAST, OR = (np.int64(k) for k in range(7))
"""What is done with the values of a key."""
BYTES_WORDS = 4
"""Words of an entry whose key is bytes: 16 of these, or 8 and the hash; the length and where it lies; the value."""
CODE_WORDS = 2
"""Words of an entry whose key is a code."""
SHORT = 16

_0, _1, _2, _3, _4, _8 = (np.uint64(k) for k in (0, 1, 2, 3, 4, 8))
_SHORT = np.uint64(SHORT)
_HALF = np.uint64(32)
_LOW = np.uint64(0xFFFFFFFF)
_SEED = np.uint64(0x9E3779B97F4A7C15)
_M1 = np.uint64(0xBF58476D1CE4E5B9)
_ALL = np.uint64(0xFFFFFFFFFFFFFFFF)
_AHEAD = 64
"""Rows whose slots and entries are loaded together."""


@inlined
def whole_word(data, at):
    """Eight bytes, the first the least significant: written so that one load comes of it."""
    return (
        np.uint64(data[at])
        | (np.uint64(data[at + np.uint64(1)]) << np.uint64(8))
        | (np.uint64(data[at + np.uint64(2)]) << np.uint64(16))
        | (np.uint64(data[at + np.uint64(3)]) << np.uint64(24))
        | (np.uint64(data[at + np.uint64(4)]) << np.uint64(32))
        | (np.uint64(data[at + np.uint64(5)]) << np.uint64(40))
        | (np.uint64(data[at + np.uint64(6)]) << np.uint64(48))
        | (np.uint64(data[at + np.uint64(7)]) << np.uint64(56))
    )


@inlined
def some_word(data, at, length):
    """The first `length` bytes, at most 8, and zeros after them."""
    if length >= _8:
        return whole_word(data, at)
    if length == _0:
        return _0
    if at + _8 <= np.uint64(data.size):
        return whole_word(data, at) & (_ALL >> ((_8 - length) << _3))
    word = _0
    for k in range(length):
        word |= np.uint64(data[at + k]) << (k << _3)
    return word


@inlined
def short_hash(first, second, length):
    """Of a key of at most 16 bytes."""
    return mixed((first + length) * _SEED ^ (second ^ (second >> _HALF)) * _M1)


@inlined
def long_hash(data, at, length):
    found = _SEED * (length + _1)
    end = at + length
    while at + _8 <= end:
        found = (found ^ whole_word(data, at)) * _M1
        found ^= found >> _HALF
        at += _8
    return mixed(found ^ some_word(data, at, end - at) * _SEED)


@inlined
def apply(values, words, at, value, op):
    """The value of an entry, with one more. `words` is the same memory: bits are joined there, whatever the type."""
    if op == COUNT:
        values[at] += values.dtype.type(1)
    elif op == SUM:
        values[at] += value
    elif op == MIN:
        # What is no number wins, as in NumPy.
        if value < values[at] or value != value:  # noqa: PLR0124
            values[at] = value
    elif op == MAX:
        if value > values[at] or value != value:  # noqa: PLR0124
            values[at] = value
    elif op == LAST:
        values[at] = value
    elif op == OR:
        words[at] |= np.uint64(value)


@inlined
def place_of(hashed, slots):
    """Where the search for a hash begins: tables have any size."""
    return ((hashed & _LOW) * np.uint64(slots.size)) >> _HALF


@kernel()
def route_bytes(offsets, data, begin, end, hashes, rows, bounds):
    """Hashes of the rows from `begin` to `end`, and these rows by the table they go to, in order inside each."""
    tables = np.uint64(bounds.size - 1)
    counts = np.zeros(bounds.size, np.uint64)
    for i in range(np.uint64(begin), np.uint64(end)):
        at = np.uint64(offsets[i])
        length = np.uint64(offsets[i + _1]) - at
        if length <= _SHORT:
            first = some_word(data, at, length)
            second = some_word(data, at + _8, length - _8) if length > _8 else _0
            hashed = short_hash(first, second, length)
        else:
            hashed = long_hash(data, at, length)
        hashes[i] = hashed
        counts[((hashed >> _HALF) * tables) >> _HALF] += _1
    spread(begin, end, hashes, rows, bounds, counts)


@kernel()
def route_codes(codes, begin, end, hashes, rows, bounds):
    """The same for keys that are codes."""
    tables = np.uint64(bounds.size - 1)
    counts = np.zeros(bounds.size, np.uint64)
    for i in range(np.uint64(begin), np.uint64(end)):
        hashed = mixed(codes[i] + _SEED)
        hashes[i] = hashed
        counts[((hashed >> _HALF) * tables) >> _HALF] += _1
    spread(begin, end, hashes, rows, bounds, counts)


@inlined
def spread(begin, end, hashes, rows, bounds, counts):
    tables = np.uint64(bounds.size - 1)
    at = np.uint64(begin)
    for t in range(tables):
        bounds[t] = at
        count = counts[t]
        counts[t] = at
        at += count
    bounds[tables] = at
    for i in range(np.uint64(begin), np.uint64(end)):
        t = ((hashes[i] >> _HALF) * tables) >> _HALF
        rows[counts[t]] = np.uint32(i)
        counts[t] += _1


@inlined
def touch(hashes, rows, begin, end, slots, words, width, seen):
    """Load the slots and entries that these rows will need, all at once: one after the other, each is waited for."""
    for j in range(begin, end):
        seen[j - begin] = slots[place_of(hashes[np.uint64(rows[j])], slots)]
    found = _0
    for k in range(end - begin):
        found |= words[((seen[k] & _LOW) - np.uint64(seen[k] != _0)) * width]
    # Written somewhere, or the compiler would leave it all out.
    seen[_0] = found


@kernel()
def add_bytes(offsets, data, values, op, hashes, rows, begin, end, slots, words, accs, tail, state, limit):
    """Put rows into the table; returns where it stopped: `end`, or the row for which there is no room.

    `accs` and `tail` are `words` seen as values and as bytes. `values` may be one for all.
    """
    n_slots = np.uint64(slots.size)
    last_value = np.uint64(values.size - 1)
    top = np.uint64(words.size) * _8
    seen = np.empty(_AHEAD, np.uint64)
    ahead = np.uint64(begin)
    for j in range(np.uint64(begin), np.uint64(end)):
        if j == ahead:
            ahead = min(j + np.uint64(_AHEAD), np.uint64(end))
            touch(hashes, rows, j, ahead, slots, words, _4, seen)
        i = np.uint64(rows[j])
        at = np.uint64(offsets[i])
        length = np.uint64(offsets[i + _1]) - at
        hashed = hashes[i]
        first = some_word(data, at, length)
        if length > _SHORT:
            second = hashed
        elif length > _8:
            second = some_word(data, at + _8, length - _8)
        else:
            second = _0
        tag = hashed & ~_LOW
        place = place_of(hashed, slots)
        found = _0
        while True:
            slot = slots[place]
            if slot == _0:
                break
            if slot & ~_LOW == tag:
                entry = ((slot & _LOW) - _1) * _4
                where = words[entry + _2]
                if words[entry] == first and words[entry + _1] == second and where & _LOW == length:
                    same = True
                    if length > _SHORT:
                        there = top - (where >> _HALF) * _8
                        for k in range(length):
                            if tail[there + k] != data[at + k]:
                                same = False
                                break
                    if same:
                        found = entry + _1
                        break
            place += _1
            if place == n_slots:
                place = _0
        value = values[min(i, last_value)]
        if found:
            apply(accs, words, found + _2, value, op)
            continue
        count = np.uint64(state[0])
        room = ((length + np.uint64(7)) >> _3) if length > _SHORT else _0
        used = np.uint64(state[1]) + room
        if count >= np.uint64(limit) or (count + _1) * _4 + used > np.uint64(words.size):
            return np.int64(j)
        entry = count * _4
        words[entry] = first
        words[entry + _1] = second
        if room:
            there = top - used * _8
            for k in range(length):
                tail[there + k] = data[at + k]
        words[entry + _2] = (used << _HALF) | length
        accs[entry + _3] = accs.dtype.type(1) if op == COUNT else value
        slots[place] = tag | (count + _1)
        state[0] = count + _1
        state[1] = used
    return np.int64(end)


@kernel()
def add_codes(codes, values, op, hashes, rows, begin, end, slots, words, accs, state, limit):
    """The same for keys that are codes."""
    n_slots = np.uint64(slots.size)
    last_value = np.uint64(values.size - 1)
    seen = np.empty(_AHEAD, np.uint64)
    ahead = np.uint64(begin)
    for j in range(np.uint64(begin), np.uint64(end)):
        if j == ahead:
            ahead = min(j + np.uint64(_AHEAD), np.uint64(end))
            touch(hashes, rows, j, ahead, slots, words, _2, seen)
        i = np.uint64(rows[j])
        key = codes[i]
        hashed = hashes[i]
        tag = hashed & ~_LOW
        place = place_of(hashed, slots)
        found = _0
        while True:
            slot = slots[place]
            if slot == _0:
                break
            if slot & ~_LOW == tag and words[((slot & _LOW) - _1) * _2] == key:
                found = ((slot & _LOW) - _1) * _2 + _1
                break
            place += _1
            if place == n_slots:
                place = _0
        value = values[min(i, last_value)]
        if found:
            apply(accs, words, found, value, op)
            continue
        count = np.uint64(state[0])
        if count >= np.uint64(limit) or (count + _1) * _2 > np.uint64(words.size):
            return np.int64(j)
        words[count * _2] = key
        accs[count * _2 + _1] = accs.dtype.type(1) if op == COUNT else value
        slots[place] = tag | (count + _1)
        state[0] = count + _1
    return np.int64(end)


@kernel()
def refill(words, width, count, slots):
    """Fill the slots, which are all empty, with the entries that are there."""
    n_slots = np.uint64(slots.size)
    width = np.uint64(width)
    for k in range(np.uint64(count)):
        entry = k * width
        if width == _2:
            hashed = mixed(words[entry] + _SEED)
        elif words[entry + _2] & _LOW > _SHORT:
            hashed = words[entry + _1]
        else:
            hashed = short_hash(words[entry], words[entry + _1], words[entry + _2] & _LOW)
        place = place_of(hashed, slots)
        while slots[place] != _0:
            place += _1
            if place == n_slots:
                place = _0
        slots[place] = (hashed & ~_LOW) | (k + _1)


@kernel()
def entry_lengths(words, begin, end, offsets):
    """Where the keys of these entries begin when they are written one after the other."""
    total = np.int64(0)
    offsets[0] = 0
    for k in range(np.uint64(begin), np.uint64(end)):
        total += np.int64(words[k * _4 + _2] & _LOW)
        offsets[k - np.uint64(begin) + _1] = total


@kernel()
def entry_bytes(words, tail, begin, end, offsets, out):
    """The keys of these entries."""
    top = np.uint64(words.size) * _8
    for k in range(np.uint64(begin), np.uint64(end)):
        entry = k * _4
        where = words[entry + _2]
        length = where & _LOW
        to = np.uint64(offsets[k - np.uint64(begin)])
        # Short keys lie in the entry's own first 16 bytes.
        at = entry * _8 if length <= _SHORT else top - (where >> _HALF) * _8
        for b in range(length):
            out[to + b] = tail[at + b]
