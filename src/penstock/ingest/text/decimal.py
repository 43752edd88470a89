"""Decimal text to the nearest double, bit for bit what `float()` gives.

Clinger's fast path where the digits and the power of ten are exact doubles, else Eisel and Lemire's: one 128-bit
product with a truncated power of five (Lemire, "Number parsing at a gigabyte per second", 2021). More than 19
significant digits is left to Python.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from penstock.memory.device import kernel

_SMALLEST, _LARGEST = -342, 308
_U = np.uint64
_ZERO, _ONE, _TWO, _THREE, _NINE, _TEN = _U(0), _U(1), _U(2), _U(3), _U(9), _U(10)
_LOW32 = _U(0xFFFFFFFF)
_S32 = _U(32)
_EXACT = _U(1 << 53)
_HIDDEN = _U(1 << 52)
_SIGN = _U(1 << 63)
_INFINITY = _U(0x7FF << 52)
_PRECISION = _U((1 << 64) - 1 >> 55)
_FIELD = _U(52)
_POWERS = np.array([10.0**k for k in range(23)])

PARSED, LEFT_TO_PYTHON, NOT_A_NUMBER = 0, 1, 2


def _powers_of_five() -> np.ndarray:
    """The top 128 bits of 5**q, truncated for q >= 0 and rounded up for q < 0, as pairs (high, low)."""
    table = np.empty((_LARGEST - _SMALLEST + 1, 2), np.uint64)
    for q in range(_SMALLEST, _LARGEST + 1):
        power = 5 ** abs(q)
        if q >= 0:
            shift = power.bit_length() - 128
            value = power >> shift if shift > 0 else power << -shift
        else:
            bits = (power - 1).bit_length()
            value = (1 << (bits + 127 if q >= -27 else 2 * bits + 128)) // power + 1
            value >>= max(0, value.bit_length() - 128)
        table[q - _SMALLEST] = value >> 64, value & (1 << 64) - 1
    return table


FIVES = _powers_of_five()


@kernel(inline="always")
def _product(a: Any, b: Any) -> tuple[Any, Any]:
    """High and low word of a 64 by 64 bit product."""
    a_low, a_high, b_low, b_high = a & _LOW32, a >> _S32, b & _LOW32, b >> _S32
    low = a_low * b_low
    middle = a_high * b_low + (low >> _S32)
    other = a_low * b_high + (middle & _LOW32)
    return a_high * b_high + (middle >> _S32) + (other >> _S32), (other << _S32) | (low & _LOW32)


@kernel()
def _leading_zeros(word: Any) -> Any:
    count = 0
    for step in (32, 16, 8, 4, 2, 1):
        if word >> _U(64 - step) == _ZERO:
            word <<= _U(step)
            count += step
    return count


@kernel()
def nearest_double(digits: Any, power: Any, fives: np.ndarray) -> Any:
    """The bits of digits * 10**power, rounded to nearest, ties to even."""
    if digits == _ZERO or power < _SMALLEST:
        return _ZERO
    if power > _LARGEST:
        return _INFINITY
    zeros = _leading_zeros(digits)
    digits = digits << _U(zeros)
    high, low = _product(digits, fives[power - _SMALLEST, 0])
    if high & _PRECISION == _PRECISION:
        more, _ = _product(digits, fives[power - _SMALLEST, 1])
        low = low + more
        if more > low:
            high = high + _ONE
    upper = high >> _U(63)
    shift = upper + _U(9)
    mantissa = high >> shift
    exponent = ((217706 * power) >> 16) + 63 + np.int64(upper) - zeros + 1023
    if exponent <= 0:
        if 1 - exponent >= 64:
            return _ZERO
        mantissa >>= _U(1 - exponent)
        mantissa += mantissa & _ONE
        return mantissa >> _ONE
    if (
        low <= _ONE
        and power >= -4
        and power <= 23
        and mantissa & _THREE == _ONE
        and mantissa << shift == high  # exactly half way between two doubles
    ):
        mantissa ^= _ONE
    mantissa += mantissa & _ONE
    mantissa >>= _ONE
    if mantissa >= _TWO * _HIDDEN:
        mantissa = _HIDDEN
        exponent += 1
    if exponent >= 0x7FF:
        return _INFINITY
    return (_U(exponent) << _FIELD) | (mantissa & (_HIDDEN - _ONE))


@kernel()
def parse_decimal(
    buffer: np.ndarray, at: Any, reals: np.ndarray, bits: np.ndarray, slot: Any, row: Any, fives: np.ndarray
) -> tuple[Any, Any]:
    """Parse the number at `at` into reals[slot, row] (`bits` is the same memory); where it ends, and how it went.

    The text must be followed by a byte that is no part of a number: every block ends with a newline.
    """
    negative = buffer[at] == 45
    if negative or buffer[at] == 43:
        at += _ONE
    digits = _ZERO
    first = at
    digit = _U(buffer[at]) - _U(48)
    while digit <= _NINE:
        digits = digits * _TEN + digit
        at += _ONE
        digit = _U(buffer[at]) - _U(48)
    seen = at - first
    power: Any = 0
    if buffer[at] == 46:
        at += _ONE
        fraction = at
        digit = _U(buffer[at]) - _U(48)
        while digit <= _NINE:
            digits = digits * _TEN + digit
            at += _ONE
            digit = _U(buffer[at]) - _U(48)
        seen += at - fraction
        power = -np.int64(at - fraction)
    if seen == _ZERO:
        return at, NOT_A_NUMBER
    last = at
    if buffer[at] == 101 or buffer[at] == 69:
        at += _ONE
        down = buffer[at] == 45
        if down or buffer[at] == 43:
            at += _ONE
        start = at
        exponent: Any = 0
        digit = _U(buffer[at]) - _U(48)
        while digit <= _NINE:
            if exponent < 100_000:
                exponent = exponent * 10 + np.int64(digit)
            at += _ONE
            digit = _U(buffer[at]) - _U(48)
        if at == start:
            return at, NOT_A_NUMBER
        power += -exponent if down else exponent
    if seen > _U(19):
        while first < last and (buffer[first] == 48 or buffer[first] == 46):
            if buffer[first] == 48:
                seen -= _ONE
            first += _ONE
        if seen > _U(19):
            return at, LEFT_TO_PYTHON
    if digits <= _EXACT and power >= -22 and power <= 22:
        value = np.float64(digits)
        value = value / _POWERS[-power] if power < 0 else value * _POWERS[power]
        reals[slot, row] = -value if negative else value
    else:
        bits[slot, row] = nearest_double(digits, power, fives) | (_SIGN if negative else _ZERO)
    return at, PARSED


__all__ = ["FIVES", "LEFT_TO_PYTHON", "NOT_A_NUMBER", "PARSED", "nearest_double", "parse_decimal"]
