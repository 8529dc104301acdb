"""What is particular to flat_fit: how far slots reach before and after a query, and what a query costs."""

from __future__ import annotations

import functools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sash.aggregators.contract import END, MASK, OLDEST
from sash.aggregators.flat_fit import RING
from sash.algebra.declaring import monoid_of
from sash.engine.aggregator import aggregator
from sash.testing.counting import counting
from sash.testing.monoids import Affine, Concat, Sum
from tests.aggregators.walking import Poisoned

RUNS = st.lists(st.tuples(st.sampled_from("+-~?s"), st.integers(1, 20)), max_size=12)


def follow(runs, aggregate, **options):
    """Insert (+), evict (-), slide (~), query (?), save and restore (s) in runs; after each step all must hold."""
    window, monoid, lifted = aggregator("flat_fit", aggregate, **options), monoid_of(aggregate), []
    for step in "".join(step.replace("~", "-+?") * times for step, times in runs) + "?":
        if step == "+":
            window.insert(37 * len(lifted) % 101)
            lifted.append(monoid.lift(37 * len(lifted) % 101))
        elif step == "-" and len(window) > 0:
            window.evict()
        elif step == "?":
            held = lifted[len(lifted) - len(window) :]
            total = functools.reduce(monoid.combine, held) if held else None
            assert window.query() == (monoid.lower(total) if monoid.lower and held else total)
        elif step == "s":
            saved, window = window.snapshot(), aggregator("flat_fit", aggregate, **options)
            window.restore(saved)
        window.check_invariants(lifted)


def reach(window):
    """How far each slot reaches, the oldest first."""
    at, links = window._state.at, window._state.links
    return [links[i & at[MASK]] for i in range(at[OLDEST], at[END])]


@pytest.mark.parametrize("aggregate", [Concat, Affine])
@given(runs=RUNS)
def test_every_step_of_any_interleaving_keeps_the_invariants(aggregate, runs):
    follow(runs, aggregate)


def test_machine_code_keeps_the_invariants_and_never_combines_with_an_identity():
    runs = [("+", 20), ("?", 1), ("~", 30), ("s", 1), ("-", 15), ("~", 20), ("-", 10), ("+", 9)]
    follow(runs, Poisoned, compiled=True, dtype="i8")


def test_a_query_makes_every_slot_it_meets_reach_the_youngest_element():
    window = aggregator("flat_fit", Concat)
    window.bulk_insert("abcde")
    assert reach(window) == [1, 2, 3, 4, 5]
    assert window.query() == "a,b,c,d,e"
    assert reach(window) == [4, 4, 4, 4, 5]
    window.bulk_insert("fg")
    window.evict()
    assert reach(window) == [4, 4, 4, 5, 6, 7]
    assert window.query() == "b,c,d,e,f,g"
    assert reach(window) == [6, 4, 4, 6, 6, 7], "c and d were jumped over, and reach e as before"


def test_only_queries_combine_and_asking_again_costs_one():
    counted, calls = counting(Sum)
    window = aggregator("flat_fit", counted)
    window.bulk_insert(range(50))
    window.bulk_evict(10)
    assert calls.take() == 0
    window.query()
    assert calls.take() == 39, "n - 1, as for a fold of 40"
    window.query()
    assert calls.take() == 1
    window.bulk_evict(39)
    window.query()
    assert calls.take() == 0, "a single element is its own aggregate"


@pytest.mark.parametrize("n", [8, 100, 256])
def test_a_round_takes_less_than_four_combines_on_average_and_n_minus_one_at_worst(n):
    counted, calls = counting(Sum)
    window = aggregator("flat_fit", counted)
    window.bulk_insert(range(n))
    window.query()
    calls.take()
    rounds = []
    for value in range(10 * n):
        window.evict()
        window.insert(value)
        window.query()
        rounds.append(calls.take())
    assert max(rounds) == n - 1
    assert sum(rounds) < 4 * len(rounds)


def test_a_slot_that_reaches_too_far_breaks_the_first_invariant():
    window = aggregator("flat_fit", Concat)
    window.bulk_insert("abc")
    window._state.links[0] = 3
    with pytest.raises(AssertionError, match="I1 is broken"):
        window.check_invariants(list("abc"))


def test_a_damaged_slot_breaks_the_second_invariant():
    window = aggregator("flat_fit", Concat)
    window.bulk_insert("abc")
    window.query()
    window._state.pool[RING] = "damaged"
    with pytest.raises(AssertionError, match="I2 is broken"):
        window.check_invariants(list("abc"))
