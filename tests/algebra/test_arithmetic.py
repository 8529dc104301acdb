"""Counts, sums, products and means: their laws, their answers, and what happens at the edges of 64 bits."""

from __future__ import annotations

import math
import statistics
import sys
from datetime import timedelta
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sash.algebra import arithmetic
from sash.algebra.exact_sum import exact_sum_monoid
from sash.algebra.monoid import ungraded
from sash.engine.aggregator import aggregator
from sash.errors import DataError, SumOverflowError
from tests.algebra.bracketing import (
    answer,
    both_forms,
    bracketed,
    case,
    compiled_answer,
    dyadic,
    needs_machine_code,
    plain,
    require_laws,
    require_round_trip,
    same,
    seeds,
    slid,
    troubled,
)

LARGEST = sys.float_info.max

int64s = st.integers(-(2**63), 2**63 - 1)
uint64s = st.integers(0, 2**64 - 1)
fractions = st.fractions(max_denominator=50)
powers = st.integers(-8, 8).map(lambda k: 2.0**k)

CASES = [
    case(arithmetic.count(), "f8"),
    case(arithmetic.count("x"), "f8", dyadic),
    case(arithmetic.sum(), None, st.one_of(st.integers(), fractions)),
    case(arithmetic.sum(), "f8", dyadic),
    case(arithmetic.sum(), "i8", int64s),
    case(arithmetic.sum(), "i1", st.integers(-128, 127)),
    case(arithmetic.sum(), "u8", uint64s),
    case(arithmetic.sum(), "?", st.booleans()),
    case(arithmetic.product(), None, st.one_of(st.integers(), fractions)),
    case(arithmetic.product(), "f8", powers),
    case(arithmetic.mean(), None, fractions),
    case(arithmetic.mean(), "f8", dyadic),
    case(arithmetic.mean(), "u4", st.integers(0, 2**32 - 1)),
    case(arithmetic.geomean(), "f8", st.floats(1e-6, 1e6), tolerance=1e-9),
]
ONES = [arithmetic.sum, arithmetic.product, arithmetic.mean, arithmetic.geomean]


def integer_sum(values, dtype):
    return answer(arithmetic.sum().bind(np.dtype(dtype)), [(value,) for value in values])


@pytest.mark.parametrize("case", CASES)
@given(data=st.data(), seed=seeds)
def test_the_laws_hold(case, data, seed):
    require_laws(case.monoid, data.draw(case.rows(least=3)), seed, case.tolerance)


@needs_machine_code
@pytest.mark.parametrize("case", [each for each in CASES if each.values[0].monoid.is_compilable])
@given(data=st.data(), seed=seeds)
def test_machine_code_answers_the_same_in_any_bracketing(case, data, seed):
    rows = data.draw(case.rows())
    try:
        wanted = answer(case.monoid, rows)
    except SumOverflowError:
        with pytest.raises(SumOverflowError):
            compiled_answer(case.monoid, rows, case.dtypes, seed)
        return
    assert same(compiled_answer(case.monoid, rows, case.dtypes, seed), wanted, case.tolerance)


@both_forms
@pytest.mark.parametrize(
    "aggregate", [arithmetic.count("x"), arithmetic.sum(), arithmetic.mean()], ids=lambda a: a.name
)
def test_the_engine_answers_as_a_fold_does(aggregate, compiled):
    require_round_trip(aggregate, [(k * k % 11 - 4,) for k in range(20)], dtype="i8", compiled=compiled)


@both_forms
@pytest.mark.parametrize("aggregate", [arithmetic.sum(), arithmetic.mean()], ids=lambda a: a.name)
def test_zeros_that_are_all_negative_add_up_to_zero_as_in_spark(aggregate, compiled):
    assert [math.copysign(1, each) for each in slid(aggregate, [(-0.0,), (-0.0,)], 2, compiled=compiled)] == [1, 1]


def test_a_sum_of_anything_that_adds_up_is_left_as_it_is():
    hours = [(timedelta(hours=1),), (timedelta(hours=2),)]
    assert slid(arithmetic.sum(), hours, 2, compiled=False)[-1] == timedelta(hours=3)
    assert slid(arithmetic.mean(), hours, 2, compiled=False)[-1] == timedelta(hours=1.5)


