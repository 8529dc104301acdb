"""The exact sum against fsum, against fractions, and against itself under every bracketing."""

from __future__ import annotations

import math
import struct
import sys
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sash.algebra.aggregate import AggregateCard, declare
from sash.algebra.exact_sum import N_LIMBS, WEIGHT, WEIGHT_MAX, WIDTH, exact_sum_monoid
from sash.engine.aggregator import aggregator

SUM = exact_sum_monoid()
EXACT_SUM = declare(AggregateCard("exact_sum", answer="", state=""), lambda dtype: SUM, None)

LARGEST, SMALLEST = sys.float_info.max, 5e-324
HALF_ULP_OF_LARGEST = 2.0**970

finite = st.floats(allow_nan=False, allow_infinity=False)
anything = st.floats()
tame = st.floats(-1e300, 1e300)
cancelling = st.lists(finite, max_size=20).flatmap(lambda xs: st.permutations([*xs, *(-x for x in xs), 1e-30]))
both_forms = pytest.mark.parametrize("compiled", [False, True], ids=["interpreted", "compiled"])


def lifted(x):
    row = np.full(WIDTH, -7)
    SUM.lift(x, row)
    return row


def combined(older, newer):
    out = np.full(WIDTH, -7)
    SUM.combine(older, newer, out)
    return out


def inverted(whole, older):
    out = np.full(WIDTH, -7)
    SUM.invert(whole, older, out)
    return out


def folded(values):
    row = np.zeros(WIDTH, np.int64)
    for x in values:
        SUM.combine(row, lifted(x), row)
    return row


def correctly_rounded(exact):
    """The float nearest to a fraction."""
    try:
        return float(exact)
    except OverflowError:
        return math.inf if exact > 0 else -math.inf


def true_sum(values):
    """The correctly rounded sum by the rules of IEEE 754."""
    if not all(map(math.isfinite, values)):
        return sum(x for x in values if not math.isfinite(x))
    return correctly_rounded(sum(map(Fraction, values), Fraction(0)))


def bits(x):
    return "nan" if math.isnan(x) else struct.pack(">d", x)


@given(st.lists(tame) | cancelling)
def test_the_sum_is_that_of_fsum(values):
    try:
        wanted = math.fsum(values)
    except OverflowError:
        wanted = true_sum(values)
    assert bits(SUM.lower(folded(values))) == bits(wanted)


@given(st.lists(anything, min_size=1))
def test_the_sum_of_any_floats_is_the_exact_one_rounded_once(values):
    assert bits(SUM.lower(folded(values))) == bits(true_sum(values))


@given(anything)
def test_a_single_float_comes_back_as_it_is(x):
    assert bits(SUM.lower(lifted(x))) == bits(x + 0.0)


@both_forms
@given(values=st.lists(anything, min_size=1, max_size=40), size=st.integers(1, 12))
def test_a_sliding_window_answers_the_exact_sum(compiled, values, size):
    window = aggregator("two_stacks_lite", EXACT_SUM, compiled=compiled)
    for end, x in enumerate(values, start=1):
        window.insert(x)
        if len(window) > size:
            window.evict()
        assert bits(window.query()) == bits(true_sum(values[max(0, end - size) : end]))


@both_forms
def test_nulls_are_ignored_and_nothing_else_is_null(compiled):
    window = aggregator("two_stacks_lite", EXACT_SUM, compiled=compiled)
    window.insert(None)
    assert window.query() is None
    window.insert(0.1)
    window.insert(None)
    window.insert(0.2)
    assert window.query() == math.fsum([0.1, 0.2])


@both_forms
def test_a_window_comes_back_from_its_bytes(compiled):
    window = aggregator("two_stacks_lite", EXACT_SUM, compiled=compiled)
    window.bulk_insert([1e16, 1.0, -1e16, SMALLEST])
    again = aggregator("two_stacks_lite", EXACT_SUM, compiled=compiled)
    again.restore(window.snapshot())
    for each in (window, again):
        each.evict()
        each.insert(1e16)
    assert again.query() == window.query() == 1.0


@given(st.lists(anything, min_size=1, max_size=30), st.data())
def test_every_bracketing_gives_the_same_row(values, data):
    rows = [lifted(x) for x in values]
    while len(rows) > 1:
        i = data.draw(st.integers(0, len(rows) - 2))
        rows[i : i + 2] = [combined(rows[i], rows[i + 1])]
    assert np.array_equal(rows[0], folded(values))


