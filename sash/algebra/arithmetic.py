"""Counts, sums, products and means.

Sums of integers are kept in 128 bits, (hi, lo) = hi * 2**64 + lo, so that no window is too long for
them; only an answer that does not fit into 64 bits is refused. Sums of floats begin with 0.0, as
Spark's do: the sum of -0.0 is 0.0.
"""

from __future__ import annotations

import math
import sys
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np

from sash.algebra.aggregate import Aggregate, AggregateCard, Dtype, declare
from sash.algebra.exact_sum import exact_sum_monoid
from sash.algebra.inputs import require_kind, to_float, to_python
from sash.algebra.monoid import Apart, Function, Monoid
from sash.algebra.state import Object, Record, Scalar
from sash.errors import SumOverflowError

INT64, FLOAT64 = np.dtype("i8"), np.dtype("f8")
MASK = 0xFFFFFFFFFFFFFFFF  # the low 64 bits; compiled code wraps to them by itself
LARGEST = sys.float_info.max
LOG_LARGEST = math.log(LARGEST)

COUNT = AggregateCard(
    "count", answer="how many rows, or how many values that are not null", state="a count", invertible=True
)
SUM = AggregateCard("sum", answer="the sum", state="a sum; 128 bits for integers", invertible=True)
EXACT_SUM = AggregateCard("sum", answer="the correctly rounded sum", state="the exact sum", invertible=True)
PRODUCT = AggregateCard("product", answer="the product, as a float", state="a product")
MEAN = AggregateCard("mean", answer="the arithmetic mean", state="a sum and a count", invertible=True)
GEOMEAN = AggregateCard(
    "geomean", answer="the geometric mean", state="a sum of logarithms and a count", invertible=True
)


def count(column: str | None = None) -> Aggregate:
    """Count the rows, or the values of a column that are not null; 0 for no rows."""
    if column is None:
        return declare(COUNT, _bind_count)
    return declare(COUNT, _bind_count, column)


def sum(column: str | None = None, *, exact: bool = False) -> Aggregate:
    """Add up: integers without ever wrapping around, floats with rounding unless `exact`.

    Integers answer as int64 and raise SumOverflowError beyond; floats answer as float64. With
    `exact` the sum of floats is the correctly rounded one, whatever the order of additions.
    """
    if exact:
        return declare(EXACT_SUM, _bind_exact_sum, column, exact=True)
    return declare(SUM, _bind_sum, column)


def product(column: str | None = None) -> Aggregate:
    """Multiply, in float64 as Spark's product does."""
    return declare(PRODUCT, _bind_product, column)


def mean(column: str | None = None) -> Aggregate:
    """Average, in float64."""
    return declare(MEAN, _bind_mean, column)


def geomean(column: str | None = None) -> Aggregate:
    """Take the geometric mean, by logarithms: 0 if a value is 0, NaN if one is negative."""
    return declare(GEOMEAN, _bind_geomean, column)


@lru_cache
def _bind_count(*dtypes: Dtype) -> Monoid:
    return Monoid(
        "count",
        Scalar(INT64),
        lift=_one_of if dtypes else _one,
        combine=_add,
        identity=0,
        invert=_subtract,
        n_inputs=len(dtypes),
        commutative=True,
        answers_empty=True,
    )


def _one() -> int:
    return 1


def _one_of(x: Any) -> int:
    return 1


def _add(older: Any, newer: Any) -> Any:
    return older + newer


def _subtract(whole: Any, older: Any) -> Any:
    return whole - older


@lru_cache
def _bind_sum(dtype: Dtype) -> Monoid:
    dtype = require_kind("sum", dtype)
    if dtype is None:
        return _python_sum()
    return _float_sum() if dtype.kind == "f" else _integer_sum(dtype.kind == "u")


@lru_cache
def _bind_exact_sum(dtype: Dtype) -> Monoid:
    dtype = require_kind("sum", dtype)
    return exact_sum_monoid() if dtype is None or dtype.kind == "f" else _bind_sum(dtype)


@lru_cache
def _python_sum() -> Monoid:
    return Monoid(
        "sum", Object(), to_python("sum"), _add, lower=_value_from_zero, invert=_subtract, commutative=True, exact=None
    )


@lru_cache
def _float_sum() -> Monoid:
    return Monoid(
        "sum",
        Scalar(FLOAT64),
        lift=to_float,
        combine=_add,
        identity=0.0,
        lower=_from_zero,
        invert=_subtract,
        commutative=True,
        exact=False,
    )


def _from_zero(total: Any) -> Any:
    """A sum starts from 0.0, so rows that are all -0.0 sum to 0.0, as in Spark."""
    return total + 0.0


def _value_from_zero(total: Any) -> Any:
    """The same where a total may be of any type that adds up."""
    return _from_zero(total) if isinstance(total, float) else total


@lru_cache
def _integer_sum(is_unsigned: bool) -> Monoid:
    return Monoid(
        "sum",
        Record(("hi", "lo"), (INT64, np.dtype("u8"))),
        lift=_widen_unsigned if is_unsigned else _widen,
        combine=_add_wide,
        identity=(0, 0),
        invert=_subtract_wide,
        commutative=True,
        outputs=("hi", "lo"),
        finish=require_64_bits,
        narrow=_narrow_sum(),
    )


