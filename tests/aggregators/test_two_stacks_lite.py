"""What is particular to two_stacks_lite: its slots, its costs, its invariants."""

from __future__ import annotations

import functools

import pytest
from hypothesis import given, settings

from sash.aggregators.contract import END, MASK, OLDEST
from sash.aggregators.two_stacks_lite import BACK, BACK_TOTAL, RING
from sash.engine.aggregator import aggregator
from sash.testing.counting import counting
from sash.testing.monoids import Affine, Concat, Max
from tests.aggregators import walking
from tests.aggregators.walking import RUNS, Poisoned

follow = functools.partial(walking.follow, "two_stacks_lite")


def parts(window):
    """The slots of the front and of the back, oldest first, and the total of the back."""
    (pool, _, at), (oldest, back, end) = window._state, (window._state.at[r] for r in (OLDEST, BACK, END))
    slots = [pool[RING + (i & at[MASK])] for i in range(oldest, end)]
    return slots[: back - oldest], slots[back - oldest :], pool[BACK_TOTAL] if back < end else None


@pytest.mark.parametrize("aggregate", [Concat, Affine])
@given(runs=RUNS)
@settings(deadline=None)
def test_every_step_of_any_interleaving_keeps_the_invariants(aggregate, runs):
    follow(runs, aggregate)


def test_machine_code_keeps_the_invariants_and_never_combines_with_an_identity():
    follow([("+", 20), ("~", 30), ("s", 1), ("-", 15), ("~", 20), ("-", 10), ("+", 9)], Poisoned, compiled=True)


def test_the_running_example_step_by_step():
    """States (a) to (i) of figure 1: max over 2, 6, 3, 5, 3, evicting and inserting in turn.

    The flips are those of two_stacks in figure 3. The text names the 1 that is inserted first; the
    later 4, 0 and 2 are ours.
    """
    window = aggregator("two_stacks_lite", Max)
    window.bulk_insert([9, 2, 6])
    window.evict()
    window.bulk_insert([3, 5, 3])

    assert parts(window) == ([6, 6], [3, 5, 3], 5)  # (a)
    window.evict()
    assert parts(window) == ([6], [3, 5, 3], 5)  # (b)
    window.insert(1)
    assert parts(window) == ([6], [3, 5, 3, 1], 5)  # (c)
    assert window.query() == 6
    window.evict()
    assert parts(window) == ([], [3, 5, 3, 1], 5)  # (d)
    assert window.query() == 5
    window.insert(4)
    assert parts(window) == ([], [3, 5, 3, 1, 4], 5)  # (e)
    window.evict()
    assert parts(window) == ([5, 4, 4, 4], [], None)  # (f)
    window.insert(0)
    assert parts(window) == ([5, 4, 4, 4], [0], 0)  # (g)
    window.evict()
    assert parts(window) == ([4, 4, 4], [0], 0)  # (h)
    window.insert(2)
    assert parts(window) == ([4, 4, 4], [0, 2], 2)  # (i)
    assert window.query() == 4


@given(runs=RUNS)
@settings(deadline=None)
def test_each_element_is_combined_at_most_twice_and_once_for_each_query(runs):
    counted, calls = counting(Max)
    window, n_inserted = aggregator("two_stacks_lite", counted), 0
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
    window = aggregator("two_stacks_lite", counted)
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
    window = aggregator("two_stacks_lite", counted)
    window.bulk_insert(range(50))
    assert calls.take() == 49, "the first element of a stack is its own aggregate"
    window.evict()
    assert calls.take() == 49
    window.bulk_evict(49)
    assert calls.take() == 0


@pytest.mark.parametrize(("invariant", "cell"), [("I2", RING + 1), ("I3", RING + 4), ("I4", BACK_TOTAL)])
def test_damage_to_a_cell_is_named_by_its_invariant(invariant, cell):
    window = aggregator("two_stacks_lite", Concat)
    window.bulk_insert("abc")
    window.evict()
    window.bulk_insert("de")
    window._state.pool[cell] = "damaged"
    with pytest.raises(AssertionError, match=f"{invariant} is broken"):
        window.check_invariants(list("abcde"))


def test_pointers_out_of_order_break_the_first_invariant():
    window = aggregator("two_stacks_lite", Concat)
    window.insert("a")
    window._state.at[BACK] = 2
    with pytest.raises(AssertionError, match="I1 is broken"):
        window.check_invariants(["a"])
