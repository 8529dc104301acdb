"""What is particular to daba_lite: its costs, its invariants, the running example of the papers."""

from __future__ import annotations

import functools

import pytest
from hypothesis import given, settings

from sash.aggregators.contract import END, MASK, OLDEST
from sash.aggregators.daba_lite import ACCUMULATOR, BACK, BACK_TOTAL, LEFT, MIDDLE, RIGHT, RING
from sash.engine.aggregator import aggregator
from sash.testing.counting import counting
from sash.testing.monoids import Affine, Concat, Max
from tests.aggregators import walking
from tests.aggregators.walking import RUNS, Poisoned

follow = functools.partial(walking.follow, "daba_lite")


def laid_open(window, origin):
    """Pointers counted from an element, then the slots, oldest first."""
    pool, _, at = window._state
    pointers = tuple(at[register] - origin for register in (OLDEST, LEFT, RIGHT, ACCUMULATOR, BACK, END))
    return pointers, [pool[RING + (i & at[MASK])] for i in range(at[OLDEST], at[END])]


@pytest.mark.parametrize("aggregate", [Concat, Affine])
@given(runs=RUNS)
@settings(deadline=None)
def test_every_step_of_any_interleaving_keeps_the_invariants(aggregate, runs):
    follow(runs, aggregate)


def test_machine_code_keeps_the_invariants_and_never_combines_with_an_identity():
    follow([("+", 20), ("~", 30), ("s", 1), ("-", 15), ("~", 20), ("-", 10), ("+", 9)], Poisoned, compiled=True)


def test_the_running_example_step_by_step():
    """States (a) to (i) of figure 15 of DABA, whose pointers DABA Lite moves alike.

    Max over 2, 6, 3, 5, 3, evicting and inserting in turn, reached after two older elements. Where
    DABA holds aggregates of the right part and of the back, the slots hold values. The text names
    the 1 that is inserted first; the later 4, 0 and 2 are ours.
    """
    window = aggregator("daba_lite", Max)
    window.bulk_insert([8, 9, 2, 6, 3, 5, 3])
    window.bulk_evict(2)

    assert laid_open(window, 2) == ((0, 1, 2, 3, 5, 5), [6, 6, 3, 5, 3])  # (a)
    assert window._state.pool[MIDDLE] == 5
    window.evict()
    assert laid_open(window, 2) == ((1, 2, 2, 2, 5, 5), [6, 5, 5, 3])  # (b)
    window.insert(1)
    assert laid_open(window, 2) == ((1, 3, 3, 3, 5, 6), [6, 5, 5, 3, 1])  # (c)
    assert window._state.pool[BACK_TOTAL] == 1
    assert window.query() == 6
    window.evict()
    assert laid_open(window, 2) == ((2, 4, 4, 4, 5, 6), [5, 5, 3, 1])  # (d)
    assert window.query() == 5
    window.insert(4)
    assert laid_open(window, 2) == ((2, 5, 5, 5, 5, 7), [5, 5, 3, 1, 4])  # (e)
    assert window._state.pool[BACK_TOTAL] == 4
    window.evict()
    assert laid_open(window, 2) == ((3, 4, 5, 6, 7, 7), [5, 3, 1, 4])  # (f)
    assert window._state.pool[MIDDLE] == 4
    window.insert(0)
    assert laid_open(window, 2) == ((3, 5, 5, 5, 7, 8), [5, 4, 4, 4, 0])  # (g)
    assert window.query() == 5
    window.evict()
    assert laid_open(window, 2) == ((4, 6, 6, 6, 7, 8), [4, 4, 4, 0])  # (h)
    window.insert(2)
    assert laid_open(window, 2) == ((4, 7, 7, 7, 7, 9), [4, 4, 4, 0, 2])  # (i)
    assert window.query() == 4


@given(runs=RUNS)
@settings(deadline=None)
def test_no_insert_combines_more_than_3_times_no_evict_2_no_query_1(runs):
    counted, calls = counting(Max)
    window, n_inserts, n_evicts, total = aggregator("daba_lite", counted), 0, 0, 0
    for step in "".join(step.replace("~", "-+") * times for step, times in runs):
        if step == "+":
            window.insert(1)
            n_inserts += 1
            assert calls.combine <= 3
        elif step == "-" and len(window) > 0:
            window.evict()
            n_evicts += 1
            assert calls.combine <= 2
        total += calls.take()
        window.query()
        assert calls.take() <= 1
    assert total <= 2 * n_inserts + n_evicts + len(window)  # what was turned but has not ridden free yet


def test_the_bounds_are_reached_and_4_is_the_mean_of_a_round():
    counted, calls = counting(Max)
    window = aggregator("daba_lite", counted)
    window.bulk_insert(range(200))
    calls.take()
    costs = []
    for value in range(4000):
        window.insert(value)
        inserting = calls.take()
        window.query()
        querying = calls.take()
        window.evict()
        costs.append((inserting, calls.take(), querying))
    assert [max(column) for column in zip(*costs, strict=True)] == [3, 2, 1]
    assert 3.95 < sum(map(sum, costs)) / len(costs) <= 4


@pytest.mark.parametrize(
    ("invariant", "cell"),
    [
        ("I2", RING + 2),
        ("I3", RING + 3),
        ("I4", RING + 4),
        ("I5", RING + 5),
        ("I6", RING + 7),
        ("I7", MIDDLE),
        ("I8", BACK_TOTAL),
    ],
)
def test_damage_to_a_cell_is_named_by_its_invariant(invariant, cell):
    """The window is b c | d | e | f g | h: every part of it holds something."""
    window = aggregator("daba_lite", Concat)
    window.bulk_insert("abcdefg")
    window.evict()
    window.insert("h")
    window._state.pool[cell] = "damaged"
    with pytest.raises(AssertionError, match=f"{invariant} is broken"):
        window.check_invariants(list("abcdefgh"))


@pytest.mark.parametrize(
    ("invariant", "moves"),
    [("I1", {LEFT: 2}), ("I9", {LEFT: 1}), ("I10", {LEFT: 1, ACCUMULATOR: -1})],
)
def test_a_pointer_astray_is_named_by_its_invariant(invariant, moves):
    """All elements are equal, so that every aggregate is right wherever the pointers are."""
    window = aggregator("daba_lite", Max)
    window.bulk_insert([5] * 7)
    window.evict()
    window.insert(5)
    for register, distance in moves.items():
        window._state.at[register] += distance
    with pytest.raises(AssertionError, match=f"{invariant} is broken"):
        window.check_invariants([5] * 8)
