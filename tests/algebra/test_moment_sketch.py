"""The moment sketch: laws, what its estimates are worth, and what it does where they are not."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sash.algebra.moment_sketch import COUNT, MAX, MIN, SUMS, estimate_quantiles, moment_sketch
from sash.engine.aggregator import aggregator
from sash.errors import DataError, DeclarationError

SKETCH = moment_sketch().bind(np.dtype("f8"))
WIDTH = 23
QUANTILES = np.array([0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99])
DISTRIBUTIONS = {
    "uniform": lambda rng, n: rng.random(n),
    "normal": lambda rng, n: rng.normal(size=n),
    "exponential": lambda rng, n: rng.exponential(size=n),
    "lognormal": lambda rng, n: rng.lognormal(size=n),
}
values_at_hand = st.floats(-100, 100) | st.integers(-5, 5)
both_forms = pytest.mark.parametrize("compiled", [False, True], ids=["interpreted", "compiled"])


def lifted(x):
    row = np.full(WIDTH, 99.0)
    SKETCH.lift(x, row)
    return row


def combined(older, newer):
    out = np.full(WIDTH, 99.0)
    SKETCH.combine(older, newer, out)
    return out


def folded(values):
    row = np.zeros(WIDTH)
    for x in values:
        SKETCH.combine(row, lifted(x), row)
    return row


def sketch_of(values, order=10):
    """The row of many values, by array operations."""
    x = np.asarray(values, float)
    logs = np.log(x) if x.min() > 0 else np.zeros_like(x)
    powers = [(base**k).sum() for base in (x, logs) for k in range(1, order + 1)]
    return np.array([x.min(), x.max(), len(x), *powers])


def rank_errors(values, estimates):
    """How far the share of values up to each estimate is from what it should be."""
    ordered = np.sort(values)
    below = np.searchsorted(ordered, estimates, "left") / len(ordered)
    upto = np.searchsorted(ordered, estimates, "right") / len(ordered)
    return np.maximum(0, np.maximum(below - QUANTILES, QUANTILES - upto))


@given(*[st.lists(values_at_hand, max_size=5)] * 3)
def test_sums_of_moments_obey_the_laws_up_to_rounding(left, middle, right):
    x, y, z = folded(left), folded(middle), folded(right)
    before = x.copy(), y.copy()
    np.testing.assert_allclose(
        combined(combined(x, y), z), combined(x, combined(y, z)), rtol=1e-12, atol=1e-12 * scale(x, y, z)
    )
    assert np.array_equal(combined(x, y), combined(y, x))
    assert np.array_equal(combined(x, np.zeros(WIDTH)), x)
    assert np.array_equal(combined(np.zeros(WIDTH), x), x)
    assert np.array_equal(x, before[0])
    assert np.array_equal(y, before[1])
    total = combined(x, y)
    SKETCH.combine(x, y, x)
    assert np.array_equal(x, total)


def scale(*rows):
    return max(1.0, *(np.abs(row).max() for row in rows)) * 1e-3


@given(st.lists(values_at_hand, min_size=1))
def test_a_row_holds_min_max_count_and_sums_of_powers(values):
    row, exact = folded(values), sketch_of(values)
    assert row[[MIN, MAX, COUNT]].tolist() == [min(values), max(values), len(values)]
    np.testing.assert_allclose(row[SUMS : SUMS + 10], exact[SUMS : SUMS + 10], rtol=1e-9, atol=1e-9 * scale(exact))
    if min(values) > 0:
        np.testing.assert_allclose(row[SUMS + 10 :], exact[SUMS + 10 :], rtol=1e-9, atol=1e-9 * scale(exact))


@both_forms
@given(values=st.lists(values_at_hand, min_size=1, max_size=25), size=st.integers(1, 8))
def test_a_sliding_window_holds_the_sums_of_its_rows(compiled, values, size):
    window = aggregator("two_stacks_lite", moment_sketch(quantiles=None), compiled=compiled)
    for end, x in enumerate(values, start=1):
        window.insert(x)
        if len(window) > size:
            window.evict()
        row = folded(values[max(0, end - size) : end])
        np.testing.assert_allclose(window.query(), row, rtol=1e-11, atol=1e-11 * scale(row))


@both_forms
def test_a_window_comes_back_from_its_bytes(compiled):
    window = aggregator("two_stacks_lite", moment_sketch(quantiles=None), compiled=compiled)
    assert window.query() is None
    window.bulk_insert([1.5, None, -2.0, 7.25])
    again = aggregator("two_stacks_lite", moment_sketch(quantiles=None), compiled=compiled)
    again.restore(window.snapshot())
    window.evict()
    again.evict()
    assert np.array_equal(window.query(), again.query())


@pytest.mark.parametrize(("n", "worst", "mean"), [(1000, 0.02, 0.003), (20000, 0.006, 0.001)])
@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_estimates_are_as_good_as_documented(name, n, worst, mean):
    rng = np.random.default_rng(2021)
    samples = [DISTRIBUTIONS[name](rng, n) for _ in range(10)]
    estimates = estimate_quantiles(np.stack([sketch_of(sample) for sample in samples]), QUANTILES)
    errors = np.stack([rank_errors(*pair) for pair in zip(samples, estimates, strict=True)])
    assert errors.max() <= worst
    assert errors.mean() <= mean


@pytest.mark.parametrize(
    ("values", "worst"),
    [
        (np.random.default_rng(1).lognormal(sigma=2, size=5000), 0.01),
        (np.random.default_rng(2).normal(100, 5, 5000), 0.02),
        (np.random.default_rng(3).random(5000) * 3600 + 1.7e9, 0.02),
        (-np.random.default_rng(4).exponential(size=5000), 0.02),
        (np.concatenate([np.random.default_rng(5).normal(c, 1, 2500) for c in (-4, 4)]), 0.02),
        (np.random.default_rng(6).normal(size=30), 0.1),
        (np.random.default_rng(7).integers(1, 101, 5000), 0.02),
    ],
    ids=["long tail", "off zero", "timestamps", "negative", "two humps", "few rows", "integers"],
)
def test_estimates_hold_for_other_shapes(values, worst):
    estimates = estimate_quantiles(sketch_of(values)[None], QUANTILES)[0]
    assert rank_errors(values, estimates).max() <= worst
    assert (np.diff(estimates) >= 0).all()


@given(st.lists(st.floats(-1e9, 1e9), min_size=1, max_size=12) | st.lists(st.integers(0, 3), min_size=1))
def test_estimates_never_leave_the_interval_and_never_decrease(values):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = estimate_quantiles(folded(values)[None], [0, 0.1, 0.5, 0.9, 1])[0]
    assert found[0] == min(values)
    assert found[-1] == max(values)
    assert (np.diff(found) >= 0).all()


def test_one_quantile_answers_numbers_and_several_answer_rows():
    rows = np.stack([folded([1, 2, 3]), folded([5.0])])
    assert moment_sketch(quantiles=0.5).bind(None).finish(rows).shape == (2,)
    assert moment_sketch(quantiles=(0.5,)).bind(None).finish(rows).shape == (2, 1)
    assert moment_sketch(quantiles=[0.1, 0.9]).bind(None).finish(rows).shape == (2, 2)
    assert moment_sketch(quantiles=None).bind(None).finish is None
    assert moment_sketch().bind(None).finish(rows)[1] == 5.0


@both_forms
def test_a_window_answers_estimates(compiled):
    window = aggregator("two_stacks_lite", moment_sketch(quantiles=(0, 0.5, 1)), compiled=compiled)
    assert window.query() is None
    window.bulk_insert(np.linspace(1, 3, 41).tolist())
    assert window.query() == pytest.approx([1, 2, 3], abs=0.1)


def test_columns_of_32_bits_are_raised_to_powers_in_64():
    window = aggregator("two_stacks_lite", moment_sketch(quantiles=None), dtype="f4", compiled=True)
    window.insert(np.float32(0.1))
    np.testing.assert_allclose(window.query(), lifted(np.float32(0.1)), rtol=1e-14)


def test_columns_that_hold_no_numbers_are_refused():
    with pytest.raises(DataError, match="moment_sketch got values of type"):
        moment_sketch("x").bind(np.dtype("U3"))


def test_many_rows_are_answered_as_each_alone():
    rng = np.random.default_rng(8)
    rows = np.stack([sketch_of(rng.gamma(2, size=50)) for _ in range(1030)])
    together = estimate_quantiles(rows, 0.5)
    alone = [estimate_quantiles(rows[i : i + 1], 0.5)[0] for i in (0, 500, 1029)]
    np.testing.assert_allclose(together[[0, 500, 1029]], alone, rtol=1e-6)
    assert estimate_quantiles(rows[:0], 0.5).shape == (0,)


@pytest.mark.parametrize("values", [[], [math.nan, 1.0], [1.0, math.inf], [-math.inf, math.inf]])
def test_no_values_and_values_that_are_not_finite_answer_nan(values):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.isnan(estimate_quantiles(folded(values)[None], 0.5)[0])


def test_powers_that_overflow_are_left_out():
    values = np.random.default_rng(9).lognormal(150, 30, 2000)
    with np.errstate(all="ignore"):
        row = folded(values)
    assert not np.isfinite(row[SUMS : SUMS + 10]).all()
    assert rank_errors(values, estimate_quantiles(row[None], QUANTILES)[0]).max() < 0.02


def test_fewer_moments_are_enough_for_simple_shapes():
    values = np.random.default_rng(10).normal(size=5000)
    row = sketch_of(values, order=2)
    assert moment_sketch(order=2).bind(None).state.width == len(row) == 7
    assert rank_errors(values, estimate_quantiles(row[None], QUANTILES)[0]).max() < 0.03


def test_one_declaration_makes_one_monoid():
    assert moment_sketch("x") == moment_sketch("x")
    assert moment_sketch("x").bind(None) is moment_sketch("y").bind(np.dtype("f8"))
    assert moment_sketch().card.cost == "O(order)"


@pytest.mark.parametrize(
    "options", [{"order": 0}, {"order": 16}, {"order": 2.5}, {"quantiles": 1.5}, {"quantiles": [0.5, -1]}]
)
def test_options_that_make_no_sense_are_refused(options):
    with pytest.raises(DeclarationError, match=r"moment_sketch needs order|between 0 and 1"):
        moment_sketch("x", **options)
