"""Loops over text: words are what stands between white space. Tables are those of `mapreduce.kernels.table`."""

from __future__ import annotations

import numpy as np

from penstock.mapreduce.kernels.table import long_hash, place_of, short_hash, some_word
from penstock.memory.device import inlined, kernel

_0, _1, _2, _3, _4, _7, _8 = (np.uint64(k) for k in (0, 1, 2, 3, 4, 7, 8))
_SHORT = np.uint64(16)
_HALF = np.uint64(32)
_LOW = np.uint64(0xFFFFFFFF)
_SPACE = np.uint8(32)


@inlined
def is_space(byte):
    """What C calls white space."""
    return byte <= _SPACE and (byte == _SPACE or (byte >= np.uint8(9) and byte <= np.uint8(13)))


@inlined
def _next_words(text, at, found):
    """The next words of the text, as many as `found` has columns: where each begins, its length, its first 16 bytes or
    8 and the hash, its hash. Returns how many, and the place after the last."""
    end, n = np.uint64(text.size), _0
    while n < np.uint64(found.shape[1]):
        while at < end and is_space(text[at]):
            at += _1
        if at >= end:
            break
        begin = at
        while at < end and not is_space(text[at]):
            at += _1
        length = at - begin
        first = some_word(text, begin, length)
        if length <= _SHORT:
            second = some_word(text, begin + _8, length - _8) if length > _8 else _0
            hashed = short_hash(first, second, length)
        else:
            hashed = long_hash(text, begin, length)
            second = hashed
        found[0, n], found[1, n], found[2, n], found[3, n], found[4, n] = begin, length, first, second, hashed
        n += _1
    return n, at


@kernel()
def count_words(text, at, slots, words, accs, tail, state, limit, offsets, data, made, batch):
    """Count words in a table, from `at` on. A word that the table has no room for is written to `data`, and `offsets`
    says where it ends. Stops where these are full; returns the place to go on from, and whether it stopped.

    `made` holds how many words were written, and their bytes. Words are looked up a batch at a time: first the places
    of all of them are read, which memory does side by side, and then each is looked at.
    """
    n_slots, top = np.uint64(slots.size), np.uint64(words.size) * _8
    count, room = np.uint64(made[0]), np.uint64(made[1])
    most, most_bytes = np.uint64(offsets.size - 1), np.uint64(data.size)
    full, touched = False, _0
    while not full:
        n, at = _next_words(text, at, batch)
        if n == _0:
            break
        for b in range(n):
            batch[5, b] = slots[place_of(batch[4, b], slots)]
        for b in range(n):
            touched ^= words[(max(batch[5, b] & _LOW, _1) - _1) * _4]
        for b in range(n):
            begin, length, first, second, hashed = batch[0, b], batch[1, b], batch[2, b], batch[3, b], batch[4, b]
            tag = hashed & ~_LOW
            place = place_of(hashed, slots)
            found = False
            while True:
                slot = slots[place]
                if slot == _0:
                    break
                if slot & ~_LOW == tag:
                    entry = ((slot & _LOW) - _1) * _4
                    where = words[entry + _2]
                    if words[entry] == first and words[entry + _1] == second and where & _LOW == length:
                        found = True
                        if length > _SHORT:
                            there = top - (where >> _HALF) * _8
                            for k in range(length):
                                if tail[there + k] != text[begin + k]:
                                    found = False
                                    break
                        if found:
                            accs[entry + _3] += 1
                            break
                place += _1
                if place == n_slots:
                    place = _0
            if found:
                continue
            entries = np.uint64(state[0])
            long_words = ((length + _7) >> _3) if length > _SHORT else _0
            used = np.uint64(state[1]) + long_words
            if entries < np.uint64(limit) and (entries + _1) * _4 + used <= np.uint64(words.size):
                entry = entries * _4
                words[entry] = first
                words[entry + _1] = second
                if long_words:
                    there = top - used * _8
                    for k in range(length):
                        tail[there + k] = text[begin + k]
                words[entry + _2] = (used << _HALF) | length
                accs[entry + _3] = 1
                slots[place] = tag | (entries + _1)
                state[0] = entries + _1
                state[1] = used
            else:
                if count == most or room + length > most_bytes:
                    at, full = begin, True
                    break
                for k in range(length):
                    data[room + k] = text[begin + k]
                room += length
                count += _1
                offsets[count] = room
    made[0], made[1], made[2] = count, room, touched
    return at, full


@kernel()
def fields_of(text, separator, first, second, begins, ends):
    """Where two fields of each line begin and end, by line: `begins[line, 0]` for the first. Fields are counted from
    0; what a line does not have is empty. Empty lines are left out. Returns how many lines there are."""
    lines, at, end = _0, _0, np.uint64(text.size)
    while at < end:
        stop = at
        while stop < end and text[stop] != np.uint8(10):
            stop += _1
        last = stop - _1 if stop > at and text[stop - _1] == np.uint8(13) else stop
        if last > at:
            for k in range(_2):
                begins[lines, k], ends[lines, k] = last, last
            field, begin = _0, at
            place = at
            while place <= last:
                if place == last or text[place] == separator:
                    if field == np.uint64(first):
                        begins[lines, _0], ends[lines, _0] = begin, place
                    if field == np.uint64(second):
                        begins[lines, _1], ends[lines, _1] = begin, place
                    field += _1
                    begin = place + _1
                place += _1
            lines += _1
        at = stop + _1
    return lines


@kernel()
def copy_ranges(text, begins, ends, offsets, data):
    """Stretches of the text, one after the other."""
    at = _0
    for i in range(np.uint64(begins.size)):
        for k in range(np.uint64(begins[i]), np.uint64(ends[i])):
            data[at] = text[k]
            at += _1
        offsets[i + _1] = at


__all__ = ["copy_ranges", "count_words", "fields_of", "is_space"]