@given(st.lists(anything), st.lists(anything))
def test_sums_commute_and_zero_is_the_identity(left, right):
    x, y, zero = folded(left), folded(right), np.zeros(WIDTH, np.int64)
    assert np.array_equal(combined(x, y), combined(y, x))
    assert np.array_equal(combined(x, zero), x)
    assert np.array_equal(combined(zero, x), x)


@given(st.lists(anything), st.lists(anything))
def test_taking_the_older_part_away_leaves_the_newer_one(left, right):
    x, y = folded(left), folded(right)
    assert np.array_equal(inverted(combined(x, y), x), y)


@given(st.lists(anything), st.lists(anything))
def test_arguments_stay_as_they_were_and_out_may_be_one_of_them(left, right):
    x, y = folded(left), folded(right)
    before = x.copy(), y.copy()
    total = combined(x, y)
    assert np.array_equal(x, before[0])
    assert np.array_equal(y, before[1])
    in_older, in_newer = x.copy(), y.copy()
    SUM.combine(in_older, y, in_older)
    SUM.combine(x, in_newer, in_newer)
    assert np.array_equal(in_older, total)
    assert np.array_equal(in_newer, total)


@pytest.mark.parametrize(
    ("values", "wanted"),
    [
        ([1.0, 2**-53], 1.0),
        ([1.0, 2**-53, SMALLEST], 1.0 + 2**-52),
        ([1.0, 2**-52, 2**-53], 1.0 + 2**-51),
        ([1.0, 2**-52, 2**-53, -SMALLEST], 1.0 + 2**-52),
        ([-1.0, -(2**-53), -SMALLEST], -1.0 - 2**-52),
        ([2.0**53, 1.0], 2.0**53),
        ([2.0**53, 1.0, 1e-300], 2.0**53 + 2),
        ([2.0**53 - 1, 0.5], 2.0**53),
        ([SMALLEST, SMALLEST], 1e-323),
        ([sys.float_info.min, -SMALLEST], sys.float_info.min - SMALLEST),
        ([LARGEST, LARGEST, -LARGEST], LARGEST),
        ([LARGEST, HALF_ULP_OF_LARGEST], math.inf),
        ([LARGEST, HALF_ULP_OF_LARGEST, -SMALLEST], LARGEST),
        ([-LARGEST, -LARGEST], -math.inf),
    ],
)
def test_rounding_is_half_to_even_down_to_the_last_bit(values, wanted):
    assert bits(SUM.lower(folded(values))) == bits(wanted)


@pytest.mark.parametrize("values", [[-0.0], [-0.0, -0.0], [1.5, -1.5], [-1.5, 1.5, -0.0], []])
def test_a_sum_of_nothing_is_a_positive_zero_as_in_fsum(values):
    assert bits(SUM.lower(folded(values))) == bits(math.fsum(values)) == bits(0.0)


def test_infinities_of_both_signs_give_nan_until_one_is_taken_away():
    both = folded([math.inf, -math.inf, 3.0])
    assert math.isnan(SUM.lower(both))
    assert SUM.lower(inverted(both, lifted(math.inf))) == -math.inf
    assert SUM.lower(inverted(both, folded([math.inf, -math.inf]))) == 3.0


@given(finite, finite, st.integers(31, 62))
def test_carrying_loses_nothing(x, y, doublings):
    total = combined(lifted(x), lifted(y))
    for _ in range(doublings):
        SUM.combine(total, total, total)
    exact = (Fraction(x) + Fraction(y)) * 2**doublings
    assert total[WEIGHT] < 0
    assert np.abs(total[:N_LIMBS]).max() < 2**62
    assert bits(SUM.lower(total)) == bits(correctly_rounded(exact))
    assert bits(SUM.lower(combined(total, lifted(-x)))) == bits(correctly_rounded(exact - Fraction(x)))
    assert bits(SUM.lower(inverted(total, lifted(y)))) == bits(correctly_rounded(exact - Fraction(y)))


def test_a_carried_row_may_be_taken_from_again_and_again():
    whole = lifted(-0.1)
    for _ in range(31):
        SUM.combine(whole, whole, whole)
    part = lifted(-0.1)
    for taken in range(30):
        SUM.invert(whole, part, whole)
        SUM.combine(part, part, part)
        assert SUM.lower(whole) == correctly_rounded(Fraction(-0.1) * (2**31 - 2 ** (taken + 1) + 1))
    assert abs(whole[WEIGHT]) <= WEIGHT_MAX
