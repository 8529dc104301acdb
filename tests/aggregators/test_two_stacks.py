"""What is particular to two_stacks: figure 3 of the paper, its costs, its invariants, its two stacks in one array."""

from __future__ import annotations

import functools

import pytest
from hypothesis import given, settings

from sash.aggregators.contract import END, MASK, OLDEST
from sash.aggregators.two_stacks import AGGREGATE, ARRAY, BACK, SLOT, VALUE
from sash.engine.aggregator import aggregator
from sash.testing.counting import counting
from sash.testing.monoids import Affine, Concat, Max
from tests.aggregators import walking
from tests.aggregators.walking import RUNS, Poisoned

follow = functools.partial(walking.follow, "two_stacks")


def stacks(window):
    """The front and the back stack, each bottom first, as pairs of value and aggregate."""
    at, pool = window._state.at, window._state.pool
    slots = [ARRAY + SLOT * slot for slot in range(at[MASK] + 1)]
    entries = [(pool[slot + VALUE], pool[slot + AGGREGATE]) for slot in slots]
    return entries[: at[BACK] - at[OLDEST]], entries[::-1][: at[END] - at[BACK]]


@pytest.mark.parametrize("aggregate", [Concat, Affine])
@given(runs=RUNS)
@settings(deadline=None)
def test_every_step_of_any_interleaving_keeps_the_invariants(aggregate, runs):
    follow(runs, aggregate)


def test_machine_code_keeps_the_invariants_and_never_combines_with_an_identity():
    follow([("+", 20), ("~", 30), ("s", 1), ("-", 15), ("~", 20), ("-", 10), ("+", 9)], Poisoned, compiled=True)


def test_figure_3_step_by_step():
    """States (a) to (i) of the running example: max over 2, 6, 3, 5, 3, evicting and inserting in turn.

    Step (e) -> (f) flips and the front loses two elements before it, so in (a) the front holds 2
    and 6. An element older than those, evicted after 6 came, makes the flip that leads there. The
    text names the 1 that is inserted first; the later 4, 0 and 2 are ours.
    """
    window = aggregator("two_stacks", Max)
    window.bulk_insert([9, 2, 6])
    window.evict()
    window.bulk_insert([3, 5, 3])

    assert stacks(window) == ([(6, 6), (2, 6)], [(3, 3), (5, 5), (3, 5)])  # (a)
    window.evict()
    assert stacks(window) == ([(6, 6)], [(3, 3), (5, 5), (3, 5)])  # (b)
    window.insert(1)
    assert stacks(window) == ([(6, 6)], [(3, 3), (5, 5), (3, 5), (1, 5)])  # (c)
    assert window.query() == 6
    window.evict()
    assert stacks(window) == ([], [(3, 3), (5, 5), (3, 5), (1, 5)])  # (d)
    assert window.query() == 5, "a lower maximum, without an inverse"
    window.insert(4)
    assert stacks(window) == ([], [(3, 3), (5, 5), (3, 5), (1, 5), (4, 5)])  # (e)
    window.evict()
    assert stacks(window) == ([(4, 4), (1, 4), (3, 4), (5, 5)], [])  # (f), the flip (f1) less its top
    window.insert(0)
    assert stacks(window) == ([(4, 4), (1, 4), (3, 4), (5, 5)], [(0, 0)])  # (g)
    assert window.query() == 5
    window.evict()
    assert stacks(window) == ([(4, 4), (1, 4), (3, 4)], [(0, 0)])  # (h)
    window.insert(2)
    assert stacks(window) == ([(4, 4), (1, 4), (3, 4)], [(0, 0), (2, 2)])  # (i)
    assert window.query() == 4


@given(runs=RUNS)
@settings(deadline=None)
def test_each_element_is_combined_at_most_twice_and_once_for_each_query(runs):
    counted, calls = counting(Max)
    window, n_inserted = aggregator("two_stacks", counted), 0
    for step in "".join(step.replace("~", "-+") * times for step, times in runs):
        if step == "+":
            window.insert(1)
            n_inserted += 1
        elif step == "-" and len(window) > 0:
            window.evict()
    assert calls.take() <= 2 * n_inserted
    window.query()
    assert calls.take() <= 1


def test_a_round_takes_three_combines_on_average_and_n_plus_one_at_worst():
    counted, calls = counting(Max)
    window = aggregator("two_stacks", counted)
    window.bulk_insert(range(64))
    calls.take()
    rounds = []
    for value in range(640):
        window.evict()
        window.insert(value)
        window.query()
        rounds.append(calls.take())
    assert max(rounds) <= 64 + 1
    assert sum(rounds) <= 3 * len(rounds)


def test_only_an_evict_that_flips_combines_and_then_once_less_than_there_are_elements():
    counted, calls = counting(Max)
    window = aggregator("two_stacks", counted)
    window.bulk_insert(range(50))
    assert calls.take() == 49, "the first element of a stack is its own aggregate"
    window.evict()
    assert calls.take() == 49
    window.bulk_evict(49)
    assert calls.take() == 0


def test_a_full_array_flips_in_place():
    window = aggregator("two_stacks", Concat)
    window.bulk_insert("abcdefgh")
    assert len(window) == window._state.at[MASK] + 1
    window.evict()
    window.check_invariants(list("abcdefgh"))
    assert window.query() == "b,c,d,e,f,g,h"


def test_both_stacks_stay_at_their_ends_when_the_array_grows_and_shrinks():
    window = aggregator("two_stacks", Concat)
    window.bulk_insert("abc")
    window.evict()
    window.bulk_insert("defghijkl")
    assert window._state.at[MASK] == 15
    front, back = stacks(window)
    assert [value for value, _ in front] == ["c", "b"]
    assert [value for value, _ in back] == list("defghijkl")
    window.bulk_evict(8)
    window.evict()
    assert window._state.at[MASK] == 7
    assert stacks(window) == ([("l", "l"), ("k", "k,l")], [])


@pytest.mark.parametrize(
    ("invariant", "cell"),
    [
        ("I2", ARRAY + VALUE),
        ("I3", ARRAY + SLOT * 7 + VALUE),
        ("I4", ARRAY + SLOT + AGGREGATE),
        ("I5", ARRAY + SLOT * 6 + AGGREGATE),
    ],
)
def test_damage_to_a_cell_is_named_by_its_invariant(invariant, cell):
    window = aggregator("two_stacks", Concat)
    window.bulk_insert("abc")
    window.evict()
    window.bulk_insert("de")
    window._state.pool[cell] = "damaged"
    with pytest.raises(AssertionError, match=f"{invariant} is broken"):
        window.check_invariants(list("abcde"))


def test_pointers_out_of_order_break_the_first_invariant():
    window = aggregator("two_stacks", Concat)
    window.insert("a")
    window._state.at[BACK] = 2
    with pytest.raises(AssertionError, match="I1 is broken"):
        window.check_invariants(["a"])
