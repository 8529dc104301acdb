"""The exact sum of floats: a fixed-point number long enough for all of them.

    limb     0      1            65     66 67   NAN     PLUS    MINUS   WEIGHT
           | 2^0  | 2^32 | ... | 2^2080 | ... | count | count | count | bound |     x 2^-1074

Every float64 is a whole multiple of 2^-1074 below 2^2098 of them. A partial is such a multiple,
written in 68 signed 64-bit limbs of weight 2^(32 k): a lifted float fills three limbs with digits
below 2^32, and combine adds limb by limb without carrying, so nothing is ever rounded and any
bracketing gives the same limbs. NaN and the infinities are counted beside it. `lower` carries and
rounds once, to the nearest float, half to even: the answer is that of `math.fsum`, bit for bit, but
+-inf where fsum would raise OverflowError. Like fsum, it answers 0.0 for a sum of negative zeros.

Invariants of a row
    I1  the limbs, each times its weight, add up to the sum of the finite terms
    I2  |limb| < max(1, |WEIGHT|) 2^32
    I3  WEIGHT >= 0: the limbs are the plain sums of the limbs of WEIGHT terms
        WEIGHT <  0: the limbs have been carried since, which takes more than 2^30 terms
    I4  |WEIGHT| <= 2^30, so that adding or subtracting two limbs never overflows

Laws L1 and L5 hold limb by limb under I3; beyond 2^30 terms they hold for the sum (I1), though the
limbs it is written in may differ.

Cost of a combine: 72 integer additions, about 20 ns compiled. Of a lower: two passes over the limbs
that are not zero. Space: 576 bytes a partial.

Paper: Kulisch, Miranker, "The arithmetic of the digital computer: a new approach", SIAM Review 28
(1986), the long accumulator. Departure: carries are postponed by 31 bits of room in every limb.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np

from sash.algebra.monoid import Monoid
from sash.algebra.state import Row

N_LIMBS = 68  # 2098 bits for one float and 63 more for as many terms as anyone can count
NAN, PLUS, MINUS, WEIGHT = N_LIMBS, N_LIMBS + 1, N_LIMBS + 2, N_LIMBS + 3
WIDTH = N_LIMBS + 4

DIGIT_BITS = 32
DIGIT = 2**DIGIT_BITS - 1
WEIGHT_MAX = 2**30

FRACTION_BITS, EXPONENT = 52, 0x7FF  # of a float64
FRACTION = 2**FRACTION_BITS - 1
LOWEST, HIGHEST = -1074, 971  # the exponents of the last bit of the smallest and the largest float


@lru_cache
def exact_sum_monoid() -> Monoid:
    """Make the monoid of exact sums; its input is read as float64."""
    return Monoid(
        "exact_sum",
        Row(np.dtype("i8"), WIDTH),
        lift=lift,
        combine=combine,
        identity=0,
        lower=lower,
        invert=invert,
        commutative=True,
    )


def lift(x: Any, out: Any) -> None:
    """Write one float as digits."""
    out[:] = 0
    out[WEIGHT] = 1
    bits = int(np.float64(x).view(np.int64))
    exponent, fraction = (bits >> FRACTION_BITS) & EXPONENT, bits & FRACTION
    sign = -1 if bits < 0 else 1
    if exponent == EXPONENT:
        out[NAN if fraction != 0 else PLUS if sign > 0 else MINUS] = 1
    elif exponent == 0:
        _write_digits(out, sign, fraction, 0)
    else:
        _write_digits(out, sign, fraction + FRACTION + 1, exponent - 1)


def _write_digits(out: Any, sign: int, mantissa: int, shift: int) -> None:
    """Write sign * mantissa * 2^shift; the 53 bits of a mantissa reach into three digits at most."""
    limb, shift = shift >> 5, shift & (DIGIT_BITS - 1)
    low = (mantissa & DIGIT) << shift
    high = ((mantissa >> DIGIT_BITS) << shift) + (low >> DIGIT_BITS)
    out[limb] = sign * (low & DIGIT)
    out[limb + 1] = sign * (high & DIGIT)
    out[limb + 2] = sign * (high >> DIGIT_BITS)


def combine(older: Any, newer: Any, out: Any) -> None:
    """Add limb by limb."""
    old, new = int(older[WEIGHT]), int(newer[WEIGHT])
    np.add(older, newer, out)
    _settle(out, old + new if old >= 0 and new >= 0 else -(abs(old) + abs(new)))


def invert(whole: Any, older: Any, out: Any) -> None:
    """Subtract limb by limb."""
    all_of_it, old = int(whole[WEIGHT]), int(older[WEIGHT])
    np.subtract(whole, older, out)
    _settle(out, all_of_it - old if all_of_it >= 0 and old >= 0 else -(abs(all_of_it) + abs(old)))


def _settle(out: Any, weight: int) -> None:
    """Note the weight of a row, and carry if it has become too large (restores I2 and I4)."""
    out[WEIGHT] = weight
    if abs(weight) > WEIGHT_MAX:
        carry = 0
        for k in range(N_LIMBS - 1):
            value = int(out[k]) + carry
            out[k] = value & DIGIT
            carry = value >> DIGIT_BITS
        out[N_LIMBS - 1] += carry
        out[WEIGHT] = -1


def lower(row: Any) -> float:
    """Round to the nearest float, half to even."""
    if row[NAN] > 0 or (row[PLUS] > 0 and row[MINUS] > 0):
        return math.nan
    if row[PLUS] > 0:
        return math.inf
    if row[MINUS] > 0:
        return -math.inf
    first, last = 0, N_LIMBS - 1
    while first < N_LIMBS and row[first] == 0:
        first += 1
    while last > first and row[last] == 0:
        last -= 1
    sign = _sign(row, first, last)
    return sign * _magnitude(row, first, last, sign)


def _sign(row: Any, first: int, last: int) -> int:
    """The sign of the sum: that of what is carried out of its last limb."""
    carry = 0
    for k in range(first, last + 1):
        carry = (int(row[k]) + carry) >> DIGIT_BITS
    return -1 if carry < 0 else 1


def _magnitude(row: Any, first: int, last: int, sign: int) -> float:
    """Carry, and round what the three highest digits and the presence of lower ones say."""
    carry = high = middle = low = below = 0
    top, digits = -1, (0, 0, 0, 0)
    for k in range(first, last + 2):
        value = (sign * int(row[k]) if k <= last else 0) + carry
        below |= low
        low, middle, high = middle, high, value & DIGIT
        carry = value >> DIGIT_BITS
        if high != 0:
            top, digits = k, (high, middle, low, below)
    return _rounded(top, digits) if top >= 0 else 0.0


def _rounded(limb: int, digits: tuple[int, int, int, int]) -> float:
    """The float nearest to high.middle.low.below, where `high`, not 0, is digit number `limb`.

    Nothing lies below 2^-1074, so subnormal floats need no rounding and no care.
    """
    high, middle, low, below = digits
    n = math.frexp(float(high))[1]  # how many bits it has
    if n >= 22:
        kept = (high << (54 - n)) | (middle >> (n - 22))
        rest = (middle & ((1 << (n - 22)) - 1)) | low | below
    else:
        kept = (high << (54 - n)) | (middle << (22 - n)) | (low >> (10 + n))
        rest = (low & ((1 << (10 + n)) - 1)) | below
    half, mantissa = kept & 1, kept >> 1
    if half == 1 and (rest != 0 or mantissa & 1 == 1):
        mantissa += 1
    exponent = DIGIT_BITS * limb + n - 53 + LOWEST
    if exponent > HIGHEST or (exponent == HIGHEST and mantissa == 2 * (FRACTION + 1)):
        return math.inf
    return math.ldexp(float(mantissa), exponent)
