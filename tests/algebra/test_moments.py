"""Variance and its kin: laws within rounding, answers against the standard library and NumPy, stability, nulls."""

from __future__ import annotations

import math
import statistics

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from sash.algebra import moments
from sash.errors import DataError
from tests.algebra.bracketing import (
    answer,
    both_forms,
    case,
    compiled_answer,
    needs_machine_code,
    plain,
    require_laws,
    require_round_trip,
    same,
    seeds,
    slid,
)

CLOSE = 1e-9

small = st.integers(-100, 100)
pairs = st.lists(st.tuples(small, small), min_size=2, max_size=15)

CASES = [
    case(moments.var(), "f8", small, tolerance=CLOSE),
    case(moments.std(), "i4", small, tolerance=CLOSE),
    case(moments.var(population=True), None, small, tolerance=CLOSE),
    case(moments.std(population=True), "?", st.booleans(), tolerance=CLOSE),
    case(moments.cov(), "f8", small, small, tolerance=CLOSE),
    case(moments.cov(population=True), "i8", small, small, tolerance=CLOSE),
    case(moments.corr(), "f8", small, small, tolerance=1e-7),
    case(moments.trend(), "f8", small, small, tolerance=1e-7),
]
COMPILED = CASES
SPREADS = [moments.var(), moments.var(population=True), moments.std(), moments.std(population=True)]
PAIRED = [moments.cov(), moments.cov(population=True), moments.corr(), moments.trend()]


def of(aggregate, *rows):
    """The answer for rows of floats, in the order of a left fold and of another bracketing."""
    monoid = aggregate.bind(*(np.dtype("f8"),) * aggregate.n_inputs)
    rows = [row if isinstance(row, tuple) else (row,) for row in rows]
    found = answer(monoid, rows, seed=1)
    assert same(found, answer(monoid, rows, seed=2), CLOSE)
    return found


@pytest.mark.parametrize("case", CASES)
@given(data=st.data(), seed=seeds)
def test_the_laws_hold_within_rounding(case, data, seed):
    require_laws(case.monoid, data.draw(case.rows(least=3)), seed, case.tolerance)


@needs_machine_code
@pytest.mark.parametrize("case", COMPILED)
@given(data=st.data(), seed=seeds)
def test_machine_code_answers_the_same_in_any_bracketing(case, data, seed):
    rows = data.draw(case.rows())
    assert same(
        compiled_answer(case.monoid, rows, [d or "f8" for d in case.dtypes], seed), answer(case.monoid, rows), CLOSE
    )


@both_forms
@pytest.mark.parametrize("aggregate", [moments.std(), moments.corr()], ids=lambda a: a.name)
def test_the_engine_answers_as_a_fold_does(aggregate, compiled):
    rows = [tuple((k * k + j * k) % 11 - 4.0 for j in range(aggregate.n_inputs)) for k in range(20)]
    require_round_trip(aggregate, rows, dtype="f8", compiled=compiled, tolerance=CLOSE)


def test_the_engine_answers_a_line():
    found = slid(moments.trend(), [(0, 1), (1, 3), (2, 5)], 3)
    assert found[0] is None
    assert same(found[1:], [(2.0, 1.0), (2.0, 1.0)], CLOSE)


@given(st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=20))
def test_spreads_agree_with_the_standard_library(values):
    assert same(of(moments.var(), *values), statistics.variance(values), 1e-6)
    assert same(of(moments.std(), *values), statistics.stdev(values), 1e-4)
    assert same(of(moments.var(population=True), *values), statistics.pvariance(values), 1e-6)
    assert same(of(moments.std(population=True), *values), statistics.pstdev(values), 1e-4)


@given(pairs)
def test_covariances_agree_with_numpy(rows):
    x, y = np.array(rows, float).T
    assert math.isclose(of(moments.cov(), *rows), np.cov(x, y)[0, 1], rel_tol=CLOSE, abs_tol=CLOSE)
    assert math.isclose(
        of(moments.cov(population=True), *rows), np.cov(x, y, ddof=0)[0, 1], rel_tol=CLOSE, abs_tol=CLOSE
    )


@given(pairs)
def test_correlations_and_lines_agree_with_the_standard_library(rows):
    x, y = ([float(value) for value in column] for column in zip(*rows, strict=True))
    assume(len(set(x)) > 1)
    line = statistics.linear_regression(x, y)
    assert same(of(moments.trend(), *rows), (line.slope, line.intercept), 1e-7)
    assume(len(set(y)) > 1)
    assert same(of(moments.corr(), *rows), statistics.correlation(x, y), 1e-7)


