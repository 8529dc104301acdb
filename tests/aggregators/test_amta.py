"""What is particular to amta: its forest, its stack, its costs, the figures of the paper."""

from __future__ import annotations

from math import log2

import pytest
from hypothesis import given

from sash.aggregators.amta import ANSWER, DEPTH, FRONT, LEFT, RIGHT, STACK, TOP, n_definite
from sash.aggregators.contract import END, OLDEST
from sash.aggregators.levels import in_rings
from sash.compiling.jit import interpreted
from sash.engine.aggregator import aggregator
from sash.testing.counting import counting
from sash.testing.monoids import Affine, Concat, Max, Sum
from tests.aggregators.monoid_trees import RUNS, climb
from tests.aggregators.walking import Poisoned

SIZES = [*range(1, 18), 63, 64, 65, 100, 127, 255, 256, 257, 1000, 1023, 1024, 4095, 4096]


def forest(window):
    """The definite nodes of each level that have lost nothing, the elements first."""
    state, place = window._state, in_rings(interpreted, STACK + 48)
    oldest, end = state.at[OLDEST], state.at[END]
    return [
        [state.pool[place(state, level, k)] for k in range(n_definite(end, level)) if k << level >= oldest]
        for level in range(state.at[TOP] + 1)
    ]


def halves(window):
    """R0, R1 and the stack from its top; a query first, since recomputations wait for one."""
    window.query()
    pool, at = window._state.pool, window._state.at
    right = pool[RIGHT] if at[FRONT] < at[END] else None
    return pool[LEFT], right, [pool[STACK + place] for place in reversed(range(at[DEPTH]))]


@pytest.mark.parametrize("aggregate", [Concat, Affine])
@given(runs=RUNS)
def test_every_step_of_any_interleaving_keeps_the_invariants(aggregate, runs):
    climb("amta", runs, aggregate)


def test_machine_code_keeps_the_invariants_and_never_combines_with_an_identity():
    runs = [("+", 20), ("~", 30), ("s", 1), ("/", 30), ("q", 1), ("~", 20), ("/", 10), ("+", 40), ("/", 35), ("-", 9)]
    climb("amta", runs, Poisoned, compiled=True)


# --- the figures of the paper


def test_figure_4_the_forest_the_result_pair_and_the_stack():
    window = aggregator("amta", Sum)
    window.bulk_insert([1, 2, 1, 2, 1, 2, 1, 2])
    assert halves(window) == (6, 6, [5, 3])
    assert forest(window) == [[1, 2, 1, 2, 1, 2, 1, 2], [3, 3, 3], [6]]  # the last pair has no parent yet
    assert window.query() == 12


def test_after_figure_4_an_insertion_goes_to_the_right_half():
    window = aggregator("amta", Sum)
    window.bulk_insert([1, 2, 1, 2, 1, 2, 1, 2])
    window.insert(1)
    assert halves(window) == (6, 7, [5, 3])


def test_an_eviction_pops_the_stack_onto_the_left_half():
    """Section 4.2.1 says R1 where its example and algorithm 6 say R0."""
    window = aggregator("amta", Sum)
    window.bulk_insert([1, 2, 1, 2, 1, 2, 1, 2])
    window.evict()
    assert halves(window) == (5, 6, [3])
    assert window.query() == 11


def test_figure_5_two_single_evictions():
    window = aggregator("amta", Sum)
    window.bulk_insert([1, 3, 2, 1, 2, 1, 1, 0, 3, 1])
    assert halves(window) == (7, 8, [6, 3])
    assert window.query() == 15
    window.evict()
    assert halves(window) == (6, 8, [3])
    assert window.query() == 14
    window.evict()
    assert halves(window) == (3, 8, [1])  # the pair (2, 1) has put its second element there
    assert window.query() == 11
    assert forest(window)[1] == [3, 3, 1]


def test_when_the_leftmost_tree_is_gone_the_next_one_takes_its_place():
    window = aggregator("amta", Sum)
    window.bulk_insert([1, 3, 2, 1, 2, 1, 1, 0, 3, 1])
    for _ in range(4):
        window.evict()
    assert window._state.at[TOP] == 1
    assert halves(window) == (4, 4, [2, 1])
    assert window.query() == 8


def test_a_forest_that_outgrows_its_leftmost_tree_recomputes_both_halves_at_the_next_query():
    window = aggregator("amta", Sum)
    window.bulk_insert([1] * 6)
    assert halves(window) == (4, 2, [3, 2])
    window.insert(1)  # seven elements: the pair on level 1 becomes a node of level 2
    assert halves(window) == (4, 3, [3, 2])
    window.bulk_insert([1] * 4)  # eleven: a second node of level 2
    assert halves(window) == (8, 3, [7, 6, 4])


