"""What is particular to aba: figure 9 of the paper, its costs, its invariants."""

from __future__ import annotations

import functools

import pytest
from hypothesis import given, settings

from sash.aggregators.aba import AGGREGATE, BACK, RING, SLOT, VALUE
from sash.aggregators.contract import END, MASK, OLDEST
from sash.engine.aggregator import aggregator
from sash.testing.counting import counting
from sash.testing.monoids import Affine, Concat, Max
from tests.aggregators import walking
from tests.aggregators.walking import RUNS, Poisoned

follow = functools.partial(walking.follow, "aba")


def lists(window):
    """Values, aggregates of the front, and aggregates of the back, oldest first."""
    (pool, _, at), (oldest, back, end) = window._state, (window._state.at[r] for r in (OLDEST, BACK, END))
    slots = [RING + SLOT * (i & at[MASK]) for i in range(oldest, end)]
    aggregates = [pool[slot + AGGREGATE] for slot in slots]
    return [pool[slot + VALUE] for slot in slots], aggregates[: back - oldest], aggregates[back - oldest :]


@pytest.mark.parametrize("aggregate", [Concat, Affine])
@given(runs=RUNS)
@settings(deadline=None)
def test_every_step_of_any_interleaving_keeps_the_invariants(aggregate, runs):
    follow(runs, aggregate)


def test_machine_code_keeps_the_invariants_and_never_combines_with_an_identity():
    follow([("+", 20), ("~", 30), ("s", 1), ("-", 15), ("~", 20), ("-", 10), ("+", 9)], Poisoned, compiled=True)


def test_figure_9_step_by_step():
    """States (a) to (i) of the running example: max over 2, 6, 3, 5, 3, evicting and inserting in turn.

    They are those of two_stacks, with the stacks laid bottom to bottom: in (a) the front holds 2
    and 6, and step (e) -> (f) flips. An element older than those, evicted after 6 came, leads to
    (a). The text names the 1 that is inserted first; the later 4, 0 and 2 are ours.
    """
    window = aggregator("aba", Max)
    window.bulk_insert([9, 2, 6])
    window.evict()
    window.bulk_insert([3, 5, 3])

    assert lists(window) == ([2, 6, 3, 5, 3], [6, 6], [3, 5, 5])  # (a)
    window.evict()
    assert lists(window) == ([6, 3, 5, 3], [6], [3, 5, 5])  # (b)
    window.insert(1)
    assert lists(window) == ([6, 3, 5, 3, 1], [6], [3, 5, 5, 5])  # (c)
    assert window.query() == 6
    window.evict()
    assert lists(window) == ([3, 5, 3, 1], [], [3, 5, 5, 5])  # (d)
    assert window.query() == 5
    window.insert(4)
    assert lists(window) == ([3, 5, 3, 1, 4], [], [3, 5, 5, 5, 5])  # (e)
    window.evict()
    assert lists(window) == ([5, 3, 1, 4], [5, 4, 4, 4], [])  # (f), the flip (f1) less its first
    window.insert(0)
    assert lists(window) == ([5, 3, 1, 4, 0], [5, 4, 4, 4], [0])  # (g)
    window.evict()
    assert lists(window) == ([3, 1, 4, 0], [4, 4, 4], [0])  # (h)
    window.insert(2)
    assert lists(window) == ([3, 1, 4, 0, 2], [4, 4, 4], [0, 2])  # (i)
    assert window.query() == 4


@given(runs=RUNS)
@settings(deadline=None)
def test_each_element_is_combined_at_most_twice_and_once_for_each_query(runs):
    counted, calls = counting(Max)
    window, n_inserted = aggregator("aba", counted), 0
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
    window = aggregator("aba", counted)
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
    window = aggregator("aba", counted)
    window.bulk_insert(range(50))
    assert calls.take() == 49, "the first element of a stack is its own aggregate"
    window.evict()
    assert calls.take() == 49
    window.bulk_evict(49)
    assert calls.take() == 0


def test_a_flip_moves_no_value():
    window = aggregator("aba", Concat)
    window.bulk_insert("abcdef")
    cells = [RING + SLOT * element + VALUE for element in range(6)]
    assert [window._state.pool[cell] for cell in cells] == list("abcdef")
    window.evict()
    assert window._state.at[BACK] == window._state.at[END]
    assert [window._state.pool[cell] for cell in cells] == list("abcdef")


@pytest.mark.parametrize(
    ("invariant", "element", "part"),
    [("I2", 1, VALUE), ("I2", 4, VALUE), ("I3", 1, AGGREGATE), ("I4", 4, AGGREGATE)],
)
def test_damage_to_a_cell_is_named_by_its_invariant(invariant, element, part):
    window = aggregator("aba", Concat)
    window.bulk_insert("abc")
    window.evict()
    window.bulk_insert("de")
    window._state.pool[RING + SLOT * element + part] = "damaged"
    with pytest.raises(AssertionError, match=f"{invariant} is broken"):
        window.check_invariants(list("abcde"))


def test_pointers_out_of_order_break_the_first_invariant():
    window = aggregator("aba", Concat)
    window.insert("a")
    window._state.at[BACK] = 2
    with pytest.raises(AssertionError, match="I1 is broken"):
        window.check_invariants(["a"])
