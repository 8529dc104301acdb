"""Several spans at once: the same answers as one by one, in order and in any order."""

from __future__ import annotations

from datetime import timedelta

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sash
from sash.engine.disordered import AS_OF
from sash.engine.sharing import bounds_of
from sash.testing.counting import counting
from sash.testing.monoids import Affine, Concat, Sum
from sash.windows.frames import CLOSED

SPANS = st.lists(st.integers(0, 15), min_size=1, max_size=4)


@pytest.mark.parametrize("closed", CLOSED)
@pytest.mark.parametrize("as_of", AS_OF)
@given(times=st.lists(st.integers(0, 20), min_size=1, max_size=30), spans=SPANS)
def test_many_spans_of_one_tree_equal_each_alone(closed, as_of, times, spans):
    window = {"times": times, "closed": closed, "ordered": False, "as_of": as_of}
    together = sash.slide(range(len(times)), Concat, span=spans, **window)
    alone = [sash.slide(range(len(times)), Concat, span=span, **window) for span in spans]
    assert [answers.tolist() for answers in together] == [answers.tolist() for answers in alone]


@given(gaps=st.lists(st.integers(0, 5), min_size=1, max_size=30), spans=SPANS)
def test_spans_of_rows_in_order_equal_each_alone(gaps, spans):
    times, values = np.cumsum(gaps), range(len(gaps))
    together = sash.slide(values, Concat, times=times, span=spans, ties="upto")
    alone = [sash.slide(values, Concat, times=times, span=span, ties="upto") for span in spans]
    assert [answers.tolist() for answers in together] == [answers.tolist() for answers in alone]
    arrived = sash.slide(values, Concat, times=times, span=spans, ordered=False, as_of="row")
    assert [answers.tolist() for answers in arrived] == [answers.tolist() for answers in alone]


def test_machine_code_answers_every_span_with_one_insert():
    generator = np.random.default_rng(5)
    times, values = generator.integers(0, 200, 400), generator.integers(0, 1000, 400)
    spans = [0, 60, 7, 1000]
    together = sash.slide(values, Affine, times=times, span=spans, ordered=False)
    for span, answers in zip(spans, together, strict=True):
        alone = sash.slide(values, Affine, times=times, span=span, ordered=False)
        assert answers.tolist() == alone.tolist()


def test_one_more_span_inserts_nothing_more(monkeypatch):
    monkeypatch.setenv("SASH_JIT", "0")  # machine code cannot be counted
    times = np.random.default_rng(1).integers(0, 1000, 300)
    lifted = []
    for spans in ([500], [500, 100, 20]):
        counted, calls = counting(Sum)
        sash.slide(range(300), counted, times=times, span=spans, ordered=False)
        lifted.append(calls.lift)
    assert lifted[0] == lifted[1]


def test_aggregates_keep_their_form_in_every_span(monkeypatch):
    monkeypatch.setenv("SASH_JIT", "0")  # compiling them would take longer than all else here
    window = {"times": [1, 3, 2], "span": (0, 9), "ordered": False}
    found = sash.slide([1, 2, 4], {"sum": sash.sum(), "n": sash.count()}, **window)
    assert [{name: answers.tolist() for name, answers in each.items()} for each in found] == [
        {"sum": [1, 2, 2], "n": [1, 1, 1]},
        {"sum": [1, 3, 7], "n": [1, 2, 3]},
    ]
    assert [a.tolist() for a in sash.slide([1, 2, 4], sash.sum(), **window)] == [[1, 2, 2], [1, 3, 7]]


def test_spans_of_different_units_are_read_alike():
    times = np.array(["2018-06-01T10:00", "2018-06-01T10:20", "2018-06-01T10:10"], "M8[m]")
    spans = [timedelta(minutes=10), np.timedelta64(1, "h"), np.timedelta64(600_001, "ms")]
    for ordered in (True, False):
        found = sash.slide(list("abc"), Concat, times=np.sort(times), span=spans, ordered=ordered)
        assert [answers[2] for answers in found] == ["b,c", "a,b,c", "b,c"]
    mixed = sash.slide(list("abc"), Concat, times=[0, 2, 1], span=[1, 1.5, 2], ordered=False)
    assert [answers[2] for answers in mixed] == ["c,b", "c,b", "a,c,b"]


@pytest.mark.parametrize("keeps_first", [True, False])
@given(now=st.floats(), span=st.floats(0, allow_nan=False))
def test_the_first_float_of_a_window_is_in_it_and_the_one_before_is_not(keeps_first, now, span):
    if np.isnan(now) or (span == 0 and not keeps_first) or np.isinf(now):
        return
    closed = "both" if keeps_first else "right"
    bounds = bounds_of(np.array([now]), [span], closed)
    first = bounds.firsts[0, 0]
    assert first <= now
    with np.errstate(over="ignore"):
        times = np.array([np.nextafter(first, -np.inf), first, now])
    found = sash.slide(["a", "b", "c"], Concat, times=times, span=span, closed=closed)
    assert found[2] == ("a,b,c" if first == -np.inf else "b,c")
