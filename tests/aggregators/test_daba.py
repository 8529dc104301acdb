"""What is particular to daba: figures 15 and 16 of the paper, theorem 9, its invariants, its caches."""

from __future__ import annotations

import functools
from typing import NamedTuple

import pytest
from hypothesis import given, settings

from sash.aggregators.contract import END, MASK, OLDEST
from sash.aggregators.daba import (
    ACCUMULATOR,
    AGGREGATE,
    ANSWER,
    ANSWERED,
    BACK,
    LEFT,
    RIGHT,
    RIGHT_TO_BACK,
    RING,
    SLOT,
    SUMMED,
    VALUE,
)
from sash.engine.aggregator import aggregator
from sash.testing.counting import counting
from sash.testing.monoids import Affine, Concat, Max
from tests.aggregators import walking
from tests.aggregators.walking import RUNS, Poisoned

POINTERS = (OLDEST, LEFT, RIGHT, ACCUMULATOR, BACK, END)


follow = functools.partial(walking.follow, "daba")


def laid_open(window, origin):
    """Pointers counted from an element, then values and aggregates, oldest first."""
    pool, _, at = window._state
    slots = [RING + SLOT * (i & at[MASK]) for i in range(at[OLDEST], at[END])]
    pointers = tuple(at[register] - origin for register in POINTERS)
    return pointers, [pool[slot + VALUE] for slot in slots], [pool[slot + AGGREGATE] for slot in slots]


class Sizes(NamedTuple):
    """How long each part is."""

    front: int
    back: int
    left: int
    right: int
    accumulator: int

    @classmethod
    def of(cls, window):
        oldest, left, right, accumulator, back, end = (window._state.at[register] for register in POINTERS)
        return cls(back - oldest, end - back, right - left, accumulator - right, back - accumulator)

    @property
    def steps_left(self):
        return self.left + self.right + self.accumulator


@pytest.mark.parametrize("cached", [True, False])
@pytest.mark.parametrize("aggregate", [Concat, Affine])
@given(runs=RUNS)
@settings(deadline=None)
def test_every_step_of_any_interleaving_keeps_the_invariants(aggregate, cached, runs):
    follow(runs, aggregate, cached=cached)


@pytest.mark.parametrize("cached", [True, False])
def test_machine_code_keeps_the_invariants_and_never_combines_with_an_identity(cached):
    runs = [("+", 20), ("~", 30), ("s", 1), ("-", 15), ("~", 20), ("-", 10), ("+", 9)]
    follow(runs, Poisoned, compiled=True, cached=cached)


@pytest.mark.parametrize("cached", [True, False])
def test_figure_15_step_by_step(cached):
    """States (a) to (i) of the running example: max over 2, 6, 3, 5, 3, evicting and inserting in turn.

    The text says which steps shrink (a-b, f2-f, f-g), ride free (b-c, c-d, d-e, g-h, h-i) and flip
    (f1-f2). With the size invariants that leaves one state (a): a part ready, left and right of one
    element each, an accumulator of two, no back. Two older elements, evicted after all have come,
    lead there. The text names the 1 that is inserted first; the later 4, 0 and 2 are ours.
    """
    window = aggregator("daba", Max, cached=cached)
    window.bulk_insert([8, 9, 2, 6, 3, 5, 3])
    window.bulk_evict(2)

    assert laid_open(window, 2) == ((0, 1, 2, 3, 5, 5), [2, 6, 3, 5, 3], [6, 6, 3, 5, 3])  # (a)
    window.evict()
    assert laid_open(window, 2) == ((1, 2, 2, 2, 5, 5), [6, 3, 5, 3], [6, 5, 5, 3])  # (b)
    window.insert(1)
    assert laid_open(window, 2) == ((1, 3, 3, 3, 5, 6), [6, 3, 5, 3, 1], [6, 5, 5, 3, 1])  # (c)
    assert window.query() == 6
    window.evict()
    assert laid_open(window, 2) == ((2, 4, 4, 4, 5, 6), [3, 5, 3, 1], [5, 5, 3, 1])  # (d)
    assert window.query() == 5
    window.insert(4)
    assert laid_open(window, 2) == ((2, 5, 5, 5, 5, 7), [3, 5, 3, 1, 4], [5, 5, 3, 1, 4])  # (e)
    window.evict()
    assert laid_open(window, 2) == ((3, 4, 5, 6, 7, 7), [5, 3, 1, 4], [5, 3, 1, 4])  # (f), by way of (f1), (f2)
    window.insert(0)
    assert laid_open(window, 2) == ((3, 5, 5, 5, 7, 8), [5, 3, 1, 4, 0], [5, 4, 4, 4, 0])  # (g)
    assert window.query() == 5
    window.evict()
    assert laid_open(window, 2) == ((4, 6, 6, 6, 7, 8), [3, 1, 4, 0], [4, 4, 4, 0])  # (h)
    window.insert(2)
    assert laid_open(window, 2) == ((4, 7, 7, 7, 7, 9), [3, 1, 4, 0, 2], [4, 4, 4, 0, 2])  # (i)
    assert window.query() == 4


