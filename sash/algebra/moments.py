"""Variance, covariance, correlation and the straight line through the rows, by merging moments.

A partial holds means and sums of products of deviations from them; no square of a value is ever
added up, so nothing large is subtracted from something large. For n rows, older ones marked ':

    d = mean - mean'                     of the newer and the older part
    mean of both = mean' + d n / (n' + n)
    m2 of both   = m2' + m2 + d d n' n / (n' + n)

Both weights depend on the counts alone, so windows of one length share the only division.

A row that is NaN or infinite makes the answer NaN, as in Spark. A mean never recovers from it, so
`var` and `std` look at theirs in the end; with two columns, x - x stands for the deviation of a
single row from itself: 0, or NaN.

Paper: Chan, Golub, LeVeque, "Updating formulae and a pairwise algorithm for computing sample
variances", COMPSTAT (1982).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from sash.algebra.aggregate import Aggregate, AggregateCard, Dtype, declare
from sash.algebra.inputs import require_kind, to_float
from sash.algebra.monoid import Function, Monoid
from sash.algebra.state import Record

FLOAT64 = np.dtype("f8")

VAR = AggregateCard(
    "var", answer="the variance", state="a mean, a sum of squared deviations and a count", invertible=True
)
STD = AggregateCard("std", answer="the standard deviation", state=VAR.state, invertible=True)
COV = AggregateCard("cov", answer="the covariance of two columns", state="two means, a sum of products and a count")
CORR = AggregateCard("corr", answer="Pearson's correlation", state="two means, three sums of products and a count")
TREND = AggregateCard(
    "trend", answer="slope and intercept of a line", state="two means, two sums of products and a count"
)


def var(column: str | None = None, *, population: bool = False) -> Aggregate:
    """Take the variance: of a sample, null for one row, or of a population, 0 for one row."""
    return declare(VAR, _spread_binder("var", population), column, population=population)


def std(column: str | None = None, *, population: bool = False) -> Aggregate:
    """Take the standard deviation, the square root of `var`."""
    return declare(STD, _spread_binder("std", population), column, population=population)


def cov(x: str | None = None, y: str | None = None, *, population: bool = False) -> Aggregate:
    """Take the covariance: of a sample, null for one row, or of a population, 0 for one row."""
    return declare(COV, _cov_binder(population), x, y, population=population)


def corr(x: str | None = None, y: str | None = None) -> Aggregate:
    """Take Pearson's correlation; null for one row, and if x or y is constant.

    So does Spark from 4.3 on (SPARK-58213); earlier ones raise DIVIDE_BY_ZERO for a constant column,
    or answer NaN, depending on their mode.
    """
    return declare(CORR, _corr_binder(), x, y)


def trend(x: str | None = None, y: str | None = None) -> Aggregate:
    """Fit y = slope x + intercept by least squares; null for one row, and if x is constant.

    The answers are `slope` and `intercept`, those of Spark's regr_slope(y, x) and regr_intercept.
    """
    return declare(TREND, _trend_binder(), x, y)


@lru_cache
def _spread_binder(name: str, population: bool) -> Callable[[Dtype], Monoid]:
    monoid = Monoid(
        name,
        Record(("mean", "m2"), (FLOAT64, FLOAT64)),
        lift=_spread,
        combine=_merge_spreads,
        identity=(0.0, 0.0),
        lower=SPREADS[name, population],
        invert=_unmerge_spreads,
        commutative=True,
        exact=False,
        graded=True,
    )
    return _for_numbers(monoid)


def _for_numbers(monoid: Monoid) -> Callable[..., Monoid]:
    """A binder to a monoid that reads every number as a float."""

    def bind(*dtypes: Dtype) -> Monoid:
        for dtype in dtypes:
            require_kind(monoid.name, dtype)
        return monoid

    return bind


def _spread(x: Any) -> Any:
    return (to_float(x), -0.0)  # adding -0.0 changes nothing, so compilers leave it out


def _merge_spreads(older: Any, newer: Any, n_older: float, n_newer: float) -> Any:
    share = n_newer / (n_older + n_newer)
    weight = n_older * share
    d = newer[0] - older[0]
    return (older[0] + d * share, older[1] + newer[1] + d * d * weight)


def _unmerge_spreads(whole: Any, older: Any, n_whole: float, n_older: float) -> Any:
    n_newer = n_whole - n_older
    share = n_whole / n_newer if n_newer > 0.0 else 0.0
    d = (whole[0] - older[0]) * share
    m2 = whole[1] - older[1] - d * d * n_older * n_newer / n_whole
    return (older[0] + d, 0.0 if m2 < 0.0 else m2)


def _squares(partial: Any) -> Any:
    """The sum of squared deviations: NaN if a row was NaN or infinite, for then the mean is."""
    return partial[1] + (partial[0] - partial[0])


def _sample_var(partial: Any, n: float) -> Any:
    return _squares(partial) / (n - 1.0) if n > 1.0 else None


def _population_var(partial: Any, n: float) -> Any:
    return _squares(partial) / n


def _sample_std(partial: Any, n: float) -> Any:
    return math.sqrt(_squares(partial) / (n - 1.0)) if n > 1.0 else None


def _population_std(partial: Any, n: float) -> Any:
    return math.sqrt(_squares(partial) / n)


SPREADS: dict[tuple[str, bool], Function] = {
    ("var", False): _sample_var,
    ("var", True): _population_var,
    ("std", False): _sample_std,
    ("std", True): _population_std,
}


@lru_cache
def _cov_binder(population: bool) -> Callable[[Dtype, Dtype], Monoid]:
    lower = _population_cov if population else _sample_cov
    return _for_numbers(_pairs("cov", ("mean_x", "mean_y", "xy"), _lift_cov, _merge_covs, lower))


def _lift_cov(x: Any, y: Any) -> Any:
    first, second = to_float(x), to_float(y)
    return (first, second, (first - first) + (second - second))


def _merge_covs(older: Any, newer: Any, n_older: float, n_newer: float) -> Any:
    share = n_newer / (n_older + n_newer)
    weight = n_older * share
    dx, dy = newer[0] - older[0], newer[1] - older[1]
    return (older[0] + dx * share, older[1] + dy * share, older[2] + newer[2] + dx * dy * weight)


def _sample_cov(partial: Any, n: float) -> Any:
    return partial[2] / (n - 1.0) if n > 1.0 else None


def _population_cov(partial: Any, n: float) -> Any:
    return partial[2] / n


@lru_cache
def _corr_binder() -> Callable[[Dtype, Dtype], Monoid]:
    fields = ("mean_x", "mean_y", "xx", "xy", "yy")
    return _for_numbers(_pairs("corr", fields, _lift_corr, _merge_corrs, _correlation))


def _lift_corr(x: Any, y: Any) -> Any:
    first, second = to_float(x), to_float(y)
    xx, yy = first - first, second - second
    return (first, second, xx, xx + yy, yy)


def _merge_corrs(older: Any, newer: Any, n_older: float, n_newer: float) -> Any:
    share = n_newer / (n_older + n_newer)
    weight = n_older * share
    dx, dy = newer[0] - older[0], newer[1] - older[1]
    return (
        older[0] + dx * share,
        older[1] + dy * share,
        older[2] + newer[2] + dx * dx * weight,
        older[3] + newer[3] + dx * dy * weight,
        older[4] + newer[4] + dy * dy * weight,
    )


def _correlation(partial: Any, n: float) -> Any:
    if n == 1.0 or partial[2] == 0.0 or partial[4] == 0.0:
        return None
    return partial[3] / (math.sqrt(partial[2]) * math.sqrt(partial[4]))


@lru_cache
def _trend_binder() -> Callable[[Dtype, Dtype], Monoid]:
    fields, outputs = ("mean_x", "mean_y", "xx", "xy"), ("slope", "intercept")
    return _for_numbers(_pairs("trend", fields, _lift_trend, _merge_trends, _line, outputs))


def _lift_trend(x: Any, y: Any) -> Any:
    first, second = to_float(x), to_float(y)
    xx = first - first
    return (first, second, xx, xx + (second - second))


def _merge_trends(older: Any, newer: Any, n_older: float, n_newer: float) -> Any:
    share = n_newer / (n_older + n_newer)
    weight = n_older * share
    dx, dy = newer[0] - older[0], newer[1] - older[1]
    return (
        older[0] + dx * share,
        older[1] + dy * share,
        older[2] + newer[2] + dx * dx * weight,
        older[3] + newer[3] + dx * dy * weight,
    )


def _line(partial: Any, n: float) -> Any:
    if n == 1.0 or partial[2] == 0.0:
        return None
    slope = partial[3] / partial[2]
    return (slope, partial[1] - slope * partial[0])


def _pairs(
    name: str,
    fields: tuple[str, ...],
    lift: Function,
    combine: Function,
    lower: Function,
    outputs: tuple[str, ...] = (),
) -> Monoid:
    """A monoid of moments of two columns."""
    return Monoid(
        name,
        Record(fields, (FLOAT64,) * len(fields)),
        lift=lift,
        combine=combine,
        identity=(0.0,) * len(fields),
        lower=lower,
        n_inputs=2,
        commutative=True,
        exact=False,
        graded=True,
        outputs=outputs,
    )