@pytest.mark.parametrize("make", [arithmetic.mean, arithmetic.geomean])
def test_a_neutral_identity_changes_no_answer_on_either_side(make):
    declared = make().bind(np.dtype("f8"))
    monoid = ungraded(declared)
    assert declared.neutral
    assert monoid.combine(monoid.identity, monoid.identity) == monoid.identity
    for value in (-0.0, 0.0, 1.0, -2.5, 5e-324, LARGEST, math.inf, -math.inf, math.nan):
        partial = monoid.lift(value)
        for joined in (monoid.combine(monoid.identity, partial), monoid.combine(partial, monoid.identity)):
            assert same(monoid.lower(joined), monoid.lower(partial))
            assert joined[0] == 1


@both_forms
def test_rows_are_counted_with_nulls_and_values_without(compiled):
    rows = [(1.0,), (None,), (3.0,), (None,)]
    assert slid(arithmetic.count(), rows, 3, compiled=compiled) == [1, 2, 3, 3]
    assert slid(arithmetic.count("x"), rows, 3, compiled=compiled) == [1, 1, 2, 1]


@both_forms
def test_an_empty_window_counts_nothing_and_has_no_sum(compiled):
    assert aggregator("two_stacks_lite", arithmetic.count(), compiled=compiled).query() == 0
    assert aggregator("two_stacks_lite", arithmetic.sum(), compiled=compiled).query() is None
    assert slid(arithmetic.sum(), [(None,)], 3, compiled=compiled) == [None]


@given(st.lists(int64s, min_size=1), seeds)
def test_an_integer_sum_is_right_or_raises(values, seed):
    partial = bracketed(arithmetic.sum().bind(np.dtype("i8")), [(value,) for value in values], seed)
    assert (partial[0] << 64) + partial[1] == sum(values)
    if -(2**63) <= sum(values) < 2**63:
        assert integer_sum(values, "i8") == sum(values)
    else:
        with pytest.raises(SumOverflowError, match=f"row 0 is {sum(values)},"):
            integer_sum(values, "i8")


@pytest.mark.parametrize("edge", [2**63 - 1, -(2**63)])
def test_the_last_integer_of_64_bits_fits_and_the_next_does_not(edge):
    step = 1 if edge > 0 else -1
    assert integer_sum([edge - step, step], "i8") == edge
    with pytest.raises(SumOverflowError, match="Cast the column to float64"):
        integer_sum([edge, step], "i8")


def test_unsigned_integers_above_the_signed_ones_are_not_negative():
    assert integer_sum([2**63 - 1], "u8") == 2**63 - 1
    with pytest.raises(SumOverflowError, match=str(2**64)):
        integer_sum([2**63, 2**63], "u8")


def test_an_overflow_names_its_row():
    hi, lo = np.array([0, -1, 0, 1]), np.array([5, 2**64 - 1, 2**63, 0], np.uint64)
    assert arithmetic.require_64_bits((hi[:2], lo[:2])).tolist() == [5, -1]
    with pytest.raises(SumOverflowError, match=f"row 2 is {2**63},"):
        arithmetic.require_64_bits((hi, lo))


@given(st.lists(st.integers(-(2**31), 2**31 - 1), min_size=3, max_size=9), seeds)
def test_the_narrow_sum_agrees_with_the_wide_one(values, seed):
    rows, wide = [(value,) for value in values], arithmetic.sum().bind(np.dtype("i8"))
    require_laws(wide.narrow, rows, seed)
    assert answer(wide.narrow, rows) == answer(wide, rows) == sum(values)


@needs_machine_code
@pytest.mark.parametrize("dtype", ["u8", "?"])
def test_the_narrow_sum_compiles_for_every_integer(dtype):
    assert compiled_answer(arithmetic.sum().bind(np.dtype(dtype)).narrow, [(1,), (0,), (1,)], [dtype], seed=1) == 2


@pytest.mark.parametrize("aggregate", [arithmetic.sum(), arithmetic.mean()], ids=lambda a: a.name)
def test_sums_of_negative_zeros_are_positive_as_in_spark(aggregate):
    found = answer(aggregate.bind(np.dtype("f8")), [(-0.0,), (-0.0,)])
    assert found == 0.0
    assert math.copysign(1.0, found) == 1.0


def test_narrow_floats_are_added_up_in_float64():
    tenth = np.float32(0.1)
    assert answer(arithmetic.sum().bind(np.dtype("f4")), [(tenth,)] * 10) == sum([float(tenth)] * 10)


@pytest.mark.parametrize("aggregate", [arithmetic.sum(), arithmetic.mean()], ids=lambda a: a.name)
def test_nan_and_opposite_infinities_spoil_a_sum(aggregate):
    monoid = aggregate.bind(np.dtype("f8"))
    assert math.isnan(answer(monoid, [(1.0,), (math.nan,)]))
    assert math.isnan(answer(monoid, [(math.inf,), (-math.inf,)]))
    assert answer(monoid, [(math.inf,), (1.0,)]) == math.inf


