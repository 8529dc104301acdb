"""Places: where rows of a table by time go so that those of a key follow one another."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sash.engine import placing

CODES = st.lists(st.integers(0, 6), max_size=40).map(lambda codes: np.array(codes, np.int64))


@given(codes=CODES)
def test_rows_of_a_key_follow_one_another_as_they_came(codes):
    places, begins = placing.place(codes, 7)
    wanted = np.argsort(codes, kind="stable")
    assert np.array_equal(placing.brought(np.arange(len(codes)), places), wanted)
    assert np.array_equal(begins, np.diff(codes[wanted], prepend=-1) != 0)


@given(codes=CODES)
def test_answers_come_back_to_the_rows_that_they_are_of(codes):
    places, _ = placing.place(codes, 7)
    values = np.arange(len(codes)) * 0.5
    assert np.array_equal(placing.put_back(placing.brought(values, places), places), values)


@pytest.mark.parametrize(
    "values",
    [
        np.array([True, False, True]),
        np.array([1, -2, 3], np.int8),
        np.array([1, 2, 2**16 - 1], np.uint16),
        np.array([0.5, np.inf, -0.0], np.float32),
        np.array([np.nan, 1.5, -0.0]),
        np.array([2**64 - 1, 0, 1], np.uint64),
        np.array(["a", None, (1, 2)], object),
        np.array([(1, 0.5), (2, 1.5), (3, 2.5)], [("n", "i8"), ("x", "f8")]),
        np.arange(6).reshape(3, 2),
    ],
    ids=lambda values: f"{values.dtype.str}x{values.ndim}",
)
def test_values_of_any_type_go_there_and_back(values):
    places, _ = placing.place(np.array([1, 0, 1]), 2)
    there = placing.brought(values, places)
    assert there.dtype == values.dtype
    assert there.tobytes() == values[[1, 0, 2]].tobytes()
    back = placing.put_back(there, places)
    assert back.dtype == values.dtype
    assert back.tobytes() == values.tobytes()


def test_columns_that_must_not_be_written_are_only_read():
    codes, values = np.array([1, 0, 1]), np.array([1.0, 2.0, 3.0])
    for array in (codes, values):
        array.flags.writeable = False
    places, _ = placing.place(codes, 2)
    assert placing.brought(values, places).tolist() == [2.0, 1.0, 3.0]


@given(codes=CODES, data=st.data())
def test_what_falls_is_told_for_the_order_and_for_whole_rows(codes, data):
    times = st.lists(st.integers(-3, 3), min_size=len(codes), max_size=len(codes))
    order = np.array(data.draw(times | times.map(sorted)), np.int64)
    found = placing.falls(codes, order)
    rows = list(zip(codes.tolist(), order.tolist(), strict=True))
    assert bool(found & placing.ORDER_FALLS) == (order.tolist() != sorted(order.tolist()))
    assert bool(found & placing.ROWS_FALL) == (rows != sorted(rows))
