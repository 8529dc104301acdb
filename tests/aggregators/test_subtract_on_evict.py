"""What is particular to subtract_on_evict: groups that do not commute, what it refuses, how it forgets."""

from __future__ import annotations

import functools
import math

import pytest
from hypothesis import given

from sash.aggregators.contract import View
from sash.aggregators.subtract_on_evict import ALGORITHM, RING, TOTAL
from sash.algebra.declaring import aggregate, monoid_of
from sash.engine.aggregator import aggregator
from sash.engine.events import Folder, reader
from sash.errors import UnsupportedError
from sash.testing.counting import counting
from sash.testing.monoids import Affine, Max, Sum
from tests.aggregators import walking
from tests.aggregators.walking import RUNS


@aggregate(state=object)
class Word:
    """Letters in order; the older part can be cut off."""

    def lift(x):
        return chr(ord("a") + x % 26)

    def combine(older, newer):
        return older + newer

    def invert(whole, older):
        return whole.removeprefix(older)


@aggregate(state={"slope": "i8", "offset": "i8"})
class Poisoned:
    """Affine maps with an identity that is none: whoever combines with it spoils the answer."""

    identity = (0, 0)
    lift, combine, invert, lower = Affine.lift, Affine.combine, Affine.invert, Affine.lower


@aggregate(state="f8")
class FloatSum:
    """A sum of floats, which subtraction does not undo exactly."""

    identity = 0.0
    exact = False

    def lift(x):
        return float(x)

    def combine(older, newer):
        return older + newer

    def invert(whole, older):
        return whole - older


follow = functools.partial(walking.follow, "subtract_on_evict")


@pytest.mark.parametrize("aggregate", [Word, Affine])
@given(runs=RUNS)
def test_every_step_of_any_interleaving_keeps_the_invariants(aggregate, runs):
    follow(runs, aggregate)


def test_machine_code_keeps_the_invariants_and_never_combines_with_an_identity():
    runs = [("+", 20), ("~", 30), ("s", 1), ("-", 15), ("~", 20), ("-", 10), ("+", 9)]
    follow(runs, Poisoned, compiled=True, dtype="i8")


def test_the_older_part_is_taken_from_the_left():
    window = aggregator("subtract_on_evict", Word)
    window.bulk_insert([0, 1, 0, 1, 2])
    window.evict()
    assert window.query() == "babc"


def test_costs_one_combine_an_insert_one_inverse_an_evict_and_nothing_a_query():
    counted, calls = counting(Sum)
    window = aggregator("subtract_on_evict", counted)
    window.insert(7)
    assert (calls.combine, calls.invert) == (0, 0), "the first value is its own total"
    for value in range(40):
        window.insert(value)
        assert calls.take() == 1
    for n_evicted in range(40):
        window.evict()
        window.query()
        assert (calls.combine, calls.invert) == (0, n_evicted + 1)
    window.evict()
    assert calls.invert == 40, "nothing is taken away from the last element"


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("spoiler", [math.nan, math.inf, 1e300])
def test_an_empty_window_forgets_what_was_in_it(spoiler, compiled):
    window = aggregator("subtract_on_evict", FloatSum, dtype="f8", compiled=compiled, inexact=True)
    window.bulk_insert([spoiler, 0.1])
    window.bulk_evict(2)
    assert window.query() is None
    window.insert(0.25)
    assert window.query() == 0.25


@pytest.mark.parametrize("compiled", [False, True])
def test_a_window_that_keeps_nulls_only_answers_null_and_not_zero(compiled):
    window = aggregator("subtract_on_evict", Sum, compiled=compiled, dtype="i8")
    window.bulk_insert([5, None, None])
    assert window.query() == 5
    window.evict()
    assert window.query() is None
    window.insert(7)
    assert window.query() == 7
    window.check_invariants([5, None, None, 7])


def test_refuses_an_aggregate_without_an_inverse_and_names_one_that_needs_none():
    with pytest.raises(
        UnsupportedError, match=r"subtract_on_evict needs an inverse, but Max has none\. Use two_stacks_lite"
    ):
        aggregator("subtract_on_evict", Max)


def test_refuses_one_of_several_without_an_inverse():
    with pytest.raises(UnsupportedError, match="Max has none"):
        aggregator("subtract_on_evict", {"total": Sum, "largest": Max})


def test_refuses_to_subtract_floats_unless_asked():
    with pytest.raises(UnsupportedError, match=r"FloatSum would drift\..*inexact=True"):
        aggregator("subtract_on_evict", FloatSum, dtype="f8")
    window = aggregator("subtract_on_evict", FloatSum, dtype="f8", inexact=True)
    window.bulk_insert([1.0, 2.0])
    window.evict()
    assert window.query() == 2.0


def test_several_aggregates_share_one_window():
    window = aggregator("subtract_on_evict", {"total": Sum, "map": Affine})
    window.bulk_insert([5, 6, 7])
    window.evict()
    alone = aggregator("recalc", Affine)
    alone.bulk_insert([6, 7])
    assert window.query() == {"total": 13, "map": alone.query()}


@pytest.mark.parametrize(("invariant", "cell"), [("I1", RING + 1), ("I2", TOTAL)])
def test_damage_to_a_cell_is_named_by_its_invariant(invariant, cell):
    window = aggregator("subtract_on_evict", Word)
    window.bulk_insert([0, 1, 2])
    window.evict()
    read, truth = reader(window._state.pool, is_compiled=False), Folder(monoid_of(Word), list("abc"))
    ALGORITHM.check(View(window._state, read, truth))
    damaged = View(window._state, lambda each: "damaged" if each == cell else read(each), truth)
    with pytest.raises(AssertionError, match=f"{invariant} is broken"):
        ALGORITHM.check(damaged)
