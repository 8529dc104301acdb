"""KLL, theta and t-digest: what holds of them, what only nearly holds, and bytes."""

from __future__ import annotations

import math
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sash.algebra.datasketching import kll, tdigest, theta
from sash.engine.aggregator import aggregator
from sash.errors import DataError, DeclarationError, FormatError

pytest.importorskip("datasketches", reason="the extra 'sketches' is not installed")

numbers = st.floats(-1e6, 1e6) | st.integers(-5, 5)
QUANTILES = (0.01, 0.1, 0.5, 0.9, 0.99)
both_quantile_sketches = pytest.mark.parametrize("make", [kll, tdigest])
every_sketch = pytest.mark.parametrize("make", [kll, tdigest, theta])


def folded(monoid, values):
    total = monoid.lift(values[0])
    for x in values[1:]:
        total = monoid.combine(total, monoid.lift(x))
    return total


def split_evenly(monoid, values):
    """Fold as a balanced tree."""
    if len(values) == 1:
        return monoid.lift(values[0])
    half = len(values) // 2
    return monoid.combine(split_evenly(monoid, values[:half]), split_evenly(monoid, values[half:]))


def rank_errors(values, estimates):
    ordered = np.sort(values)
    below = np.searchsorted(ordered, estimates, "left") / len(ordered)
    upto = np.searchsorted(ordered, estimates, "right") / len(ordered)
    wanted = np.array(QUANTILES)
    return np.maximum(0, np.maximum(below - wanted, wanted - upto))


@every_sketch
@given(older=st.lists(numbers, min_size=1, max_size=40), newer=st.lists(numbers, min_size=1, max_size=40))
def test_combining_and_asking_leave_sketches_as_they_were(make, older, newer):
    monoid = make().bind(None)
    x, y = folded(monoid, older), folded(monoid, newer)
    before = x.serialize(), y.serialize()
    total = monoid.combine(x, y)
    written = total.serialize()
    monoid.lower(total)
    assert (x.serialize(), y.serialize()) == before
    assert total.serialize() == written


@given(st.lists(st.integers(0, 300), min_size=3, max_size=120), st.data())
def test_theta_sketches_are_the_same_under_every_bracketing_and_order(values, data):
    monoid = theta(lg_k=5).bind(None)
    sketches = [monoid.lift(x) for x in data.draw(st.permutations(values))]
    while len(sketches) > 1:
        i = data.draw(st.integers(0, len(sketches) - 2))
        sketches[i : i + 2] = [monoid.combine(sketches[i], sketches[i + 1])]
    assert sketches[0].serialize() == folded(monoid, values).serialize()


@given(st.lists(st.integers(0, 300), min_size=2, max_size=60))
def test_an_empty_theta_sketch_is_the_identity(values):
    monoid = theta(lg_k=5).bind(None)
    x = folded(monoid, values)
    assert monoid.combine(monoid.identity, x).serialize() == x.serialize()
    assert monoid.combine(x, monoid.identity).serialize() == x.serialize()


@given(st.lists(st.text() | st.integers() | st.floats(allow_nan=False) | st.tuples(st.integers())))
def test_theta_counts_up_to_its_size_exactly(values):
    window = aggregator("two_stacks_lite", theta())
    for value in values:
        window.insert(value)
    assert window.query() == len(set(values))


def test_theta_estimates_within_three_standard_errors():
    monoid = theta(lg_k=8).bind(None)
    assert folded(monoid, range(5000)).get_estimate() == pytest.approx(5000, rel=3 / math.sqrt(256))


@both_quantile_sketches
@pytest.mark.parametrize("fold", [folded, split_evenly])
def test_quantiles_are_within_their_error_however_the_rows_are_bracketed(make, fold):
    values = np.random.default_rng(3).lognormal(size=4000)
    monoid = make(quantiles=QUANTILES).bind(None)
    assert rank_errors(values, monoid.lower(fold(monoid, values))).max() < 0.02


