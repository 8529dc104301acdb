"""Concat, collect, distinct and mode: laws, answers and bytes."""

from __future__ import annotations

import copy
import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sash.algebra.collecting import collect, concat, distinct, mode
from sash.engine.aggregator import aggregator

numbers = st.integers(-3, 3) | st.floats(-2, 2).map(lambda x: round(x, 1)) | st.just(math.nan)
words = st.text("abc", max_size=3)
CASES = {
    "concat": (concat, words),
    "collect": (collect, words),
    "distinct": (distinct, numbers),
    "mode": (mode, numbers),
}
each_case = pytest.mark.parametrize(("make", "values"), CASES.values(), ids=CASES)


def folded(monoid, values):
    total = None
    for x in values:
        total = monoid.lift(x) if total is None else monoid.combine(total, monoid.lift(x))
    return total


def true_mode(values):
    counts = Counter("nan" if x != x else x for x in values)
    frequent = [x for x, n in counts.items() if n == max(counts.values()) and x != "nan"]
    return min(frequent) if frequent else math.nan


ANSWERS = {
    "concat": "".join,
    "collect": list,
    "distinct": lambda values: len({"nan" if x != x else x for x in values}),
    "mode": true_mode,
}


@each_case
@given(data=st.data())
def test_collecting_aggregates_obey_their_laws(make, values, data):
    monoid = make().bind(None)
    x, y, z = (folded(monoid, data.draw(st.lists(values, min_size=1, max_size=6))) for _ in range(3))
    before = copy.deepcopy((x, y, z))
    xy = monoid.combine(x, y)
    assert monoid.combine(xy, z) == monoid.combine(x, monoid.combine(y, z))
    assert monoid.invert(xy, x) == y
    assert (x, y, z) == before
    if monoid.commutative:
        assert xy == monoid.combine(y, x)
    if monoid.answers_empty:
        assert monoid.combine(monoid.identity, x) == x == monoid.combine(x, monoid.identity)


@each_case
def test_cards_say_what_the_monoids_do(make, values):
    aggregate = make("x")
    monoid = aggregate.bind(None)
    assert aggregate.columns == ("x",)
    assert aggregate.card.commutative == monoid.commutative
    assert aggregate.card.invertible == (monoid.invert is not None)
    assert aggregate.card.cost.startswith("O(")
    assert monoid is make("y").bind(None)
    assert aggregate == make("x")


@each_case
@given(data=st.data())
def test_a_sliding_window_answers_for_its_rows(make, values, data):
    rows = data.draw(st.lists(values, min_size=1, max_size=30))
    size = data.draw(st.integers(1, 8))
    window = aggregator("two_stacks_lite", make())
    for end, x in enumerate(rows, start=1):
        window.insert(x)
        if len(window) > size:
            window.evict()
        wanted = ANSWERS[make.__name__](rows[max(0, end - size) : end])
        assert window.query() == wanted or (wanted != wanted and math.isnan(window.query()))


@each_case
@given(data=st.data())
def test_a_window_comes_back_from_its_bytes(make, values, data):
    rows = data.draw(st.lists(values | st.none(), max_size=20))
    window, again = aggregator("two_stacks_lite", make()), aggregator("two_stacks_lite", make())
    window.bulk_insert(rows)
    window.bulk_evict(len(rows) // 3)
    again.restore(window.snapshot())
    for each in (window, again):
        each.bulk_insert(rows)
        each.bulk_evict(len(rows) // 2)
    assert repr(window.query()) == repr(again.query())


@pytest.mark.parametrize(("make", "wanted"), [(concat, None), (collect, []), (distinct, 0), (mode, None)])
def test_a_window_of_no_values_answers_what_it_should(make, wanted):
    window = aggregator("two_stacks_lite", make())
    assert window.query() == wanted
    window.insert(None)
    assert window.query() == wanted


def test_concat_joins_any_sequences():
    window = aggregator("two_stacks_lite", concat())
    for part in ([1], [2, 3], []):
        window.insert(part)
    assert window.query() == [1, 2, 3]


def test_the_list_of_a_window_is_the_callers_own():
    window = aggregator("two_stacks_lite", collect())
    window.insert(1)
    window.query().append(2)
    assert window.query() == [1]


def test_nan_is_one_value_and_negative_zero_is_zero():
    window = aggregator("two_stacks_lite", {"n": distinct(), "most": mode()})
    for x in (math.nan, -0.0, float("nan"), 0.0, np.float64("nan"), 0, np.float32(1)):
        window.insert(x)
    assert window.query() == {"n": 3, "most": 0}
    assert math.copysign(1, window.query()["most"]) == 1
    window.insert(math.nan)
    assert math.isnan(window.query()["most"])


def test_nan_stays_one_value_through_bytes():
    window = aggregator("two_stacks_lite", distinct())
    window.insert(math.nan)
    window.restore(window.snapshot())
    window.insert(math.nan)
    assert window.query() == 1


@pytest.mark.parametrize(
    ("values", "wanted"),
    [
        ("bab", "b"),
        ("cab", "a"),
        ([True, False, True], True),
        ([False], False),
        ([(2, 1), (1, 2)], (1, 2)),
        ([b"z"], b"z"),
    ],
)
def test_the_mode_is_a_value_as_it_was_given(values, wanted):
    window = aggregator("two_stacks_lite", mode())
    for value in values:
        window.insert(value)
    window.restore(window.snapshot())
    assert window.query() == wanted
    assert type(window.query()) is type(wanted)
