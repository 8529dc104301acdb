"""What is particular to slick_deque: what the deque holds, ties, its costs, its two forms, what it refuses."""

from __future__ import annotations

import functools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sash.aggregators.contract import MASK, View
from sash.aggregators.slick_deque import ALGORITHM, ANSWER, FIRST, LAST, RING
from sash.algebra.declaring import monoid_of
from sash.engine.aggregator import aggregator
from sash.engine.events import Folder, reader
from sash.errors import UnsupportedError
from sash.testing.counting import counting
from sash.testing.monoids import Affine, ArgMax, Concat, Max, Sum

RUNS = st.lists(st.tuples(st.sampled_from("+-~s"), st.integers(1, 20)), max_size=10)
DIGITS = (3, 1, 4, 1, 5, 9, 2, 6)


def follow(runs, aggregate, values, **options):
    """Insert (+), evict (-), slide (~), save and restore (s) in runs; after each step all must hold."""
    window, monoid, lifted = aggregator("slick_deque", aggregate, **options), monoid_of(aggregate), []
    for step in "".join(step.replace("~", "-+") * times for step, times in runs):
        if step == "+":
            row = (values[len(lifted) % len(values)], len(lifted))[: monoid.n_inputs]
            window.insert(*row)
            lifted.append(monoid.lift(*row))
        elif step == "-" and len(window) > 0:
            window.evict()
        elif step == "s":
            saved, window = window.snapshot(), aggregator("slick_deque", aggregate, **options)
            window.restore(saved)
        window.check_invariants(lifted)
        held = lifted[len(lifted) - len(window) :]
        total = functools.reduce(monoid.combine, held) if held else None
        assert window.query() == (monoid.lower(total) if monoid.lower and held else total)


def entries(window):
    """The deque, the oldest entry first, as pairs of value and position."""
    at, pool, links = window._state.at, window._state.pool, window._state.links
    slots = [d & at[MASK] for d in range(at[FIRST], at[LAST])]
    return [(pool[RING + slot], links[slot]) for slot in slots]


@pytest.mark.parametrize("aggregate", [Max, ArgMax, Affine])
@given(runs=RUNS, values=st.lists(st.integers(-4, 4), min_size=1, max_size=30))
def test_every_step_of_any_interleaving_keeps_the_invariants(aggregate, runs, values):
    follow(runs, aggregate, values)


@pytest.mark.parametrize("aggregate", [Max, ArgMax, Sum])
def test_machine_code_keeps_the_invariants(aggregate):
    runs = [("+", 20), ("~", 30), ("s", 1), ("-", 15), ("~", 20), ("-", 10), ("+", 9)]
    follow(runs, aggregate, DIGITS, compiled=True, dtype="i8")


def test_the_deque_holds_what_no_younger_element_beats():
    window = aggregator("slick_deque", Max)
    window.bulk_insert(DIGITS)
    assert entries(window) == [(9, 5), (6, 7)]
    window.bulk_evict(5)
    assert entries(window) == [(9, 5), (6, 7)], "elements that are no entries leave without a trace"
    window.evict()
    assert entries(window) == [(6, 7)]
    assert window.query() == 6
    window.insert(6)
    assert entries(window) == [(6, 8)], "of equal values the younger one is enough: it stays longer"


def test_of_two_equal_maxima_the_one_that_combine_chooses_stays():
    window = aggregator("slick_deque", ArgMax)
    for position, value in enumerate((5, 7, 7, 2)):
        window.insert(value, position)
    assert entries(window) == [((7, 1), 1), ((7, 2), 2), ((2, 3), 3)]
    assert window.query() == 1, "the first of equals wins"
    window.bulk_evict(2)
    assert window.query() == 2


