"""Exact median and quantiles: laws, NumPy's answers, NaN as in Spark, bytes."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sash.algebra.quantiles import median, quantile
from sash.engine.aggregator import aggregator
from sash.errors import DataError, DeclarationError

numbers = st.floats(-1e6, 1e6) | st.integers(-5, 5)
with_nan = numbers | st.just(math.nan) | st.sampled_from([math.inf, -math.inf])
fractions = st.floats(0, 1) | st.sampled_from([0, 0.25, 0.5, 0.75, 0.9, 1])


def folded(values):
    monoid = median().bind(None)
    total = ((), 0)
    for x in values:
        total = monoid.combine(total, monoid.lift(x))
    return total


@given(*[st.lists(with_nan, max_size=8)] * 3)
def test_samples_obey_the_laws_of_a_commutative_group(left, middle, right):
    monoid = median().bind(None)
    x, y, z = folded(left), folded(middle), folded(right)
    xy = monoid.combine(x, y)
    assert monoid.combine(xy, z) == monoid.combine(x, monoid.combine(y, z))
    assert xy == monoid.combine(y, x)
    assert monoid.combine(((), 0), x) == x == monoid.combine(x, ((), 0))
    assert monoid.invert(xy, x) == y


@given(st.lists(numbers, min_size=1), fractions)
def test_quantiles_are_those_of_numpy(values, q):
    found = quantile("x", q).bind(None).lower(folded(values))
    wanted = np.quantile(np.array(values, float), q)
    assert found == pytest.approx(wanted, rel=1e-12, abs=1e-12 * max(map(abs, values)))


@given(st.lists(st.integers(-(10**9), 10**9), min_size=1))
def test_the_median_of_integers_is_exact(values):
    assert median().bind(None).lower(folded(values)) == np.median(values)


@given(st.lists(with_nan, min_size=1, max_size=30), st.integers(1, 8), fractions)
def test_a_sliding_window_answers_the_quantile_of_its_rows(values, size, q):
    window = aggregator("two_stacks_lite", quantile(q=q))
    for end, x in enumerate(values, start=1):
        window.insert(x)
        if len(window) > size:
            window.evict()
        wanted = reference(values[max(0, end - size) : end], q)
        assert window.query() == pytest.approx(wanted, rel=1e-12, abs=1e-6, nan_ok=True)


def reference(values, q):
    """The quantile by its definition, in fractions wherever the two neighbours are finite."""
    ordered = sorted((float(x) for x in values), key=lambda x: (x != x, x))
    position = Fraction(q * (len(values) - 1))
    left, right = ordered[math.floor(position)], ordered[math.ceil(position)]
    if left == right or position.denominator == 1:
        return left
    if not (math.isfinite(left) and math.isfinite(right)):
        return left + right
    part = position - math.floor(position)
    return float((1 - part) * Fraction(left) + part * Fraction(right))


def test_nan_counts_as_the_largest_value():
    values = folded([math.nan, 1.0, 2.0, math.nan, 3.0])
    assert quantile(q=0.5).bind(None).lower(values) == 3.0
    assert math.isnan(quantile(q=0.75).bind(None).lower(values))
    assert math.isnan(quantile(q=0.6).bind(None).lower(values))


def test_infinities_and_huge_values_do_not_spoil_the_median():
    lower = median().bind(None).lower
    assert lower(folded([math.inf, math.inf])) == math.inf
    assert lower(folded([-1.7e308, 1.7e308])) == 0.0
    assert lower(folded([1.5 * 2.0**1023, 1.25 * 2.0**1023])) == 1.375 * 2.0**1023
    assert lower(folded([Decimal("0.5"), Decimal("1.5")])) == 1.0


@given(st.lists(with_nan | st.none(), max_size=20))
def test_a_window_comes_back_from_its_bytes(rows):
    window, again = aggregator("two_stacks_lite", median()), aggregator("two_stacks_lite", median())
    window.bulk_insert(rows)
    window.bulk_evict(len(rows) // 3)
    again.restore(window.snapshot())
    for each in (window, again):
        each.bulk_insert(rows)
        each.bulk_evict(len(rows) // 2)
    assert repr(window.query()) == repr(again.query())


def test_a_window_of_no_values_has_no_median():
    window = aggregator("two_stacks_lite", median())
    assert window.query() is None
    window.insert(None)
    assert window.query() is None


def test_partials_are_not_changed_by_combine_or_inverse():
    monoid = median().bind(None)
    x, y = folded([3, 1]), folded([2])
    monoid.invert(monoid.combine(x, y), x)
    assert (x, y) == (((1, 3), 0), ((2,), 0))


def test_one_declaration_makes_one_monoid_and_its_card_says_what_it_costs():
    assert quantile("x", 0.9) == quantile("x", 0.9)
    assert quantile("x", 0.9).bind(None) is quantile("y", 0.9).bind(np.dtype("f8"))
    assert quantile("x", 0.9).bind(None) is not quantile("x", 0.8).bind(None)
    assert median().card.cost == quantile().card.cost == "O(rows)"


@pytest.mark.parametrize("q", [-0.1, 1.5, math.nan])
def test_a_quantile_beyond_all_rows_is_refused(q):
    with pytest.raises(DeclarationError, match="between 0 and 1"):
        quantile("x", q)


def test_a_median_of_text_is_refused():
    with pytest.raises(DataError, match="median got values of type"):
        median("x").bind(np.dtype("U3"))
