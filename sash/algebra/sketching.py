"""Sketches of fixed width: histogram, Bloom filter, HyperLogLog and count-min.

Each partial is a row of counters or bits, and combine goes through two rows cell by cell, at the
speed of memory. All four are exact monoids (same rows, same sketch, under any bracketing); what is
approximate is what can be read out of a row.

    sketch        row                       combine   reads out
    histogram     bins + 2 counts           add       counts below, in and above the bins
    bloom         bits / 64 words           or        whether a value was there; never a false no
    hyperloglog   2^precision registers     maximum   how many different values there were
    count_min     depth x width counts      add       how often a value was there, or more

Papers: Bloom, "Space/time trade-offs in hash coding with allowable errors", CACM 13 (1970), with
the two-function hashing of Kirsch, Mitzenmacher, ESA 2006. Flajolet, Fusy, Gandouet, Meunier,
"HyperLogLog", AofA 2007, with the estimator of Ertl, "New cardinality estimation algorithms for
HyperLogLog sketches", 2017, which needs neither tables nor a switch for few values. Cormode,
Muthukrishnan, "An improved data stream summary: the count-min sketch", J. Algorithms 55 (2005).
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np

from sash.algebra.aggregate import Aggregate, AggregateCard, Dtype, declare
from sash.algebra.hashing import hash_value, hasher, mixed
from sash.algebra.inputs import require_kind, to_float
from sash.algebra.monoid import Function, Monoid
from sash.algebra.state import Row
from sash.errors import DataError, DeclarationError

HISTOGRAM = AggregateCard(
    "histogram",
    answer="how many values lie below, in each of the equal bins, and above them",
    state="bins + 2 counts",
    invertible=True,
    cost="O(bins)",
)
BLOOM = AggregateCard(
    "bloom",
    answer="a Bloom filter of the values, read by bloom_contains",
    state="bits / 64 words",
    cost="O(bits / 64)",
)
HYPERLOGLOG = AggregateCard(
    "hyperloglog",
    answer="the estimated number of different values",
    state="2^precision registers of one byte",
    cost="O(2^precision)",
)
COUNT_MIN = AggregateCard(
    "count_min",
    answer="a count-min sketch of the values, read by count_min_estimate",
    state="depth x width counts",
    invertible=True,
    cost="O(depth x width)",
)


def histogram(column: str | None = None, low: float = 0.0, high: float = 1.0, bins: int = 10) -> Aggregate:
    """Count the values in `bins` bins of equal width between `low` and `high`.

    The answer is a row of bins + 2 counts: values below `low`; the bins, those of
    `numpy.histogram`, each with its lower edge and the last one with both; values above `high`, NaN
    among them, since Spark orders NaN above all numbers. Cost of a combine: bins + 2 additions.
    """
    if not (low < high and math.isfinite(high - low)):
        raise DeclarationError(f"histogram needs finite low < high, got low={low!r}, high={high!r}")
    _require_count("histogram", "bins", bins, 1, 2**20)
    binder = _histogram_binder(float(low), float(high), bins)
    return declare(HISTOGRAM, binder, column, low=low, high=high, bins=bins)


@lru_cache
def _histogram_binder(low: float, high: float, bins: int) -> Function:
    step, span = (high - low) / bins, high - low

    def place(x: float) -> int:
        if x < low:
            return 0
        if not x <= high:
            return bins + 1
        i = min(int((x - low) / span * bins), bins - 1)
        if x < low + i * step:
            return i  # rounding had put it one bin too high
        return i + 2 if i + 1 < bins and x >= low + (i + 1) * step else i + 1

    def lift(x: Any, out: Any) -> None:
        out[:] = 0
        out[place(to_float(x))] = 1

    name = f"histogram(low={low!r}, high={high!r}, bins={bins})"
    monoid = _counters(name, lift, bins + 2)

    def bind(dtype: Dtype) -> Monoid:
        require_kind("histogram", dtype)
        return monoid

    return bind


def bloom(column: str | None = None, *, bits: int = 2**14, hashes: int = 4) -> Aggregate:
    """Keep a Bloom filter of the values; ask it with `bloom_contains(row, value, hashes=...)`.

    The answer is a row of bits / 64 words. It never denies a value that was there; of n different
    values, it claims about (1 - exp(-hashes n / bits))^hashes of all others: 0.2 % for the defaults
    and n = 1,000. Cost of a combine: one pass over the row, 2 KiB by default.
    """
    _require_count("bloom", "bits", bits, 64, 2**31)
    _require_count("bloom", "hashes", hashes, 1, 64)
    if bits % 64:
        raise DeclarationError(f"the bits of a bloom filter must be a multiple of 64, got {bits!r}")
    return declare(BLOOM, _bloom_binder(bits, hashes), column, bits=bits, hashes=hashes)


@lru_cache
def _bloom_binder(bits: int, hashes: int) -> Function:
    @lru_cache
    def bind(dtype: Dtype) -> Monoid:
        hash_of = hasher(dtype)

        def lift(x: Any, out: Any) -> None:
            out[:] = 0
            high, low = hash_of(x)
            for i in range(hashes):
                place = _bloom_place(high, low, i, bits)
                out[place >> 6] |= np.uint64(1) << np.uint64(place & 63)

        return Monoid(
            f"bloom(bits={bits}, hashes={hashes})",
            Row(np.dtype("u8"), bits // 64),
            lift=lift,
            combine=_either,
            identity=0,
            commutative=True,
        )

    return bind


def _bloom_place(high: int, low: int, i: int, bits: int) -> int:
    return (low + i * (high | 1)) % bits


def _either(older: Any, newer: Any, out: Any) -> None:
    np.bitwise_or(older, newer, out)


def bloom_contains(row: Any, value: Any, *, hashes: int = 4) -> bool:
    """Whether a value may be in a Bloom filter with this number of hashes; False is certain."""
    words = _answer_row(row, "bloom", "u")
    high, low = hash_value(value)
    places = [_bloom_place(high, low, i, 64 * len(words)) for i in range(hashes)]
    return all(int(words[place >> 6]) >> (place & 63) & 1 for place in places)


def hyperloglog(column: str | None = None, *, precision: int = 12) -> Aggregate:
    """Estimate the number of different values.

    The standard error is 1.04 / sqrt(2^precision), 1.6 % by default, from one value to 2^50. Cost of
    a combine: one pass over 2^precision bytes; a query reads them all once more, which interpreted
    takes a Python step for each.
    """
    _require_count("hyperloglog", "precision", precision, 4, 18)
    return declare(HYPERLOGLOG, _hyperloglog_binder(precision), column, precision=precision)


@lru_cache
def _hyperloglog_binder(precision: int) -> Function:
    n_high = 32 - precision  # bits of the upper half that are left when the register is chosen
    rest = 2**n_high - 1

    @lru_cache
    def bind(dtype: Dtype) -> Monoid:
        hash_of = hasher(dtype)

        def lift(x: Any, out: Any) -> None:
            out[:] = 0
            high, low = hash_of(x)
            n_zeros = n_high - _bit_length(high & rest)
            if n_zeros == n_high:
                n_zeros += 32 - _bit_length(low)
            out[high >> n_high] = n_zeros + 1

        def lower(row: Any) -> float:
            return _cardinality(row, precision)

        return Monoid(
            f"hyperloglog(precision={precision})",
            Row(np.dtype("u1"), 2**precision),
            lift=lift,
            combine=_larger,
            identity=0,
            lower=lower,
            commutative=True,
            answers_empty=True,
        )

    return bind


def _bit_length(x: int) -> int:
    return math.frexp(float(x))[1]  # x has 32 bits at most, so the float is exact


def _larger(older: Any, newer: Any, out: Any) -> None:
    np.fmax(older, newer, out)  # NumPy deprecates an unnamed `out` of np.maximum, Numba has no other


def _cardinality(row: Any, precision: int) -> float:
    """Ertl's estimate, without his correction for full registers, which no 2^50 values can fill.

    The powers 2^-rank are added as integers, in a loop without branches: vector code.
    """
    one = 1 << (62 - precision)
    n_empty = total = 0
    for register in row:
        rank = int(register)
        total += one >> rank
        n_empty += 1 if rank == 0 else 0
    n_registers = 1 << precision
    if n_empty == n_registers:
        return 0.0
    ranks = max(total - n_empty * one, 1) / one
    return n_registers * n_registers / (2.0 * math.log(2.0) * (ranks + n_registers * _sigma(n_empty / n_registers)))


def _sigma(x: float) -> float:
    """What a share x < 1 of empty registers stands for: x plus the sum of 2^(k - 1) x^(2^k)."""
    power, total, before = 1.0, x, -1.0
    while total != before:
        x *= x
        before = total
        total += x * power
        power += power
    return total


def count_min(column: str | None = None, *, depth: int = 4, width: int = 256) -> Aggregate:
    """Keep a count-min sketch; ask it with `count_min_estimate(row, value, depth=...)`.

    The answer is a row of depth x width counts. An estimate is never below the true count, and above
    it by more than e n / width (1.1 % of the n rows by default) in at most one of e^depth cases
    (1.8 %). Cost of a combine: one addition for each count.
    """
    _require_count("count_min", "depth", depth, 1, 64)
    _require_count("count_min", "width", width, 2, 2**24)
    return declare(COUNT_MIN, _count_min_binder(depth, width), column, depth=depth, width=width)


@lru_cache
def _count_min_binder(depth: int, width: int) -> Function:
    @lru_cache
    def bind(dtype: Dtype) -> Monoid:
        hash_of = hasher(dtype)

        def lift(x: Any, out: Any) -> None:
            out[:] = 0
            high, low = hash_of(x)
            for i in range(depth):
                out[i * width + low % width] = 1
                high, low = mixed(high, low)

        return _counters(f"count_min(depth={depth}, width={width})", lift, depth * width)

    return bind


def count_min_estimate(row: Any, value: Any, *, depth: int = 4) -> int:
    """How often a value was there, or more; `depth` is that of the sketch."""
    counts = _answer_row(row, "count_min", "i")
    width, beyond = divmod(len(counts), depth)
    if beyond:
        raise DataError(f"a row of {len(counts)} counts is no count-min sketch of depth {depth}")
    high, low = hash_value(value)
    found = []
    for i in range(depth):
        found.append(int(counts[i * width + low % width]))
        high, low = mixed(high, low)
    return min(found)


def _counters(name: str, lift: Function, width: int) -> Monoid:
    """A row of counts that are added."""
    return Monoid(
        name,
        Row(np.dtype("i8"), width),
        lift=lift,
        combine=_sum,
        identity=0,
        invert=_difference,
        commutative=True,
    )


def _sum(older: Any, newer: Any, out: Any) -> None:
    np.add(older, newer, out)


def _difference(whole: Any, older: Any, out: Any) -> None:
    np.subtract(whole, older, out)


def _answer_row(row: Any, name: str, kind: str) -> Any:
    values = np.asarray(row)
    if values.ndim != 1 or values.dtype.kind != kind:
        raise DataError(f"not a row of {name}: {values.dtype} of shape {values.shape}. Pass one answer of it")
    return values


def _require_count(name: str, option: str, value: int, least: int, most: int) -> None:
    if not isinstance(value, int) or not least <= value <= most:
        raise DeclarationError(f"{name} needs {option} from {least} to {most}, got {option}={value!r}")