def test_python_values_are_added_without_limits():
    monoid = arithmetic.sum().bind(None)
    assert answer(monoid, [(2**100,), (1,)]) == 2**100 + 1
    assert answer(monoid, [(Decimal("0.1"),), (Decimal("0.2"),)]) == Decimal("0.3")
    assert answer(monoid, [(np.int8(100),)] * 3) == 300
    assert answer(monoid, [(np.True_,), (True,)]) == 2


@pytest.mark.parametrize("aggregate", ONES[:3], ids=lambda a: a.__name__)
@pytest.mark.parametrize("value", ["a", b"a", [1], (1,)])
def test_sequences_are_not_added_up(aggregate, value):
    with pytest.raises(DataError, match=r"takes numbers\. To join sequences use concat"):
        aggregate().bind(None).lift(value)


def test_an_exact_sum_of_floats_is_the_exact_sum_and_integers_are_exact_already():
    aggregate = arithmetic.sum(exact=True)
    assert aggregate.bind(np.dtype("f4")) is aggregate.bind(None) is exact_sum_monoid()
    assert aggregate.bind(np.dtype("i4")) is arithmetic.sum().bind(np.dtype("i4"))
    assert slid(aggregate, [(1e100,), (1.0,), (-1e100,)], 3)[-1] == 1.0


@given(st.lists(st.floats(-1e3, 1e3), min_size=1, max_size=12))
def test_means_and_products_agree_with_the_standard_library(values):
    rows = [(value,) for value in values]
    assert same(answer(arithmetic.mean().bind(np.dtype("f8")), rows), statistics.fmean(values), 1e-9)
    assert same(answer(arithmetic.product().bind(np.dtype("f8")), rows), math.prod(values), 1e-9)


def test_a_mean_of_fractions_is_a_fraction():
    assert answer(arithmetic.mean().bind(None), [(Fraction(1, 3),), (Fraction(2, 3),)]) == Fraction(1, 2)


@given(st.lists(st.floats(1e-300, 1e300), min_size=1, max_size=12))
def test_the_geometric_mean_agrees_with_the_standard_library(values):
    found = answer(arithmetic.geomean().bind(None), [(value,) for value in values])
    assert math.isclose(found, statistics.geometric_mean(values), rel_tol=1e-9)


@needs_machine_code
@given(st.lists(troubled, min_size=1, max_size=5), seeds)
def test_the_geometric_mean_of_troubled_values_is_that_of_their_logarithms(values, seed):
    monoid, rows = arithmetic.geomean().bind(np.dtype("f8")), [(value,) for value in values]
    with np.errstate(all="ignore"):
        wanted = np.exp(np.mean(np.log(values)))
    assert same(answer(monoid, rows), wanted, 1e-12)
    assert same(compiled_answer(monoid, rows, ["f8"], seed), wanted, 1e-12)


def test_the_geometric_mean_of_the_largest_float_does_not_overflow():
    monoid, largest_log = arithmetic.geomean().bind(np.dtype("f8")), math.log(LARGEST)
    totals = [bracketed(monoid, [(LARGEST,)] * 33, seed) for seed in range(30)]
    assert any(total / n > largest_log for n, total in totals)  # rounding did go too far
    for partial in totals:
        assert LARGEST * (1 - 1e-12) <= plain(monoid).lower(partial) <= LARGEST


def test_taking_away_all_rows_leaves_none():
    for aggregate in (arithmetic.mean(), arithmetic.geomean()):
        ops = plain(aggregate.bind(np.dtype("f8")))
        whole = ops.combine(ops.lift(2.0), ops.lift(8.0))
        assert ops.invert(whole, whole)[0] == 0.0


@pytest.mark.parametrize("aggregate", ONES, ids=lambda a: a.__name__)
@pytest.mark.parametrize("dtype", ["M8[us]", "U3", "c16", "O", "g"])
def test_what_is_no_number_of_64_bits_is_refused(aggregate, dtype):
    with pytest.raises(DataError, match=f"{aggregate.__name__} got values of type .*, but takes .* Cast the column"):
        aggregate().bind(np.dtype(dtype))


def test_the_same_declaration_gives_the_same_monoid():
    for aggregate in (arithmetic.count, *ONES):
        assert aggregate("x") == aggregate("x")
        assert aggregate("x").bind(np.dtype("f8")) is aggregate("y").bind(np.dtype("f8"))