@pytest.mark.parametrize("compiled", [False, True])
def test_nulls_give_way_to_values_and_never_beat_one(compiled):
    window = aggregator("slick_deque", Max, compiled=compiled, dtype="f8")
    lifted = []
    for value in (None, None, 4.0, None, 2.0, None):
        window.insert(value)
        lifted.append(value)
        window.check_invariants(lifted)
    answers = []
    while len(window) > 0:
        answers.append(window.query())
        window.evict()
        window.check_invariants(lifted)
    assert answers == [4.0, 4.0, 4.0, 2.0, 2.0, None]


@given(runs=RUNS, values=st.lists(st.integers(-4, 4), min_size=1, max_size=30))
def test_an_element_costs_less_than_two_combines_and_only_when_it_is_inserted(runs, values):
    counted, calls = counting(Max)
    window, n_inserted = aggregator("slick_deque", counted), 0
    for step in "".join(step.replace("~", "-+") * times for step, times in runs):
        before = calls.combine
        if step == "+":
            window.insert(values[n_inserted % len(values)])
            n_inserted += 1
        elif step == "-" and len(window) > 0:
            window.evict()
            assert calls.combine == before
        window.query()
    assert calls.combine <= max(0, 2 * n_inserted - 1)


def test_at_worst_an_insert_combines_with_every_element():
    counted, calls = counting(Max)
    window = aggregator("slick_deque", counted)
    window.bulk_insert(range(50, 0, -1))
    assert calls.take() == 49, "each is compared with the one before"
    window.insert(51)
    assert calls.take() == 50
    assert entries(window) == [(51, 50)]


def test_the_invertible_form_adds_the_new_value_and_takes_the_expired_one_away():
    counted, calls = counting(Sum)
    window = aggregator("slick_deque", counted)
    window.bulk_insert(range(30))
    assert (calls.take(), calls.invert) == (29, 0)
    for value in range(30, 60):
        window.evict()
        window.insert(value)
        assert window.query() == sum(range(value - 29, value + 1))
    assert (calls.take(), calls.invert) == (30, 30)
    assert entries(window) == [], "no deque in this form"


def test_refuses_what_neither_selects_nor_inverts():
    with pytest.raises(UnsupportedError, match=r"slick_deque needs an inverse, but Concat has none\. Use two_stacks"):
        aggregator("slick_deque", Concat)


def test_refuses_two_selections_at_once_because_they_may_choose_differently():
    with pytest.raises(UnsupportedError, match="needs an inverse, but Max has none"):
        aggregator("slick_deque", {"largest": Max, "first": ArgMax})


def test_the_deque_survives_growing_and_shrinking():
    window = aggregator("slick_deque", Max)
    window.bulk_insert(range(40, 0, -1))
    assert window._state.at[MASK] == 63
    window.bulk_evict(36)
    window.evict()
    assert window._state.at[MASK] == 7
    assert entries(window) == [(3, 37), (2, 38), (1, 39)]


@pytest.mark.parametrize(
    ("invariant", "part", "place", "value"),
    [("I1", "at", LAST, 20), ("I2", "links", 0, 8), ("I3", "pool", RING, 8.0), ("I4", "at", FIRST, 1)],
)
def test_damage_to_the_deque_is_named_by_its_invariant(invariant, part, place, value):
    window = aggregator("slick_deque", Max)
    window.bulk_insert(DIGITS)
    getattr(window._state, part)[place] = value
    with pytest.raises(AssertionError, match=f"{invariant} is broken"):
        window.check_invariants([float(x) for x in DIGITS])


@pytest.mark.parametrize(("invariant", "cell"), [("I5", RING + 2), ("I6", ANSWER)])
def test_damage_to_the_running_answer_is_named_by_its_invariant(invariant, cell):
    window = aggregator("slick_deque", Sum)
    window.bulk_insert(DIGITS)
    read, truth = reader(window._state.pool, is_compiled=False), Folder(monoid_of(Sum), list(DIGITS))
    ALGORITHM.check(View(window._state, read, truth))
    damaged = View(window._state, lambda each: -1 if each == cell else read(each), truth)
    with pytest.raises(AssertionError, match=f"{invariant} is broken"):
        ALGORITHM.check(damaged)
