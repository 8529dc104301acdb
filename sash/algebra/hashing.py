"""A 64-bit hash of any value: the same in every process, and the same interpreted and compiled.

A hash is a pair of 32-bit integers (high, low). Python's integers never wrap and Numba's do so
silently, so nothing here may need more than 63 bits: 64-bit products are put together from 32-bit
halves, by factors whose own halves stay below 2^31.

Numbers that are equal hash alike, whatever their type: 1, 1.0 and True; 0.0 and -0.0; all NaN.
Python's own hash() is of no use: that of text differs from one process to the next.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import xxhash

from sash.algebra import codec
from sash.algebra.aggregate import Dtype
from sash.algebra.inputs import to_float
from sash.algebra.monoid import Function

Hash = tuple[int, int]

HALF = 2**32 - 1
NAN_BITS = 0x7FF8000000000000
INT_END, UINT_END = 2.0**63, 2.0**64
TEXT, BYTES, INTEGER, DATA = 1, 2, 3, 4  # seeds: "a" and b"a" are not the same value

OFFSET_HIGH, OFFSET_LOW = 0x9E3779B9, 0x7F4A7C15  # the golden ratio: 0 must not hash to 0
# The halves of three odd multipliers known from random number generators: of Vigna's xorshift*,
# of Knuth's MMIX, and one from L'Ecuyer's tables.
FACTORS = ((0x2545F491, 0x4F6CDD1D), (0x5851F42D, 0x4C957F2D), (0x369DEA0F, 0x31A53F85))


def hasher(dtype: Dtype) -> Function:
    """The hash function for a column: one that compiles, if it holds numbers."""
    if dtype is None or dtype.kind not in "biuf":
        return hash_value
    return hash_float if dtype.kind == "f" else hash_integer


def hash_integer(x: Any) -> Hash:
    """Hash an integer of at most 64 bits."""
    number = int(x)
    return mixed(int(np.int64((number >> 32) & HALF)), int(np.int64(number & HALF)))


def hash_float(x: Any) -> Hash:
    """Hash a float by its value if that is an integer of at most 64 bits, else by its bits."""
    number = to_float(x)
    if -INT_END <= number < INT_END and number == math.floor(number):
        return hash_integer(int(number))
    if INT_END <= number < UINT_END:
        return hash_integer(int(number - UINT_END))  # the same 64 bits
    if number != number:  # noqa: PLR0124 - only NaN differs from itself
        return hash_integer(NAN_BITS)
    return hash_integer(int(np.float64(number).view(np.int64)))


def hash_value(value: Any) -> Hash:
    """Hash a number, text, bytes, or plain data such as a tuple of those; not compiled."""
    if isinstance(value, (bool, int, np.integer, np.bool_)):
        return _hash_any_integer(int(value))
    if isinstance(value, (float, np.floating)):
        return hash_float(value)
    if isinstance(value, str):
        return _digest(value.encode("utf-8", "surrogatepass"), TEXT)
    if isinstance(value, bytes):
        return _digest(value, BYTES)
    return _digest(codec.encode(value), DATA)


def _hash_any_integer(value: int) -> Hash:
    if -(2**63) <= value < 2**64:
        return hash_integer(value)
    if abs(value) < 2**1023 and int(float(value)) == value:
        return hash_float(float(value))
    return _digest(codec.encode(value), INTEGER)


def _digest(data: bytes, seed: int) -> Hash:
    found = xxhash.xxh3_64_intdigest(data, seed)
    return found >> 32, found & HALF


def mixed(high: int, low: int) -> Hash:
    """Spread every bit over all others; a permutation of the 64-bit numbers."""
    high, low = high ^ OFFSET_HIGH, low ^ OFFSET_LOW
    for factor_high, factor_low in FACTORS:
        low ^= high
        product = low * factor_low
        crossed = ((low * factor_high) & HALF) + ((high * factor_low) & HALF)
        high, low = ((product >> 32) + crossed) & HALF, product & HALF
    return high, low ^ high