@pytest.mark.parametrize("offset", [1e6, 1e9, 1e12])
def test_a_large_offset_costs_as_many_digits_as_it_has_and_not_twice_as_many(offset):
    monoid, rows = moments.var(population=True).bind(np.dtype("f8")), [(offset + k % 5,) for k in range(200)]
    for seed in range(5):
        assert math.isclose(answer(monoid, rows, seed), 2.0, rel_tol=1e-15 * offset)


@given(st.floats(-1e300, 1e300), st.integers(2, 40))
def test_the_spread_of_a_constant_is_exactly_zero(value, n):
    for aggregate in SPREADS:
        assert of(aggregate, *[value] * n) == 0.0


def test_one_row_has_no_sample_spread_and_a_population_spread_of_zero():
    assert of(moments.var(), 7.0) is None
    assert of(moments.std(), 7.0) is None
    assert of(moments.cov(), (7.0, 8.0)) is None
    assert of(moments.var(population=True), 7.0) == 0.0
    assert of(moments.std(population=True), 7.0) == 0.0
    assert of(moments.cov(population=True), (7.0, 8.0)) == 0.0


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("aggregate", SPREADS, ids=lambda a: f"{a.name}-{a.options}")
def test_nan_and_infinities_make_a_spread_nan_as_in_spark(aggregate, bad):
    assert math.isnan(of(aggregate, 1.0, bad))
    assert math.isnan(of(aggregate, bad, 1.0, 2.0))
    assert math.isnan(of(aggregate, bad, bad))


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("aggregate", PAIRED, ids=lambda a: f"{a.name}-{a.options}")
def test_nan_and_infinities_on_either_side_make_a_pair_nan_as_in_spark(aggregate, bad):
    for rows in ([(1.0, bad), (2.0, 3.0)], [(2.0, 3.0), (bad, 1.0), (4.0, 4.0)]):
        found = of(aggregate, *rows)
        assert all(math.isnan(part) for part in (found if isinstance(found, tuple) else (found,)))


def test_a_correlation_needs_two_rows_and_two_columns_that_vary():
    assert of(moments.corr(), (1.0, 2.0)) is None
    assert of(moments.corr(), (math.nan, 2.0)) is None
    assert of(moments.corr(), *[(0.1, float(k)) for k in range(7)]) is None
    assert of(moments.corr(), *[(float(k), 0.1) for k in range(7)]) is None


def test_tiny_and_huge_columns_have_a_correlation():
    assert math.isclose(of(moments.corr(), *[(k * 1e-120, k * 1e120) for k in range(5)]), 1.0, rel_tol=CLOSE)


def test_a_line_needs_two_rows_that_differ_in_x():
    assert of(moments.trend(), (1.0, 2.0)) is None
    assert of(moments.trend(), (0.1, 1.0), (0.1, 2.0), (0.1, 3.0)) is None
    assert same(of(moments.trend(), (1.0, 5.0), (2.0, 5.0)), (0.0, 5.0))


@given(st.lists(small, min_size=1, max_size=9), st.lists(small, min_size=1, max_size=9))
def test_taking_rows_away_never_gives_a_negative_spread(older, newer):
    ops = plain(moments.var(population=True).bind(np.dtype("f8")))
    parts = []
    for values in (older, newer):
        total = ops.lift(values[0] / 10)
        for value in values[1:]:
            total = ops.combine(total, ops.lift(value / 10))
        parts.append(total)
    rest = ops.invert(ops.combine(*parts), parts[0])
    assert ops.lower(rest) >= 0.0
    assert math.isclose(ops.lower(rest), ops.lower(parts[1]), rel_tol=1e-6, abs_tol=1e-6)


def test_taking_away_all_rows_leaves_none():
    ops = plain(moments.var().bind(np.dtype("f8")))
    whole = ops.combine(ops.lift(2.0), ops.lift(8.0))
    assert ops.invert(whole, whole)[0] == 0.0


@pytest.mark.parametrize("aggregate", [*SPREADS, *PAIRED], ids=lambda a: f"{a.name}-{a.options}")
def test_what_is_no_number_is_refused(aggregate):
    with pytest.raises(DataError, match=f"{aggregate.name} got values of type datetime64"):
        aggregate.bind(*(np.dtype("M8[us]"),) * aggregate.n_inputs)


def test_the_same_declaration_gives_the_same_monoid():
    assert moments.std("x", population=True) == moments.std("x", population=True)
    assert moments.std("x") != moments.std("x", population=True)
    for aggregate in (*SPREADS, *PAIRED):
        dtypes = (np.dtype("f8"),) * aggregate.n_inputs
        assert aggregate.bind(*dtypes) is aggregate.bind(*dtypes)