@lru_cache
def _narrow_sum() -> Monoid:
    return Monoid("sum", Scalar(INT64), _int64_of, _add, identity=0, invert=_subtract, commutative=True)


def _int64_of(x: Any) -> int:
    return int(np.int64(x))


def _widen(x: Any) -> tuple[int, int]:
    value = int(x)
    return (-1 if value < 0 else 0, int(np.uint64(value & MASK)))


def _widen_unsigned(x: Any) -> tuple[int, int]:
    return (0, int(np.uint64(x)))


def _add_wide(older: Any, newer: Any) -> Any:
    lo = (older[1] + newer[1]) & MASK
    return (older[0] + newer[0] + (lo < newer[1]), lo)


def _subtract_wide(whole: Any, older: Any) -> Any:
    return (whole[0] - older[0] - (whole[1] < older[1]), (whole[1] - older[1]) & MASK)


def require_64_bits(sums: Any) -> np.ndarray[Any, Any]:
    """Turn columns (hi, lo) into int64, or raise for the first sum that does not fit."""
    hi, lo = np.asarray(sums[0], np.int64), np.asarray(sums[1], np.uint64)
    low = lo.astype(np.int64)
    overflows = hi != low >> 63
    if overflows.any():
        row = int(np.argmax(overflows))
        raise SumOverflowError(
            f"the sum at row {row} is {(int(hi[row]) << 64) + int(lo[row])}, which does not fit into the 64 bits "
            "of an integer answer. Cast the column to float64, or take a smaller window"
        )
    return low


@lru_cache
def _bind_product(dtype: Dtype) -> Monoid:
    dtype = require_kind("product", dtype)
    return _python_product() if dtype is None else _float_product()


@lru_cache
def _python_product() -> Monoid:
    return Monoid("product", Object(), to_python("product"), _multiply, commutative=True)


@lru_cache
def _float_product() -> Monoid:
    return Monoid("product", Scalar(FLOAT64), to_float, _multiply, identity=1.0, commutative=True, exact=False)


def _multiply(older: Any, newer: Any) -> Any:
    return older * newer


@lru_cache
def _bind_mean(dtype: Dtype) -> Monoid:
    dtype = require_kind("mean", dtype)
    return _python_mean() if dtype is None else _float_mean()


@lru_cache
def _python_mean() -> Monoid:
    convert = to_python("mean")

    def lift(x: Any) -> Any:
        return (1, convert(x))

    def combine(older: Any, newer: Any) -> Any:
        return (older[0] + newer[0], older[1] + newer[1])

    def lower(partial: Any) -> Any:
        return _value_from_zero(partial[1]) / partial[0]

    def invert(whole: Any, older: Any) -> Any:
        return (whole[0] - older[0], whole[1] - older[1])

    return Monoid("mean", Object(), lift, combine, lower=lower, invert=invert, commutative=True, exact=None)


@lru_cache
def _float_mean() -> Monoid:
    return _mean_of("mean", _total, _divide)


@lru_cache
def _bind_geomean(dtype: Dtype) -> Monoid:
    require_kind("geomean", dtype)
    return _float_geomean()


@lru_cache
def _float_geomean() -> Monoid:
    return replace(_mean_of("geomean", _log, _exp_of_mean), apart=Apart(_logs, _float_mean(), _exps))


def _mean_of(name: str, lift: Function, lower: Function) -> Monoid:
    """A total of what `lift` gives, with the count left to whoever keeps the window."""
    return Monoid(
        name,
        Record(("total",), (FLOAT64,)),
        lift=lift,
        combine=_add_totals,
        identity=(0.0,),
        lower=lower,
        invert=_subtract_totals,
        commutative=True,
        exact=False,
        graded=True,
        neutral=True,
    )


def _total(x: Any) -> Any:
    return (to_float(x),)


def _log(x: Any) -> Any:
    value = to_float(x)
    if value > 0.0:
        return (math.log(value),)
    return (-math.inf if value == 0.0 else math.nan,)


def _add_totals(older: Any, newer: Any, n_older: float, n_newer: float) -> Any:
    return (older[0] + newer[0],)


def _subtract_totals(whole: Any, older: Any, n_whole: float, n_older: float) -> Any:
    return (whole[0] - older[0],)


def _divide(partial: Any, n: float) -> Any:
    return _from_zero(partial[0]) / n


def _logs(column: Any, out: Any) -> None:
    """What `_log` gives, of a whole column."""
    with np.errstate(divide="ignore", invalid="ignore"):
        np.log(column, out=out, dtype=FLOAT64)


def _exps(logs: Any, out: Any) -> None:
    """What `_exp_of_mean` gives, of a column of means."""
    beyond = logs > LOG_LARGEST if np.fmax.reduce(logs) > LOG_LARGEST else None
    largest = None if beyond is None else logs[beyond] + LARGEST
    with np.errstate(over="ignore", under="ignore"):
        np.exp(logs, out=out)
    if beyond is not None:
        out[beyond] = largest


def _exp_of_mean(partial: Any, n: float) -> Any:
    log = partial[0] / n
    # Rounding may lift the mean of logarithms above the largest one; the sum below is then the
    # largest float, or what the mean is if that is inf or NaN.
    return math.exp(log) if log <= LOG_LARGEST else log + LARGEST
