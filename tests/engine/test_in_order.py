"""Events of one window: many at once, by name, of any type; and what is refused."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sash
from sash.compiling.jit import is_enabled
from sash.engine.aggregator import aggregator
from sash.engine.in_order import MANY
from sash.errors import DataError, DeclarationError, EmptyWindowError, UnknownNameError, UnsupportedError
from sash.testing.monoids import Affine, Sum

FORMS = ["interpreted", "compiled"] if is_enabled() else ["interpreted"]
ALGORITHMS = ["amta", "log_mta", "two_stacks_lite", "daba_lite", "recalc", "subtract_on_evict"]


def two_columns(form):
    """A sum of x and the youngest t; the same in every test, so that it is compiled once."""
    options = {"compiled": True, "dtype": {"x": "i8", "t": "f8"}} if form == "compiled" else {}
    return aggregator("two_stacks_lite", {"sum": sash.sum("x"), "last": sash.last("t")}, **options)


def one_column(form):
    options = {"compiled": True, "dtype": "i8"} if form == "compiled" else {}
    return aggregator("two_stacks_lite", sash.sum(), **options)


# --- columns by name


@pytest.mark.parametrize("form", FORMS)
def test_events_by_name_in_order_and_in_bulk_are_the_same(form):
    window = two_columns(form)
    window.insert(x=3, t=0.5)
    assert window.query() == {"sum": 3, "last": 0.5}
    window.insert(4, 1.5)
    assert window.query() == {"sum": 7, "last": 1.5}
    window.bulk_insert([(5, 2.5), (None, 3.5)])
    assert window.query() == {"sum": 12, "last": 3.5}
    window.bulk_insert({"t": np.array([4.5, 5.5]), "x": np.array([6, 7])})
    assert window.query() == {"sum": 25, "last": 5.5}
    window.bulk_insert({"x": [8, None], "t": [None, 6.5]})
    assert window.query() == {"sum": 33, "last": 6.5}
    window.bulk_insert({"x": np.ma.array([1, 99], mask=[False, True]), "t": np.ma.array([9.0, 9.0], mask=True)})
    assert window.query() == {"sum": 34, "last": 6.5}
    window.bulk_insert({"x": np.zeros(0, np.int64), "t": np.zeros(0)})
    window.bulk_insert([])
    assert len(window) == 10


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    ("insert", "message"),
    [
        (lambda window: window.insert(x=1), "insert takes x, t, got x"),
        (lambda window: window.insert(1, t=1), "insert takes x, t, got t"),
        (lambda window: window.insert(x=1, t=1, y=1), "insert takes x, t, got x, t, y"),
        (lambda window: window.insert(1), r"insert takes 2 value\(s\), got 1"),
        (lambda window: window.bulk_insert({"x": [1]}), "events have the columns x, t, got x"),
        (
            lambda window: window.bulk_insert({"x": [1], "t": [1], "y": [1]}),
            "events have the columns x, t, got x, t, y",
        ),
        (lambda window: window.bulk_insert({}), "events have the columns x, t, got none"),
        (lambda window: window.bulk_insert({"x": [1, 2, 3], "t": [1.0]}), "of one length, got 1 and 3 rows"),
        (lambda window: window.bulk_insert({"x": np.ones((2, 2)), "t": [1.0, 2.0]}), "one dimension, got one of 2"),
        (lambda window: window.bulk_insert([(1, 2), (3,)]), r"takes 2 value\(s\), got"),
    ],
)
def test_events_that_do_not_fit_are_refused(form, insert, message):
    window = two_columns(form)
    with pytest.raises(DataError, match=message):
        insert(window)
    assert len(window) <= 1


@pytest.mark.parametrize("form", FORMS)
def test_values_without_names_take_none(form):
    window = one_column(form)
    with pytest.raises(DataError, match="insert takes values without names, got x"):
        window.insert(x=1)
    with pytest.raises(DataError, match="events have no columns with names, got x"):
        window.bulk_insert({"x": [1]})


def test_columns_are_named_by_all_aggregates_or_by_none():
    with pytest.raises(DeclarationError, match="max names no column where others name x"):
        aggregator("recalc", {"sum": sash.sum("x"), "max": sash.max()})
    window = aggregator("recalc", {"sum": sash.sum("x"), "n": sash.count()})
    window.bulk_insert([1, 2])
    assert window.query() == {"sum": 3, "n": 2}


def test_two_aggregates_of_one_column_take_one_value():
    window = aggregator("recalc", {"sum": sash.sum("x"), "max": sash.max("x"), "at": sash.argmax("x", "t")})
    window.insert(x=3, t="a")
    window.insert(5, "b")
    assert window.query() == {"sum": 8, "max": 5, "at": "b"}


def test_types_by_column_are_checked():
    with pytest.raises(UnknownNameError, match=r"unknown column 'tt'\. Did you mean 't'\?"):
        aggregator("recalc", {"last": sash.last("t")}, dtype={"tt": "i8"}, compiled=True)


def test_a_condition_is_not_left_out_silently():
    with pytest.raises(UnsupportedError, match=r"takes no condition, got sum.where\('paid'\).*insert None"):
        aggregator("recalc", sash.sum("x").where("paid"))


# --- many at once


@pytest.mark.parametrize("form", FORMS)
def test_an_array_is_as_good_as_its_values(form):
    window = one_column(form)
    window.bulk_insert(np.array([1, 2, 3]))
    window.bulk_insert(np.array([1, 2, 3], "u1")[::-1])
    window.bulk_insert(np.ma.array([4, 5], mask=[True, False]))
    window.bulk_insert(np.array([2.0, 3.0]))
    window.bulk_insert(x for x in (10, None))
    assert (window.query(), len(window)) == (32, 12)
    with pytest.raises(DataError, match="one dimension, got one of 2"):
        window.bulk_insert(np.ones((2, 2)))
    assert len(window) == 12


@pytest.mark.skipif(not is_enabled(), reason="machine code is switched off")
@pytest.mark.parametrize(
    "values", [[1.5], np.array([1, 2.5]), np.array([np.nan]), np.array([2**63], "u8"), np.array([1e300])]
)
def test_what_is_no_integer_is_refused_where_integers_are_compiled(values):
    window = one_column("compiled")
    with pytest.raises(DataError, match="is no int64; give dtype= the type of the values"):
        window.bulk_insert(values)
    with pytest.raises(DataError, match=r"1\.5 is no int64"):
        window.insert(1.5)
    assert len(window) == 0


@pytest.mark.skipif(not is_enabled(), reason="machine code is switched off")
def test_an_array_larger_than_any_ring_so_far_makes_room_at_once():
    window = aggregator("amta", Sum, compiled=True, dtype="i8")
    window.bulk_insert(np.arange(100_000))
    assert window.query() == sum(range(100_000))
    window.bulk_evict(99_990)
    assert window.query() == sum(range(99_990, 100_000))
    window.insert(1)
    assert window._capacity <= 64, "room is given back, by the next event"
    assert window.query() == sum(range(99_990, 100_000)) + 1


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@given(parts=st.lists(st.tuples(st.integers(0, 40), st.integers(0, 60)), max_size=8))
def test_evicting_many_is_evicting_each(algorithm, parts):
    window, held, value = aggregator(algorithm, Affine), [], 0
    for n_inserted, n_evicted in parts:
        new = list(range(value, value + n_inserted))
        value += n_inserted
        window.bulk_insert(new)
        held += new
        count = min(n_evicted, len(held))
        window.bulk_evict(count)
        held = held[count:]
        plain = aggregator("recalc", Affine)
        plain.bulk_insert(held)
        assert (len(window), window.query()) == (len(held), plain.query())


@pytest.mark.skipif(not is_enabled(), reason="machine code is switched off")
def test_many_evictions_from_machine_code_without_levels_are_one_call():
    window = one_column("compiled")
    window.bulk_insert(np.arange(5000))
    window.bulk_evict(MANY)
    assert (len(window), window.query()) == (5000 - MANY, sum(range(MANY, 5000)))
    window.bulk_evict(len(window))
    assert (len(window), window.query()) == (0, None)


@pytest.mark.parametrize("count", [-1, 4])
@pytest.mark.parametrize("algorithm", ["amta", "log_mta", "two_stacks_lite"])
def test_evicting_more_than_there_are_or_less_than_none_is_refused(algorithm, count):
    window = aggregator(algorithm, Sum)
    window.bulk_insert([1, 2, 3])
    with pytest.raises(EmptyWindowError, match=f"cannot evict {count} of 3 events"):
        window.bulk_evict(count)
    assert window.query() == 6
