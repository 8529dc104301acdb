"""Aggregates made for tests: small, exact on whole numbers, and each good at showing one mistake.

    Sum      a commutative group             what is lost or counted twice
    Max      a selection                     what outlives its eviction
    Mean     a record with a null answer     the empty and the all-null window
    ArgMax   a selection with ties           which of two equals came first
    Concat   any Python object               order, readable when a test fails
    Affine   a group that does not commute   order, in fixed width, compiled and interpreted alike
    Bloom    rows that may be their own `out`   cells that share memory

Composition of x -> a x + b modulo the prime 2^61 - 1 is the sharpest of them: a lost, repeated or
swapped element changes the answer, where sums and maxima often agree by luck.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from sash.algebra.declaring import aggregate

PRIME = 2**61 - 1
LOW_30, LOW_31 = 2**30 - 1, 2**31 - 1
SLOPE, OFFSET = 1_152_921_504_606_846_883, 999_999_999_999_999_989  # any two numbers below PRIME


@aggregate(state="i8")
class Sum:
    """The sum of whole numbers."""

    identity = 0
    commutative = True

    @staticmethod
    def lift(x: Any) -> Any:
        """Take the number itself."""
        return int(x)

    @staticmethod
    def combine(older: Any, newer: Any) -> Any:
        """Add."""
        return older + newer

    @staticmethod
    def invert(whole: Any, older: Any) -> Any:
        """Subtract."""
        return whole - older


@aggregate(state="f8")
class Max:
    """The largest number; NaN is larger than all others, or -inf would not be the identity."""

    identity = -np.inf
    commutative = True
    selective = True

    @staticmethod
    def lift(x: Any) -> Any:
        """Take the number itself."""
        return float(x)

    @staticmethod
    def combine(older: Any, newer: Any) -> Any:
        """Choose the larger one."""
        return newer if newer > older or newer != newer else older  # noqa: PLR0124 - NaN


@aggregate(state={"n": "i8", "total": "f8"})
class Mean:
    """The mean; null if there is nothing to average."""

    identity = (0, 0.0)
    commutative = True

    @staticmethod
    def lift(x: Any) -> Any:
        """Count one."""
        return (1, float(x))

    @staticmethod
    def combine(older: Any, newer: Any) -> Any:
        """Add both fields."""
        return (older[0] + newer[0], older[1] + newer[1])

    @staticmethod
    def lower(partial: Any) -> Any:
        """Divide."""
        return partial[1] / partial[0] if partial[0] else None


@aggregate(state={"largest": "f8", "at": "i8"})
class ArgMax:
    """What stands beside the largest number; the first of equals wins."""

    identity = (-np.inf, -1)
    selective = True

    @staticmethod
    def lift(x: Any, at: Any) -> Any:
        """Keep both."""
        return (float(x), int(at))

    @staticmethod
    def combine(older: Any, newer: Any) -> Any:
        """Choose the newer one only if it is strictly larger."""
        return newer if newer[0] > older[0] else older

    @staticmethod
    def lower(partial: Any) -> Any:
        """Answer what stands beside it."""
        return partial[1]


@aggregate(state=object)
class Concat:
    """All values in order, as text."""

    @staticmethod
    def lift(x: Any) -> str:
        """Write the value down."""
        return str(x)

    @staticmethod
    def combine(older: str, newer: str) -> str:
        """Write one after the other."""
        return f"{older},{newer}"


@aggregate(state={"slope": "i8", "offset": "i8"})
class Affine:
    """Composition of affine maps modulo 2^61 - 1; the oldest is applied first."""

    identity = (1, 0)

    @staticmethod
    def lift(x: Any) -> Any:
        """Make a map of the number; no two numbers below 2^31 give the same."""
        seed = (int(x) & LOW_31) + 1
        return (times(seed, SLOPE), times(seed, OFFSET))

    @staticmethod
    def combine(older: Any, newer: Any) -> Any:
        """Apply the older map, then the newer one."""
        return (times(older[0], newer[0]), folded(times(older[1], newer[0]) + newer[1]))

    @staticmethod
    def invert(whole: Any, older: Any) -> Any:
        """Find the map that makes the whole of the older part."""
        slope = times(whole[0], reciprocal(older[0]))
        return (slope, folded(whole[1] + PRIME - times(older[1], slope)))

    @staticmethod
    def lower(partial: Any) -> Any:
        """Answer where the composed map sends 1."""
        return folded(partial[0] + partial[1])


@aggregate(state=("u8", 4))
class Bloom:
    """A Bloom filter of 256 bits with two hash functions."""

    identity = 0
    commutative = True

    @staticmethod
    def lift(x: Any, out: Any) -> None:
        """Set two bits of an otherwise empty row."""
        seed = (int(x) & LOW_30) + 1
        for k in range(len(out)):
            out[k] = 0
        for factor in (40_503, 60_493):
            bit = (seed * factor) % 257 % 256
            out[bit >> 6] |= np.uint64(1) << np.uint64(bit & 63)

    @staticmethod
    def combine(older: Any, newer: Any, out: Any) -> None:
        """Set the bits of both."""
        np.bitwise_or(older, newer, out)


def times(x: int, y: int) -> int:
    """Multiply modulo 2^61 - 1; no step leaves 63 bits, so machine code and Python agree.

    Both factors are cut at bit 31. Since 2^61 is 1, the product of the upper parts counts twice,
    and what the mixed products have above bit 30 comes back at bit 0.
    """
    upper_x, lower_x, upper_y, lower_y = x >> 31, x & LOW_31, y >> 31, y & LOW_31
    mixed = upper_x * lower_y + lower_x * upper_y
    return folded(2 * upper_x * upper_y + (mixed >> 30) + ((mixed & LOW_30) << 31) + lower_x * lower_y)


def folded(x: int) -> int:
    """Reduce a number below 2^63 modulo 2^61 - 1."""
    rest = (x & PRIME) + (x >> 61)
    return rest - PRIME if rest >= PRIME else rest


def reciprocal(x: int) -> int:
    """Find 1 / x modulo 2^61 - 1, which is x to the power 2^61 - 3."""
    power, result, exponent = x, 1, PRIME - 2
    while exponent > 0:
        if exponent & 1:
            result = times(result, power)
        power = times(power, power)
        exponent >>= 1
    return result