# --- costs


def rounds_of(size, order, n_rounds):
    counted, calls = counting(Max)
    window = aggregator("amta", counted)
    window.bulk_insert(range(size))
    window.query()
    calls.take()
    steps = {"e": window.evict, "i": lambda: window.insert(0), "q": window.query}
    for _ in range(n_rounds):
        costs = {}
        for step in order:
            steps[step]()
            costs[step] = calls.take()
        yield costs


@pytest.mark.parametrize("order", ["eiq", "ieq"])
def test_a_round_costs_four_combines_at_most_in_the_long_run(order):
    for size in SIZES:
        n_rounds = 4 * size if size < 1000 else 2 * size
        total = sum(sum(costs.values()) for costs in rounds_of(size, order, n_rounds))
        assert total <= 4 * n_rounds + 2 * log2(size) + 4, size


@pytest.mark.parametrize("order", ["eiq", "ieq"])
def test_no_operation_costs_more_than_three_logarithms(order):
    for size in SIZES:
        levels = log2(size)
        for costs in rounds_of(size, order, min(4 * size, 5000)):
            assert costs["i"] <= levels + 1
            assert costs["e"] <= 3 * levels
            assert costs["q"] <= 3 * levels + 1
            assert sum(costs.values()) <= 5 * levels + 2


@given(runs=RUNS)
def test_whatever_comes_and_goes_no_operation_costs_more_than_logarithms_of_the_largest_window(runs):
    counted, calls = counting(Max)
    window, largest, n_steps, total = aggregator("amta", counted), 1, 0, 0
    for step in "".join(step.replace("~", "-+") * times for step, times in runs):
        if step == "+":
            window.insert(1)
        elif step == "-" and len(window) > 0:
            window.evict()
        elif step == "/":
            window.bulk_evict(len(window) // 2)
        largest = max(largest, len(window))
        assert calls.combine <= 3 * log2(largest) + 1
        window.query()
        n_steps += 1
        cost = calls.take()
        total += cost
        assert cost <= 4 * log2(largest) + 2
    assert total <= 5 * n_steps + 3 * log2(largest)


@pytest.mark.parametrize(("size", "begin"), [(1, 0), (100, 0), (100, 37), (256, 0), (255, 1), (257, 99)])
def test_evicting_any_number_of_elements_costs_three_logarithms_at_most(size, begin):
    counted, calls = counting(Max)
    window = aggregator("amta", counted)
    window.bulk_insert(range(begin))
    window.bulk_evict(begin)
    window.bulk_insert(range(size))
    window.query()
    saved = window.snapshot()
    for count in range(size + 1):
        window.restore(saved)
        calls.take()
        window.bulk_evict(count)
        assert calls.take() <= 3 * log2(size), count


@pytest.mark.parametrize("step", [2, 3, 5])
def test_a_window_that_slides_by_a_few_pays_for_the_elements_and_not_for_the_levels(step):
    counted, calls = counting(Max)
    window = aggregator("amta", counted)
    window.bulk_insert(range(1024))
    window.query()
    calls.take()
    for value in range(1024):
        window.bulk_insert([value] * step)
        window.bulk_evict(step)
        window.query()
    assert calls.take() <= 1024 * (3 * step + 1) + 64


# --- the check itself


@pytest.mark.parametrize(
    ("invariant", "cell"),
    [("I3", STACK + 48 + 3), ("I4", LEFT), ("I4", RIGHT), ("I5", STACK), ("I6", ANSWER)],
)
def test_damage_to_a_cell_is_named_by_its_invariant(invariant, cell):
    window = aggregator("amta", Concat)
    window.bulk_insert("abcdefghij")
    window.evict()
    window.query()
    window._state.pool[cell] = "damaged"
    with pytest.raises(AssertionError, match=f"{invariant} is broken"):
        window.check_invariants(list("abcdefghij"))


@pytest.mark.parametrize(("invariant", "register"), [("I1", FRONT), ("I2", TOP), ("I5", DEPTH)])
def test_a_register_astray_is_named_by_its_invariant(invariant, register):
    window = aggregator("amta", Max)
    window.bulk_insert([5] * 10)
    window.query()
    window._state.at[register] += {FRONT: 7, TOP: -1, DEPTH: -1}[register]
    if register == TOP:
        window._state.at[FRONT] = n_definite(10, 1) << 1
    with pytest.raises(AssertionError, match=f"{invariant} is broken"):
        window.check_invariants([5] * 10)
