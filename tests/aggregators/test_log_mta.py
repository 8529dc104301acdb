"""What is particular to log_mta: its two edges, its costs, the figures of the paper."""

from __future__ import annotations

from math import log2

import pytest
from hypothesis import given

import sash
from sash.aggregators.contract import END, OLDEST
from sash.aggregators.levels import N_LEVELS, in_rings
from sash.aggregators.log_mta import HEAD, TAIL, TOP
from sash.compiling.jit import interpreted
from sash.engine.aggregator import aggregator
from sash.testing.counting import counting
from sash.testing.monoids import Affine, Concat, Max, Sum
from tests.aggregators.monoid_trees import RUNS, climb
from tests.aggregators.walking import Poisoned

SIZES = [*range(1, 18), 64, 100, 255, 256, 257, 1024, 4096]


def tree(window):
    """What the nodes of each level hold of the window, the elements first."""
    state, place = window._state, in_rings(interpreted, TAIL + N_LEVELS)
    oldest, end = state.at[OLDEST], state.at[END]
    rows = []
    for level in range(state.at[TOP] + 1):
        first, last = oldest >> level, (end - 1) >> level
        row = [state.pool[HEAD + level]] + [state.pool[place(state, level, k)] for k in range(first + 1, last)]
        is_whole = end & ((1 << level) - 1) == 0
        if last > first:
            row.append(state.pool[place(state, level, last) if is_whole else TAIL + level])
        rows.append(row)
    return rows


@pytest.mark.parametrize("aggregate", [Concat, Affine])
@given(runs=RUNS)
def test_every_step_of_any_interleaving_keeps_the_invariants(aggregate, runs):
    climb("log_mta", runs, aggregate)


def test_machine_code_keeps_the_invariants_and_never_combines_with_an_identity():
    runs = [("+", 20), ("~", 30), ("s", 1), ("/", 30), ("q", 1), ("~", 20), ("/", 10), ("+", 40), ("/", 35), ("-", 9)]
    climb("log_mta", runs, Poisoned, compiled=True)


# --- the figures of the paper


def test_figure_1_the_tree_and_its_levels():
    window = aggregator("log_mta", Sum)
    window.bulk_insert([1, 2, 1, 2, 1, 2])
    assert tree(window) == [[1, 2, 1, 2, 1, 2], [3, 3, 3], [6, 3]]
    assert window.query() == 9


def test_the_tree_of_figure_1_grows_by_a_level_when_its_root_has_more_than_a_pair():
    window = aggregator("log_mta", Sum)
    window.bulk_insert([1, 2, 1, 2, 1, 2])
    window.bulk_insert([1, 2])
    assert tree(window) == [[1, 2] * 4, [3, 3, 3, 3], [6, 6]]
    window.insert(1)
    assert tree(window) == [[1, 2] * 4 + [1], [3, 3, 3, 3, 1], [6, 6, 1], [12, 1]]


def at_most_four_units(total, old):
    return total.time - old.time >= 4


def test_figure_2_one_timestamp_evicts_all_the_others():
    """Max of timestamps, total - old >= 4: the drawing has 8 come last; 1 to 4 stand for the others."""
    asked = []

    def policy(total, old):
        asked.append(old.time)
        return at_most_four_units(total, old)

    window = aggregator("log_mta", {"time": sash.max()}, policy=policy)
    window.bulk_insert([1, 2, 3, 4])
    assert tree(window) == [[1, 2, 3, 4], [2, 4]]
    asked.clear()
    window.insert(8)
    assert asked[:4] == [1, 2, 4, 8], "the elements 3 and 4 go as a node"
    assert tree(window) == [[8]]
    assert window.query() == {"time": 8}


def test_an_eviction_renews_the_left_edge():
    window = aggregator("log_mta", Sum)
    window.bulk_insert([1, 2, 1, 2, 1, 2])
    window.evict()
    assert tree(window) == [[2, 1, 2, 1, 2], [2, 3, 3], [5, 3]]
    window.bulk_evict(2)
    assert tree(window) == [[2, 1, 2], [2, 3]]
    assert window.query() == 5


# --- costs


def rounds_of(size, order, n_rounds):
    counted, calls = counting(Max)
    window = aggregator("log_mta", counted)
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
def test_a_round_costs_three_logarithms_at_most(order):
    for size in SIZES:
        levels = log2(size)
        for cost in rounds_of(size, order, min(4 * size, 2000)):
            assert cost["i"] <= levels + 2
            assert cost["e"] <= levels
            assert cost["q"] <= 1
            assert sum(cost.values()) <= 3 * levels


@pytest.mark.parametrize(("size", "begin"), [(1, 0), (100, 0), (100, 37), (256, 0), (255, 1), (257, 99)])
def test_evicting_any_number_of_elements_costs_a_logarithm(size, begin):
    counted, calls = counting(Max)
    window = aggregator("log_mta", counted)
    window.bulk_insert(range(begin))
    window.bulk_evict(begin)
    window.bulk_insert(range(size))
    window.query()
    saved = window.snapshot()
    for count in range(size + 1):
        window.restore(saved)
        calls.take()
        window.bulk_evict(count)
        assert calls.take() <= log2(size), count


# --- the check itself


@pytest.mark.parametrize(("invariant", "cell"), [("I2", TAIL + N_LEVELS + 3), ("I3", HEAD + 1), ("I4", TAIL + 2)])
def test_damage_to_a_cell_is_named_by_its_invariant(invariant, cell):
    window = aggregator("log_mta", Concat)
    window.bulk_insert("abcdefghij")
    window.evict()
    window._state.pool[cell] = "damaged"
    with pytest.raises(AssertionError, match=f"{invariant} is broken"):
        window.check_invariants(list("abcdefghij"))


def test_a_top_astray_breaks_the_first_invariant():
    window = aggregator("log_mta", Max)
    window.bulk_insert([5] * 10)
    window._state.at[TOP] += 1
    with pytest.raises(AssertionError, match="I1 is broken"):
        window.check_invariants([5] * 10)
