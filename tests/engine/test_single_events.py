"""Compiled windows over single events: the same answers as interpreted ones, whatever comes, however they grow."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sash
from sash.compiling.addresses import table_of
from sash.compiling.jit import is_enabled
from sash.engine.in_order import SMALLEST
from sash.engine.single_events import CompiledAggregator
from sash.errors import DataError, EmptyWindowError
from sash.testing.monoids import Affine

pytestmark = pytest.mark.skipif(not is_enabled(), reason="machine code is switched off")

FLOATS = st.floats(-1e6, 1e6) | st.sampled_from([math.inf, -0.0, 0.0])
STEPS = st.lists(
    st.tuples(st.just("insert"), FLOATS | st.none() | st.integers(-9, 9)) | st.tuples(st.just("evict"), st.none()),
    max_size=80,
)


def both(algorithm, aggregate, **options):
    """The same window twice: interpreted, and compiled."""
    return (sash.aggregator(algorithm, aggregate, compiled=compiled, **options) for compiled in (False, True))


def same(one, other):
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(one[name], other[name]) for name in one)
    return one == other or (one != one and other != other)


@pytest.mark.parametrize(
    "aggregate",
    [sash.max(), sash.count(), {"n": sash.count(), "top": sash.max(), "last": sash.last()}],
    ids=["max", "count", "three"],
)
@pytest.mark.parametrize("algorithm", ["two_stacks_lite", "daba_lite"])
@given(steps=STEPS)
def test_rounds_are_those_of_an_interpreted_window(algorithm, aggregate, steps):
    plain, compiled = both(algorithm, aggregate)
    assert isinstance(compiled, CompiledAggregator)
    for step, value in steps:
        if step == "insert":
            plain.insert(value)
            compiled.insert(value)
        elif len(plain):
            plain.evict()
            compiled.evict()
        assert len(plain) == len(compiled)
        assert same(plain.query(), compiled.query())


@pytest.mark.parametrize("algorithm", ["two_stacks_lite", "daba", "daba_lite", "recalc", "flat_fit"])
def test_order_is_kept_while_rings_grow_and_shrink(algorithm):
    window = sash.aggregator(algorithm, sash.agg(Affine), compiled=True, dtype="i8")
    held = []
    for number in [*range(100), *range(-100, 0), *range(30)]:
        if number < 0 and len(held) > 3:
            window.evict()
            held.pop(0)
        else:
            window.insert((number + 100) % 7)
            held.append((number + 100) % 7)
        plain = sash.aggregator("recalc", sash.agg(Affine))
        plain.bulk_insert(held)
        assert window.query() == plain.query()


def test_room_is_given_back():
    window = sash.aggregator("two_stacks_lite", sash.sum(), compiled=True)
    for number in range(1000):
        window.insert(float(number))
    for _ in range(999):
        window.evict()
    assert window.query() == 999.0
    assert window._capacity == SMALLEST


def test_a_snapshot_is_gone_on_with_in_other_memory():
    window = sash.aggregator("two_stacks_lite", sash.sum(), compiled=True)
    window.insert(1.5)
    saved = window.snapshot()
    for _ in range(50):
        window.insert(1.0)
    window.restore(saved)
    window.insert(2.0)
    assert (len(window), window.query()) == (2, 3.5)


def test_an_empty_window_answers_and_refuses_as_any_other():
    top, n = (sash.aggregator("two_stacks_lite", each, compiled=True) for each in (sash.max(), sash.count()))
    assert (top.query(), n.query()) == (None, 0)
    with pytest.raises(EmptyWindowError):
        top.evict()
    top.insert(None)
    assert (len(top), top.query()) == (1, None)
    top.insert(4.0)
    assert top.query() == 4.0  # null once is not null for ever


def test_what_is_no_value_of_the_type_is_refused_and_leaves_the_window_as_it_was():
    window = sash.aggregator("two_stacks_lite", sash.sum(), compiled=True, dtype="i8")
    window.insert(3)
    for wrong in (1.5, (1, 2), "x"):
        with pytest.raises((DataError, ValueError, TypeError)):
            window.insert(wrong)
    with pytest.raises(DataError):
        window.insert(1, 2)
    with pytest.raises(OverflowError):
        window.insert(2**63)
    assert (len(window), window.query()) == (1, 3)


def test_an_aggregate_may_read_one_column_twice():
    window = sash.aggregator("two_stacks_lite", sash.argmax("x", "x"), compiled=True)
    for value in (1.0, 3.0, 2.0):
        window.insert(value)
    assert window.query() == 3.0


def test_arrays_that_an_address_does_not_tell_are_refused():
    with pytest.raises(ValueError, match="not told by its address"):
        table_of((np.zeros(8)[::2],))
    with pytest.raises(ValueError, match="3 dimensions"):
        table_of((np.zeros((2, 2, 2)),))