@both_quantile_sketches
@given(st.lists(st.integers(-1000, 1000), min_size=1, max_size=60))
def test_quantiles_of_a_few_rows_are_among_them(make, values):
    monoid = make(quantiles=(0, 0.5, 1)).bind(None)
    low, middle, high = monoid.lower(folded(monoid, values))
    assert (low, high) == (min(values), max(values))
    below, upto = sum(x < middle for x in values), sum(x <= middle for x in values)
    assert below <= len(values) / 2 + 1
    assert upto >= len(values) / 2 - 1


@every_sketch
@given(rows=st.lists(numbers | st.none(), max_size=30))
def test_a_window_comes_back_from_its_bytes(make, rows):
    window, again = aggregator("two_stacks_lite", make()), aggregator("two_stacks_lite", make())
    window.bulk_insert(rows)
    window.bulk_evict(len(rows) // 3)
    again.restore(window.snapshot())
    assert again.query() == window.query()
    for each in (window, again):
        each.bulk_insert(rows)
        each.bulk_evict(len(rows) // 2)
    assert again.query() == window.query()


@both_quantile_sketches
@given(values=st.lists(st.integers(-100, 100), min_size=1, max_size=40), size=st.integers(1, 10))
def test_a_sliding_window_answers_for_its_rows(make, values, size):
    window = aggregator("two_stacks_lite", make(quantiles=1))
    for end, x in enumerate(values, start=1):
        window.insert(x)
        if len(window) > size:
            window.evict()
        assert window.query() == max(values[max(0, end - size) : end])


@both_quantile_sketches
def test_nan_is_left_out_and_nothing_answers_null(make):
    window = aggregator("two_stacks_lite", make(quantiles=(0.5, 1)))
    assert window.query() is None
    window.insert(math.nan)
    assert window.query() is None
    window.insert(2)
    assert window.query() == (2.0, 2.0)


def test_an_empty_window_has_no_different_values():
    window = aggregator("two_stacks_lite", theta())
    assert window.query() == 0.0
    window.insert(None)
    assert window.query() == 0.0


@both_quantile_sketches
def test_several_quantiles_have_names(make):
    assert make(quantiles=(0.25, 0.5)).bind(None).outputs == ("q0.25", "q0.5")
    assert make().bind(None).outputs == ()
    assert not make().bind(None).exact


@every_sketch
def test_one_declaration_makes_one_monoid(make):
    assert make("x") == make("x")
    assert make("x").bind(None) is make("y").bind(np.dtype("f8"))
    assert make().card.cost.startswith("O(")
    assert not make().card.invertible


@every_sketch
def test_bytes_that_are_no_sketch_are_refused(make):
    with pytest.raises(FormatError, match="not a"):
        make().bind(None).codec.decode(b"\x07" * 40)


@pytest.mark.parametrize(("make", "options"), [(kll, {"k": 199}), (tdigest, {"k": 199}), (theta, {"lg_k": 11})])
def test_a_missing_library_is_named_with_its_extra(make, options, monkeypatch):
    monkeypatch.setitem(sys.modules, "datasketches", None)
    declared = make("x", **options)
    with pytest.raises(DeclarationError, match=r"pip install 'sash\[sketches\]'"):
        declared.bind(None)


@pytest.mark.parametrize(
    ("make", "options"),
    [
        (kll, {"k": 7}),
        (tdigest, {"k": 9}),
        (theta, {"lg_k": 4}),
        (kll, {"quantiles": 2}),
        (tdigest, {"quantiles": (0.5, -1)}),
    ],
)
def test_options_that_make_no_sense_are_refused(make, options):
    with pytest.raises(DeclarationError, match=r"needs|between 0 and 1"):
        make("x", **options)


@both_quantile_sketches
def test_quantiles_of_text_are_refused(make):
    with pytest.raises(DataError, match="got values of type"):
        make("x").bind(np.dtype("U3"))