def fixed_up(sizes):
    """Follow `fixup` through the proof of figure 16, asserting what it asserts on the way."""
    if sizes.front == 0:
        assert sizes.back <= 1  # line 17 says 1, but there is none when the last element was evicted
        return Sizes(sizes.back, 0, 0, 0, 0)  # line 19
    assert sizes.steps_left == sizes.front - sizes.back  # line 21
    assert sizes.left == sizes.right
    if sizes.steps_left == 0:
        assert sizes.front == sizes.back  # line 23
        sizes = Sizes(sizes.front + sizes.back, 0, sizes.front, sizes.back, 0)  # line 25
    if sizes.left == 0:
        assert sizes.accumulator > 0  # line 27
        return sizes._replace(accumulator=sizes.accumulator - 1)  # line 29
    return sizes._replace(left=sizes.left - 1, right=sizes.right - 1, accumulator=sizes.accumulator + 1)  # line 37


@given(runs=RUNS)
@settings(deadline=None)
def test_every_step_goes_as_the_proof_of_figure_16_says(runs):
    window = aggregator("daba", Max)
    for step in "".join(step.replace("~", "-+") * times for step, times in runs):
        before = Sizes.of(window)
        if step == "+":
            window.insert(1)
            assert Sizes.of(window) == fixed_up(before._replace(back=before.back + 1))
        elif step == "-" and len(window) > 0:
            window.evict()
            assert Sizes.of(window) == fixed_up(before._replace(front=before.front - 1))
        after = Sizes.of(window)
        assert len(window) == 0 or (after.front > after.back and after.front > after.steps_left)


@given(runs=RUNS)
@settings(deadline=None)
def test_theorem_9_no_insert_combines_more_than_3_times_no_evict_2_no_query_1(runs):
    counted, calls = counting(Max)
    window, n_inserts, n_evicts, total = aggregator("daba", counted), 0, 0, 0
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


@pytest.mark.parametrize(("cached", "most", "mean"), [(True, (3, 2, 1), (2, 1, 1)), (False, (4, 3, 1), (2.5, 1.5, 1))])
def test_theorem_9_the_bounds_are_reached_and_2_1_1_is_the_mean(cached, most, mean):
    counted, calls = counting(Max)
    window = aggregator("daba", counted, cached=cached)
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
    for column, worst, expected in zip(zip(*costs, strict=True), most, mean, strict=True):
        assert max(column) == worst
        assert expected - 0.05 < sum(column) / len(column) <= expected


def test_a_query_repeated_is_answered_from_the_cache_until_the_window_changes():
    counted, calls = counting(Concat)
    window = aggregator("daba", counted)
    window.bulk_insert("abc")
    calls.take()
    assert [window.query(), window.query(), calls.take()] == ["a,b,c", "a,b,c", 1]
    window.insert("d")
    window.insert("e")
    calls.take()
    assert [window.query(), window.query(), calls.take()] == ["a,b,c,d,e", "a,b,c,d,e", 1]
    window.evict()
    calls.take()
    assert [window.query(), calls.take()] == ["b,c,d,e", 1]


def test_the_sum_of_figure_17_is_kept_whenever_a_reversal_is_under_way():
    window = aggregator("daba", Max)
    n_reversing = 0
    for value in range(300):
        window.insert(value)
        if value % 7 == 0:
            window.evict()
        at = window._state.at
        n_reversing += at[LEFT] < at[RIGHT]
        assert at[LEFT] == at[RIGHT] or at[SUMMED] == at[BACK]
    assert n_reversing > 100


def reversing():
    """b c | d | e | f g | h: every part of the window holds something, and the answer is cached."""
    window = aggregator("daba", Concat)
    window.bulk_insert("abcdefg")
    window.evict()
    window.insert("h")
    assert window.query() == "b,c,d,e,f,g,h"
    return window


@pytest.mark.parametrize(
    ("invariant", "cell"),
    [
        ("I2", RING + SLOT * 1 + VALUE),
        ("I3", RING + SLOT * 2 + AGGREGATE),
        ("I4", RING + SLOT * 3 + AGGREGATE),
        ("I5", RING + SLOT * 4 + AGGREGATE),
        ("I6", RING + SLOT * 5 + AGGREGATE),
        ("I7", RING + SLOT * 7 + AGGREGATE),
        ("I10", RIGHT_TO_BACK),
        ("I11", ANSWER),
    ],
)
def test_damage_to_a_cell_is_named_by_its_invariant(invariant, cell):
    window = reversing()
    assert window._state.at[ANSWERED]
    window._state.pool[cell] = "damaged"
    with pytest.raises(AssertionError, match=f"{invariant} is broken"):
        window.check_invariants(list("abcdefgh"))


@pytest.mark.parametrize(
    ("invariant", "moves"),
    [("I1", {LEFT: 2}), ("I8", {LEFT: 1}), ("I9", {LEFT: 1, ACCUMULATOR: -1})],
)
def test_a_pointer_astray_is_named_by_its_invariant(invariant, moves):
    """All elements are equal, so that every aggregate is right wherever the pointers are."""
    window = aggregator("daba", Max)
    window.bulk_insert([5] * 7)
    window.evict()
    window.insert(5)
    for register, distance in moves.items():
        window._state.at[register] += distance
    with pytest.raises(AssertionError, match=f"{invariant} is broken"):
        window.check_invariants([5] * 8)
