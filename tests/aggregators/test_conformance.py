"""Every in-order algorithm on every kind of aggregate, interpreted and compiled, in step with recalc."""

from __future__ import annotations

import pytest
from hypothesis import Phase, settings
from hypothesis import strategies as st

import sash
from sash.aggregators import ALGORITHMS
from sash.aggregators.contract import SELECTIVE_OR_INVERTIBLE
from sash.algebra.declaring import aggregate
from sash.compiling.jit import is_enabled
from sash.engine.aggregator import aggregator
from sash.errors import EmptyWindowError, UnknownNameError
from sash.testing import fifo_suite
from sash.testing.fifo_suite import excuse, fifo_algorithms, fifo_machine, run_conformance
from sash.testing.monoids import Affine, ArgMax, Bloom, Concat, Max, Mean, Sum

AGGREGATES = [Sum, Max, Mean, Concat, Affine, ArgMax, Bloom]
FORMS = ["interpreted", "compiled"] if is_enabled() else ["interpreted"]
FEW = settings(max_examples=10)
UNSHRUNK = settings(phases=[Phase.generate], database=None)  # a failure that is wanted need not be small


@aggregate(state="i8")
class Valid:
    """How many values there are; a window of nulls has 0 of them."""

    identity = 0
    commutative = answers_empty = True

    def lift(x):
        return 1

    def combine(older, newer):
        return older + newer

    def invert(whole, older):
        return whole - older


@aggregate(state=("i8", 2))
class RowSum:
    """A sum and a count in a row, which can be taken away again."""

    identity = 0

    def lift(x, out):
        out[0], out[1] = x, 1

    def combine(older, newer, out):
        out[0], out[1] = older[0] + newer[0], older[1] + newer[1]

    def invert(whole, older, out):
        out[0], out[1] = whole[0] - older[0], whole[1] - older[1]


@aggregate(state=("i8", 2))
class RowMax:
    """A selection among rows."""

    identity = -100
    selective = True

    def lift(x, out):
        out[0] = out[1] = x

    def combine(older, newer, out):
        for k in range(2):
            out[k] = newer[k] if newer[0] > older[0] else older[k]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("aggregate", AGGREGATES, ids=lambda cls: cls.__name__)
@pytest.mark.parametrize("algorithm", fifo_algorithms())
def test_agrees_with_recalculation_or_refuses(algorithm, aggregate, form):
    run_conformance(algorithm, aggregate, form == "compiled")


@pytest.mark.parametrize("algorithm", fifo_algorithms())
@pytest.mark.parametrize("aggregate", [Valid, RowSum, RowMax], ids=lambda cls: cls.__name__)
def test_answers_for_nothing_and_rows_that_are_subtracted_or_selected(algorithm, aggregate):
    run_conformance(algorithm, aggregate, profile=FEW)


BUILT_IN = {
    "argmax": sash.argmax(),
    "bloom": sash.bloom(),
    "count": sash.count(),
    "max": sash.max(),
    "mean": sash.mean(),
    "sum": sash.sum(),
    "first": sash.first(),
    "last": sash.last(),
}


@pytest.mark.parametrize("name", BUILT_IN)
@pytest.mark.parametrize("algorithm", fifo_algorithms())
def test_built_in_aggregates_agree_with_recalculation_or_are_refused(algorithm, name):
    run_conformance(algorithm, BUILT_IN[name], profile=FEW)


@pytest.mark.parametrize("name", BUILT_IN)
@pytest.mark.parametrize("algorithm", ["subtract_on_evict", "slick_deque", "two_stacks_lite"])
def test_built_in_aggregates_compiled_agree_with_recalculation_or_are_refused(algorithm, name):
    run_conformance(algorithm, BUILT_IN[name], is_enabled(), profile=FEW)


@pytest.mark.parametrize(
    "algorithm", [name for name, card in fifo_algorithms().items() if card.needs == SELECTIVE_OR_INVERTIBLE]
)
def test_compiled_rows_are_refused_where_partials_are_compared(algorithm):
    run_conformance(algorithm, RowMax, is_enabled(), profile=FEW)


@pytest.mark.parametrize("algorithm", fifo_algorithms())
@pytest.mark.parametrize(
    "aggregate", [Concat, sash.concat(), sash.max(), sash.last()], ids=["Concat", "concat", "max", "last"]
)
def test_values_may_be_anything_the_aggregate_takes(algorithm, aggregate):
    run_conformance(algorithm, aggregate, values=st.sampled_from(["a", "b", "cd", ""]), profile=FEW)


def test_every_algorithm_outside_the_suite_has_an_excuse_and_says_so_itself():
    outside = {name: excuse(found.card) for name, found in ALGORITHMS.items() if name not in fifo_algorithms()}
    assert all(outside.values())
    for name in outside:
        card = ALGORITHMS[name].card
        assert card.fixed or card.order != "in order"


def test_an_unknown_algorithm_is_named_with_the_nearest_one():
    with pytest.raises(
        UnknownNameError, match=r"unknown algorithm 'two_stack_lite'\. Did you mean 'two_stacks_lite'\?"
    ):
        run_conformance("two_stack_lite", Sum)


@pytest.mark.parametrize("algorithm", fifo_algorithms())
def test_evicting_from_an_empty_window_is_an_error(algorithm):
    window = aggregator(algorithm, Sum)
    with pytest.raises(EmptyWindowError, match="empty window"):
        window.evict()
    window.insert(1)
    with pytest.raises(EmptyWindowError, match="cannot evict 2 of 1 events"):
        window.bulk_evict(2)
    assert window.query() == 1


# The suite itself must be able to fail.


def test_the_suite_catches_a_machine_that_combines_in_the_wrong_order():
    @aggregate(state=object)
    class Swapped:
        def lift(x):
            return str(x)

        def combine(older, newer):
            return f"{older},{newer}" if len(newer) < 4 else f"{newer},{older}"

    with pytest.raises(AssertionError, match="against"):
        run_conformance("two_stacks_lite", Swapped, profile=UNSHRUNK)


def test_the_suite_catches_a_lost_element(monkeypatch):
    machine = fifo_machine("recalc", Sum)

    def forgetful(self):
        if len(self.truth) > 2:
            self.subject.evict()

    monkeypatch.setattr(machine, "query", fifo_suite.rule()(forgetful), raising=True)
    with pytest.raises(AssertionError):
        fifo_suite.run_state_machine_as_test(machine, settings=UNSHRUNK)


def test_the_suite_demands_a_refusal_where_the_card_says_so(monkeypatch):
    monkeypatch.setattr(fifo_suite, "refusal", lambda card, monoid, compiled: ("no",))
    with pytest.raises(AssertionError, match="recalc must refuse Sum"):
        run_conformance("recalc", Sum)


def test_the_suite_demands_the_right_words_of_a_refusal(monkeypatch):
    monkeypatch.setattr(fifo_suite, "refusal", lambda card, monoid, compiled: ("needs an inverse", "and a pony"))
    with pytest.raises(AssertionError, match=r"does not say \['and a pony'\]"):
        run_conformance("subtract_on_evict", Max)
