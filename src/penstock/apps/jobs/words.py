"""Loops over text: words are what stands between white space. Tables are those of `mapreduce.kernels.table`."""

from __future__ import annotations

import numpy as np

from penstock.mapreduce.kernels.table import long_hash, place_of, short_hash, some_word, whole_word
from penstock.memory.device import inlined, kernel, lowest_bit

_0, _1, _2, _3, _4, _7, _8 = (np.uint64(k) for k in (0, 1, 2, 3, 4, 7, 8))
_SHORT = np.uint64(16)
_HALF = np.uint64(32)
_LOW = np.uint64(0xFFFFFFFF)
_SPACE = np.uint8(32)
_BELOW, _HIGH = np.uint64(0x2121212121212121), np.uint64(0x8080808080808080)


@inlined
def is_space(byte):
    """What C calls white space."""
    return byte <= _SPACE and (byte == _SPACE or (byte >= np.uint8(9) and byte <= np.uint8(13)))


@inlined
def word_end(text, at):
    """Where the word that begins here ends. Eight bytes at a time: the lowest bit of `low` is in the first of them that
    is at most a space."""
    end = np.uint64(text.size)
    while at + _8 <= end:
        some = whole_word(text, at)
        low = (some - _BELOW) & ~some & _HIGH
        if low == _0:
            at += _8
            continue
        at += lowest_bit(low) >> _3
        if is_space(text[at]):
            return at
        at += _1
    while at < end and not is_space(text[at]):
        at += _1
    return at


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
        at = word_end(text, at)
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


@inlined
def _same(one, at, other, there, length):
    k = _0
    while k < length and one[at + k] == other[there + k]:
        k += _1
    return k == length


@inlined
def _find(slots, words, tail, text, begin, length, first, second, hashed):
    """(where in the table a word is or would be, its entry plus one or 0)."""
    n_slots, top = np.uint64(slots.size), np.uint64(words.size) * _8
    tag = hashed & ~_LOW
    place = place_of(hashed, slots)
    while True:
        slot = slots[place]
        if slot == _0:
            return place, _0
        if slot & ~_LOW == tag:
            entry = ((slot & _LOW) - _1) * _4
            where = words[entry + _2]
            alike = words[entry] == first and words[entry + _1] == second and where & _LOW == length
            if alike and (length <= _SHORT or _same(tail, top - (where >> _HALF) * _8, text, begin, length)):
                return place, entry + _1
        place += _1
        if place == n_slots:
            place = _0


@inlined
def _enter(slots, words, accs, tail, state, limit, place, text, begin, length, first, second, hashed, count):
    """A new entry, if there is room for it."""
    entries = np.uint64(state[0])
    long_words = ((length + _7) >> _3) if length > _SHORT else _0
    used = np.uint64(state[1]) + long_words
    if entries >= np.uint64(limit) or (entries + _1) * _4 + used > np.uint64(words.size):
        return False
    entry = entries * _4
    words[entry] = first
    words[entry + _1] = second
    if long_words:
        there = np.uint64(words.size) * _8 - used * _8
        for k in range(length):
            tail[there + k] = text[begin + k]
    words[entry + _2] = (used << _HALF) | length
    accs[entry + _3] = count
    slots[place] = (hashed & ~_LOW) | (entries + _1)
    state[0] = entries + _1
    state[1] = used
    return True


@kernel()
def count_words(text, at, slots, words, accs, tail, state, limit, passed, fill, shift, batch):
    """Count words in a table, from `at` on. A word that the table has no room for is written to the row of `passed`
    that the upper bits of its hash name, as text; `fill` says how far these are full. Stops at a word that finds no
    room there either; returns the place to go on from, whether it stopped, and that word's row and length.

    Words are looked up a batch at a time: first the places of all of them are read, which memory does side by side, and
    then each is looked at.
    """
    touched, most = _0, np.uint64(passed.shape[1])
    while True:
        n, at = _next_words(text, at, batch)
        if n == _0:
            break
        for b in range(n):
            batch[5, b] = slots[place_of(batch[4, b], slots)]
        for b in range(n):
            touched ^= words[(max(batch[5, b] & _LOW, _1) - _1) * _4]
        batch[5, 0] = touched  # used somewhere, or the compiler would leave it out
        for b in range(n):
            begin, length, first, second, hashed = batch[0, b], batch[1, b], batch[2, b], batch[3, b], batch[4, b]
            place, found = _find(slots, words, tail, text, begin, length, first, second, hashed)
            if found:
                accs[found + _2] += 1
                continue
            if _enter(
                slots, words, accs, tail, state, limit, place, text, begin, length, first, second, hashed, 1
            ):  # fmt: skip
                continue
            row = hashed >> shift
            if most == _0 or fill[row] + length + _1 > most:
                return begin, True, row, length
            to = fill[row]
            for k in range(length):
                passed[row, to + k] = text[begin + k]
            passed[row, to + length] = _SPACE
            fill[row] = to + length + _1
    return at, False, _0, _0


@inlined
def _entry_hash(words, entry):
    length = words[entry + _2] & _LOW
    return words[entry + _1] if length > _SHORT else short_hash(words[entry], words[entry + _1], length)


@kernel()
def part_entries(words, count, shift, bounds, order):
    """The numbers of a table's entries by the upper bits of their hash."""
    for k in range(np.uint64(count)):
        bounds[(_entry_hash(words, k * _4) >> shift) + _1] += 1
    for p in range(1, bounds.size):
        bounds[p] += bounds[p - 1]
    at = bounds[:-1].copy()
    for k in range(np.uint64(count)):
        part = _entry_hash(words, k * _4) >> shift
        order[at[part]] = k
        at[part] += 1


@kernel()
def take_entries(order, begin, end, other, other_tail, slots, words, accs, tail, state, limit):
    """Add entries of another table, with their counts. Returns where it stopped: `end`, or one there is no room for."""
    top = np.uint64(other.size) * _8
    for j in range(np.uint64(begin), np.uint64(end)):
        entry = np.uint64(order[j]) * _4
        first, second, where = other[entry], other[entry + _1], other[entry + _2]
        length, count = where & _LOW, np.int64(other[entry + _3])
        hashed = _entry_hash(other, entry)
        at = top - (where >> _HALF) * _8
        place, found = _find(slots, words, tail, other_tail, at, length, first, second, hashed)
        if found:
            accs[found + _2] += count
        elif not _enter(
            slots, words, accs, tail, state, limit, place, other_tail, at, length, first, second, hashed, count
        ):  # fmt: skip
            return np.int64(j)
    return np.int64(end)


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


__all__ = ["copy_ranges", "count_words", "fields_of", "is_space", "part_entries", "take_entries", "word_end"]
