"""The last session: laws, and its answers against a walk over the times."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sash.algebra.sessions import last_session
from sash.engine.aggregator import aggregator
from sash.errors import DataError, DeclarationError
from sash.testing.laws import assert_laws

TIMES = st.lists(st.integers(0, 7), min_size=1, max_size=20).map(lambda steps: np.cumsum(steps).tolist())


def walked(times, span):
    """Begin and end of the last session, and whether there is another before it."""
    begin, is_cut = times[0], 0
    for older, newer in pairwise(times):
        if newer - older > span:
            begin, is_cut = newer, 1
    return (begin, times[-1], is_cut)


def test_the_laws_hold_on_times_that_rise_and_on_any_others():
    assert_laws(last_session(2), [0, 1, 3, 6, 10, -5])
    assert_laws(last_session(0.5), [0.0, 0.25, 0.75, 2.0, -1.0])


@given(times=TIMES, span=st.integers(0, 7))
def test_the_answers_are_those_of_a_walk(times, span):
    window = aggregator("recalc", last_session(span))
    window.bulk_insert(times)
    assert window.query() == walked(times, span)


@given(times=TIMES, span=st.integers(0, 7))
def test_a_window_that_slides_finds_the_session_of_what_it_holds(times, span):
    window = aggregator("amta", last_session(span))
    for i, time in enumerate(times):
        window.insert(time)
        if i >= 5:
            window.evict()
        assert window.query() == walked(times[max(0, i - 4) : i + 1], span)


def test_nulls_are_no_silence_and_nothing_has_no_session():
    window = aggregator("recalc", last_session(2))
    assert window.query() is None
    window.insert(None)
    assert window.query() is None
    window.bulk_insert([1, None, 3, None, 9])
    assert window.query() == (9, 9, 1)


def test_a_silence_of_exactly_the_span_does_not_cut():
    window = aggregator("recalc", last_session(2))
    window.bulk_insert([1, 3, 5])
    assert window.query() == (1, 5, 0)


def test_the_same_session_is_the_same_aggregate():
    assert last_session(3, "t") == last_session(3, "t")
    assert last_session(3, "t") != last_session(4, "t")
    assert last_session(3).bind(np.dtype("i4")) is last_session(3).bind(np.dtype("i8"))


def test_times_that_are_no_numbers_are_refused():
    with pytest.raises((DataError, DeclarationError), match="last_session"):
        aggregator("recalc", last_session(2), dtype="U3")
